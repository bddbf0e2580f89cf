"""Garbage collections are short, find what is young, and find the rest once something leaks."""

from __future__ import annotations

import asyncio
import gc
import weakref
from dataclasses import dataclass
from typing import Any

import pytest

from policysched.app.running.garbage_collection import (
    FEW,
    FEWEST_OBJECTS,
    LITTLE,
    LONGEST_PAUSE,
    MEASURED_EVERY,
    MOST,
    MUCH_FREED,
    PAUSE,
    RARELY,
    YOUNG,
    FreedMemory,
    GarbageCollection,
    MemoryPerObject,
    resident_bytes,
    short_collections,
    taking_lists,
)
from tests.work import collector_off

pytestmark = pytest.mark.usefixtures("others_apart")


class Circle:
    """Something that holds itself."""

    def __init__(self) -> None:
        self.own = self


def survivors(number: int) -> list[Any]:
    """Objects that survive the interpreter's collection of the youngest."""
    gc.collect(0)
    held: list[Any] = [[] for _ in range(number)]
    gc.collect(0)
    return held


def collect(collection: GarbageCollection, times: int = 1) -> None:
    for _ in range(times):
        held = survivors(FEW)
        collection.collect()
        del held


def test_what_was_looked_at_is_left_out_of_later_looks() -> None:
    held = survivors(50_000)
    with short_collections(lambda: 1) as collection:
        collect(collection)
        assert len(gc.get_objects()) < len(held) / 10
        assert gc.get_freeze_count() > len(held)
        assert gc.get_threshold()[0] == YOUNG
    assert gc.get_freeze_count() == 0
    assert gc.get_threshold()[0] != YOUNG


@pytest.mark.parametrize(("number", "looked_at", "left_out"), [(10, 0, 0), (FEW, 1, 1), (2 * MOST, 0, 1)])
def test_looks_see_no_more_than_so_many(number: int, looked_at: int, left_out: int) -> None:
    seen: list[int] = []

    def note(phase: str, info: dict[str, int]) -> None:
        seen.append(info["generation"] if phase == "start" else -1)

    with short_collections(lambda: 1) as collection:
        held, before = survivors(number), gc.get_freeze_count()
        gc.callbacks.append(note)
        collection.collect()
        gc.callbacks.remove(note)
        assert seen.count(1) == looked_at
        assert (gc.get_freeze_count() - before >= number) == bool(left_out), len(held)


