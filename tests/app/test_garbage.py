"""Looks for garbage are short, find what is young, and find the rest once memory has grown."""

from __future__ import annotations

import gc
import weakref

import pytest

from policysched.app.running.garbage import FEW, MEASURED_EVERY, resident_pages, short_looks

pytestmark = pytest.mark.usefixtures("others_apart")


class Circle:
    """Something that holds itself."""

    def __init__(self) -> None:
        self.own = self


def looked(times: int = 1) -> None:
    for _ in range(times):
        gc.collect()


def test_what_was_looked_at_once_is_left_out_of_later_looks() -> None:
    held = [[] for _ in range(50_000)]  # type: ignore[var-annotated]
    with short_looks(lambda: 1):
        looked()
        assert len(gc.get_objects()) < len(held) / 10
        assert gc.get_freeze_count() > len(held)
        assert gc.get_threshold() == FEW
    assert gc.get_freeze_count() == 0
    assert gc.get_threshold() != FEW


def test_young_circles_are_found() -> None:
    with short_looks(lambda: 1):
        found = weakref.ref(Circle())
        assert found() is not None
        looked()
        assert found() is None


def test_old_circles_are_found_when_memory_has_grown() -> None:
    memory = [100]
    with short_looks(lambda: memory[0]):
        circle = Circle()
        found = weakref.ref(circle)
        looked(MEASURED_EVERY)
        del circle
        looked(MEASURED_EVERY)
        assert found() is not None
        memory[0] = 201
        looked(MEASURED_EVERY + 1)
        assert found() is None
        other = Circle()
        again = weakref.ref(other)
        looked(MEASURED_EVERY)
        del other
        looked(MEASURED_EVERY)
        assert again() is not None


def test_the_system_says_how_much_memory_there_is() -> None:
    assert resident_pages() > 1000
