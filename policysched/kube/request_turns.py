"""`RequestTurns`: so many requests at once; of those that wait, that of the binding cycle goes first that began first.

A binding cycle with claims or volumes makes several requests one after another. Were they served as they come, the
first request of every waiting pod would go before the last of any, and no pod would be bound until all almost are.
"""

from __future__ import annotations

import asyncio
from heapq import heappop, heappush
from types import TracebackType

from policysched.framework import BINDING_CYCLE

_Line = list[tuple[int, bool, int, "asyncio.Future[None]"]]


class RequestTurns:
    """A context manager that is entered when a request may be made.

    A request outside of binding cycles stands behind those of all cycles that have made one so far.

    Args:
        at_once: How many requests may be under way.
    """

    def __init__(self, at_once: int) -> None:
        self._free = at_once
        self._line: _Line = []
        """Who waits: behind which binding cycle, whether outside of it, when it came, and what it waits for."""
        self._count = 0
        self._latest = 0
        """The highest number of a binding cycle that has asked."""

    async def __aenter__(self) -> None:
        cycle = BINDING_CYCLE.get()
        self._latest = max(self._latest, cycle)
        if self._free:
            self._free -= 1
            return
        turn: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._count += 1
        heappush(self._line, (cycle or self._latest, not cycle, self._count, turn))
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._pass_on()
            raise

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._pass_on()

    def _pass_on(self) -> None:
        while self._line:
            turn = heappop(self._line)[3]
            if not turn.done():
                turn.set_result(None)
                return
        self._free += 1
