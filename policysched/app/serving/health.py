"""Health checks by name, answered as Kubernetes' components do.

`/livez` says whether a restart would help, `/readyz` whether the scheduler does its work, `/healthz` is livez as older
tools ask for it. Who may only read the three paths learns which check fails and not why: that says `/readyz/<name>`.

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
"""Says what is wrong, nothing where all is well. It is called from the port's thread."""
BEAT: Final = 1.0
"""How often the scheduler's loop shows that it lives. Units: seconds."""
STUCK: Final = 30.0
"""How long it may show nothing. Units: seconds."""


class Health:
    """The checks of a process."""

    def __init__(self) -> None:
        self._checks: dict[str, dict[str, Check]] = {HEALTHZ: {}, LIVEZ: {}, READYZ: {}}
        for kind in self._checks:
            self.add("ping", _passes, kind)

    def add(self, name: str, check: Check, *kinds: str) -> None:
        """Add a check to the paths of these kinds."""
        for kind in kinds:
            self._checks[kind][name] = check

    def answer(self, path: str, *, excluded: Iterable[str] = (), verbose: bool = False) -> tuple[int, str] | None:
        """Answer a request.

        Args:
            path: /healthz, /livez or /readyz, or one of them with the name of a check.
            excluded: Checks that do not count.
            verbose: Whether all checks are named where none fails.

        Returns:
            The status code and the text, None for a path that is none of these.
        """
        kind, _, name = path.removeprefix("/").partition("/")
        checks = self._checks.get(kind)
        if checks is None or (name and name not in checks) or path.endswith("/"):
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
    """Tells whether a loop runs what is to be run, from another thread.

    Args:
        monotonic: A clock.
    """

    def __init__(self, monotonic: Callable[[], float] = time.monotonic) -> None:
        self._monotonic = monotonic
        self._last: float | None = None

    async def run(self) -> None:
        """Beat until cancelled."""
        try:
            while True:
                self._last = self._monotonic()
                await asyncio.sleep(BEAT)
        finally:
            self._last = None

    def check(self) -> str:
        """Say for how long the loop has stood still."""
        last = self._last
        if last is None or self._monotonic() - last <= STUCK:
            return ""
        return f"the event loop has been blocked for {self._monotonic() - last:.0f} s"
