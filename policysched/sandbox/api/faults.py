"""Switches for tests: make chosen requests fail the way real API servers and networks do.

It decides what happens to a request before or instead of its handling and knows none of the objects. Rules are
consumed in the order they were set, so that a test can say "two conflicts, then all is well".
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from policysched.sandbox.objects import encode
from policysched.sandbox.objects.errors import REASONS, failure

_HTML = b"<html><body><h1>503 Service Unavailable</h1></body></html>"


@dataclass(slots=True)
class Fault:
    """What to do with the next `times` requests that match."""

    method: str
    path: re.Pattern[str]
    times: int | None
    action: str
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    after: int = 0

    def matches(self, method: str, path: str) -> bool:
        """Whether the fault is for this request and not used up."""
        return self.times != 0 and self.method in ("*", method) and bool(self.path.search(path))


class Faults:
    """The faults of one sandbox; `seen` counts those that struck."""

    def __init__(self, close_watches: Callable[[], None]) -> None:
        self._rules: list[Fault] = []
        self._close_watches = close_watches
        self.seen = 0

    def clear(self) -> None:
        """Let all be well again."""
        self._rules.clear()

    def _add(self, fault: Fault) -> None:
        self._rules.append(fault)

    def fail(
        self,
        method: str,
        path: str,
        status: int,
        *,
        times: int | None = 1,
        message: str = "",
        headers: dict[str, str] | None = None,
    ) -> None:
        """Answer with a failure Status; 429 and 503 take a Retry-After header."""
        retry = int((headers or {}).get("Retry-After", "0"))
        details: dict[str, Any] | None = {"retryAfterSeconds": retry} if retry else None
        text = message or f"fault: {method} {path}"
        body = encode(failure(status, text, REASONS.get(status, "InternalError"), details))
        head = {"Content-Type": "application/json"} | (headers or {})
        self._add(Fault(method, re.compile(path), times, "answer", status, body, head))

    def html(self, method: str, path: str, status: int = 503, *, times: int | None = 1) -> None:
        """Answer with a web page, as a broken proxy does."""
        head = {"Content-Type": "text/html"}
        self._add(Fault(method, re.compile(path), times, "answer", status, _HTML, head))

    def reset(self, method: str, path: str, *, times: int | None = 1, handled: bool = False) -> None:
        """Drop the connection: before the request is handled, or after, so that only the answer is lost."""
        action = "reset-after" if handled else "reset"
        self._add(Fault(method, re.compile(path), times, action))

    def delay(self, method: str, path: str, seconds: float, *, times: int | None = 1) -> None:
        """Handle the request only after a while."""
        self._add(Fault(method, re.compile(path), times, "delay", delay=seconds))

    def deny(self, path: str, *, method: str = "*", times: int | None = None) -> None:
        """Answer 403, as without the RBAC rule."""
        self.fail(method, path, 403, times=times, message=f'forbidden: User "sandbox" cannot access {path}')

    def cut_watch(self, path: str, *, after: int = 0, times: int | None = 1) -> None:
        """Drop the connection of a watch in the middle of the line after `after` chunks."""
        self._add(Fault("GET", re.compile(path), times, "cut", after=after))

    def close_watches(self) -> None:
        """End all watches now, in order, as a restarting API server does."""
        self._close_watches()

    def take(self, method: str, path: str, *, watch: bool) -> Fault | None:
        """Return the fault that strikes this request, and use it up by one."""
        for fault in self._rules:
            if fault.matches(method, path) and (fault.action == "cut") <= watch:
                if fault.times is not None:
                    fault.times -= 1
                self.seen += 1
                return fault
        return None
