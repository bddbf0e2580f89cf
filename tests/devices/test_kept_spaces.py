"""Search spaces that are kept give the results of new ones, and only changed pools are read again."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from random import Random
from typing import Any

import pytest

from policysched.budget import Budget
from policysched.devices import Allocator, DeviceTables
from policysched.devices.answers.group_search import GroupSearch
from policysched.devices.search_space import SearchSpace
from policysched.model.decode import decode
from policysched.model.objects import AllocationResult
from policysched.model.release import DEFAULT
from tests import work
from tests.devices.build import allocate, claim, device, request, slice_of, tables
from tests.devices.generate import Cases
from tests.devices.playing import Case, claims_of, said, tables_of

STEPS = 300_000
Taken = dict[str, AllocationResult]


def _searched_anew(case: Case, taken: Taken) -> list[Any]:
    """What a search finds on each node that begins with everything."""
    made = tables_of(case, DEFAULT)
    for uid, one in taken.items():
        made.allocated.assume(uid, one)
    return [said(Allocator(made, claims_of(case), steps=STEPS), row) for row in range(len(case["nodes"]))]


def _differing() -> Iterator[Case]:
    """Take and give back devices of random cases, and go through those where kept spaces say something else."""
    for seed in range(40):
        rng = Random(seed)
        case = Cases(rng).case()
        kept, taken = tables_of(case, DEFAULT), Taken()
        for number in range(6):
            found = [said(Allocator(kept, claims_of(case), steps=STEPS), row) for row in range(len(case["nodes"]))]
            anew = _searched_anew(case, taken)
            if found != anew and not any(one.get("timeout") for one in (*found, *anew)):
                yield case
            if taken and rng.random() < 0.3:
                uid = rng.choice(list(taken))
                del taken[uid]
                kept.allocated.forget(uid)
            else:
                _take(kept, taken, rng.choice(anew)["results"] or (), number)


def _take(made: DeviceTables, taken: Taken, results: Any, number: int) -> None:
    for place, raw in enumerate(results):
        share = {"shareID": f"{number}-{place}"}
        devices = [
            one | (share if "consumedCapacity" in one else {}) for one in raw.get("devices", {}).get("results", ())
        ]
        uid, result = (
            f"u{number}-{place}",
            decode(AllocationResult, "AllocationResult", {"devices": {"results": devices}}),
        )
        taken[uid] = result
        made.allocated.assume(uid, result)


def test_what_is_found_in_a_kept_space_is_what_a_new_search_finds() -> None:
    assert not list(_differing())


def _read_once(self: SearchSpace, place: int, steps: Budget) -> None:
    """Read a pool when the space is new only."""
    if self._states[place] is None:
        _READ(self, place, steps)


_READ = SearchSpace._read
BROKEN: dict[str, tuple[type, str, Callable[..., Any]]] = {
    "states": (GroupSearch, "note", lambda *_: None),
    "space": (SearchSpace, "_read", _read_once),
}


@pytest.mark.parametrize("part", BROKEN)
def test_a_space_that_is_kept_wrongly_is_noticed(monkeypatch: pytest.MonkeyPatch, part: str) -> None:
    monkeypatch.setattr(*BROKEN[part])
    assert next(_differing())


def _shared(number: int) -> list[Any]:
    """A device for all nodes of which everybody takes a part."""
    capacity = {"memory": {"value": "80", "requestPolicy": {"default": "1"}}}
    parts = [device("d", allowMultipleAllocations=True, capacity=capacity)]
    return [slice_of("", parts, name=f"s{number}", pool=f"p{number:04}", allNodes=True)]


def _partitions(number: int) -> list[Any]:
    """Devices for all nodes of which two take everything that there is of a counter."""
    charged = [{"counterSet": "set", "counters": {"c": {"value": "1"}}}]
    parts = [device(f"d{place}", consumesCounters=charged) for place in range(4)]
    sets = [{"name": "set", "counters": {"c": {"value": "2"}}}]
    pool = f"p{number:04}"
    return [
        slice_of("", parts, name=f"s{number}", pool=pool, allNodes=True, slices=2),
        slice_of("", [], name=f"c{number}", pool=pool, sharedCounters=sets, slices=2),
    ]


PUBLISHED = {"shares": _shared, "partitions": _partitions}


@pytest.mark.parametrize("kind", PUBLISHED)
def test_work_of_a_decision_grows_neither_with_the_pools_nor_with_those_that_are_full(kind: str) -> None:
    if kind == "shares":
        asked = [request(1, name=f"r{place}", capacity={"requests": {"memory": "40"}}) for place in range(2)]
    else:
        asked = [request(2)]

    def calls(pools: int, full: int) -> int:
        slices = [one for number in range(pools) for one in PUBLISHED[kind](number)]
        made = tables(*slices, nodes=[f"n{one}" for one in range(50)])

        def place(number: int) -> None:
            wanting = claim(*asked, name=f"c{number}")
            Allocator(made, [wanting]).answers()
            found = allocate(made, wanting)
            assert found is not None
            assert [one.pool for one in found[0].devices.results] == [f"p{number:04}"] * 2
            made.allocated.assume(f"c{number}", found[0])

        for number in range(full):
            place(number)
        return work.calls(lambda: place(full))

    few = calls(20, 4)
    assert calls(320, 4) <= few + 20
    assert calls(320, 100) <= few + 40
