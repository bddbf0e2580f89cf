"""An event loop whose clock moves on as soon as everybody waits: a minute takes milliseconds, and always goes the same.

It serves timers and tasks, no sockets and no threads: whoever waits for those would wait while the time runs away.
"""

from __future__ import annotations

import asyncio
import selectors
from datetime import UTC, datetime, timedelta
from typing import Final

START: Final = datetime(2000, 1, 1, tzinfo=UTC)
"""What the wall clock says as a loop is made."""


class NobodyWakesError(RuntimeError):
    """Everybody waits for something that never happens."""


class VirtualLoop(asyncio.SelectorEventLoop):
    """A loop with a clock of its own, which starts at 0 seconds."""

    def __init__(self) -> None:
        self._now = 0.0
        super().__init__(_Selector(self))

    def time(self) -> float:
        """Return the seconds that have passed."""
        return self._now

    def pass_time(self, seconds: float) -> None:
        """Move the clock."""
        self._now += seconds


class _Selector(selectors.DefaultSelector):
    def __init__(self, loop: VirtualLoop) -> None:
        super().__init__()
        self._loop = loop

    def select(self, timeout: float | None = None) -> list[tuple[selectors.SelectorKey, int]]:
        """Let the time pass that the loop would sleep."""
        if timeout is None:
            raise NobodyWakesError
        self._loop.pass_time(max(timeout, 0.0))
        found: list[tuple[selectors.SelectorKey, int]] = super().select(0)
        return found


class VirtualClock:
    """The scheduler's clock over such a loop."""

    def __init__(self, loop: VirtualLoop) -> None:
        self._loop = loop

    def now(self) -> datetime:
        """Return the wall clock."""
        return START + timedelta(seconds=self._loop.time())

    def monotonic(self) -> float:
        """Return the loop's time."""
        return self._loop.time()
