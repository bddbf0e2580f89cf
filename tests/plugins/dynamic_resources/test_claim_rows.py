"""DynamicResources at Filter, Score and PostFilter: where claims can be had, and what takes them back."""

from __future__ import annotations

import random
from typing import Any
from unittest.mock import Mock

import pytest
from msgspec.structs import replace

from policysched.framework import SKIP, Cluster, Code, Status, unresolvable, unschedulable
from policysched.model.objects import DeviceCondition, NodeSelector, NodeSelectorTerm, Pod, Requirement
from policysched.plugins.dynamic_resources import claim_rows
from policysched.plugins.dynamic_resources.plugin import DynamicResources
from policysched.plugins.nodes.node_selection import SelectorTest
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.post_filter import FailedCycle
from tests.build import cluster, device_class, node, pod
from tests.plugins.ask import filtered, scored
from tests.plugins.dynamic_resources.objects import (
    allocated,
    changed,
    claim,
    claiming,
    device,
    exactly,
    first_available,
    gpu_class,
    resource_slice,
    selector,
    told,
    two_nodes,
    world,
)
from tests.schedule.parts import FakeFilter, profile
from tests.work import calls

GPU = "example.com/gpu"
NO_DEVICES = unresolvable("cannot allocate all claims")
ELSEWHERE = unresolvable("resourceclaim not available on the node")


def asked(of: Pod, around: Cluster, timeout: float = 600) -> Any:
    return filtered(DynamicResources(timeout), of, around)


def test_pods_that_need_no_devices_are_skipped_and_score_nothing() -> None:
    plugin, around = DynamicResources(), cluster(node("a"), node("b"))
    assert filtered(plugin, pod(), around) is SKIP
    of_class = plugin.class_score
    assert of_class is not None
    assert scored(of_class, pod(), around) == {"a": 0, "b": 0}


def test_a_pod_goes_where_its_claims_can_be_allocated() -> None:
    around = two_nodes(claim("one"), claim("two", exactly(count=2)), claim("three", exactly(count=3)))
    assert asked(claiming("one"), around) == {}
    assert asked(claiming("two"), around) == {"n2": NO_DEVICES}
    assert asked(claiming("one", "two"), around) == {"n1": NO_DEVICES, "n2": NO_DEVICES}
    assert asked(claiming("three"), around) == {"n1": NO_DEVICES, "n2": NO_DEVICES}


def test_devices_of_other_claims_are_not_given_again() -> None:
    around = two_nodes(claim("mine"), allocated(claim("other"), "n2", "d1"))
    assert asked(claiming("mine"), around) == {"n2": NO_DEVICES}
    around.take(changed(claim("other"), version="2"))
    assert asked(claiming("mine"), around) == {}


def test_a_claim_that_is_allocated_says_where_it_can_be_used() -> None:
    around = two_nodes(allocated(claim(), "n2", "d1"))
    assert asked(claiming("c"), around) == {"n1": ELSEWHERE}


def test_of_many_allocated_claims_each_selector_is_looked_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    tests: list[Any] = []
    make = SelectorTest

    def counted(*arguments: Any) -> Any:
        tests.append(arguments)
        return make(*arguments)

    monkeypatch.setattr(claim_rows, "SelectorTest", counted)
    around = two_nodes(*(allocated(claim(f"c{place}"), "n1", "d1") for place in range(20)))
    wanting = claiming(*(f"c{place}" for place in range(20)))
    assert asked(wanting, around) == {"n2": ELSEWHERE}
    assert not tests
    terms = [NodeSelectorTerm(match_expressions=(Requirement(key="gone", operator="Exists"),))]
    elsewhere = NodeSelector(node_selector_terms=terms)
    for place in range(20):
        had = allocated(claim(f"c{place}"), "n1", "d1")
        assert had.status.allocation is not None
        got = replace(had.status.allocation, node_selector=elsewhere)
        around.take(changed(replace(had, status=replace(had.status, allocation=got)), version="2"))
    assert asked(wanting, around) == {"n1": ELSEWHERE, "n2": ELSEWHERE}
    assert len(tests) == 1


