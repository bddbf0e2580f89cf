"""The comparison of decisions about devices notices each part of the allocator that is broken."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

import pytest
from msgspec.structs import replace

from policysched.devices import partial_solution
from policysched.devices.inventory import pools
from policysched.devices.partial_solution import FailedSearchError, PartialSolution
from policysched.devices.requests import capacities, constraints
from policysched.devices.search import DeviceSearch
from policysched.plugins.dynamic_resources import extended_resources
from tests.oracle import configs
from tests.oracle.minors import release_of
from tests.oracle.objects import node

from .cases import singles
from .comparison import differences
from .ours import ours
from .things import claim, device, device_class, request, resource_slice, using

if TYPE_CHECKING:
    from policysched.model.release import Release
    from tests.oracle.oracle import Case, Oracle, Record

pytestmark = pytest.mark.oracle

SEED = 11
CASES = 700
Patch = pytest.MonkeyPatch


def _unsorted(patch: Patch) -> None:
    def backwards(values: Iterable[Any], key: Callable[[Any], Any]) -> list[Any]:
        return sorted(values, key=key, reverse=True)

    patch.setattr(pools, "sorted", backwards, raising=False)


def _without_backtracking(patch: Patch) -> None:
    patch.setattr(PartialSolution, "take_back", lambda _self, _undo: None)


def _eager(patch: Patch) -> None:
    lazy = DeviceSearch._some

    def some(self: DeviceSearch, ask: Any, done: int, start: int) -> Any:
        failing = self._space.failing[ask.requirement]
        if failing:
            raise FailedSearchError(self._failure(ask, (failing & -failing).bit_length() - 1))
        return lazy(self, ask, done, start)

    patch.setattr(DeviceSearch, "_some", some)


def _uncounted(patch: Patch) -> None:
    patch.setattr(PartialSolution, "_count", lambda _self, _device: True)
    patch.setattr(PartialSolution, "_count_back", lambda _self, _device: None)


def _unrounded(patch: Patch) -> None:
    patch.setattr(capacities, "_rounded", lambda requested, *_: requested)


def _otherwise_distinct(patch: Patch) -> None:
    make = constraints.fresh
    patch.setattr(partial_solution, "fresh", lambda one, *, compares_all: make(one, compares_all=not compares_all))


def _misnamed(patch: Patch) -> None:
    make = extended_resources.requests_for

    def requests_for(*given: Any) -> Any:
        return tuple(replace(one, name=f"{one.name}x") for one in make(*given))

    patch.setattr(extended_resources, "requests_for", requests_for)


WORLD = [node("a"), device_class(), resource_slice("s", device("x"), device("y"))]
BROKEN: dict[str, tuple[Callable[[Patch], None], str]] = {
    "sorted order": (_unsorted, ""),
    "backtracking": (_without_backtracking, "constraints"),
    "laziness of errors": (_eager, "errors"),
    "counters": (_uncounted, "counters"),
    "rounding of capacities": (_unrounded, "capacity"),
    "distinct values within a request": (_otherwise_distinct, "constraints"),
    "names of requests for extended resources": (_misnamed, "extended"),
}
"""How each part is broken, and the theme of the cases that have to notice."""


@pytest.fixture(scope="module")
def answered(oracle: Oracle) -> list[tuple[Case, Record]]:
    return [(case, oracle.decide(case)) for case in singles(SEED, range(CASES))]


@pytest.mark.parametrize("part", BROKEN)
def test_comparison_notices_a_broken_part(
    oracle: Oracle, answered: list[tuple[Case, Record]], part: str, monkeypatch: Patch
) -> None:
    release = release_of(oracle)
    break_it, theme = BROKEN[part]
    about = [pair for pair in answered if not theme or theme in pair[0]["themes"]][:120]
    assert not any(differences(ours(case, release), theirs) for case, theirs in about)
    break_it(monkeypatch)
    assert any(differences(_ours(case, release), theirs) for case, theirs in about)


def _ours(case: Case, release: Release) -> Record:
    try:
        return ours(case, release)
    except (AssertionError, KeyError, IndexError) as error:  # what is broken may break more
        return {"result": f"raised {error!r}"}


def test_comparison_looks_at_every_field_of_an_allocation() -> None:
    record = ours(
        {
            "objects": [*WORLD, claim(request(count=2))],
            "pod": using("c"),
            "config": configs.base(),
        }
    )
    assert not differences(record, record)
    [made] = record["allocations"]["a"]
    for field, value in (("device", "other"), ("pool", "other"), ("request", "other"), ("adminAccess", True)):
        results = [{**made["result"]["devices"]["results"][0], field: value}, made["result"]["devices"]["results"][1]]
        other = {**made, "result": {**made["result"], "devices": {"results": results}}}
        found = differences(record, {**record, "allocations": {"a": [other]}})
        assert [line.split(":")[0] for line in found] == ["allocations.a"]
    assert differences(record, {key: part for key, part in record.items() if key != "allocations"})
