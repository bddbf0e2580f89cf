from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest
from msgspec.structs import replace

from policysched.framework import Action, Aspect, Cluster, Resource
from policysched.model.objects import (
    ContainerPort,
    ContainerStatus,
    Metadata,
    NodeAddress,
    NodeCondition,
    NodeSystemInfo,
    OwnerReference,
    Pod,
    PodCondition,
    PodStatus,
    ResourceRequirements,
    Taint,
    Toleration,
)
from policysched.model.objects import Node as NodeObject
from policysched.model.requests import MOST_EXTENDED, largest_of_containers
from policysched.state.cluster_events import pod_difference
from policysched.state.tables.amounts import MEMORY, PodResources, WantedPorts
from tests.build import cluster, node, pod
from tests.work import calls

CPU = {"cpu": "1", "memory": "1Gi"}


def test_pods_of_a_row_are_ordered_as_in_kube_scheduler() -> None:
    made = cluster(node("a"), *(pod(name, on="a") for name in "vwxyz"))

    def order() -> str:
        there = made.pods.on_row(0)
        assert [int(made.pods.places[one.slot]) for one in there] == [*range(len(there))]
        return "".join(one.pod.metadata.name for one in there)

    made.drop(pod("w", on="a"))
    assert order() == "vzxy"
    made.take(pod("z", on="a", requests=CPU))  # other resources
    made.take(pod("x", on="a", labels={"app": "web"}))  # another signature
    made.take(pod("v", on="a"))  # neither
    assert order() == "xyzv"
    made.drop(pod("v", on="a"))
    made.drop(pod("y", on="a"))
    assert order() == "xz"
    made.pods.arrange(0, [one.pod.metadata.uid for one in reversed(made.pods.on_row(0))])
    assert order() == "zx"


def cpu(made: Cluster, name: str) -> int:
    return int(made.nodes.requested("cpu")[made.nodes.row_of[name]])


def with_status(of: Pod, **status: Any) -> Pod:
    return replace(of, status=PodStatus(**status))


def noted(made: Cluster, position: int) -> list[tuple[int, Aspect]]:
    found = made.journal.since(position)
    assert found is not None
    return [(row, Aspect(aspects)) for row, aspects in zip(found[0].tolist(), found[1].tolist(), strict=True)]


def aspects(made: Cluster, position: int) -> Aspect:
    return Aspect(int(np.bitwise_or.reduce([int(one) for _, one in noted(made, position)], initial=0)))


# Nodes


def test_a_new_node_is_an_addition_and_the_same_again_nothing() -> None:
    made = Cluster()
    first = made.set_node(node("n1"))
    assert (first.resource, first.action, first.old, first.row) == (Resource.NODE, Action.ADD, None, 0)
    position = made.journal.position
    again = made.set_node(node("n1"))
    assert again.nothing
    assert made.journal.position == position
    assert made.nodes.count == 1


def changed(**parts: Any) -> NodeObject:
    return node("n1", **parts)


@pytest.mark.parametrize(
    ("after", "action", "aspect"),
    [
        (changed(labels={"a": "b"}), Action.UPDATE_NODE_LABEL, Aspect.LABELS),
        (changed(taints=[Taint(key="k")]), Action.UPDATE_NODE_TAINT, Aspect.TAINTS),
        (changed(unschedulable=True), Action.UPDATE_NODE_TAINT, Aspect.TAINTS),
        (changed(allocatable={"cpu": 1}), Action.UPDATE_NODE_ALLOCATABLE, Aspect.CAPACITY),
        (changed(images={"i": 1}), Action.UPDATE_NODE_IMAGES, Aspect.IMAGES),
        (changed(features=["f"]), Action.UPDATE_NODE_DECLARED_FEATURE, Aspect.FEATURES),
        (
            replace(changed(), metadata=Metadata(name="n1", annotations={"a": "b"})),
            Action.UPDATE_NODE_ANNOTATION,
            Aspect.LABELS,
        ),
        (
            replace(changed(), status=replace(changed().status, conditions=[NodeCondition(type="Ready")])),
            Action.UPDATE_NODE_CONDITION,
            Aspect.CONDITIONS,
        ),
        (
            replace(changed(), status=replace(changed().status, addresses=[NodeAddress(type="InternalIP")])),
            Action.UPDATE_NODE_INFO,
            Aspect.INFO,
        ),
        (
            replace(changed(), status=replace(changed().status, node_info=NodeSystemInfo(kernel_version="6.8.0"))),
            Action.UPDATE_NODE_INFO,
            Aspect.INFO,
        ),
        (
            changed(labels={"a": "b"}, unschedulable=True),
            Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT,
            Aspect.LABELS | Aspect.TAINTS,
        ),
    ],
)
def test_an_update_of_a_node_says_what_it_changed(after: NodeObject, action: Action, aspect: Aspect) -> None:
    made = cluster(node("n1"))
    position = made.journal.position
    change = made.set_node(after)
    assert (change.action, change.row) == (action, 0)
    assert (change.old, change.new) == (node("n1"), after)
    assert noted(made, position) == [(0, aspect)]


