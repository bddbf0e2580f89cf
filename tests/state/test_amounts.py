from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from policysched.state.amounts import CPU, FIRST_PLACES, MEMORY, MOST_KNOWN, AmountTables, Rows, at
from policysched.state.columns import FIRST_CAPACITY, ColumnSet
from policysched.state.footprint import Footprint

NAMES = ("cpu", "memory", "ephemeral-storage", *(f"x.io/{n}" for n in range(2 * FIRST_PLACES)))


def tables(columns: ColumnSet | None = None) -> AmountTables:
    """Three rows; row r has (r + 1) times 1, 2, 3... of the resources, and a pod that takes 1 of each."""
    made = AmountTables(columns or ColumnSet())
    for row in range(3):
        made.store(row, {name: (row + 1) * (place + 1) for place, name in enumerate(NAMES)})
        made.take(row, Footprint(tuple((name, 1) for name in NAMES), 10, 20, ()), 1)
    return made


def test_every_resource_keeps_its_own_amounts_however_many_there_are() -> None:
    made = tables()
    for place, name in enumerate(NAMES):
        assert made.allocatable[made.place(name), :3].tolist() == [place + 1, 2 * place + 2, 3 * place + 3]
        assert made.requested[made.place(name), :3].tolist() == [1, 1, 1]


def test_what_counts_differs_for_cpu_and_memory_alone() -> None:
    made = tables()
    counted = {name: int(made.counted[made.place(name), 0]) for name in NAMES}
    assert counted == dict.fromkeys(NAMES, 1) | {"cpu": 10, "memory": 20}


@pytest.mark.parametrize(
    "names",
    [
        ("cpu", "memory"),
        ("memory", "cpu"),
        ("cpu",),
        ("memory", "x.io/3"),
        ("x.io/9", "nowhere", "cpu"),
        ("cpu", "cpu"),
    ],
)
@pytest.mark.parametrize("rows", [slice(0, 3), np.array([2, 0, 2], np.int32), np.zeros(0, np.int32)])
def test_amounts_are_given_in_the_order_of_names_and_rows(names: tuple[str, ...], rows: Rows) -> None:
    made = tables()
    numbers = np.arange(FIRST_CAPACITY)[rows].tolist()
    wanted = [[(row + 1) * (NAMES.index(name) + 1) if name in NAMES else 0 for row in numbers] for name in names]
    found = at(made.allocatable, made.places(names), rows)
    assert found.shape == (len(names), len(numbers))
    assert found.tolist() == wanted


def test_no_names_give_no_amounts_of_all_rows() -> None:
    made = tables()
    assert at(made.allocatable, made.places(()), slice(0, 3)).shape == (0, 3)
    assert at(made.allocatable, made.places(()), np.array([1], np.int32)).shape == (0, 1)


def test_a_resource_that_becomes_known_is_found_from_then_on() -> None:
    made = AmountTables(ColumnSet())
    assert at(made.allocatable, made.places(("x.io/new",)), slice(0, 1)).tolist() == [[0]]
    made.store(0, {"x.io/new": 5})
    assert at(made.allocatable, made.places(("x.io/new",)), slice(0, 1)).tolist() == [[5]]
    assert made.place("x.io/other") == 0
    assert not made.allocatable[0].any()


def test_a_replacement_forgets_what_is_no_longer_there_and_a_pod_is_taken_off() -> None:
    made = tables()
    made.store(1, {"cpu": 7})
    assert made.allocatable[CPU, 1] == 7
    assert np.count_nonzero(made.allocatable[:, 1]) == 1
    made.take(1, Footprint(tuple((name, 1) for name in NAMES), 10, 20, ()), -1)
    assert not made.requested[:, 1].any()
    assert not made.counted[:, 1].any()


def test_more_rows_keep_all_amounts() -> None:
    columns = ColumnSet()
    made = tables(columns)
    columns.grow()
    assert made.allocatable.shape[1] == 2 * FIRST_CAPACITY
    assert made.allocatable[MEMORY, :4].tolist() == [2, 4, 6, 0]
    made.store(2 * FIRST_CAPACITY - 1, {"memory": 9})
    assert made.allocatable[MEMORY, -1] == 9


def test_resources_that_no_node_has_are_not_kept_for_ever() -> None:
    made = tables()
    tracemalloc.start()
    try:
        for number in range(20 * MOST_KNOWN):
            made.places((f"nowhere.io/{number}", "cpu"))
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 1000 * MOST_KNOWN
    assert at(made.allocatable, made.places(("cpu",)), slice(0, 3)).tolist() == [[1, 2, 3]]
