"""Which pods a node is kept for: what their statuses say, and before that what was decided here."""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType

import pytest
from msgspec.structs import replace

from policysched.framework import ChangedRow, Cluster
from policysched.model.objects import Pod, PodStatus
from policysched.state.nominated.nominations import Nominations
from policysched.state.placed.pods import Measured, measure
from policysched.state.tables.amounts import PodResources
from tests.build import node, pod

pod_resources = Cluster().pod_resources
ROWS: Mapping[str, int] = MappingProxyType({"n1": 4, "n2": 7})


def stating(node_name: str, name: str = "p", priority: int = 0) -> Pod:
    return replace(pod(name, priority=priority), status=PodStatus(nominated_node_name=node_name))


def test_update_without_a_word_keeps_the_node_that_was_decided() -> None:
    known = Nominations(pod_resources)
    known.set(pod("p"), "n1")
    assert known.update(pod("p", labels={"a": "b"})) is None
    [kept] = known.on_node("n1")
    assert kept.metadata.labels == {"a": "b"}


def test_status_decides_once_it_says_something() -> None:
    known = Nominations(pod_resources)
    known.set(pod("p"), "n1")
    assert known.update(stating("n2")) is None
    assert (known.on_node("n1"), len(known.on_node("n2"))) == ([], 1)


def test_update_that_names_another_node_or_none_gives_the_first_one_back() -> None:
    known = Nominations(pod_resources)
    assert known.update(stating("n1")) is None
    freed = known.update(stating("n2"))
    assert freed is not None
    assert freed.node == "n1"
    freed = known.update(stating(""))
    assert freed is not None
    assert freed.node == "n2"
    assert not known


def test_pods_of_lower_priority_and_the_pod_itself_are_not_yielded_to() -> None:
    known = Nominations(pod_resources)
    for one in (stating("n1", "low", 1), stating("n1", "same", 5), stating("n2", "high", 9), stating("gone", "x", 9)):
        known.update(one)
    found = known.yielded_to(stating("n2", "same-too", 5), ROWS)
    assert {row: [one.metadata.name for one in pods] for row, pods in found.items()} == {4: ["same"], 7: ["high"]}
    assert 4 not in known.yielded_to(stating("n1", "same", 5), ROWS)


def test_placed_or_assumed_pod_is_not_nominated_any_more() -> None:
    around = Cluster()
    around.set_node(node("n1"))
    around.nominations.set(pod("a"), "n1")
    around.nominations.set(pod("b"), "n1")
    around.assume(pod("a"), around.nodes.row_of["n1"])
    around.set_pod(pod("b", on="n1"))
    assert not around.nominations


def test_nominated_pod_is_measured_once_as_long_as_it_stays_as_it_is() -> None:
    known = Nominations(pod_resources)
    first, second = stating("n1"), replace(stating("n1"), spec=pod("p", requests={"cpu": "2"}).spec)
    assert known.measured(first) is None
    known.update(first)
    found = known.measured(first)
    assert found == measure(first, pod_resources(first))
    assert known.measured(first) is found
    assert known.measured(second) is None
    known.update(second)
    again = known.measured(second)
    assert (again, again == found) == (measure(second, pod_resources(second)), False)
    known.discard("default.p")
    assert known.measured(second) is None


def test_what_if_of_nominated_pods_measures_none_of_them_again(monkeypatch: pytest.MonkeyPatch) -> None:
    made = Cluster()
    made.set_node(node("n1"))
    nominated = [stating("n1", f"p{number}") for number in range(3)]
    measured: list[str] = []

    def noted(one: Pod, resources: PodResources) -> Measured:
        measured.append(one.metadata.name)
        return measure(one, resources)

    monkeypatch.setattr("policysched.state.nominated.nominations.measure", noted)
    for one in nominated:
        made.nominations.update(one)
    for _ in range(2):
        changed = ChangedRow(made, made.nodes.row_of["n1"])
        for one in nominated:
            changed.add(one)
        assert changed.more_pods == 3
    assert measured == ["p0", "p1", "p2"]
