"""NodeResourcesFit: what is short, in which order it is said, and what helps."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from policysched.framework import Action, Change, Cluster, Resource, Status, unresolvable, unschedulable
from policysched.model.objects import (
    Container,
    Metadata,
    Pod,
    PodStatus,
    ResourceRequirements,
)
from policysched.plugins.node_resources.fit import NodeResourcesFit
from policysched.plugins.node_resources.shortages import MOST_BITS
from tests.build import cluster, device_class, node, pod
from tests.plugins.ask import filtered, hinted, node_change, pod_change

GPU = "example.com/gpu"


def with_class(state: Cluster, resource: str = GPU) -> Cluster:
    state.take(device_class("gpus", resource))
    return state


def fit(state: Cluster, plugin: NodeResourcesFit | None = None, **requests: Any) -> Status | None:
    answer = filtered(plugin or NodeResourcesFit(), pod(requests=requests["requests"]), state)
    assert isinstance(answer, dict)
    return answer.get("n1")


@pytest.mark.parametrize(
    ("allocatable", "used", "requests", "status"),
    [
        ({}, {}, {}, None),
        ({"pods": "1"}, {}, {}, unschedulable("Too many pods")),
        ({"pods": "0"}, {}, {}, unschedulable("Too many pods")),
        ({}, {"cpu": "4"}, {}, None),
        ({}, {"cpu": "4"}, {"cpu": "0"}, None),
        ({}, {"cpu": "3"}, {"cpu": "1"}, None),
        ({}, {"cpu": "3"}, {"cpu": "1001m"}, unschedulable("Insufficient cpu")),
        ({}, {}, {"cpu": "4001m"}, unresolvable("Insufficient cpu")),
        ({}, {"memory": "8Gi"}, {"memory": "1"}, unschedulable("Insufficient memory")),
        ({"ephemeral-storage": "10"}, {}, {"ephemeral-storage": "11"}, unresolvable("Insufficient ephemeral-storage")),
        ({}, {}, {GPU: "1"}, unresolvable(f"Insufficient {GPU}")),
        ({GPU: "2"}, {GPU: "1"}, {GPU: "2"}, unschedulable(f"Insufficient {GPU}")),
        ({GPU: "2"}, {GPU: "1"}, {GPU: "1"}, None),
        ({}, {}, {GPU: "0"}, None),
        ({"hugepages-2Mi": "4Mi"}, {}, {"hugepages-2Mi": "6Mi"}, unresolvable("Insufficient hugepages-2Mi")),
        (
            {"pods": "1", GPU: "1"},
            {"cpu": "4", "memory": "8Gi"},
            {"memory": "1Gi", "cpu": "1", GPU: "1", "a.b/c": "1"},
            unresolvable("Too many pods", "Insufficient cpu", "Insufficient memory", "Insufficient a.b/c"),
        ),
        (
            {"pods": "1"},
            {"cpu": "4"},
            {"cpu": "1", "memory": "1Gi"},
            unschedulable("Too many pods", "Insufficient cpu"),
        ),
    ],
)
def test_node_resources_fit_names_all_that_is_short(
    allocatable: dict[str, str], used: dict[str, str], requests: dict[str, str], status: Status | None
) -> None:
    state = cluster(node(allocatable=allocatable), pod("placed", on="n1", requests=used))
    assert fit(state, requests=requests) == status


def test_node_resources_fit_takes_the_larger_of_containers_and_init_containers() -> None:
    def needs(cpu: str) -> Container:
        return Container(resources=ResourceRequirements(requests={"cpu": cpu}))

    state = cluster(node(allocatable={"cpu": "2"}))
    for init, cpu, passes in (("2", "1", True), ("3", "1", False), ("1", "3", False)):
        incoming = pod(init_containers=[needs(init)], containers=[needs(cpu)], overhead={})
        assert filtered(NodeResourcesFit(), incoming, state) == (
            {} if passes else {"n1": unresolvable("Insufficient cpu")}
        )
    heavy = pod(containers=[needs("1")], overhead={"cpu": "1500m"})
    assert filtered(NodeResourcesFit(), heavy, state) == {"n1": unresolvable("Insufficient cpu")}


@pytest.mark.parametrize(
    ("ignored", "groups", "short"),
    [({GPU}, set(), {"cpu"}), (set(), {"example.com"}, {"cpu"}), ({"cpu"}, {"cpu"}, {"cpu", GPU})],
)
def test_node_resources_fit_overlooks_ignored_extended_resources(
    ignored: set[str], groups: set[str], short: set[str]
) -> None:
    plugin = NodeResourcesFit(ignored=frozenset(ignored), ignored_groups=frozenset(groups))
    status = fit(cluster(node()), plugin, requests={GPU: "1", "cpu": "5"})
    assert status is not None
    assert set(status.reasons) == {f"Insufficient {name}" for name in short}


@pytest.mark.parametrize(
    ("allocatable", "status"),
    [({}, None), ({GPU: "0"}, None), ({GPU: "1"}, unresolvable(f"Insufficient {GPU}")), ({GPU: "2"}, None)],
)
def test_node_resources_fit_delegates_a_resource_that_only_a_device_class_has(
    allocatable: dict[str, str], status: Status | None
) -> None:
    assert fit(with_class(cluster(node(allocatable=allocatable))), requests={GPU: "2"}) == status


def test_node_resources_fit_generation_moves_with_device_classes_only() -> None:
    state = cluster(node())
    plugin = NodeResourcesFit()
    before = plugin.stamp(state)
    state.set_pod(pod(on="n1"))
    assert plugin.stamp(state) == before
    assert plugin.stamp(with_class(state)) != before


@pytest.mark.parametrize("count", [MOST_BITS, MOST_BITS + 1, 200])
def test_node_resources_fit_lists_however_many_resources_are_short(count: int) -> None:
    names = [f"example.com/r{number:03}" for number in range(count)]
    status = fit(cluster(node()), requests=dict.fromkeys(names, "1"))
    assert status == unresolvable(*(f"Insufficient {name}" for name in names))


def test_node_resources_fit_sees_pods_that_are_placed_later() -> None:
    state = cluster(node())
    plugin = NodeResourcesFit()
    prepared = plugin.prepare_filter(pod(requests={"cpu": "1"}), state)
    for number in range(5):
        code = int(plugin.filter(prepared, slice(0, 1))[0])
        assert bool(code) is (number == 4)
        state.set_pod(pod(f"p{number}", on="n1", requests={"cpu": "1"}))


def resized(cpu: str, *, on: str = "n1", name: str = "q") -> Pod:
    return pod(name, on=on, requests={"cpu": cpu, GPU: "1"})


NOMINATED = Pod(metadata=Metadata(name="q", uid="q"), status=PodStatus(nominated_node_name="n1"))


@pytest.mark.parametrize(
    ("change", "helps"),
    [
        (pod_change(resized("1"), None), True),
        (pod_change(resized("1", on=""), None, resource=Resource.PENDING_POD), False),
        (pod_change(NOMINATED, None, resource=Resource.PENDING_POD), True),
        (pod_change(resized("2"), resized("1"), Action.UPDATE_POD_SCALE_DOWN), True),
        (pod_change(resized("1"), resized("2"), Action.UPDATE_POD_SCALE_DOWN), False),
        (pod_change(resized("2", on=""), resized("1", on=""), Action.UPDATE_POD_SCALE_DOWN), False),
        (
            pod_change(
                resized("2", on="", name="p"),
                resized("1", on="", name="p"),
                Action.UPDATE_POD_SCALE_DOWN,
                Resource.PENDING_POD,
            ),
            True,
        ),
        (pod_change(resized("2"), resized("1"), Action.UPDATE_POD_LABEL), False),
        (node_change(None, node()), True),
        (node_change(None, node(allocatable={"cpu": "1"})), False),
        (node_change(None, node(allocatable={"pods": "0"})), False),
        (node_change(node(allocatable={"cpu": "3"}), node(), Action.UPDATE_NODE_ALLOCATABLE), True),
        (node_change(node(allocatable={"memory": "1"}), node(), Action.UPDATE_NODE_ALLOCATABLE), False),
        (node_change(node(allocatable={"pods": "109"}), node(), Action.UPDATE_NODE_ALLOCATABLE), True),
        (node_change(node(allocatable={"cpu": "5"}), node(), Action.UPDATE_NODE_ALLOCATABLE), False),
    ],
)
def test_node_resources_fit_waits_for_room(change: Change, helps: bool) -> None:
    assert hinted(NodeResourcesFit(), pod(requests={"cpu": "2"}), change) is helps


@pytest.mark.parametrize(
    ("had", "has", "nominated", "wakes"),
    [
        ({"cpu": "4"}, {"cpu": "1"}, "a", True),
        ({"cpu": "4", "memory": "2Gi"}, {"cpu": "4", "memory": "1"}, "a", True),
        ({"cpu": "4"}, {"cpu": "2"}, "a", False),
        ({"cpu": "4"}, {"cpu": "1"}, "b", False),
        ({"cpu": "4"}, {"cpu": "1"}, "", False),
        ({"cpu": "1"}, {"cpu": "0"}, "a", False),
        ({"cpu": "4"}, {"cpu": "4", GPU: "0"}, "a", False),
        ({"cpu": "1"}, {"cpu": "4"}, "b", True),
    ],
)
def test_node_that_became_too_small_for_its_nominated_pod_wakes_it_where_a_release_does(
    had: dict[str, str], has: dict[str, str], nominated: str, wakes: bool
) -> None:
    rest = {"memory": "8Gi", "pods": "110", GPU: "1"}
    change = node_change(
        node("a", allocatable=rest | had), node("a", allocatable=rest | has), Action.UPDATE_NODE_ALLOCATABLE
    )
    waiting = pod(requests={"cpu": "2", "memory": "1Gi", GPU: "1"})
    waiting = replace(waiting, status=PodStatus(nominated_node_name=nominated))
    assert hinted(NodeResourcesFit(shrinking_wakes=True), waiting, change) is wakes
    grows = had["cpu"] < has["cpu"]
    assert hinted(NodeResourcesFit(), waiting, change) is grows


def test_node_resources_fit_scaling_down_what_is_not_requested_does_not_help() -> None:
    change = pod_change(resized("2"), resized("1"), Action.UPDATE_POD_SCALE_DOWN)
    assert not hinted(NodeResourcesFit(), pod(requests={"memory": "1Gi"}), change)


def test_node_resources_fit_waits_for_a_device_class_of_what_is_requested() -> None:
    change = Change(Resource.DEVICE_CLASS, Action.ADD)
    incoming = pod(requests={GPU: "1"})
    assert hinted(NodeResourcesFit(), incoming, change, with_class(Cluster()))
    assert not hinted(NodeResourcesFit(), incoming, change, with_class(Cluster(), "other.com/gpu"))
    assert hinted(NodeResourcesFit(), incoming, node_change(None, node()), with_class(Cluster()))
    grown = node_change(node(), node(allocatable={"memory": "9Gi"}), Action.UPDATE_NODE_ALLOCATABLE)
    assert hinted(NodeResourcesFit(), incoming, grown, with_class(Cluster()))
    assert not hinted(NodeResourcesFit(), incoming, grown)
