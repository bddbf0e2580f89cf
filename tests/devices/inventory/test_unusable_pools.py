"""Pools that every node sees and none can use: what they say, and that nodes are not asked again for them."""

from __future__ import annotations

from typing import Any

import pytest

from policysched.devices import AllocationAnswer, Allocator, DeviceTables
from policysched.devices.answers.row_outcomes import RowOutcomes
from policysched.model.objects import ResourceSlice
from policysched.model.release import V1_36
from tests.devices.build import DRIVER, claim, devices, request, slice_of, tables

NODES = [f"n{one}" for one in range(40)]
SETS = [{"name": "set", "counters": {"c": {"value": "1"}}}]


def _sets(*, generation: int, twice: bool = False) -> ResourceSlice:
    """The counters of a pool of n0 that has devices as well."""
    sets = [*SETS, *SETS] if twice else SETS
    return slice_of("n0", [], name="sets", pool="p", generation=generation, slices=2, sharedCounters=sets)


def _cluster() -> DeviceTables:
    parts = slice_of("n0", devices(1), name="parts", pool="p", slices=2)
    own = [slice_of(node, devices(1), name=f"own-{node}", pool=f"own-{node}") for node in NODES]
    return tables(*own, parts, _sets(generation=1), nodes=NODES, release=V1_36)


ALL = claim(request(1, allocationMode="All"))


def test_pool_that_is_written_anew_fails_claims_for_all_devices_on_every_node() -> None:
    made = _cluster()
    asked = Allocator(made, [ALL])
    assert (asked.answers().codes[:40] == AllocationAnswer.YES).all()
    made.set_slice(_sets(generation=2))
    answers = asked.answers()
    text = f"claim ns/c, request r: asks for all devices, but resource pool {DRIVER}/p is currently being updated"
    assert {str(answers.error(row)) for row in range(40)} == {text}
    made.set_slice(slice_of("n0", devices(1), name="parts", pool="p", generation=2, slices=2))
    assert (asked.answers().codes[:40] == AllocationAnswer.YES).all()


def test_pool_that_is_written_anew_makes_other_claims_ask_its_own_node_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    made = _cluster()
    asked = Allocator(made, [claim(request(1))])
    asked.answers()
    rows: list[int] = []
    note = RowOutcomes.note

    def noted(self: RowOutcomes, group: Any, *more: Any) -> None:
        rows.extend(group.rows)
        note(self, group, *more)

    monkeypatch.setattr(RowOutcomes, "note", noted)
    made.set_slice(_sets(generation=2))
    assert (asked.answers().codes[:40] == AllocationAnswer.YES).all()
    assert set(rows) == {0}


def test_invalid_pool_is_told_where_nothing_is_found() -> None:
    made = _cluster()
    asked = Allocator(made, [claim(request(2))])
    assert (asked.answers().codes[1:40] == AllocationAnswer.NO).all()
    made.set_slice(_sets(generation=1, twice=True))
    assert (asked.answers().codes[:40] == AllocationAnswer.INVALID_POOLS).all()
    assert str(asked.answers().error(5)) == "invalid resource pools were encountered"
    made.remove_slice("sets")
    assert (asked.answers().codes[1:40] == AllocationAnswer.NO).all()


def test_node_that_reaches_nothing_of_a_pools_newest_generation_is_told_nothing_of_older_ones() -> None:
    old = slice_of("n0", devices(1), name="old", pool="p")
    sets = slice_of("", [], name="sets", pool="p", slices=1, allNodes=True, sharedCounters=[*SETS, *SETS])
    new = slice_of("n2", devices(1), name="new", pool="p", generation=2)
    made = tables(old, sets, new, nodes=NODES)
    asked = Allocator(made, [claim(request(2))])
    no, invalid = AllocationAnswer.NO, AllocationAnswer.INVALID_POOLS
    assert asked.answers().codes[:40].tolist() == [no, invalid, no, *[invalid] * 37]
    made.remove_slice("new")  # the old generation is the newest again, of two slices where one is announced
    sets = slice_of("", [], name="sets", pool="p", slices=2, allNodes=True, sharedCounters=[*SETS, *SETS])
    made.set_slice(slice_of("n0", devices(1), name="old", pool="p", slices=2))
    made.set_slice(sets)
    assert (asked.answers().codes[:40] == invalid).all()


COUNTED: dict[str, Any] = {"node": "n0", "parts": [], "slices": 2, "sharedCounters": SETS}
OF_NO_SET = [{"counterSet": "none", "counters": {"c": {"value": "1"}}}]
CONFUSED: dict[str, Any] = {"node": "", "parts": devices(1, consumesCounters=OF_NO_SET), "allNodes": True}


@pytest.mark.parametrize(("odd", "generation"), [(COUNTED, 1), (CONFUSED, 2)])
def test_nodes_that_see_an_empty_pool_alike_are_one_group(odd: dict[str, Any], generation: int) -> None:
    made = tables(slice_of("n2", devices(4)), nodes=("n0", "n1", "n2"), release=V1_36)
    made.set_slice(slice_of(name="odd", pool="p", **odd))
    for node in ("n0", "n1"):
        made.set_slice(slice_of(node, [], name=f"e-{node}", pool="p", generation=generation, slices=2))
    for number in range(3):
        made.set_slice(slice_of("n2", devices(4 + number), name="s2", pool=f"x{number}"))
        made.refresh()
        assert any(one.view.pool.name == f"x{number}" for one in made.node(2)[1].pools)
    assert made.node(0)[1] is made.node(1)[1]
