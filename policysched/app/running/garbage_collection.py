"""Garbage collection in a long-running process: keeps full collections short.

Reference counting frees nearly all objects; only reference cycles need a collection. A full collection of 5,000 nodes
and 50,000 pods takes 0.2 s and more. So the survivors of each full collection are frozen: the next one scans only newer
objects. Once an hour, all objects are collected.
"""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Any, Final

EVERY: Final = 3600.0
"""Interval between collections of all objects. Units: seconds."""
_OLDEST: Final = 2
"""Number of Python's oldest generation, whose collection is a full collection."""


@contextmanager
def short_collections() -> Iterator[None]:
    """Inside this context, exclude current objects and survivors of a full collection from later collections."""
    gc.freeze()
    gc.callbacks.append(_freeze_survivors)
    try:
        yield
    finally:
        gc.callbacks.remove(_freeze_survivors)
        gc.unfreeze()


def _freeze_survivors(phase: str, info: Mapping[str, Any]) -> None:
    if phase == "stop" and info["generation"] == _OLDEST:
        gc.freeze()


@contextmanager
def taking_lists() -> Iterator[None]:
    """Inside this context, disable garbage collection; afterwards exclude existing objects from later collections."""
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
        gc.freeze()


async def collect_all() -> None:
    """Collect all objects once an hour, until cancelled."""
    while True:
        await asyncio.sleep(EVERY)
        gc.unfreeze()
        gc.collect()
