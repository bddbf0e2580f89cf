"""The search ends soon where it can, and stops where it cannot."""

from __future__ import annotations

from contextlib import suppress
from typing import Any

import pytest

from policysched.devices import AllocationAnswer, AllocationError, AllocationTimeoutError, Allocator, DeviceTables
from policysched.devices.search import DeviceSearch
from policysched.model.objects import AllocationResult, ResourceClaim, ResourceSlice
from policysched.model.objects.devices import DeviceAllocation, DeviceResult
from tests.devices.build import DRIVER, allocate, claim, class_of, device, devices, names, request, slice_of, tables


def test_more_equal_devices_than_there_are_are_refused_at_once() -> None:
    assert allocate(tables(slice_of("n0", devices(31))), claim(request(32)), steps=100) is None


def test_devices_of_different_serial_numbers_are_equal_where_nobody_reads_them() -> None:
    parts = [device(f"d{one}", attributes={"serial": {"string": str(one)}, "x": {"int": 1}}) for one in range(31)]
    made = tables(slice_of("n0", parts), classes=[class_of(f'device.attributes["{"gpu.example.com"}"].x == 1')])
    constrained = claim(request(16), request(16, name="s"), constraints=[{"matchAttribute": "gpu.example.com/x"}])
    assert allocate(made, constrained, steps=1000) is None


def test_counters_of_equal_partitions_are_not_tried_in_all_combinations() -> None:
    counters = {"counterSet": "set", "counters": {"c": {"value": "3"}}}
    parts = slice_of("n0", devices(30, consumesCounters=[counters]), slices=2)
    shared = {"name": "set", "counters": {"c": {"value": "40"}}}
    sets = slice_of("n0", [], name="sets", slices=2, sharedCounters=[shared])
    made = tables(parts, sets)
    assert allocate(made, claim(request(14)), steps=1000) is None
    found = names(allocate(made, claim(request(13)), steps=1000))
    assert found is not None
    assert len(found[0]) == 13


def test_search_that_takes_too_long_stops() -> None:
    parts = [device(f"d{one}", attributes={"x": {"int": one}}) for one in range(30)]
    made = tables(slice_of("n0", parts), slice_of("n1", devices(1)), nodes=("n0", "n1"))
    distinct = [{"distinctAttribute": "gpu.example.com/x", "requests": ["r", "s"]}]
    hard = claim(request(15), request(16, name="s"), constraints=distinct)
    with pytest.raises(AllocationTimeoutError, match="timed out"):
        allocate(made, hard, steps=2000)
    allocator = Allocator(made, [hard], steps=2000)
    answers = allocator.answers()
    assert AllocationAnswer.TIMEOUT in answers.codes[:2].tolist()
    assert isinstance(answers.error(0), AllocationTimeoutError)
    assert names(allocate(made, claim(request(1)), steps=2000)) == [["d0"]]


def test_claim_that_no_device_suits_ends_the_search_whatever_others_take() -> None:
    made = tables(slice_of("n0", devices(12)))
    others = [claim(request(2), request(1, name="s"), name=f"c{one}") for one in range(2)]
    never = claim(request(1), name="never", constraints=[{"distinctAttribute": f"{DRIVER}/x"}])
    assert allocate(made, *others, never, steps=200) is None
    assert allocate(made, *others, claim(request(13), name="never"), steps=200) is None


def test_request_that_can_never_be_met_does_not_hide_one_that_fails() -> None:
    parts = [device(f"d{one}", attributes={"x": {"int": one}}) for one in range(4)]
    fails = request(1, f'device.attributes["{DRIVER}"].x != 3 && device.attributes["{DRIVER}"].y == 1', name="fails")
    never = claim(request(1), name="never", constraints=[{"distinctAttribute": f"{DRIVER}/z"}])
    with pytest.raises(AllocationError, match="no such key: y"):
        allocate(tables(slice_of("n0", parts)), claim(fails), never)


