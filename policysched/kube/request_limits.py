"""Limits on the requests of a client: requests per second, and requests in flight.

Under the limit per second, requests that a decision waits for come first. Reports of decisions come after them, with a
guaranteed share, because otherwise constant bindings would block statuses forever.

Under the limit in flight, requests of the binding cycle that began first come first. A pod with claims or volumes needs
several requests in sequence. In order of arrival, the first request of every waiting pod would precede the last request
of any, and no pod would be bound until nearly all are.

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
"""Ratio of requests while both priorities wait: one request in SHARE is of low priority."""
Line = OrderedDict[asyncio.Future[None], None]
"""Waiting requests, in order of arrival."""


class RateLimit:
    """A token bucket; requests of equal priority wait in order of arrival.

    Args:
        qps: Requests per second; a negative value means no limit.
        burst: Largest number of requests at once after a pause.
    """

    def __init__(self, qps: float, burst: int) -> None:
        self._qps, self._burst = qps, max(burst, 1)
        self._tokens, self._filled_at = float(self._burst), 0.0
        self._first, self._last = Line(), Line()
        self._firsts = cycle((*[True] * (SHARE - 1), False))
        self._timer: asyncio.TimerHandle | None = None

    async def wait(self, *, last: bool = False) -> None:
        """Wait until one more request may be sent; a cancelled request uses no token.

        Args:
            last: Whether the request has low priority.
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
        """Let waiting requests continue while tokens are available, and set a timer for the next token."""
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
        """Return the queue, of high or low priority, from which the next request is sent."""
        if not (self._first and self._last):
            return self._first or self._last
        return self._first if next(self._firsts) else self._last


UNLIMITED: Final = RateLimit(-1.0, 0)
"""A rate limit that lets every request pass."""


_Queue = list[tuple[int, bool, int, "asyncio.Future[None]"]]


class RequestTurns:
    """An async context manager that limits requests in flight; requests of earlier binding cycles come first.

    A request outside of binding cycles waits behind the requests of all cycles known when it arrives.

    Args:
        at_once: Largest number of requests in flight.
    """

    def __init__(self, at_once: int) -> None:
        self._free = at_once
        self._line: _Queue = []
        """Heap of waiting requests: binding cycle, whether outside of cycles, order of arrival, future."""
        self._count = 0
        self._latest = 0
        """Number of the newest binding cycle that has sent a request."""

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
