"""`ClaimTurns`: of the pods that write to one claim one writes at a time, over what the one before it has written."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class ClaimTurns:
    """Who writes to which claim; nothing is kept of claims to which nobody writes."""

    def __init__(self) -> None:
        self._turns: dict[str, asyncio.Lock] = {}
        self._users: dict[str, int] = {}

    @asynccontextmanager
    async def turn(self, uid: str) -> AsyncIterator[None]:
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
