"""Pauses between attempts: 1 to 30 seconds, doubling, with jitter so that many clients do not come back at once."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass

from policysched.framework import ApiError

FIRST = 1.0
LONGEST = 30.0
_MAX_DOUBLINGS = 10
MOST_ASKED = 120.0
"""The longest pause that a server can ask for: a watch must not stand still for hours."""


@dataclass(frozen=True, slots=True)
class Pacing:
    """Where randomness and waiting come from."""

    random: Callable[[], float]
    """Gives numbers from 0 to below 1."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


class Retry:
    """The pauses of one loop.

    Units: seconds.
    """

    def __init__(self, pacing: Pacing) -> None:
        self._pacing = pacing
        self.failures = 0

    def reset(self) -> None:
        """Start over after a success."""
        self.failures = 0

    async def pause(self, at_least: float = 0.0) -> None:
        """Wait longer than the last time, and as long as a server asked for within limits."""
        length = FIRST * 2.0 ** min(self.failures, _MAX_DOUBLINGS) * (1 + self._pacing.random() / 2)
        self.failures += 1
        await self._pacing.sleep(max(min(length, LONGEST), min(at_least, MOST_ASKED)))


def passes(error: ApiError) -> bool:
    """Tell whether the same request may succeed later: the server was busy, failing or out of reach."""
    return error.status in (0, 429) or error.status >= 500
