"""`FakeClock` and an event loop that runs by it: time passes only when a test says so."""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Callable
from datetime import UTC, datetime, timedelta
from typing import Final

_GRACE: Final = 0.02
"""How long a thread is waited for in one round. Units: seconds of real time."""


class FakeClock:
    """Time that moves when a test says so."""

    def __init__(self, start: datetime = datetime(2026, 1, 1, tzinfo=UTC)) -> None:
        self._start, self._seconds = start, 0.0

    def now(self) -> datetime:
        """Return the time, UTC."""
        return self._start + timedelta(seconds=self._seconds)

    def monotonic(self) -> float:
        """Return the seconds since the start."""
        return self._seconds

    def advance(self, seconds: float) -> None:
        """Let time pass."""
        self._seconds += seconds


class SteppedLoop(asyncio.SelectorEventLoop):
    """An event loop that runs by a clock of its own, and stops when nothing is left to do before time passes."""

    def __init__(self, clock: FakeClock) -> None:
        self._fake_clock = clock
        super().__init__(_StoppingSelector(self.stop))

    def time(self) -> float:
        """Return the fake time."""
        return self._fake_clock.monotonic()


class _StoppingSelector(selectors.DefaultSelector):
    """Calls somebody in place of waiting."""

    def __init__(self, stop: Callable[[], None]) -> None:
        super().__init__()
        self._stop = stop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Wait for nothing but threads that are about to end."""
        if timeout is not None and timeout <= 0:
            return super().select(timeout)
        found = super().select(_GRACE)
        if not found:
            self._stop()
        return found