def test_little_is_looked_at_while_lists_are_taken_in_and_nothing_of_them_later() -> None:
    with short_collections(lambda: 1):
        with taking_lists():
            assert gc.get_threshold()[0] == RARELY
            held: list[Any] = [[] for _ in range(RARELY // 2)]
            before = gc.get_freeze_count()
        assert gc.get_freeze_count() >= before + len(held)
        assert gc.get_threshold()[0] == YOUNG


def test_young_circles_are_found() -> None:
    with short_collections(lambda: 1) as collection:
        found = weakref.ref(Circle())
        assert found() is not None
        gc.collect(0)
        assert found() is None
        circle = Circle()
        found = weakref.ref(circle)
        gc.collect(0)
        del circle
        collect(collection)
        assert found() is None


def test_old_circles_are_found_when_memory_has_grown() -> None:
    memory = [100.0]
    with short_collections(lambda: memory[0]) as collection:
        for _ in range(2):
            circle = Circle()
            found = weakref.ref(circle)
            collect(collection, MEASURED_EVERY)
            del circle
            collect(collection, MEASURED_EVERY)
            assert found() is not None
            memory[0] = 2 * memory[0] + 1
            collect(collection, MEASURED_EVERY)
            assert found() is None


async def test_looks_come_between_pieces_of_work() -> None:
    with short_collections(lambda: 1) as collection:
        looking = asyncio.create_task(collection.run())
        await asyncio.sleep(0)
        held, before = survivors(FEW), gc.get_freeze_count()
        assert gc.get_freeze_count() == before
        await asyncio.sleep(0.1)
        assert gc.get_freeze_count() >= before + len(held)
        looking.cancel()


async def test_looks_are_rare_while_nothing_can_have_survived(monkeypatch: pytest.MonkeyPatch) -> None:
    pauses: list[float] = []
    over = asyncio.Event()
    looks: list[None] = []

    async def sleep(seconds: float) -> None:
        pauses.append(seconds)
        if len(pauses) == 6:
            gc.collect(0)
        if len(pauses) == 8:
            over.set()
            await asyncio.Event().wait()

    with short_collections(lambda: 1) as collection, collector_off():
        gc.collect(0)
        monkeypatch.setattr(collection, "collect", lambda: looks.append(None))
        monkeypatch.setattr("policysched.app.running.garbage_collection.asyncio.sleep", sleep)
        looking = asyncio.create_task(collection.run())
        await over.wait()
        looking.cancel()
    assert pauses == [PAUSE, PAUSE, 2 * PAUSE, 4 * PAUSE, 8 * PAUSE, LONGEST_PAUSE, PAUSE, 2 * PAUSE]
    assert len(looks) == 2


@dataclass
class Held:
    kept_bytes: int = 0
    object_count: int = 0


def test_growth_that_objects_or_kept_answers_explain_is_no_leak() -> None:
    holder, resident = Held(), [300 * 10**6]
    memory = MemoryPerObject(holder, lambda: resident[0])
    empty = memory()
    holder.object_count, resident[0] = 10 * FEWEST_OBJECTS, 900 * 10**6
    full = memory()
    assert full < empty
    holder.kept_bytes, resident[0] = 400 * 10**6, 1300 * 10**6
    assert memory() == full
    holder.object_count = 0
    assert memory() == full
    resident[0] += 1000 * 10**6
    assert memory() > 2 * full


def test_growth_of_little_is_no_leak() -> None:
    resident = [50 * 10**6]
    memory = MemoryPerObject(Held(), lambda: resident[0])
    empty = memory()
    resident[0] = 2 * LITTLE - 1
    assert memory() < 2 * empty
    resident[0] = 2 * LITTLE + 1
    assert memory() > 2 * empty


def test_the_system_says_how_much_memory_there_is() -> None:
    assert resident_bytes() > 10**6


def many_arrays(number: int) -> list[bytearray]:
    """Arrays that the C library keeps as they are freed: each is smaller than what it maps by itself."""
    return [bytearray(b"x" * 65_000) for _ in range(number)]


def freed_in_the_midst(size: int) -> tuple[list[bytearray], int]:
    """Free so many bytes that lie below others; return those, and what the process took before."""
    held = many_arrays(size // 65_000)
    above = many_arrays(10)
    before = resident_bytes()
    del held
    return above, before


def test_much_freed_memory_is_returned_to_the_system() -> None:
    freed = FreedMemory()
    freed.return_much()
    above, before = freed_in_the_midst(4 * MUCH_FREED)
    assert freed.kept_bytes >= 3 * MUCH_FREED
    freed.return_much()
    assert resident_bytes() < before - 3 * MUCH_FREED, len(above)
    asked: list[int] = []
    freed._trim = asked.append
    freed.return_much()
    assert not asked, "nothing more is to be returned"
    more = many_arrays(4 * MUCH_FREED // 65_000)
    freed.return_much()
    del more
    freed.return_much()
    assert asked == [0]


async def test_freed_memory_is_looked_at_between_pieces_of_work(monkeypatch: pytest.MonkeyPatch) -> None:
    returned = asyncio.Event()
    monkeypatch.setattr(FreedMemory, "return_much", lambda _: returned.set())
    monkeypatch.setattr("policysched.app.running.garbage_collection.RETURNED_EVERY", 0.02)
    with short_collections(lambda: 1) as collection:
        looking = asyncio.create_task(collection.run())
        await asyncio.wait_for(returned.wait(), 10)
        looking.cancel()