def test_what_cannot_be_allocated_is_told_before_what_is_elsewhere() -> None:
    around = two_nodes(allocated(claim("there"), "n2", "d1"), claim("new", exactly(count=2)))
    assert asked(claiming("there", "new"), around) == {"n1": ELSEWHERE, "n2": NO_DEVICES}


def test_a_claim_in_flight_is_waited_for() -> None:
    mine = claim()
    around = two_nodes(mine)
    around.resource_claims.begin(allocated(mine, "n1", "d1"))
    assert asked(claiming("c"), around) == unresolvable("resource claim default/c is in the process of being allocated")
    around.resource_claims.end(mine.metadata.uid)
    assert asked(claiming("c"), around) == {}


def test_what_pre_filter_finds_turns_the_pod_away() -> None:
    assert asked(claiming("c"), two_nodes()) == unresolvable('could not find ResourceClaim "default/c"')
    unknown = two_nodes(claim("c", exactly(device_class="tpu")))
    assert asked(claiming("c"), unknown) == unresolvable("request r: device class tpu does not exist")


def test_a_selector_that_fails_fails_the_pod() -> None:
    broken = exactly(selectors=(selector("device.attributes['gpu.example.com'].none == 1"),))
    answer = asked(claiming("c"), two_nodes(claim("c", broken)))
    assert {one.code for one in answer.values()} == {Code.ERROR}
    assert all("no such key: none" in one.message for one in answer.values())


def test_a_node_selector_that_cannot_be_read_fails_the_pod() -> None:
    wrong = NodeSelector(
        node_selector_terms=[NodeSelectorTerm(match_expressions=(Requirement(key="a", operator="Is", values=("b",)),))]
    )
    made = allocated(claim(), "n1", "d1")
    assert made.status.allocation is not None
    around = two_nodes(changed(made, allocation=replace(made.status.allocation, node_selector=wrong)))
    answer = asked(claiming("c"), around)
    assert isinstance(answer, Status)
    assert answer.code is Code.ERROR


def test_devices_that_do_not_get_ready_make_a_claim_unavailable() -> None:
    waiting = allocated(claim(), "n1", "d1", waits_for=("Ready",), binding_failure_conditions=("Broken",))
    assert waiting.status.allocation is not None
    since = replace(waiting.status.allocation, allocation_timestamp="1970-01-01T00:01:40Z")
    around = two_nodes(changed(waiting, allocation=since))
    around.time.move(105)
    assert asked(claiming("c"), around, 10) == {"n2": ELSEWHERE}
    around.time.move(120)
    assert asked(claiming("c"), around, 10) == {"n1": ELSEWHERE, "n2": ELSEWHERE}
    around.take(changed(told(waiting, DeviceCondition(type="Ready", status="True")), version="2"))
    assert asked(claiming("c"), around, 10) == {"n2": ELSEWHERE}
    around.take(changed(told(waiting, DeviceCondition(type="Broken", status="True")), version="3"))
    assert asked(claiming("c"), around, 10) == {"n1": ELSEWHERE, "n2": ELSEWHERE}


def test_earlier_alternatives_score_more() -> None:
    around = world(
        *map(node, ("n1", "n2", "n3")),
        resource_slice("n1", device("d1", "a")),
        resource_slice("n2", device("d1", "b")),
        resource_slice("n3", device("d1", "c")),
        claim("c", first_available("r", "a", "b", "c")),
    )
    plugin = DynamicResources()
    of = claiming("c")
    assert filtered(plugin, of, around) == {}
    assert scored(plugin, of, around) == {"n1": 100, "n2": 87, "n3": 75}


