"""What claims, selectors and slices can make the allocator do and keep has bounds, whatever is in them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any
from weakref import ref

import pytest

from policysched.budget import Budget
from policysched.devices import AllocationTimeoutError, Allocator, DeviceTables
from policysched.devices.answers.prepared import PreparedClaims
from policysched.devices.inventory.amounts import Number
from policysched.devices.inventory.columns import AttributeValue, DeviceTraits
from policysched.devices.inventory.pool_views import PoolView
from policysched.devices.inventory.slices import CounterName
from policysched.devices.outcomes import AllocationAnswer, Outcome
from policysched.devices.requests import requirements
from policysched.devices.requests.constraints import EqualAttribute, NamedRequest
from policysched.devices.requests.failures import AllocationFailure
from policysched.devices.search import DeviceSearch
from policysched.devices.view_shapes import ViewShape
from policysched.model.objects import ResourceClaim
from tests import work
from tests.devices.build import DRIVER, allocate, claim, device, devices, names, request, slice_of, tables

if TYPE_CHECKING:
    from _collections_abc import dict_items, dict_values

NODES = [f"n{place:03}" for place in range(40)]
SERIAL = f'device.attributes["{DRIVER}"].serial'


def told_apart(of_each: int = 4) -> DeviceTables:
    """Nodes with devices that have a serial number each."""

    def part(node: str, place: int) -> dict[str, object]:
        return device(f"d{place}", attributes={"serial": {"string": f"{node}-{place}"}})

    return tables(*(slice_of(node, [part(node, place) for place in range(of_each)]) for node in NODES), nodes=NODES)


def asking(text: str, count: int = 1) -> ResourceClaim:
    return claim(request(count, text))


def kept(made: DeviceTables) -> list[PreparedClaims]:
    return [one for one in made.prepared.values() if isinstance(one, PreparedClaims)]


def test_what_is_known_of_claims_is_kept_as_long_as_it_is_little(monkeypatch: pytest.MonkeyPatch) -> None:
    made = told_apart()
    Allocator(made, [asking(f'{SERIAL} != "xx"')]).answers()
    [first] = kept(made)
    most = 5 * first.size
    monkeypatch.setattr("policysched.devices.allocator.MOST_BYTES", most)
    for number in range(30):
        Allocator(made, [asking(f'{SERIAL} != "{number:02}"')]).answers()
        assert sum(one.size for one in kept(made)) <= most + first.size
    assert first not in kept(made)
    last = kept(made)[-1]
    Allocator(made, [asking(f'{SERIAL} != "29"')]).answers()
    assert kept(made)[-1] is last


def test_what_is_known_of_claims_goes_as_soon_as_nobody_holds_it() -> None:
    made = told_apart()
    with work.collector_off():
        Allocator(made, [asking(f'{SERIAL} != "xx"', count=2)]).answers()
        [one] = kept(made)
        parts: list[ref[Any]] = [ref(one), ref(one.search)]
        del one
        made.prepared.clear()
        assert [part() for part in parts] == [None, None]


def test_what_was_asked_about_longest_ago_goes_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("policysched.devices.allocator.MOST_KEPT", 3)
    made = tables(slice_of("n0", devices(2)))
    for count in (1, 2, 3, 1, 4):
        Allocator(made, [claim(request(count))]).answers()
    assert [one.plans.claims[0].requests[0].asks[0].count for one in kept(made)] == [3, 1, 4]


def test_values_that_selectors_read_are_not_kept() -> None:
    made = told_apart()
    Allocator(made, [claim(request(1, f'{SERIAL} != "x"'), request(1, f'{SERIAL} != "y"', name="q"))]).answers()
    [one] = kept(made)
    assert len(one.search.kinds.kinds) == 4 * len(NODES)
    assert not any(kind._variables for kind in one.search.kinds.kinds)


def test_kinds_of_devices_are_told_apart_a_part_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("policysched.devices.requests.kinds._TOGETHER", 20)
    made = told_apart()
    wanting = [asking(f'{SERIAL} != "x"')]
    said = []
    for _ in range(40):
        codes = Allocator(made, wanting, steps=0).answers().codes[: len(NODES)]
        said.append(set(codes.tolist()))
    assert said[0] == {AllocationAnswer.TIMEOUT}
    assert said[-1] == {AllocationAnswer.YES}


def test_each_kind_of_device_is_asked_about_once_however_many_attempts_it_takes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[int] = []
    suitability = requirements.DeviceRequirement.suitability

    def counted(self: requirements.DeviceRequirement, kind: requirements.DeviceKind, most: int) -> Any:
        asked.append(kind.number)
        return suitability(self, kind, most)

    monkeypatch.setattr(requirements.DeviceRequirement, "suitability", counted)
    monkeypatch.setattr("policysched.devices.answers.prepared._STEPS_A_GROUP", 0)
    made, wanting, attempts = told_apart(), asking(f'{SERIAL} != "x"'), 1
    while AllocationAnswer.TIMEOUT in Allocator(made, [wanting], steps=500).answers().codes[: len(NODES)].tolist():
        attempts += 1
    assert attempts > 5
    assert len(asked) <= 4 * len(NODES) + attempts


def test_groups_of_nodes_that_have_answers_are_not_searched_again(monkeypatch: pytest.MonkeyPatch) -> None:
    searched = 0
    run = DeviceSearch.run

    def counted(self: DeviceSearch, steps: Budget) -> Outcome:
        nonlocal searched
        searched += 1
        return run(self, steps)

    monkeypatch.setattr(DeviceSearch, "run", counted)
    monkeypatch.setattr("policysched.devices.answers.prepared._STEPS_A_GROUP", 0)
    made = told_apart()
    wanting = claim(request(), request(name="s"), constraints=[{"distinctAttribute": f"{DRIVER}/serial"}])
    open_before, attempts = len(NODES), 0
    while open_before:
        codes = Allocator(made, [wanting], steps=700).answers().codes[: len(NODES)].tolist()
        open_now, attempts = codes.count(AllocationAnswer.TIMEOUT), attempts + 1
        assert open_now <= open_before
        assert attempts < 60
        open_before = open_now
    assert attempts > 2
    assert searched <= len(NODES) + attempts


def test_what_stands_against_devices_is_told_as_far_as_steps_allow() -> None:
    made = tables(slice_of("n0", devices(100)))
    wanting = claim(*(request(1, f'device.driver != "{place}"', name=f"r{place}") for place in range(20)))
    Allocator(made, [wanting]).answers()
    told = Allocator(made, [wanting], steps=1_000).refusals(0)
    assert 1 < len(told) < 20
    assert [one.fitting for one in told] == [100] * len(told)
    assert len(Allocator(made, [wanting]).refusals(0)) == 20


def test_selectors_that_take_long_are_asked_once_a_kind_for_what_stands_against_devices(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    made = tables(slice_of("n0", devices(100)))
    wanting = asking("lists.range(90).all(x, lists.range(90).all(y, x + y >= 0))")
    Allocator(made, [wanting]).answers()
    asked = 0
    matches = requirements._Selector.matches

    def counted(one: requirements._Selector, kind: requirements.DeviceKind) -> tuple[bool | AllocationFailure, int]:
        nonlocal asked
        asked += 1
        return matches(one, kind)

    monkeypatch.setattr(requirements._Selector, "matches", counted)
    assert [one.fitting for one in Allocator(made, [wanting]).refusals(0)] == [100]
    assert asked == 2


def test_of_many_capacities_each_takes_steps() -> None:
    capacity = {f"c{place}": {"value": "100"} for place in range(32)}
    parts = [
        device(f"d{one}", allowMultipleAllocations=True, capacity={**capacity, "own": {"value": f"{one}"}})
        for one in range(50)
    ]
    made = tables(slice_of("n0", parts))
    assert Allocator(made, [claim(request())], steps=2_000).answers().codes[0] == AllocationAnswer.TIMEOUT
    [one] = kept(made)
    assert 10 < len(one.search.known[0]) < 40


def _long(place: int) -> str:
    """Return a selector of some 5,000 characters."""
    return " || ".join(f'device.driver == "{place}-{each:03}"' for each in range(180)) + " || true"


def test_selectors_are_compiled_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    compiled: list[str] = []
    compile_one = requirements._compile

    def counted(text: str, cel_0_29: bool) -> object:
        compiled.append(text)
        return compile_one(text, cel_0_29)

    monkeypatch.setattr(requirements, "_PROGRAMS", requirements.Programs(1 << 19))
    monkeypatch.setattr(requirements, "_compile", counted)
    made = tables(slice_of("n0", devices(2)))
    wanting = claim(*(request(1, _long(place), name=f"r{place}") for place in range(2)))
    attempts = 0
    while True:
        attempts, before = attempts + 1, len(compiled)
        try:
            found = allocate(made, wanting, steps=25_000)
        except AllocationTimeoutError:
            assert len(compiled) - before == 1
        else:
            break
    assert attempts > 1
    assert names(found) == [["d00", "d01"]]
    assert len(compiled) == len(set(compiled))


def test_programs_are_kept_by_their_length() -> None:
    programs = requirements.Programs(110)
    texts = [f"{'true || ' * 4}device.driver == '{place}'" for place in range(4)]
    assert len(texts[0]) == 52
    for text in (texts[0], texts[1], texts[0], texts[2]):
        programs.compiled(text, False)
    assert [programs.knows(text, False) for text in texts] == [True, False, True, False]
    assert not any(programs.knows(text, True) for text in texts)
    programs.compiled(long := " || ".join(["true"] * 100), False)
    assert programs.knows(long, False)
    assert not any(programs.knows(text, False) for text in texts)


def test_an_error_that_a_selector_makes_long_is_cut() -> None:
    text = f"device.attributes['{DRIVER}'][lists.range(9000).map(x, 'aaaaaaaaaaaaaaaa').join()] == 'x'"
    made = tables(slice_of("n0", devices(1)))
    found = Allocator(made, [asking(text)]).answers()
    assert found.codes[0] == AllocationAnswer.ERROR
    assert 4096 < len(str(found.error(0))) < 4300


@pytest.mark.parametrize(
    "text",
    [
        "lists.range(1000).all(x, lists.range(1000).all(y, x + y >= 0))",
        "lists.range(1000).all(x, 'a'.matches('(a?){900}' + string(x)) || true)",
    ],
)
def test_a_selector_that_is_stopped_takes_the_steps_of_the_question(text: str) -> None:
    made = told_apart()
    wanting = [asking(f"{text} && {SERIAL} != ''")]
    Allocator(made, wanting, steps=50_000).answers()
    [one] = kept(made)
    assert len(one.search.known[0]) <= 2
    assert names(allocate(made, claim(request(4)), row=3)) == [["d0", "d1", "d2", "d3"]]


def test_attributes_that_no_device_has_take_no_column() -> None:
    made = told_apart()
    Allocator(made, [asking(f'{SERIAL} == "n000-1"')]).answers()
    before = len(made.columns._by_name)
    for number in range(20):
        found = Allocator(made, [asking(f'device.attributes["x"].?a{number}.orValue(1) == 1')]).answers()
        assert found.codes[0] == AllocationAnswer.YES
    assert len(made.columns._by_name) == before


def test_an_attribute_that_devices_get_later_is_read_then() -> None:
    made, wanting = told_apart(), [asking(f'"later" in device.attributes["{DRIVER}"]')]
    assert set(Allocator(made, wanting).answers().codes[: len(NODES)].tolist()) == {AllocationAnswer.NO}
    for text in ("x", "y"):
        made.set_slice(slice_of("n000", [device("d0", attributes={"later": {"string": text}})]))
        codes = Allocator(made, wanting).answers().codes
        assert (codes[0], codes[1]) == (AllocationAnswer.YES, AllocationAnswer.NO)
    made.set_slice(slice_of("n000", devices(1)))
    assert Allocator(made, wanting).answers().codes[0] == AllocationAnswer.NO
    assert "later" not in made.columns._by_name


def test_slices_that_change_their_size_use_rows_again() -> None:
    made = tables()
    for size in (*range(1, 129), *range(128, 0, -1)):
        for node in NODES[:5]:
            made.set_slice(slice_of(node, devices(size)))
    assert made.columns.size <= 2 * 255 * 5


def test_selectors_that_take_long_are_asked_a_few_at_a_time(monkeypatch: pytest.MonkeyPatch) -> None:
    asked: list[str] = []
    matches = requirements._Selector.matches

    def counted(one: requirements._Selector, kind: requirements.DeviceKind) -> tuple[bool | AllocationFailure, int]:
        asked.append(one.name)
        return matches(one, kind)

    monkeypatch.setattr(requirements._Selector, "matches", counted)
    texts = [f"lists.range(90).all(x, lists.range(90).all(y, x + y >= -{place}))" for place in range(1, 9)]
    made = tables(slice_of("n0", devices(2)))
    wanting = [claim(request(1, *texts))]
    said = []
    for attempt in range(1, 10):
        code = Allocator(made, wanting, steps=12_000).answers().codes[0]
        said.append(code)
        assert len(asked) <= 2 * attempt
    assert said[0] == AllocationAnswer.TIMEOUT
    assert said[-1] == AllocationAnswer.YES
    assert asked == [f"selector #{place}" for place in range(8)]


def hopeless(*more: dict[str, Any]) -> ResourceClaim:
    """Return a claim of which no two devices of seven sorts are enough, which a search cannot know."""
    requests = [request(1, name=f"r{place}") for place in range(12)]
    return claim(*requests, constraints=[*more, {"distinctAttribute": f"{DRIVER}/sort"}])


def of_seven_sorts(count: int, **fields: object) -> list[dict[str, object]]:
    attributes = {"same": {"bool": True}}
    return [
        device(f"d{place}", attributes={**attributes, "sort": {"int": place % 7}}, **fields) for place in range(count)
    ]


def test_constraints_take_the_steps_of_the_question(monkeypatch: pytest.MonkeyPatch) -> None:
    added = 0
    add = EqualAttribute.add

    def counted(one: EqualAttribute, of: NamedRequest, value: AttributeValue | None) -> bool:
        nonlocal added
        added += 1
        return add(one, of, value)

    monkeypatch.setattr(EqualAttribute, "add", counted)
    made = tables(slice_of("n0", of_seven_sorts(16)))
    wanting = hopeless(*[{"matchAttribute": f"{DRIVER}/same"}] * 31)
    assert Allocator(made, [wanting], steps=5_000).answers().codes[0] == AllocationAnswer.TIMEOUT
    assert 0 < added <= 2 * 5_100


class _CountedAmounts(dict[CounterName, Number]):
    looked_at = 0

    def items(self) -> dict_items[CounterName, Number]:
        self.looked_at += len(self)
        return super().items()

    def values(self) -> dict_values[CounterName, Number]:
        self.looked_at += len(self)
        return super().values()


def with_counters(free: int) -> tuple[DeviceTables, PoolView]:
    """A pool of 16 devices that take of one counter each, beside 1,000 others."""
    counters = {f"c{place}": {"value": "100"} for place in range(999)} | {"other": {"value": str(free)}}
    takes = [{"counterSet": "set", "counters": {"c0": {"value": "1"}}}]
    made = tables(
        slice_of("n0", of_seven_sorts(16, consumesCounters=takes), slices=2),
        slice_of("n0", [], name="counters", slices=2, sharedCounters=[{"name": "set", "counters": counters}]),
    )
    made.refresh()
    [seen] = made.node(0)[1].pools
    return made, seen.view


def test_of_many_counters_those_are_compared_that_devices_take(monkeypatch: pytest.MonkeyPatch) -> None:
    made, view = with_counters(free=0)
    monkeypatch.setattr(view.charges, "available", amounts := _CountedAmounts(view.available))
    assert Allocator(made, [hopeless()], steps=5_000).answers().codes[0] == AllocationAnswer.TIMEOUT
    assert amounts.looked_at <= 1_000


def test_where_a_counter_is_overdrawn_the_search_ends_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    made, view = with_counters(free=-1)
    monkeypatch.setattr(view.charges, "available", amounts := _CountedAmounts(view.available))
    assert Allocator(made, [claim(request())], steps=5_000).answers().codes[0] == AllocationAnswer.NO
    assert Allocator(made, [hopeless()], steps=5_000).answers().codes[0] == AllocationAnswer.NO
    assert amounts.looked_at <= 2 * 1_000


@pytest.mark.parametrize("kinds", [1, 3, 500])
def test_equal_devices_take_no_set_for_each_of_many_kinds(kinds: int) -> None:
    traits = DeviceTraits(DRIVER, {}, (), (), (), False, False, (), (), None)
    each = [requirements.DeviceKind(traits, {}, number) for number in range(kinds)]
    there = [each[place % kinds] for place in range(1_000)]
    shape = ViewShape(there, [])
    for one in each:
        assert shape.equal(one) == sum(1 << place for place, other in enumerate(there) if other is one)
    assert len(shape._equal) <= 3
    assert shape.equal(requirements.DeviceKind(traits, {}, kinds)) == 0


def test_configurations_of_claims_are_not_kept() -> None:
    made = tables(slice_of("n0", devices(2)))
    for number in range(20):
        parameters = {"text": f"{number}" * 5_000}
        wanting = claim(request(), config=[{"opaque": {"driver": DRIVER, "parameters": parameters}}])
        assert Allocator(made, [wanting]).answers().codes[0] == AllocationAnswer.YES
    assert len(made.prepared) == 1
    assert sum(map(len, made.prepared)) < 100


def test_what_is_kept_of_claims_counts_what_they_ask_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("policysched.devices.allocator.MOST_BYTES", 4 << 20)
    made = tables(slice_of("n0", devices(2)))
    for number in range(20):
        Allocator(made, [claim(*(request(name=f"r{place}-{number}") for place in range(2_000)))]).answers()
        assert sum(map(len, made.prepared)) < 10_000
    assert len(kept(made)) < 6
