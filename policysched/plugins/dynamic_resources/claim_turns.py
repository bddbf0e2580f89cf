"""`ClaimTurns`: of the pods that write to one claim one writes at a time, over what the one before it has written.

A write that has begun comes to its end even if the binding is cancelled that it belongs to, by a preemption or by
another plugin's failure: the API server may carry it out all the same, and what it takes must not be given away.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine
from contextlib import asynccontextmanager
from typing import Any


class ClaimTurns:
    """Who writes to which claim; nothing is kept of claims to which nobody writes."""

    def __init__(self) -> None:
        self._turns: dict[str, asyncio.Lock] = {}
        self._users: dict[str, int] = {}

    async def write(self, uid: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Write to the claim with this UID when nobody else does; who is cancelled meanwhile ends after the write."""
        async with self._turn(uid):
            await _to_its_end(asyncio.create_task(work()))

    @asynccontextmanager
    async def _turn(self, uid: str) -> AsyncIterator[None]:
        """Wait until nobody else writes to the claim with this UID."""
        turn = self._turns.setdefault(uid, asyncio.Lock())
        self._users[uid] = self._users.get(uid, 0) + 1
        try:
            async with turn:
                yield
        finally:
            self._users[uid] -= 1
            if not self._users[uid]:
                del self._users[uid], self._turns[uid]

    def __len__(self) -> int:
        return len(self._turns)


async def _to_its_end(task: asyncio.Task[None]) -> None:
    """Wait for a task; a cancellation is passed on once it has ended."""
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is None:
        task.result()
        return
    if not task.cancelled():
        task.exception()  # nobody is there to be told
    raise cancelled
