"""The number of turns of the event loop, as a measure of how often long work yields."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Turns:
    """How many turns of the event loop were given."""

    count = 0


@asynccontextmanager
async def turns_of_the_loop() -> AsyncIterator[Turns]:
    """Count the turns that the event loop gives while the block runs."""
    turns = Turns()

    async def count() -> None:
        while True:
            turns.count += 1
            await asyncio.sleep(0)

    counting = asyncio.create_task(count())
    try:
        yield turns
    finally:
        counting.cancel()
