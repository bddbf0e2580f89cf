"""A client's own limit on its requests: so many a second, and some more at once after a pause.

Source: k8s.io/client-go/util/flowcontrol/throttle.go (NewTokenBucketRateLimiter), golang.org/x/time/rate.
"""

from __future__ import annotations

import asyncio
from typing import Final


class RateLimit:
    """A token bucket; requests wait in the order in which they ask.

    Args:
        qps: How many requests a second; below 0 there is no limit.
        burst: How many may be made at once after a pause.
    """

    def __init__(self, qps: float, burst: int) -> None:
        self._qps, self._burst = qps, burst
        self._tokens, self._filled_at = float(burst), 0.0

    async def wait(self) -> None:
        """Wait until one more request may be made; who is cancelled gives its place to those who ask later."""
        if self._qps < 0:
            return
        now = asyncio.get_running_loop().time()
        self._tokens = min(self._burst, self._tokens + (now - self._filled_at) * self._qps)
        self._filled_at = now
        self._tokens -= 1
        if self._tokens < 0:
            try:
                await asyncio.sleep(-self._tokens / self._qps)
            except asyncio.CancelledError:
                self._tokens += 1
                raise


UNLIMITED: Final = RateLimit(-1.0, 0)
"""Lets every request pass."""