def test_device_without_a_constrained_attribute_is_asked_about_where_its_selector_fails() -> None:
    parts = [device("d0", attributes={}), device("d1", attributes={"model": {"string": "A"}})]
    made = tables(slice_of("n0", parts))
    choosy = request(1, f'device.attributes["{DRIVER}"].model == "A"', name="choosy")
    never = claim(choosy, name="never", constraints=[{"distinctAttribute": f"{DRIVER}/root"}])
    with pytest.raises(AllocationError, match="no such key: model"):
        allocate(made, claim(request(1)), never)


def _numbered(count: int, modulo: int) -> DeviceTables:
    return tables(slice_of("n0", [device(f"d{one}", attributes={"x": {"int": one % modulo}}) for one in range(count)]))


def _of_different_numbers(requests: int) -> ResourceClaim:
    """A claim for devices of different numbers, which a search finds out of late: the last request is choosy."""
    asked = [request(1, name=f"r{one}") for one in range(requests)]
    choosy = request(1, f'device.attributes["{DRIVER}"].x == 0', name="last")
    return claim(*asked, choosy, constraints=[{"distinctAttribute": f"{DRIVER}/x"}])


@pytest.mark.parametrize("steps", [300, 1_000, 5_000])
def test_search_that_ran_out_of_steps_goes_on_at_the_next_attempt(steps: int) -> None:
    wanting = _of_different_numbers(5)
    at_once = names(allocate(_numbered(14, 7), wanting, steps=1_000_000))
    assert at_once is not None
    made, attempts = _numbered(14, 7), 1
    while set(Allocator(made, [wanting], steps=steps).answers().codes[:1].tolist()) == {AllocationAnswer.TIMEOUT}:
        attempts += 1
    assert attempts > 1
    assert names(allocate(made, wanting, steps=steps)) == at_once


def test_search_that_ran_out_of_steps_begins_anew_where_devices_are_taken_meanwhile() -> None:
    wanting, made = _of_different_numbers(5), _numbered(14, 7)
    assert Allocator(made, [wanting], steps=300).answers().codes[0] == AllocationAnswer.TIMEOUT
    taken = allocate(made, claim(request(2), name="other"))
    assert names(taken) == [["d0", "d1"]]
    assert taken is not None
    made.allocated.assume("other", taken[0])
    found = None
    while found is None:
        with suppress(AllocationTimeoutError):
            found = names(allocate(made, wanting, steps=300))
    assert found == [["d2", "d3", "d4", "d5", "d6", "d7"]]


def test_what_a_search_does_in_one_piece_is_what_its_steps_allow(monkeypatch: pytest.MonkeyPatch) -> None:
    tried = 0
    next_device = DeviceSearch._next_device

    def counted(self: DeviceSearch, level: Any) -> Any:
        nonlocal tried
        tried += 1
        return next_device(self, level)

    monkeypatch.setattr(DeviceSearch, "_next_device", counted)
    made, wanting = _numbered(16, 7), _of_different_numbers(9)
    for attempt in range(1, 6):
        assert Allocator(made, [wanting], steps=1_000).answers().codes[0] == AllocationAnswer.TIMEOUT
        assert 100 * attempt < tried <= 1_001 * attempt


def test_selector_that_takes_long_costs_steps() -> None:
    loop = "[" + ",".join("1" * 1 for _ in range(60)) + "]"
    nasty = f"{loop}.all(a, {loop}.all(b, {loop}.all(c, a + b + c > 0)))"
    made = tables(slice_of("n0", devices(2)), classes=[class_of(nasty)])
    with pytest.raises(AllocationTimeoutError):
        allocate(made, claim(request(1)), steps=5000)


def test_claim_with_many_devices_does_not_overflow_the_stack() -> None:
    pools = [slice_of("n0", devices(32), name=f"s{one}", pool=f"p{one}") for one in range(40)]
    found = allocate(tables(*pools), *(claim(request(32), name=f"c{one}") for one in range(40)))
    assert found is not None
    assert sum(len(one.devices.results) for one in found) == 1280


