"""Waiting for what must come to hold, with a deadline that a loaded machine can keep."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from typing import TypeVar

T = TypeVar("T")
DEADLINE = 30.0
"""Units: seconds."""


async def until(look: Callable[[], Awaitable[T]], holds: Callable[[T], object], seconds: float = DEADLINE) -> T:
    """Look again and again until something holds, and give what was seen then."""
    end = time.monotonic() + seconds
    while True:
        seen = await look()
        if holds(seen):
            return seen
        if time.monotonic() > end:
            raise AssertionError(f"still not so after {seconds:.0f} s: {seen!r}")
        await asyncio.sleep(0.02)


async def until_true(holds: Callable[[], bool], seconds: float = DEADLINE) -> None:
    """Wait until a condition in this process holds."""

    async def look() -> bool:
        return holds()

    await until(look, bool, seconds)
