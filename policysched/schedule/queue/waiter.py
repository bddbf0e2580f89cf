"""Waiting for the queue inside an event loop: the one asynchronous part of the queue.

The queue itself stays a plain object; this turns its two kinds of readiness, a call and a time, into one wait.
"""

from __future__ import annotations

import asyncio
import contextlib

from policysched.framework import Clock
from policysched.schedule.queue.queue import Queue


class Waiter:
    """Waits until a pod may be popped."""

    def __init__(self, queue: Queue, clock: Clock) -> None:
        self._queue, self._clock = queue, clock
        self._event = asyncio.Event()
        queue.wake_with(self._event.set)

    def wake(self) -> None:
        """End a wait for another reason, a shutdown say."""
        self._event.set()

    async def wait(self) -> None:
        """Return when `pop` may give a pod, or after `wake`; at once where that has happened since the last wait."""
        wake = self._queue.next_wake()
        delay = None if wake is None else wake - self._clock.monotonic()
        if delay is None or delay > 0:
            # Not wait_for: in Python 3.11 it swallows a cancellation that comes as the event does.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(delay):
                    await self._event.wait()
        self._event.clear()
