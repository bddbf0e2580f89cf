"""`policysched.plan` of clusters with pod groups: groups that fit without and with a change."""

from __future__ import annotations

from typing import Any

import policysched
from policysched.app.plan.results import Effect, Plan
from tests.app.dry_runs import Object, node, pod, policy, requiring
from tests.app.why.test_pod_groups import group, members, on

SSD = policy("disks", **requiring('node.labels["disk"] == "ssd"'))


def planned(objects: list[Object], **change: Any) -> Plan:
    named = [
        {**one, "spec": {"schedulerName": "policysched", **one["spec"]}} if one["kind"] == "Pod" else one
        for one in objects
    ]
    return policysched.plan(named, **change)


def fit(plan: Plan) -> dict[str, tuple[bool, bool]]:
    return {one.group: (not one.before, not one.after) for one in plan.groups}


def test_a_policy_after_which_a_gang_no_longer_fits() -> None:
    nodes = [node("n1", labels={"disk": "ssd"}), node("n2")]
    plan = planned([*nodes, group(4), *members(4)], policies=[SSD])
    assert fit(plan) == {"default/train": (True, False)}
    assert plan.counts == {"unschedulable": 4}
    assert "policy" not in plan.groups[0].before
    assert "minCount (4) cannot be satisfied" in plan.groups[0].after


def test_a_node_with_which_a_gang_fits() -> None:
    plan = planned([node("n1"), group(4), *members(4)], nodes=[node("n2")])
    assert fit(plan) == {"default/train": (False, True)}
    assert plan.counts == {"schedulable": 4}
    assert plan.to_dict()["podGroups"] == [
        {"group": "default/train", "fitsBefore": False, "fitsAfter": True, "reason": plan.groups[0].before}
    ]


def test_members_keep_their_nodes_if_both_sides_are_equal() -> None:
    nodes = [node(f"n{number}") for number in range(6)]
    plan = planned([*nodes, group(4), *members(4, 3)], nodes=[node("n6", labels={"x": "y"})])
    assert fit(plan) == {"default/train": (True, True)}
    assert plan.effects == ()


def test_victims_of_a_gang_are_preempted_with_the_change() -> None:
    low = on(pod("low", 3, priority=-1), "n1")
    small = node("n2", status={"allocatable": {"cpu": "1", "memory": "8Gi", "pods": "110"}})
    plan = planned([node("n1"), node("n2"), low, group(2), *members(2, 2)], nodes=[small])
    assert fit(plan) == {"default/train": (True, True)}
    assert {(one.pod, str(one.effect), one.before) for one in plan.effects} >= {("default/low", "preempted", "n1")}


def test_single_pods_come_in_queue_order_beside_groups() -> None:
    high = pod("high", 4, priority=9)
    plan = planned([node("n1"), group(2), *members(2, 2), high], nodes=[node("n2")])
    assert fit(plan) == {"default/train": (False, True)}


def test_a_minor_without_pod_groups_decides_pods_one_by_one() -> None:
    plan = planned([node("n1"), group(4), *members(4)], nodes=[node("n2")], kube_version="1.36")
    assert (plan.groups, plan.counts[Effect.SCHEDULABLE]) == ((), 2)
