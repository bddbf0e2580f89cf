"""Work counted in calls and lines of Python: the same on any machine, however busy it is."""

from __future__ import annotations

import asyncio
import gc
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from typing import Any


@contextmanager
def collector_off() -> Iterator[None]:
    """Keep the garbage of other tests out of a measurement: its collection may call finalizers."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()


def calls(action: Callable[..., object], *events: str) -> int:
    """Count the functions called: those of Python and of C, or only those of the events of `sys.setprofile` named."""
    chosen, counted = frozenset(events or ("call", "c_call")), 0

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal counted
        counted += event in chosen

    before = sys.getprofile()
    with collector_off():
        sys.setprofile(count)
        try:
            action()
        finally:
            sys.setprofile(before)
    return counted


def lines(action: Callable[..., object]) -> int:
    """Count the lines that run."""
    counted = 0

    def count(frame: Any, event: str, argument: Any) -> Any:
        nonlocal counted
        counted += event == "line"
        return count

    before = sys.gettrace()
    with collector_off():
        sys.settrace(count)
        try:
            action()
        finally:
            sys.settrace(before)
    return counted


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
