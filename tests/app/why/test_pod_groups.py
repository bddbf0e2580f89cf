"""`policysched.why` of members of pod groups: the group's verdict, the member's reason, and repairs that hold."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import pytest

import policysched
from policysched.app.why.results import Explanation, RepairKind, State
from tests.app.dry_runs import Object, node, pod, policy, requiring
from tests.extenders.rejecting import rejecting_extender

GROUP = "train"
BOUND: Object = {"status": {"phase": "Running"}}


def group(least: int | None = 5, **spec: Any) -> Object:
    """A pod group: a gang, or a basic group."""
    own = {"basic": {}} if least is None else {"gang": {"minCount": least}}
    metadata = {"name": GROUP, "namespace": "default"}
    made = {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": metadata}
    return {**made, "spec": {"schedulingPolicy": own, **spec}}


def members(count: int, cpu: Any = "1500m", **spec: Any) -> list[Object]:
    """Pending pods of the group."""
    named = {"schedulingGroup": {"podGroupName": GROUP}}
    return [pod(f"{GROUP}-{number}", cpu, **named, **spec) for number in range(count)]


def on(one: Object, name: str) -> Object:
    return {**one, "spec": {**one["spec"], "nodeName": name}, **BOUND}


def repairs(told: Explanation) -> dict[str, tuple[str, int]]:
    assert told.pod_group is not None
    return {one.text: (str(one.change), one.placed) for one in told.pod_group.repairs}


def fits(objects: Iterable[Object], pods: list[Object], **more: Any) -> int:
    """How many pods of a group get nodes according to a dry-run; 0 if the group does not fit."""
    report = policysched.dry_run_group([*objects], pods, seed=1, **more)
    return report.placed if report.result == "Scheduled" else 0


def test_a_gang_that_lacks_room_has_its_verdict_first_and_repairs() -> None:
    objects = [node("n1"), node("n2"), group(), *members(5)]
    told = policysched.why(objects, f"{GROUP}-4", seed=1)
    assert told.pod_group is not None
    assert told.pod_group.to_dict() | {"repairs": [], "message": ""} == {
        "group": "default/train",
        "result": "Unschedulable",
        "summary": "pod group default/train does not fit: 4 of 5 pods fit at the same time, minCount is 5; "
        "default/train-4: 0/2 nodes are available: 2 Insufficient cpu.",
        "message": "",
        "minCount": 5,
        "placed": 0,
        "pods": 5,
        "fitting": 4,
        "repairs": [],
    }
    assert repairs(told) == {
        "minCount 4 instead of 5": ("pod group", 4),
        "1 more node like n1": ("node", 5),
        "request 1 cpu instead of 1500m (in all pods)": ("pod", 5),
        "500m more cpu on n1": ("node", 5),
    }
    assert told.summary == "pod default/train-4 fits none of 2 nodes: 2 nodes lack only 500m cpu"


def test_each_repair_holds_in_a_dry_run_of_its_own() -> None:
    nodes, pods = [node("n1"), node("n2")], members(5)
    found = repairs(policysched.why([*nodes, group(), *pods], f"{GROUP}-4", seed=1))
    large = node("n1", status={"allocatable": {"cpu": "4500m", "memory": "8Gi", "pods": "110"}})
    done = {
        "minCount 4 instead of 5": fits([*nodes, group(4)], pods),
        "1 more node like n1": fits([*nodes, node("n3"), group()], pods),
        "request 1 cpu instead of 1500m (in all pods)": fits([*nodes, group()], members(5, 1)),
        "500m more cpu on n1": fits([large, nodes[1], group()], pods),
    }
    assert done == {text: placed for text, (_, placed) in found.items()}
    assert fits([*nodes, group()], pods) == 0


def test_as_few_nodes_as_possible_are_added() -> None:
    told = policysched.why([node("n1"), group(8), *members(8)], f"{GROUP}-7", seed=1)
    assert repairs(told)["3 more nodes like n1"] == ("node", 8)
    assert fits([node(f"n{number}") for number in range(3)] + [group(8)], members(8)) == 0


def test_the_pod_is_explained_after_the_pods_before_it() -> None:
    objects = [node("n1"), node("n2"), group(), *members(5)]
    first = policysched.why(objects, f"{GROUP}-0", seed=1)
    assert first.state == "Placeable"
    assert first.pod_group is not None
    assert first.pod_group.result == "Unschedulable"
    third = policysched.why(objects, f"{GROUP}-3", seed=1)
    assert (third.feasible, third.state) == (1, "Placeable")


def test_the_cluster_is_as_before_for_each_repair() -> None:
    objects = [node("n1"), node("n2"), group(), *members(5)]
    once, again = (policysched.why(objects, f"{GROUP}-4", seed=1).to_dict() for _ in range(2))
    assert once == again


def test_a_gang_that_waits_for_pods_needs_more_pods_or_a_smaller_minimum() -> None:
    told = policysched.why([node("n1"), group(4), *members(2, 1)], f"{GROUP}-0")
    assert told.pod_group is not None
    assert told.pod_group.summary == "pod group default/train waits: 2 pods, minCount is 4"
    assert told.pod_group.fitting is None
    assert repairs(told) == {
        "minCount 2 instead of 4": ("pod group", 2),
        "2 more pods like default/train-1": ("pod", 4),
    }


def test_victims_of_a_preemption_are_a_repair() -> None:
    low = on(pod("low", 3, priority=-1), "n1")
    told = policysched.why([node("n1"), group(4), *members(4, 1), low], f"{GROUP}-0")
    assert repairs(told)["preemption evicts 1 pod: default/low"] == ("victims", 4)
    assert told.pod_group is not None
    assert "preempting 1 victims" in told.pod_group.message


def test_a_rule_of_a_policy_can_be_the_only_obstacle() -> None:
    rule = policy("disks", **requiring('node.labels["disk"] == "ssd"'))
    told = policysched.why([node("n1"), rule, group(2), *members(2, 1)], f"{GROUP}-0")
    assert repairs(told)["without rule r of policy disks"] == ("policy", 2)
    assert "1 more node like n1" not in repairs(told)


def test_pods_with_another_spec_keep_their_requests() -> None:
    pods = [*members(1, 1), *members(3, 3)[1:]]
    told = policysched.why([node("n1"), group(3), *pods], f"{GROUP}-0", seed=1)
    assert told.pod_group is not None
    assert told.pod_group.fitting == 2
    changed = [text for text, (change, _) in repairs(told).items() if change == str(RepairKind.POD)]
    assert changed == ["request 0 cpu instead of 3 (in 2 pods)"]


def test_a_group_that_fits_says_so() -> None:
    told = policysched.why([node("n1"), group(2), *members(2, 1)], f"{GROUP}-1")
    assert told.pod_group is not None
    assert told.pod_group.summary == "pod group default/train fits: 2 of 2 pods get nodes"
    assert told.pod_group.repairs == ()
    assert told.state == "Placeable"


def test_a_basic_group_fits_if_one_pod_does() -> None:
    told = policysched.why([node("n1"), group(None), *members(3, 3)], f"{GROUP}-2")
    assert told.pod_group is not None
    assert told.pod_group.summary == "pod group default/train fits: 1 of 3 pods get nodes"
    assert told.state == "Unschedulable"


def test_placed_pods_are_counted() -> None:
    pods = [on(one, "n1") for one in members(2, 1)] + members(4, 1)[2:]
    placed = policysched.why([node("n1"), node("n2"), group(4), *pods], f"{GROUP}-0")
    assert placed.pod_group is not None
    assert placed.pod_group.summary == "pod group default/train: 2 of 4 pods have nodes, minCount is 4"
    waiting = policysched.why([node("n1"), group(4), *pods], f"{GROUP}-2")
    assert waiting.pod_group is not None
    assert waiting.pod_group.summary.endswith("fits: 2 of 2 pods get nodes, and 2 had nodes before")


def test_different_priorities_are_an_error_of_the_group() -> None:
    pods = [*members(1), *members(2, priority=7)[1:]]
    told = policysched.why([node("n1"), group(2), *pods], f"{GROUP}-0")
    assert told.pod_group is not None
    assert (told.pod_group.result, told.pod_group.repairs) == ("Error", ())
    assert "priority" in told.pod_group.summary


def test_pods_of_a_group_do_not_preempt_for_themselves() -> None:
    low = on(pod("low", 3, priority=-1), "n1")
    told = policysched.why([node("n1"), group(9), *members(9, 3, priority=0), low], f"{GROUP}-0")
    assert told.preemption is None


def test_a_pod_without_the_object_of_its_group_is_explained_alone() -> None:
    assert policysched.why([node("n1"), *members(1)], f"{GROUP}-0").pod_group is None


def test_a_minor_without_pod_groups_explains_the_pod_alone() -> None:
    told = policysched.why([node("n1"), group(1), *members(1)], f"{GROUP}-0", kube_version="1.36")
    assert told.pod_group is None


@pytest.mark.parametrize("seed", [None, 1])
def test_extenders_decide_about_the_group_and_the_pod(seed: int | None) -> None:
    with rejecting_extender() as config:
        objects = [node("n1"), node("n2"), group(3), *members(3)]
        told = policysched.why(objects, f"{GROUP}-2", seed=seed, config=config)
        fits = policysched.why([node("n1"), node("n2"), group(2), *members(2)], f"{GROUP}-1", seed=seed, config=config)
    assert told.pod_group is not None
    assert (told.pod_group.fitting, told.pod_group.repairs) == (2, ())
    assert told.pod_group.summary.endswith("default/train-2: 0/2 nodes are available: 1 Insufficient cpu, 1 not here.")
    assert told.state is State.UNSCHEDULABLE
    assert "fixes for the pod group are not tried: the configuration has extenders" in told.notes
    assert fits.pod_group is not None
    assert (fits.pod_group.result, fits.selected, fits.feasible) == ("Scheduled", "n2", 1)


def test_an_extender_that_fails_is_the_error_of_the_group() -> None:
    pods = [on(pod("placed"), "n1"), {**pod("p9"), "spec": members(1)[0]["spec"]}]
    with rejecting_extender() as config:
        told = policysched.why([node("n1"), node("n2"), group(1), *pods], "p9", config=config)
    assert told.pod_group is not None
    assert (told.state, told.pod_group.result) == (State.ERROR, "Error")
    assert "no answer" in told.summary


def racks(*counts: int) -> list[Object]:
    """Nodes of racks a, b, …, each with a number of nodes of 4 CPUs."""
    names = ((rack, number) for rack, count in zip("abc", counts, strict=False) for number in range(count))
    return [node(f"{rack}{number}", labels={"rack": rack}) for rack, number in names]


def in_a_rack(least: int) -> Object:
    return group(least, schedulingConstraints={"topology": [{"key": "rack"}]})


@pytest.mark.parametrize("minor", ["1.37", "1.38"])
def test_a_gang_that_needs_one_rack_is_explained_in_the_rack_with_the_most_room(minor: str) -> None:
    objects = [*racks(2, 3), in_a_rack(4), *members(4, 3)]
    told = policysched.why(objects, f"{GROUP}-3", seed=1, kube_version=minor)
    assert told.pod_group is not None
    assert (told.pod_group.placement, told.pod_group.fitting) == ("b", 3)
    assert "3 of 4 pods fit at the same time in b, minCount is 4; default/train-3: 0/3 nodes" in told.pod_group.summary
    assert repairs(told)["1 more node like b0"] == ("node", 4)
    assert "1 more node like a0" not in repairs(told)
    assert told.summary == "pod default/train-3 fits none of 3 nodes: 3 nodes lack only 2 cpu"
    more = node("b9", labels={"rack": "b"})
    assert fits([*racks(2, 3), more, in_a_rack(4)], members(4, 3), kube_version=minor) == 4


def test_a_gang_that_fits_a_rack_is_explained_in_the_chosen_rack() -> None:
    told = policysched.why([*racks(1, 3), in_a_rack(3), *members(3, 3)], f"{GROUP}-2", seed=1)
    assert told.pod_group is not None
    assert (told.pod_group.result, told.pod_group.placement) == ("Scheduled", "b")
    assert (told.nodes, told.feasible) == (3, 1)


def test_a_placement_rule_of_a_policy_can_leave_no_rack() -> None:
    rule = policy(
        "large",
        placement={
            "topologyKey": "rack",
            "filters": [{"name": "size", "require": "placement.size > 3", "message": "rack too small"}],
        },
    )
    told = policysched.why([*racks(2, 3), group(1), *members(1, 3)], f"{GROUP}-0", policies=[rule], kube_version="1.38")
    assert told.pod_group is not None
    assert (told.pod_group.result, told.pod_group.fitting) == ("Unschedulable", 0)
    assert "rack too small" in told.pod_group.message
