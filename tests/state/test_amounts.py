from __future__ import annotations

import tracemalloc

import numpy as np
import pytest

from policysched.model.quantity import MAX, MIN
from policysched.state.tables.amounts import CPU, FIRST_PLACES, MEMORY, AmountTables, PodResources, at
from policysched.state.tables.columns import FIRST_CAPACITY, ColumnSet, Rows

NAMES = ("cpu", "memory", "ephemeral-storage", *(f"x.io/{n}" for n in range(2 * FIRST_PLACES)))


def tables(columns: ColumnSet | None = None) -> AmountTables:
    """Three rows; row r has (r + 1) times 1, 2, 3... of the resources, and a pod that takes 1 of each."""
    made = AmountTables(columns or ColumnSet())
    for row in range(3):
        made.store(row, {name: (row + 1) * (place + 1) for place, name in enumerate(NAMES)})
        made.take(row, PodResources(tuple((name, 1) for name in NAMES), 10, 20, ()), 1)
    made.places(NAMES)
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
    places = made.places(("x.io/new",))
    assert at(made.allocatable, places, slice(0, 1)).tolist() == [[5]]
    assert made.place("x.io/other") == 0
    assert not made.allocatable[0].any()


def test_a_replacement_forgets_what_is_no_longer_there_and_a_pod_is_taken_off() -> None:
    made = tables()
    made.store(1, {"cpu": 7})
    assert made.allocatable[CPU, 1] == 7
    assert np.count_nonzero(made.allocatable[:, 1]) == 1
    made.take(1, PodResources(tuple((name, 1) for name in NAMES), 10, 20, ()), -1)
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
        for number in range(20_000):
            made.places((f"nowhere.io/{number}", "cpu"))
        kept, _ = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert kept < 1_000_000
    assert at(made.allocatable, made.places(("cpu",)), slice(0, 3)).tolist() == [[1, 2, 3]]


def taking(**amounts: int) -> PodResources:
    """A pod_resources of these resources of the group x.io, and nothing else."""
    return PodResources(tuple((f"x.io/{name}", amount) for name, amount in amounts.items()), 0, 0, ())


def test_a_resource_has_a_place_as_long_as_some_node_has_it() -> None:
    made = AmountTables(ColumnSet())
    made.take(0, taking(gpu=3, fpga=4), 1)
    made.take(1, taking(gpu=5), 1)
    assert made.place("x.io/gpu") == 0
    assert made.requested_of("x.io/gpu", slice(0, 3)).tolist() == [3, 5, 0]
    made.store(1, {"x.io/gpu": 8})
    made.store(2, {"x.io/gpu": 8, "x.io/zero": 0})
    place = made.place("x.io/gpu")
    assert place > 0
    assert made.requested[place, :3].tolist() == made.counted[place, :3].tolist() == [3, 5, 0]
    assert made.unplaced(0) == {"x.io/fpga": 4}
    made.take(0, taking(gpu=2), 1)
    made.store(1, {})
    assert made.place("x.io/gpu") == place
    made.store(2, {})
    assert made.place("x.io/gpu") == 0
    assert not made.allocatable.any()
    assert not made.requested.any()
    assert made.unplaced(0) == {"x.io/fpga": 4, "x.io/gpu": 5}
    assert made.requested_of("x.io/gpu", np.array([1, 0])).tolist() == [5, 5]


def test_a_place_that_is_given_back_is_used_again_and_all_others_keep_their_amounts() -> None:
    made = tables()
    before = made.stamp
    for row in range(3):
        made.store(row, {name: 9 for name in NAMES if name != "x.io/2"})
    assert made.stamp > before
    assert made.place("x.io/2") == 0
    kept = [name for name in NAMES if name != "x.io/2"]
    assert sorted(made.place(name) for name in kept) == list(range(1, len(kept) + 1))
    for name in kept:
        assert made.allocatable[made.place(name), :3].tolist() == [9, 9, 9]
        assert made.requested_of(name, slice(0, 3)).tolist() == [1, 1, 1]
    assert made.requested_of("x.io/2", slice(0, 3)).tolist() == [1, 1, 1]
    made.store(0, dict.fromkeys([*kept, "x.io/new"], 9))
    assert made.place("x.io/new") == len(kept) + 1


def test_tables_are_as_large_as_what_nodes_have_and_somebody_asks_about() -> None:
    made = AmountTables(ColumnSet())
    first = made.allocatable.nbytes
    names = [f"x.io/{number}" for number in range(1000)]
    made.take(0, PodResources(tuple((name, 1) for name in names), 0, 0, ()), 1)
    assert made.allocatable.nbytes == first
    made.store(0, dict.fromkeys(names, 2))
    assert made.allocatable.nbytes == first
    assert made.requested_of(names[7], slice(0, 2)).tolist() == [1, 0]
    assert made.allocatable[made.place(names[7]), :2].tolist() == [2, 0]
    assert made.allocatable.nbytes == 2 * first
    made.places(tuple(names))
    assert made.allocatable.nbytes > 100 * first
    made.store(0, dict.fromkeys(names[:10], 2))
    assert made.allocatable.nbytes <= 16 * first
    made.store(0, {"cpu": 1})
    assert made.allocatable.nbytes == made.requested.nbytes == made.counted.nbytes == first
    made.take(0, PodResources(tuple((name, 1) for name in names), 0, 0, ()), -1)
    assert made.unplaced(0) == {}


def test_resources_that_nobody_asks_about_go_with_their_nodes() -> None:
    made = AmountTables(ColumnSet())
    for row in range(3):
        made.store(row, {f"x.io/{number}": 1 for number in range(row + 1)})
    made.store(0, {"x.io/0": 0})
    made.store(2, {"x.io/1": 7})
    asked = made.places(("x.io/0", "x.io/1", "x.io/2"))
    assert at(made.allocatable, asked, slice(0, 3)).tolist() == [[0, 1, 0], [0, 1, 7], [0, 0, 0]]
    made.store(1, {})
    made.store(2, {})
    assert [made.place(f"x.io/{number}") for number in range(3)] == [0, 0, 0]
    assert made.allocatable.shape[0] == FIRST_PLACES


@pytest.mark.parametrize("offered", [False, True])
def test_sums_wrap_around_and_come_back(offered: bool) -> None:
    made = AmountTables(ColumnSet())
    if offered:
        made.store(0, {"x.io/a": 1})
    large = PodResources((("cpu", MAX), ("memory", MIN), ("x.io/a", MAX)), MAX, MIN, ())
    small = PodResources((("cpu", 3), ("memory", 4), ("x.io/a", 5)), 6, 7, ())
    for one, count in ((large, 1), (small, 1), (large, 1)):
        made.take(0, one, count)
    assert made.requested[[CPU, MEMORY], 0].tolist() == [1, 4]
    assert made.counted[[CPU, MEMORY], 0].tolist() == [4, 7]
    assert made.requested_of("x.io/a", slice(0, 1)).tolist() == [3]
    made.take(0, large, -1)
    assert made.requested_of("x.io/a", slice(0, 1)).tolist() == [MIN + 4]
    assert dict(made.owing) == ({} if offered else {0: 1})
    made.take(0, large, -1)
    made.take(0, small, -1)
    assert not made.requested.any()
    assert not made.counted.any()
    assert not made.owing
    assert made.unplaced(0) == {}
