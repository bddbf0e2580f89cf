"""Simulated time: processor time passes as on a machine, idle time is skipped.

A day takes as long as the work in it. Work delays later work as it would in real time.
"""

from __future__ import annotations

import asyncio
import selectors
import time
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Any, Final

FIRST: Final = datetime(2026, 11, 2, tzinfo=UTC)
"""Wall clock time at loop time 0."""


class SimulatedLoop(asyncio.SelectorEventLoop):
    """An event loop whose time is the processor time of the process plus the skipped idle time."""

    def __init__(self) -> None:
        self._skipped = 0.0
        super().__init__(_SkippingSelector(self._skip))

    def time(self) -> float:
        """Return the simulated time. Units: seconds."""
        return self._skipped + time.process_time()

    def _skip(self, seconds: float) -> None:
        self._skipped += seconds


class _SkippingSelector(selectors.DefaultSelector):
    """A selector that skips a wait with a timeout, unless a file is ready."""

    def __init__(self, skip: Callable[[float], None]) -> None:
        super().__init__()
        self._skip_wait = skip

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None or timeout <= 0:
            return super().select(timeout)
        found = super().select(0)
        if not found:
            self._skip_wait(timeout)
        return found


class SimulatedClock:
    """The clock of the framework over a simulated loop."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self.monotonic = loop.time
        """Function that returns the simulated time. Units: seconds."""

    def now(self) -> datetime:
        """Return the simulated wall clock time in UTC."""
        return FIRST + timedelta(seconds=self.monotonic())