def test_error_of_a_selector_counts_only_where_the_search_comes_to_its_device() -> None:
    parts = [device("d0", attributes={"x": {"int": 1}}), device("d1")]
    made = tables(slice_of("n0", parts), classes=[class_of('device.attributes["gpu.example.com"].x == 1')])
    assert names(allocate(made, claim(request(1)))) == [["d0"]]
    assert Allocator(made, [claim(request(1))]).answers().codes[0] == AllocationAnswer.YES
    text = (
        "class gpu: selector #0 on device gpu.example.com/n0/d1: CEL runtime error: no such key: x. consider using CEL "
    )
    with pytest.raises(AllocationError, match=f"^{text}"):
        allocate(made, claim(request(2)))
    answers = Allocator(made, [claim(request(2))]).answers()
    assert answers.codes[0] == AllocationAnswer.ERROR
    assert str(answers.error(0)).startswith(text)


def test_error_names_the_claim_that_is_asked_about_now() -> None:
    made = tables(slice_of("n0", devices(1)))
    for name in ("first", "second"):
        wanting = claim(request(33), name=name)
        limit = "adding 33 devices exceeds the claim limit of 32, with 0 already accounted for"
        text = f"claim ns/{name}, request r: {limit}"
        assert str(Allocator(made, [wanting]).answers().error(0)) == text
        with pytest.raises(AllocationError, match=f"^{text}$"):
            allocate(made, wanting)


def test_alternatives_are_told_for_each_node() -> None:
    made = tables(slice_of("n0", devices(2)), slice_of("n1", devices(1)), nodes=("n0", "n1", "n2"))
    both = {
        "name": "r",
        "firstAvailable": [
            {"name": "two", "deviceClassName": "gpu", "count": 2},
            {"name": "one", "deviceClassName": "gpu", "count": 1},
        ],
    }
    answers = Allocator(made, [claim(both)]).answers()
    assert [answers.alternatives(row) for row in (0, 1)] == [[{0: 0}], [{0: 1}]]
    assert answers.codes[:3].tolist() == [AllocationAnswer.YES, AllocationAnswer.YES, AllocationAnswer.NO]


def partitions(node: str, *, generation: int = 1) -> list[ResourceSlice]:
    """A pool of partitions of which each takes another amount of a counter: eight of sixteen never suffice."""
    pool: dict[str, Any] = {"pool": node, "generation": generation, "slices": 2}
    takes = [*range(100, 116), 500]
    parts = [
        device(f"d{place}", consumesCounters=[{"counterSet": "set", "counters": {"c": {"value": str(amount)}}}])
        for place, amount in enumerate(takes)
    ]
    sets = [{"name": "set", "counters": {"c": {"value": "1308"}}}]
    return [
        slice_of(node, parts, name=f"{node}-parts", **pool),
        slice_of(node, [], name=f"{node}-sets", sharedCounters=sets, **pool),
    ]


def take_the_largest(made: DeviceTables, node: str) -> None:
    result = DeviceResult(driver=DRIVER, pool=node, device="d16")
    made.allocated.assume(f"largest-{node}", AllocationResult(devices=DeviceAllocation(results=(result,))))


@pytest.mark.parametrize("change", ["given back", "node gone", "written anew", "written anew elsewhere"])
def test_a_search_that_goes_on_meets_what_was_there_when_it_began(change: str) -> None:
    made = tables(*partitions("n2"), nodes=("n0", "n1", "n2"))
    wanted = claim(request(8))
    assert Allocator(made, [wanted], steps=10**7).answers().codes[2] == AllocationAnswer.YES
    for node in ("n0", "n1"):
        for one in partitions(node):
            made.set_slice(one)
        take_the_largest(made, node)
    for _ in range(2):
        Allocator(made, [wanted], steps=10_000).answers()
    match change:
        case "given back":
            made.allocated.forget("largest-n0")
        case "node gone":
            made.remove_node(0)
        case "written anew" | "written anew elsewhere":
            for one in partitions("n1" if change == "written anew" else "n0", generation=2):
                made.set_slice(one)
    asked = Allocator(made, [wanted], steps=10**7)
    assert asked.answers().codes[1] == AllocationAnswer.NO
    assert asked.allocate(1, lambda: "share") is None
