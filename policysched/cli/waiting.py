"""Running what awaits to its end.

Commands import it where they begin to work: asyncio takes longer to import than `--help` needs otherwise.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Coroutine, Iterator
from contextlib import contextmanager
from typing import Any, TypeVar

T = TypeVar("T")


def wait_for(work: Coroutine[Any, Any, T]) -> T:
    """Run a coroutine in a loop of its own and give its result.

    The result is kept out of the main task: where a loop ends, `signal.getsignal` writes an exception's text with the
    task in it, and a task shows its result, which may be a whole cluster.
    """
    made: list[T] = []

    async def run() -> None:
        made.append(await work)

    asyncio.run(run())
    return made[0]


@contextmanager
def uncollected() -> Iterator[None]:
    """Look for no garbage meanwhile: a cluster of many objects has none, and each look goes through all of them."""
    before = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if before:
            gc.enable()