def test_alternatives_that_are_allocated_score_beside_those_that_are_not() -> None:
    first = claim("had", first_available("r", "a", "b"))
    had = allocated(first, "n1", "d1")
    assert had.status.allocation is not None
    results = tuple(replace(one, request="r/b") for one in had.status.allocation.devices.results)
    there = replace(
        had.status.allocation, node_selector=None, devices=replace(had.status.allocation.devices, results=results)
    )
    plugin = DynamicResources()
    around = world(node("n1"), node("n2"), resource_slice("n1", "d1", "d2"), resource_slice("n2", device("d1", "b")))
    around.take(changed(first, allocation=there))
    around.take(claim("new", first_available("r", "a", "b")))
    of = claiming("had", "new")
    assert filtered(plugin, of, around) == {}
    assert scored(plugin, of, around) == {"n1": 100, "n2": 93}
    assert filtered(plugin, claiming("had"), around) == {}
    assert scored(plugin, claiming("had"), around) == {"n1": 0, "n2": 0}


def extended(*objects: Any) -> Cluster:
    """Two nodes with devices and one with a device plugin."""
    nodes = node("n1"), node("n2"), node("plugin", allocatable={GPU: "4"})
    slices = resource_slice("n1", "d1", "d2"), resource_slice("n2", "d1")
    return world(*nodes, *slices, gpu_class(extended_resource_name=GPU), *objects)


def test_extended_resources_are_had_of_devices_where_no_device_plugin_has_them() -> None:
    assert asked(pod(requests={GPU: "1"}), extended()) == {}
    assert asked(pod(requests={GPU: "2"}), extended()) == {"n2": NO_DEVICES}
    assert asked(pod(requests={GPU: "3"}), extended()) == {"n1": NO_DEVICES, "n2": NO_DEVICES}
    assert asked(pod(requests={"deviceclass.resource.kubernetes.io/gpu": "2"}), extended()) == {
        "n2": NO_DEVICES, "plugin": NO_DEVICES,
    }  # fmt: skip


def test_extended_resources_beside_claims_share_the_devices() -> None:
    around = extended(claim())
    assert asked(claiming("c", requests={GPU: "1"}), around) == {"n2": NO_DEVICES, "plugin": NO_DEVICES}


def test_a_resource_that_nobody_provides_keeps_the_pod_off() -> None:
    around = extended()
    answer = asked(pod(requests={GPU: "1", "example.com/none": "1"}), around)
    assert answer == dict.fromkeys(("n1", "n2", "plugin"), unresolvable("cannot fit resource"))


def after_filters(
    of: Pod, around: Cluster, *others: FakeFilter, reports_no_deallocation: bool = True
) -> tuple[Status | None, bool]:
    """What it says at PostFilter, having been asked at PreFilter after others, and whether it acts."""
    plugin = DynamicResources(reports_no_deallocation=reports_no_deallocation)
    decision = Engine(around, profile((*others, plugin)), random.Random(0)).decide(of)
    result = plugin.post_filter(of, FailedCycle(decision, random.Random(0)))
    return result.status, bool(result.cleanups)


def test_without_claims_there_is_nothing_to_take_back() -> None:
    nothing = unschedulable("no new claims to deallocate")
    away = FakeFilter("Other", unschedulable("no"))
    assert after_filters(pod(), cluster(node("a")), away) == (nothing, False)
    assert after_filters(claiming("c"), two_nodes(), away) == (nothing, False)
    assert after_filters(pod(), cluster(node("a")), away, reports_no_deallocation=False) == (unschedulable(), False)


def test_it_fails_where_pre_filter_ended_before_it() -> None:
    away = FakeFilter("Other", unresolvable("no"))
    assert after_filters(pod(), cluster(node("a")), away) == (Status(Code.ERROR, ("not found",)), False)


