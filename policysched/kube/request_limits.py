"""A client's own limits on its requests: so many a second, and so many at once.

Of those that are limited by the second, requests that a decision waits for go first. What only tells of decisions goes
behind them, where one place of several is kept for it: with bindings all the time, statuses would never be written.

Of those that are limited by their number at once, requests of the binding cycle go first that began first. One with
claims or volumes makes several, one after another. Were they served as they come, the first request of every waiting
pod would go before the last of any, and no pod would be bound until all almost are.

Source: k8s.io/client-go/util/flowcontrol/throttle.go (NewTokenBucketRateLimiter), golang.org/x/time/rate.
"""

from __future__ import annotations

import asyncio
from collections import OrderedDict
from heapq import heappop, heappush
from itertools import cycle
from types import TracebackType
from typing import Final

from policysched.framework import BINDING_CYCLE

SHARE: Final = 10
"""One request of so many comes from those that go last, while others wait."""
Line = OrderedDict[asyncio.Future[None], None]
"""Who waits, in the order of asking."""


class RateLimit:
    """A token bucket; requests of a rank wait in the order in which they ask.

    Args:
        qps: How many requests a second; below 0 there is no limit.
        burst: How many may be made at once after a pause.
    """

    def __init__(self, qps: float, burst: int) -> None:
        self._qps, self._burst = qps, max(burst, 1)
        self._tokens, self._filled_at = float(self._burst), 0.0
        self._first, self._last = Line(), Line()
        self._firsts = cycle((*[True] * (SHARE - 1), False))
        self._timer: asyncio.TimerHandle | None = None

    async def wait(self, *, last: bool = False) -> None:
        """Wait until one more request may be made; who is cancelled takes nobody's turn.

        Args:
            last: Whether others go first.
        """
        if self._qps < 0:
            return
        turn = asyncio.get_running_loop().create_future()
        line = self._last if last else self._first
        line[turn] = None
        self._serve()
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled():
                self._tokens += 1
            line.pop(turn, None)
            self._serve()
            raise

    def _serve(self) -> None:
        """Give turns as far as there are tokens, and come back when there is another one."""
        now = asyncio.get_running_loop().time()
        self._tokens = min(self._burst, self._tokens + (now - self._filled_at) * self._qps)
        self._filled_at = now
        while self._tokens >= 1 and (self._first or self._last):
            turn, _ = self._next().popitem(last=False)
            if not turn.done():
                self._tokens -= 1
                turn.set_result(None)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if self._first or self._last:
            self._timer = asyncio.get_running_loop().call_later((1 - self._tokens) / self._qps, self._serve)

    def _next(self) -> Line:
        """Return the line whose turn it is."""
        if not (self._first and self._last):
            return self._first or self._last
        return self._first if next(self._firsts) else self._last


UNLIMITED: Final = RateLimit(-1.0, 0)
"""Lets every request pass."""


_Queue = list[tuple[int, bool, int, "asyncio.Future[None]"]]


class RequestTurns:
    """A context manager that is entered when a request may be made.

    A request outside of binding cycles stands behind those of all cycles that have made one so far.

    Args:
        at_once: How many requests may be under way.
    """

    def __init__(self, at_once: int) -> None:
        self._free = at_once
        self._line: _Queue = []
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