def test_removing_a_node_that_is_not_there_is_nothing() -> None:
    made = cluster(node("n1"))
    assert made.remove_node("n2").nothing
    made.remove_node("n1")
    assert made.remove_node("n1").nothing
    assert made.nodes.count == 0


def test_a_freed_row_is_used_again_without_traces() -> None:
    made = cluster(node("n1", labels={"a": "x"}, allocatable={"x.io/y": 4}), pod("p", on="n1", requests=CPU))
    made.nodes.labels("a")
    made.remove_pod("default.p")
    made.remove_node("n1")
    assert not made.nodes.row_of
    made.set_node(node("n2"))
    assert made.nodes.row_of == {"n2": 0}
    assert made.nodes.size == 1
    assert made.nodes.labels("a")[0] == -1
    amounts = (made.nodes.allocatable("x.io/y"), made.nodes.requested("cpu"), made.nodes.amounts.counted[MEMORY])
    assert [int(amount[0]) for amount in amounts] == [0, 0, 0]


def test_pods_outlive_their_node_and_count_again_on_its_return() -> None:
    made = cluster(node("n1"), pod("p", on="n1", requests=CPU))
    made.remove_node("n1")
    made.set_node(node("other"))
    assert made.nodes.row_of == {"n1": 0, "other": 1}
    assert not made.nodes.present.data[0]
    change = made.set_node(node("n1"))
    assert (change.action, change.row, change.old) == (Action.ADD, 0, None)
    assert cpu(made, "n1") == 1000
    assert made.nodes.count == 2


def test_pods_may_come_before_their_node() -> None:
    made = cluster(pod("p", on="n1", requests=CPU))
    assert (made.nodes.count, made.nodes.size) == (0, 1)
    made.set_node(node("n1"))
    assert (cpu(made, "n1"), made.nodes.count) == (1000, 1)


def test_the_last_pod_of_an_absent_node_frees_its_row() -> None:
    made = cluster(pod("p", on="n1"), pod("q", on="n1"))
    made.remove_pod("default.p")
    assert made.nodes.row_of == {"n1": 0}
    made.remove_pod("default.q")
    assert made.nodes.row_of == {}
    made.set_node(node("n2"))
    assert made.nodes.row_of == {"n2": 0}


def test_rows_of_nodes_that_never_were_are_given_back_with_the_next_word_of_a_node() -> None:
    made = cluster(node("n1"))
    for number in range(1000):
        made.set_pod(pod(f"p{number}", on=f"ghost{number}"))
    assert (made.nodes.size, made.nodes.columns.capacity) == (1001, 1024)
    made.set_node(node("n2"))
    for number in range(1000):
        made.remove_pod(f"default.p{number}")
    before = made.journal.position
    made.set_node(node("n1", labels={"a": "x"}))
    assert (made.nodes.size, made.nodes.columns.capacity) == (1002, 1024), "n2 came behind them"
    made.remove_node("n2")
    made.set_node(node("n1"))
    assert (made.nodes.size, made.nodes.columns.capacity, made.nodes.names) == (1, 64, ["n1"])
    assert made.journal.since(before) is None
    made.set_node(node("n3"))
    assert made.nodes.row_of == {"n1": 0, "n3": 1}


# Pods


