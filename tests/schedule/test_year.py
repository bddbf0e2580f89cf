"""After a simulated year of created and deleted objects, only data of existing objects is kept.

POLICYSCHED_YEAR sets the number of pods in the year, POLICYSCHED_YEAR_SHAPES the number of their shapes,
POLICYSCHED_YEAR_NODES the number of nodes, each replaced weekly. Realistic numbers are 20000000, 50000 and 5000, which
take more than half a day. POLICYSCHED_YEAR_DAYS shortens the year to at least 84 of its 364 days. With
POLICYSCHED_YEAR_CURVE, the memory of every four weeks is printed.
"""

from __future__ import annotations

import functools
import gc
import importlib
import os
import sys
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from policysched.model.selection.pod_part_cache import PodPartCache
from policysched.schedule.cycle import class_cache
from policysched.state.tables import sparse
from policysched.state.tables.interner import SPARE
from tests.holdings import holdings
from tests.schedule.year import DAYS, PODS_PER_NODE, Year

PODS = int(os.environ.get("POLICYSCHED_YEAR") or 2500)
NODES = int(os.environ.get("POLICYSCHED_YEAR_NODES") or 16)
CURVE = bool(os.environ.get("POLICYSCHED_YEAR_CURVE"))
SHAPES = int(os.environ.get("POLICYSCHED_YEAR_SHAPES") or max(PODS // 400, 4 * DAYS))
LASTS = int(os.environ.get("POLICYSCHED_YEAR_DAYS") or DAYS)
QUARTER = LASTS // 4
ELEMENTS, SHARE = 64, 1.3
"""Largest growth of a container from the first to the last quarter: number of elements, and factor."""
BYTES = 64 * 1024
BLOCKS = 5000
"""Largest growth of the number of allocated blocks, of which a small object has one or two."""
RESIDENT = 20_000_000
"""Largest growth of the process in a long year. Units: bytes."""
LONG = PODS > 100_000


class Quarter:
    """The largest sizes of containers, and the largest memory, in the weeks of a quarter."""

    def __init__(self) -> None:
        self.most: Counter[str] = Counter()
        self.blocks = self.resident = 0

    def look(self, year: Year, caches: Sequence[PodPartCache[Any] | functools._lru_cache_wrapper[Any]]) -> None:
        for one in caches:
            one.forget() if isinstance(one, PodPartCache) else one.cache_clear()
        gc.collect()
        for place, count in holdings([year.cluster, year.queue, year.engines, *_process()]).items():
            self.most[place] = max(self.most[place], count)
        self.blocks = max(self.blocks, sys.getallocatedblocks())
        self.resident = max(self.resident, _resident())


def bounded_caches() -> list[PodPartCache[Any] | functools._lru_cache_wrapper[Any]]:
    """Return the caches of the process, each of which has a limit."""
    gc.unfreeze()
    found = [one for one in gc.get_objects() if isinstance(one, PodPartCache) or _is_cached_function(one)]
    gc.freeze()
    return found


def _is_cached_function(one: object) -> bool:
    return isinstance(one, functools._lru_cache_wrapper) and one.__module__.startswith("policysched.")


def _process() -> list[object]:
    """Return the objects that the process keeps besides clusters."""
    tables = importlib.import_module("policysched.language.evaluation.frames")
    return [tables._TABLES]


def _resident() -> int:
    return int(Path("/proc/self/statm").read_text("ascii").split()[1]) * os.sysconf("SC_PAGE_SIZE")


def _allowed(place: str, before: int) -> float:
    if place.endswith(" bytes"):
        return SHARE * before + BYTES
    return SHARE * before + (SPARE if place.startswith("Strings.") else max(ELEMENTS, PODS_PER_NODE * NODES))


def test_a_year_ends_with_no_more_than_it_began_with(monkeypatch: pytest.MonkeyPatch) -> None:
    if not LONG:
        monkeypatch.setattr(class_cache, "CACHE_BYTES", 400_000)
        monkeypatch.setattr(sparse, "SPARE", 8)
    year = Year(PODS, SHAPES, NODES)
    caches = bounded_caches()
    quarters = [Quarter() for _ in range(4)]

    def look(day: int) -> None:
        if day % 14 == 13 and day >= QUARTER // 3:
            quarters[min(day // QUARTER, 3)].look(year, caches)
        if CURVE and day % 28 == 27:
            print(_said(day, year), flush=True)  # noqa: T201 - that is what was asked for

    year.live(LASTS, look)
    assert year.placed > PODS * LASTS / DAYS / 2
    assert year.waiting > PODS * LASTS / DAYS / 50
    first, last = quarters[0], quarters[-1]
    grown = {
        place: (first.most[place], count)
        for place, count in last.most.items()
        if count > _allowed(place, first.most[place])
    }
    assert not grown
    assert LONG or last.blocks < first.blocks + BLOCKS
    assert not LONG or last.resident < 1.02 * first.resident + RESIDENT


def _said(day: int, year: Year) -> str:
    return (
        f"day={day} placed={year.placed} rejected={year.waiting} replaced={year.replaced} living={year.living} "
        f"texts={year.cluster.strings.living} resident={_resident()} blocks={sys.getallocatedblocks()}"
    )