def test_a_claim_that_keeps_the_pod_off_is_taken_back_if_nobody_else_uses_it() -> None:
    of = claiming("c", "d", name="p")
    other = pod("other")
    big = claim("d", exactly(count=9))
    deallocated, no_help = (
        unschedulable("deallocation of ResourceClaim completed"), unschedulable("still not schedulable"),
    )  # fmt: skip
    nowhere = claiming("c")
    around = world(node("n1"), resource_slice("n1", "d1"))
    around.take(allocated(claim("c"), "gone", "d1"))
    assert after_filters(nowhere, around) == (deallocated, True)
    around.take(changed(allocated(claim("c"), "gone", "d1", users=[nowhere]), version="2"))
    assert after_filters(nowhere, around) == (deallocated, True)
    around.take(changed(allocated(claim("c"), "gone", "d1", users=[other]), version="3"))
    assert after_filters(nowhere, around) == (no_help, False)
    assert after_filters(nowhere, around, reports_no_deallocation=False) == (unschedulable(), False)
    around.take(changed(allocated(claim("c"), "gone", "d1"), version="4"))
    around.take(big)
    # a node that cannot give the other claim its devices never tells that this one is elsewhere
    assert after_filters(of, around) == (no_help, False)


def unusable(count: int) -> tuple[Cluster, Pod]:
    """A pod of claims that are allocated on a node that is gone."""
    names = [f"c{number}" for number in range(count)]
    around = world(node("n1"), node("n2"), resource_slice("n1", "d1"))
    for name in names:
        around.take(allocated(claim(name), "gone", "d1"))
    return around, claiming(*names)


def test_what_is_taken_back_is_found_among_what_the_filter_found(monkeypatch: pytest.MonkeyPatch) -> None:
    around, of = unusable(3)
    rows = Mock(side_effect=claim_rows.ClaimRows)
    monkeypatch.setattr("policysched.plugins.dynamic_resources.plugin.ClaimRows", rows)
    plugin = DynamicResources()
    decision = Engine(around, profile([plugin]), random.Random(0)).decide(of)
    assert plugin.post_filter(of, FailedCycle(decision, random.Random(0))).cleanups
    assert rows.call_count == 1
    around.take(changed(allocated(claim("c0"), "n1", "d1"), version="2"))
    plugin.post_filter(of, FailedCycle(decision, random.Random(0)))
    assert rows.call_count == 2  # what it found is no more so


def test_many_unusable_claims_take_few_operations_over_nodes() -> None:
    def work(count: int) -> int:
        around, of = unusable(count)
        plugin = DynamicResources()
        engine = Engine(around, profile([plugin]), random.Random(0))
        engine.decide(of)

        def attempt() -> None:
            plugin.post_filter(of, FailedCycle(engine.decide(of), random.Random(0)))

        return calls(attempt)

    assert work(400) < 3 * work(100)


def test_a_pod_whose_devices_are_missing_waits() -> None:
    around = two_nodes(claim("c", exactly(count=9)))
    assert after_filters(claiming("c"), around) == (unschedulable("still not schedulable"), False)


def test_a_special_claim_of_an_earlier_attempt_is_deleted() -> None:
    of = pod(requests={GPU: "1"})
    stored = claim("p-extended-resources-x", owner=of)
    stored.metadata.annotations["resource.kubernetes.io/extended-resource-claim"] = "true"
    around = extended(stored)
    stale = unresolvable("cannot schedule extended resource claim")
    assert asked(of, around) == dict.fromkeys(("n1", "n2", "plugin"), stale)
    assert after_filters(of, around) == (unschedulable("deletion of ResourceClaim completed"), True)


def test_its_generation_moves_with_the_classes_of_resources() -> None:
    plugin, around = DynamicResources(), world()
    before = plugin.stamp(around)
    around.take(device_class("nics", "example.com/nic"))
    assert plugin.stamp(around) != before


@pytest.mark.parametrize(
    ("requests", "needs"),
    [({}, False), ({"cpu": "1"}, False), ({GPU: "1"}, True), ({"other.com/gpu": "1"}, False)],
)
def test_pods_are_asked_about_apart_only_where_they_need_devices(requests: dict[str, str], needs: bool) -> None:
    around = extended()
    assert DynamicResources.has_own_results(pod(requests=requests), around) is needs
    assert DynamicResources.has_own_results(claiming("c", requests=requests), around)