def test_a_placed_pod_takes_its_requests_and_gives_them_back() -> None:
    made = cluster(node("n1"))
    position = made.journal.position
    placed = pod("p", on="n1", requests=CPU, ports=[ContainerPort(container_port=1, host_port=80)])
    change = made.set_pod(placed)
    assert (change.resource, change.action, change.old, change.new) == (Resource.ASSIGNED_POD, Action.ADD, None, placed)
    assert aspects(made, position) == Aspect.USAGE | Aspect.PODS | Aspect.PORTS
    assert cpu(made, "n1") == 1000
    wanted = WantedPorts([("0.0.0.0", "TCP", 80)])  # noqa: S104 - compared, not bound
    assert made.ports.taken(wanted, slice(0, 1), 1)[0]
    change = made.remove_pod("default.p")
    assert (change.action, change.old, change.new, change.row) == (Action.DELETE, placed, None, 0)
    assert cpu(made, "n1") == 0
    assert not made.ports.taken(wanted, slice(0, 1), 1)[0]
    assert made.remove_pod("default.p").nothing


@pytest.mark.parametrize("phase", ["Succeeded", "Failed"])
def test_a_finished_pod_holds_nothing(phase: str) -> None:
    made = cluster(node("n1"), pod("p", on="n1", requests=CPU))
    assert made.set_pod(with_status(pod("p", on="n1", requests=CPU), phase=phase)).action is Action.DELETE
    assert cpu(made, "n1") == 0
    assert made.set_pod(with_status(pod("q", on="n1", requests=CPU), phase=phase)).nothing
    assert len(made.pods) == 0


def test_a_pod_without_a_uid_goes_by_its_name() -> None:
    made = cluster(node("n1"))
    nameless = replace(pod("p", on="n1", requests=CPU), metadata=Metadata(name="p", namespace="default"))
    made.set_pod(nameless)
    made.set_pod(nameless)
    assert cpu(made, "n1") == 1000
    assert made.remove_pod("default/p").action is Action.DELETE


def test_a_pod_that_moves_takes_its_weight_along() -> None:
    made = cluster(node("n1"), node("n2"), pod("p", on="n1", requests=CPU))
    assert made.is_elsewhere(pod("p", on="n2"))
    change = made.set_pod(pod("p", on="n2", requests=CPU))
    assert (change.action, change.old, change.row) == (Action.ADD, None, made.nodes.row_of["n2"])
    assert (cpu(made, "n1"), cpu(made, "n2")) == (0, 1000)


def resized(of: Pod, **containers: str) -> Pod:
    status = [
        ContainerStatus(name=name, resources=ResourceRequirements(requests={"cpu": amount}))
        for name, amount in containers.items()
    ]
    return with_status(of, container_statuses=status)


@pytest.mark.parametrize(
    ("before", "after", "millis"),
    [
        (pod(on="n1", requests={"cpu": 1}), pod(on="n1", requests={"cpu": 2}), 2000),
        (pod(on="n1", requests={"cpu": 2}), pod(on="n1", requests={"cpu": 1}), 1000),
        (pod(on="n1", requests={"cpu": 1}), resized(pod(on="n1", requests={"cpu": 1}), c="3"), 3000),
        (resized(pod(on="n1", requests={"cpu": 1}), c="3"), resized(pod(on="n1", requests={"cpu": 1}), c="1"), 1000),
    ],
)
def test_a_resize_is_counted(before: Pod, after: Pod, millis: int) -> None:
    made = cluster(node("n1"), before)
    made.set_pod(after)
    assert cpu(made, "n1") == millis


def test_a_resize_that_became_infeasible_counts_no_more() -> None:
    small = ContainerStatus(name="c", resources=ResourceRequirements(requests={"cpu": "1"}))
    asking = replace(pod(on="n1", requests={"cpu": 3}), status=PodStatus(container_statuses=[small]))
    made = cluster(node("n1"), asking)
    assert cpu(made, "n1") == 3000
    condition = PodCondition(type="PodResizePending", status="True", reason="Infeasible")
    made.set_pod(replace(asking, status=replace(asking.status, conditions=[condition])))
    assert cpu(made, "n1") == 1000


def test_a_resize_of_the_pod_as_a_whole_is_counted() -> None:
    whole = ResourceRequirements(requests={"cpu": "1"})
    before = pod(on="n1", resources=whole)
    made = cluster(node("n1"), before)
    made.set_pod(with_status(before, resources=ResourceRequirements(requests={"cpu": "2"})))
    assert cpu(made, "n1") == 2000


