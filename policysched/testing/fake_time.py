"""`FakeClock`, which only a test advances, and an event loop that uses this clock."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

_GRACE: Final = 0.02
"""Longest wait for a worker thread in one round. Units: seconds of real time."""


class FakeClock:
    """A clock that only a test advances; it starts at 2026-01-01, midnight UTC, unless `start` is given."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._start, self._seconds = start, 0.0

    def now(self) -> datetime:
        """Return the current time, in UTC."""
        return self._start + timedelta(seconds=self._seconds)

    def monotonic(self) -> float:
        """Return the seconds since the start of the clock."""
        return self._seconds

    def advance(self, seconds: float) -> None:
        """Advance the clock. Units: seconds."""
        self._seconds += seconds


class SteppedLoop(asyncio.SelectorEventLoop):
    """An event loop on a fake clock; it stops when no work is left until the clock advances."""

    def __init__(self, clock: FakeClock) -> None:
        self._fake_clock = clock
        super().__init__(_StoppingSelector(self.stop))

    def time(self) -> float:
        """Return the seconds that the fake clock has advanced, as the event loop's time."""
        return self._fake_clock.monotonic()


class _StoppingSelector(selectors.DefaultSelector):
    """A selector for an event loop that calls a function instead of waiting when no event is ready."""

    def __init__(self, stop: Callable[[], None]) -> None:
        super().__init__()
        self._stop = stop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Return events that are ready; wait only for worker threads, for up to `_GRACE`."""
        if timeout is not None and timeout <= 0:
            return super().select(timeout)
        found = super().select(_GRACE)
        if not found:
            self._stop()
        return found
