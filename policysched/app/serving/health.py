"""Health checks by name, with the answers of Kubernetes components.

`/livez` shows whether a restart would help, `/readyz` whether the scheduler works; `/healthz` equals /livez, for older
tools. These paths show which check fails, but not why; `/readyz/<name>` shows the reason.

Source: k8s.io/apiserver/pkg/server/healthz/healthz.go, cmd/kube-scheduler/app/server.go.
"""

from __future__ import annotations

import asyncio
import json
import logging
import time
from collections.abc import Callable, Iterable, Sequence
from typing import Final

from policysched.klog import V4

log = logging.getLogger(__name__)
HEALTHZ, LIVEZ, READYZ = "healthz", "livez", "readyz"
Check = Callable[[], str]
"""Function that returns a problem, empty if healthy; called in the port's thread."""
BEAT: Final = 1.0
"""Interval of the scheduler loop's heartbeat. Units: seconds."""
STUCK: Final = 30.0
"""Time without a heartbeat above which the health check fails. Units: seconds."""


class Health:
    """The health checks of a process."""

    def __init__(self) -> None:
        self._checks: dict[str, dict[str, Check]] = {HEALTHZ: {}, LIVEZ: {}, READYZ: {}}
        for kind in self._checks:
            self.add("ping", _passes, kind)

    def add(self, name: str, check: Check, *kinds: str) -> None:
        """Add a check to health paths, such as `livez` and `readyz`."""
        for kind in kinds:
            self._checks[kind][name] = check

    def answer(self, path: str, *, excluded: Iterable[str] = (), verbose: bool = False) -> tuple[int, str] | None:
        """Return the result of a health path.

        Args:
            path: /healthz, /livez or /readyz, or one of them with the name of a check.
            excluded: Names of ignored checks.
            verbose: Whether to list all checks if none fails.

        Returns:
            Status code and text; None for another path.
        """
        kind, _, name = path.removeprefix("/").partition("/")
        checks = {**self._checks.get(kind, {})}  # another thread may add checks
        if not checks or (name and name not in checks) or path.endswith("/"):
            return None
        if not name:
            return _all(kind, checks, set(excluded), verbose=verbose)
        problem = _run(checks[name])
        return (500, f"internal server error: {problem}\n") if problem else (200, "ok")


def _all(kind: str, checks: dict[str, Check], excluded: set[str], *, verbose: bool) -> tuple[int, str]:
    lines, failed = [], []
    for name, check in checks.items():
        if name in excluded:
            lines.append(f"[+]{name} excluded: ok")
        elif problem := _run(check):
            lines.append(f"[-]{name} failed: reason withheld")
            failed.append((name, problem))
        else:
            lines.append(f"[+]{name} ok")
    if unknown := excluded - checks.keys():
        lines.append(f"warn: some health checks cannot be excluded: no matches for {_quoted(sorted(unknown))}")
    if failed:
        log.log(V4, "%s check failed: %s", kind, "; ".join(f"{name}: {problem}" for name, problem in failed))
        return 500, "\n".join([*lines, f"{kind} check failed\n"])
    return 200, "\n".join([*lines, f"{kind} check passed\n"]) if verbose else "ok"


def _run(check: Check) -> str:
    try:
        return check()
    except Exception as error:
        log.exception("a health check failed")
        return repr(error)


def _quoted(names: Sequence[str]) -> str:
    return ",".join(map(json.dumps, names))


def _passes() -> str:
    return ""


class Heartbeat:
    """Detects in another thread whether an event loop is blocked.

    Args:
        monotonic: A monotonic clock.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._last: float | None = None

    async def run(self) -> None:
        """Record the time periodically until cancelled."""
        try:
            while True:
                self._last = self._monotonic()
                await asyncio.sleep(BEAT)
        finally:
            self._last = None

    def check(self) -> str:
        """Return a problem that states how long the loop has been blocked; empty if the loop is not blocked."""
        last = self._last
        if last is None or self._monotonic() - last <= STUCK:
            return ""
        return f"the event loop has been blocked for {self._monotonic() - last:.0f} s"
