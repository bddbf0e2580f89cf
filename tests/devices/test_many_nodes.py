"""Many nodes are evaluated together: by counting free devices, or by one search for all whose devices are equal."""

from __future__ import annotations

from typing import Any

import pytest

from policysched.devices import AllocationAnswer, Allocator, DeviceTables
from policysched.devices.search import DeviceSearch
from tests.devices.build import allocate, claim, device, devices, request, slice_of, tables

NODES = [f"n{one}" for one in range(60)]
NETWORK = {"nodeSelectorTerms": [{"matchExpressions": [{"key": "name", "operator": "In", "values": ["n7"]}]}]}
PAIR = [{"matchAttribute": "gpu.example.com/numa"}]


def at(place: int, numa: int) -> dict[str, Any]:
    """Make a device of a NUMA node."""
    return device(f"d{place}", attributes={"numa": {"int": numa}})


def of_two_nodes(number: int) -> list[Any]:
    """Make devices of which two have a NUMA node in common on nodes of even numbers alone."""
    places = (0, 1, 0) if number % 2 == 0 else (0, 1, 2)
    return [at(place, numa) for place, numa in enumerate(places)]


def paired() -> DeviceTables:
    return tables(*(slice_of(name, of_two_nodes(number)) for number, name in enumerate(NODES)), nodes=NODES)


def searches(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    made: list[int] = []
    run = DeviceSearch.run

    def counted(self: DeviceSearch, steps: Any) -> Any:
        made.append(len(self._space.kinds))
        return run(self, steps)

    monkeypatch.setattr(DeviceSearch, "run", counted)
    return made


def test_one_search_answers_all_nodes_whose_devices_are_alike(monkeypatch: pytest.MonkeyPatch) -> None:
    made, told = paired(), searches(monkeypatch)
    codes = Allocator(made, [claim(request(2), constraints=PAIR)]).answers().codes[: len(NODES)].tolist()
    assert codes == [AllocationAnswer.YES, AllocationAnswer.NO] * (len(NODES) // 2)
    assert len(told) == 2


def test_what_is_taken_tells_nodes_apart(monkeypatch: pytest.MonkeyPatch) -> None:
    made = paired()
    taken = claim(request(1), name="taken")
    found = allocate(made, taken, row=4)
    assert found is not None
    made.allocated.assume("taken", found[0])
    told = searches(monkeypatch)
    codes = Allocator(made, [claim(request(2), constraints=PAIR)]).answers().codes
    assert codes[4] == AllocationAnswer.NO
    assert codes[6] == AllocationAnswer.YES
    assert len(told) == 3


def test_claims_that_want_enough_devices_are_counted_on_all_nodes(monkeypatch: pytest.MonkeyPatch) -> None:
    made = tables(*(slice_of(name, devices(number % 3)) for number, name in enumerate(NODES)), nodes=NODES)
    made.set_slice(slice_of("", devices(1), name="net", pool="net", nodeSelector=NETWORK))
    told = searches(monkeypatch)
    codes = Allocator(made, [claim(request(2))]).answers().codes[: len(NODES)].tolist()
    counts = [number % 3 + (number == 7) for number in range(len(NODES))]
    assert codes == [AllocationAnswer.YES if one >= 2 else AllocationAnswer.NO for one in counts]
    assert len(told) <= 1  # nodes without pools are no part of the arrays


def counting(name: str, amount: int) -> Any:
    consumed = [{"counterSet": "set", "counters": {"memory": {"value": str(amount)}}}]
    return device(name, consumesCounters=consumed)


def pool(node: str, name: str, amount: int, *parts: Any) -> list[Any]:
    """Make a node's pool of devices with a counter."""
    sets = [{"name": "set", "counters": {"memory": {"value": str(amount)}}}]
    return [
        slice_of(node, parts, pool=name, name=name, slices=2),
        slice_of(node, [], pool=name, name=f"sets-{name}", slices=2, sharedCounters=sets),
    ]


def test_counters_tell_nodes_apart() -> None:
    parts = counting("x", 10), counting("y", 10)
    made = [pool(name, name, 20 if number % 3 else 10, *parts) for number, name in enumerate(NODES)]
    told = tables(*(one for each in made for one in each), nodes=NODES)
    codes = Allocator(told, [claim(request(2))]).answers().codes[: len(NODES)].tolist()
    assert codes == [AllocationAnswer.YES if number % 3 else AllocationAnswer.NO for number in range(len(NODES))]


def test_where_a_pool_begins_tells_nodes_apart() -> None:
    parts = [counting("x", 10), counting("y", 5), counting("z", 5)]
    made = []
    for number, name in enumerate(NODES):
        first = 1 if number % 3 else 2
        made += pool(name, f"{name}-a", 10, *parts[:first]) + pool(name, f"{name}-b", 10, *parts[first:])
    codes = Allocator(tables(*made, nodes=NODES), [claim(request(3))]).answers().codes[: len(NODES)].tolist()
    assert codes == [AllocationAnswer.YES if number % 3 else AllocationAnswer.NO for number in range(len(NODES))]


def test_nodes_that_are_not_answered_in_their_steps_wait(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("policysched.devices.answers.prepared._STEPS_A_GROUP", 0)
    differing = [[at(place, 4 * number + place) for place in range(4)] for number in range(len(NODES))]
    made = tables(*(slice_of(name, some) for name, some in zip(NODES, differing, strict=True)), nodes=NODES)
    wanting = claim(request(2), constraints=PAIR)
    said = []
    for _ in range(60):
        said.append(Allocator(made, [wanting], steps=800).answers().codes[: len(NODES)].tolist())
        if AllocationAnswer.TIMEOUT not in said[-1]:
            break
    assert AllocationAnswer.TIMEOUT in said[0]
    assert said[-1] == [AllocationAnswer.NO] * len(NODES)
    assert len(said) < 60


def test_rows_that_changed_are_named(monkeypatch: pytest.MonkeyPatch) -> None:
    made = tables(*(slice_of(name, devices(1)) for name in NODES), nodes=NODES)
    allocator = Allocator(made, [claim(request(1))])
    before = allocator.answers().stamp
    found = allocate(made, claim(request(1), name="taken"), row=7)
    assert found is not None
    made.allocated.assume("taken", found[0])
    answers = allocator.answers()
    assert answers.rows_since(before) == [7]
    assert answers.rows_since(answers.stamp) == []
    assert answers.rows_since(before - 1) is None
    monkeypatch.setattr("policysched.devices.answers.row_outcomes._MOST_LOGGED", 1)
    made.allocated.forget("taken")
    assert allocator.answers().rows_since(answers.stamp) is None