@pytest.mark.parametrize(
    ("after", "action"),
    [
        (pod(labels={"a": "b"}), Action.UPDATE_POD_LABEL),
        (pod(tolerations=[Toleration(key="k")]), Action.UPDATE_POD_TOLERATION),
        (pod(priority=1), Action.UPDATE_OTHER),
        (replace(pod(), metadata=replace(pod().metadata, annotations={"a": "b"})), Action.UPDATE_OTHER),
        (replace(pod(), metadata=replace(pod().metadata, owner_references=[OwnerReference()])), Action.UPDATE_OTHER),
        (replace(pod(), metadata=replace(pod().metadata, resource_version="5")), Action.NONE),
        (with_status(pod(), phase="Running"), Action.NONE),
    ],
)
def test_the_difference_of_pods_names_what_changed(after: Pod, action: Action) -> None:
    assert pod_difference(pod(), after, largest_of_containers) == action


@pytest.mark.parametrize("name", ["cpu", "memory", "ephemeral-storage", "x.io/y"])
def test_only_less_of_a_resource_is_a_scaling_down(name: str) -> None:
    less, more = pod(requests={name: 1}), pod(requests={name: 2})
    assert pod_difference(more, less, largest_of_containers) == Action.UPDATE_POD_SCALE_DOWN
    assert pod_difference(less, more, largest_of_containers) == Action.UPDATE_OTHER


def test_a_status_that_changes_no_weight_costs_nothing() -> None:
    made = cluster(node("n1"), pod("p", on="n1", requests=CPU))
    position = made.journal.position
    newer = with_status(pod("p", on="n1", requests=CPU), phase="Running")
    assert made.set_pod(newer).nothing
    assert made.journal.position == position
    assert made.pods.by_id["default.p"].pod is newer


def test_placed_pod_is_measured_again_only_when_what_it_takes_may_change(monkeypatch: pytest.MonkeyPatch) -> None:
    measured: list[str] = []

    made = cluster(node("n"))
    pod_resources = made.pod_resources

    def counting(of: Pod) -> PodResources:
        measured.append(of.metadata.resource_version)
        return pod_resources(of)

    monkeypatch.setattr(made, "pod_resources", counting)
    placed = pod("a", on="n", requests={"cpu": "300m"})
    made.set_pod(placed)
    labelled = replace(placed, metadata=replace(placed.metadata, labels={"new": "label"}, resource_version="2"))
    assert made.set_pod(labelled).action is Action.UPDATE_POD_LABEL
    assert (measured, cpu(made, "n")) == ([""], 300)
    held = ContainerStatus(name="c", resources=ResourceRequirements(requests={"cpu": "500m"}))
    resized = with_status(labelled, container_statuses=[held])
    made.set_pod(replace(resized, metadata=replace(labelled.metadata, labels={}, resource_version="3")))
    assert (measured, cpu(made, "n")) == (["", "3"], 500)


def test_of_a_nodes_extended_resources_so_many_count() -> None:
    names = [f"x.io/{number:04}" for number in range(MOST_EXTENDED + 5)]
    nodes = cluster(node("n", allocatable=dict.fromkeys(names, "1") | {"cpu": "2"})).nodes
    assert [int(nodes.allocatable(name)[0]) for name in ("cpu", *names)] == [2000, *[1] * MOST_EXTENDED, *[0] * 5]


def test_a_node_that_writes_very_many_resources_costs_no_look_at_each() -> None:
    made = cluster(node("n"))

    def written(count: int, amount: str) -> Callable[[], object]:
        stated = {f"x.io/{number:05}": amount for number in range(count)}
        return partial(made.set_node, node("n", allocatable=stated))

    few, many = ([calls(written(count, str(number))) for number in range(3)][-1] for count in (2000, 8000))
    assert many < 1.1 * few


def test_annotations_and_phases_of_placed_pods_are_noted_once_somebody_reads_them() -> None:
    made = cluster(node("n1"), pod("p", on="n1"), pod("q", on="n1"))
    made.follow_details()
    made.follow_details()
    position = made.journal.position
    change = made.set_pod(with_status(pod("p", on="n1"), phase="Running"))
    assert (change.action, noted(made, position)) == (Action.UPDATE_OTHER, [(0, Aspect.POD_DETAILS)])
    annotated = replace(pod("q", on="n1"), metadata=replace(pod("q").metadata, annotations={"a": "b"}))
    position = made.journal.position
    assert made.set_pod(annotated).action is Action.UPDATE_OTHER
    assert noted(made, position) == [(0, Aspect.POD_DETAILS)]
    position = made.journal.position
    assert made.set_pod(annotated).nothing
    assert noted(made, position) == []
