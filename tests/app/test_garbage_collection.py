"""Garbage collections are short, and find all garbage in the end."""

from __future__ import annotations

import asyncio
import gc
import weakref
from typing import Any

import pytest

from policysched.app.running.garbage_collection import collect_all, short_collections, taking_lists

pytestmark = pytest.mark.usefixtures("others_apart")


class Circle:
    """Something that holds itself."""

    def __init__(self) -> None:
        self.own = self


def test_survivors_of_a_full_collection_are_left_out_of_later_ones() -> None:
    held: list[Any] = [[] for _ in range(50_000)]
    with short_collections():
        assert gc.get_freeze_count() > len(held)
        more: list[Any] = [[] for _ in range(20_000)]
        before = gc.get_freeze_count()
        gc.collect(1)
        assert gc.get_freeze_count() == before
        gc.collect()
        assert gc.get_freeze_count() >= before + len(more)
        assert len(gc.get_objects()) < len(more)
    assert gc.get_freeze_count() == 0


def test_nothing_is_collected_while_lists_are_taken_in_and_nothing_of_them_later() -> None:
    with short_collections():
        with taking_lists():
            assert not gc.isenabled()
            held: list[Any] = [[] for _ in range(50_000)]
            before = gc.get_freeze_count()
        assert gc.isenabled()
        assert gc.get_freeze_count() >= before + len(held)


def test_young_circles_are_found() -> None:
    with short_collections():
        found = weakref.ref(Circle())
        assert found() is not None
        gc.collect(0)
        assert found() is None


async def test_old_circles_are_found_in_the_end(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("policysched.app.running.garbage_collection.EVERY", 0.02)
    with short_collections():
        circle = Circle()
        found, gone = weakref.ref(circle), asyncio.Event()
        weakref.finalize(circle, gone.set)
        gc.collect()
        del circle
        gc.collect()
        assert found() is not None, "it is frozen"
        collecting = asyncio.create_task(collect_all())
        await asyncio.wait_for(gone.wait(), 10)
        collecting.cancel()
