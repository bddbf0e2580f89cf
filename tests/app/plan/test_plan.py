"""`policysched.plan`: which pods a change moves, and that no change moves none."""

from __future__ import annotations

import os
from typing import Any

import pytest
from hypothesis import given, settings

import policysched
from policysched.app.plan.deciding import SideComparison
from policysched.app.plan.results import Effect, NodeEffect
from policysched.errors import UsageError
from tests.app.dry_runs import Object, node, pod, policy, requiring
from tests.app.why.test_repairs import clusters
from tests.app.why.test_why import bound

SSD = {"disk": "ssd"}
NO_CHANGES = int(os.environ.get("POLICYSCHED_CASES", "100"))
KEEP = policy("keep", **requiring('node.labels["disk"] == "ssd"'))


def owned(made: Object, workload: str = "web") -> Object:
    reference = {"apiVersion": "apps/v1", "kind": "ReplicaSet", "name": f"{workload}-1", "controller": True, "uid": "u"}
    metadata = {**made["metadata"], "ownerReferences": [reference], "labels": {"pod-template-hash": "1"}}
    return {**made, "metadata": metadata}


def ours(objects: list[Object]) -> list[Object]:
    """Have the pods of a cluster name the scheduler."""
    return [
        {**one, "spec": {"schedulerName": "policysched", **one["spec"]}} if one["kind"] == "Pod" else one
        for one in objects
    ]


def told(objects: list[Object], **change: Any) -> set[tuple[str, str, str, str]]:
    found = policysched.plan(ours(objects), **change)
    return {(one.pod.partition("/")[2], str(one.effect), one.before, one.after) for one in found.effects}


@settings(max_examples=NO_CHANGES)
@given(clusters())
def test_plan_of_no_change_says_that_nothing_would_change(objects: list[Object]) -> None:
    same = [one for one in objects if one["kind"] == "SchedulingPolicy"]
    nodes = [one for one in objects if one["kind"] == "Node"]
    changes: list[dict[str, Any]] = [
        {"policies": same},
        {"nodes": nodes[:1]},
        {"config": CONFIG, "current_config": CONFIG},
    ]
    for change in changes:
        found = policysched.plan(ours(objects), **change)
        assert (found.changes, found.effects, found.left_out) == (False, (), ())
        assert found.summary.startswith("no changes for ")


CONFIG = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration",
          "profiles": [{"schedulerName": "policysched"}]}  # fmt: skip


def test_plan_tells_which_pods_a_policy_moves_and_which_get_no_node() -> None:
    objects = [
        node("n1"), node("n2", labels=SSD), owned(bound("a", "n1", 1)), owned(bound("b", "n2", 1)),
        bound("big", "n1", 3),
    ]  # fmt: skip
    assert told(objects, policies=[KEEP]) == {("big", "moves", "n1", "n2")}
    full = [node("n1"), node("n2"), owned(bound("a", "n1", 1)), pod("wait", 1)]
    found = policysched.plan(ours(full), policies=[KEEP])
    assert found.summary == ("2 of 2 pods would get no node (Pod default/wait, Deployment default/web) if recreated")
    assert found.effects[0].reason.startswith("0/2 nodes are available: 2 policy keep/r")
    assert list(found.nodes) == [NodeEffect("n1", 1, 0), NodeEffect("n2", 1, 0)]


def test_plan_counts_pods_that_fit_no_node_without_and_with_the_change() -> None:
    tainted = [{**node(name), "spec": {"taints": [{"key": "k", "effect": "NoSchedule"}]}} for name in ("n1", "n2")]
    chosen = bound("chosen", "n1", 1, nodeSelector=SSD)
    found = policysched.plan(ours([*tainted, bound("a", "n1"), bound("b", "n2"), chosen]), policies=[KEEP])
    taints = "0/2 nodes are available: 2 node(s) had untolerated taint(s)."
    assert (found.changes, found.unplaced.pods, found.unplaced.decided) == (False, 3, 3)
    assert found.unplaced.reasons == ((taints, 3),)
    assert found.unplaced.text == (
        f"3 of the 3 pods that the change can affect fit no node, without and with the change: {taints}"
    )
    assert found.to_dict()["unplacedPods"]["reasons"] == [{"reason": taints, "pods": 3}]


def test_pods_that_fit_without_or_with_the_change_are_not_counted_as_fitting_no_node() -> None:
    objects = [node("n1"), bound("a", "n1"), bound("large", "n1", 99), pod("wait", 98)]
    found = policysched.plan(ours(objects), policies=[KEEP])
    assert [one.pod for one in found.effects] == ["default/a"]
    assert (found.unplaced.pods, found.unplaced.decided) == (2, 3)
    assert policysched.plan(ours([node("n1"), bound("a", "n1")]), policies=[KEEP]).unplaced.pods == 0
    assert policysched.plan(ours(objects), policies=[policy("none", **requiring("true"))]).unplaced.pods == 2


def test_plan_of_a_policy_that_applies_to_no_pod_says_why_for_all_pods() -> None:
    rule = {"name": "r", "when": 'pod.labels["team"] == "a"', "require": "false"}
    never = policy("never", filters=[rule], appliesTo="pod.priority > 5")
    objects = [node("n1"), *(bound(f"p{number}", "n1", "1m") for number in range(2)), bound("h", "n1", 1, priority=9)]
    [idle] = policysched.plan(ours(objects), policies=[never]).idle_policies
    assert idle.startswith("never: is evaluated for none of 3 pods: ")
    assert ("(2 pods); " in idle, idle.endswith("(1 pod)")) == (True, True)


def test_plan_without_a_policy_says_what_becomes_schedulable() -> None:
    objects = [node("n1"), pod("wait", 1), KEEP]
    assert told(objects, without_policies=["keep"]) == {("wait", "schedulable", "", "n1")}


def test_plan_lets_pods_of_nodes_that_go_wait_in_the_order_of_the_queue() -> None:
    objects = [
        node("n1"), node("n2"), bound("low", "n1", 3), bound("high", "n1", 1, priority=10), bound("there", "n2", 1),
    ]  # fmt: skip
    found = told(objects, without_nodes=["n1"])
    assert ("high", "moves", "n1", "n2") in found
    assert ("low", "unschedulable", "n1", "") in found


def test_plan_places_a_pod_on_the_node_that_is_kept_for_it_though_others_of_its_class_get_none() -> None:
    kept = {"status": {"phase": "Pending", "nominatedNodeName": "n1"}}
    first, second = pod("first", 3, priority=10), {**pod("second", 3, priority=10), **kept}
    assert told([node("n1"), node("n2"), first, second], without_nodes=["n2"]) == {("first", "unschedulable", "n2", "")}
    assert told([node("n1"), first, second], nodes=[node("n2")]) == {("first", "schedulable", "", "n2")}


def test_plan_says_who_would_be_preempted() -> None:
    objects = [node("n1"), bound("low", "n1", 3), pod("wait", 2, priority=10, nodeSelector=SSD)]
    labelled = node("n1", labels=SSD)
    found = told(objects, nodes=[labelled])
    assert found == {("wait", "schedulable", "", "n1"), ("low", "preempted", "n1", "")}


def test_plan_places_more_replicas_and_takes_fewer_away() -> None:
    objects = [node("n1"), owned(bound("a", "n1", 1))]
    assert told(objects, replicas={"web": 3}) == {("a-plan-1", "added", "", "n1"), ("a-plan-2", "added", "", "n1")}
    assert told(objects, replicas={"default/web": 0}) == {("a", "removed", "n1", "")}
    found = policysched.plan(ours(objects), replicas={"web": 9})
    assert "5 of the added pods would get no node" in found.summary


def test_plan_says_that_a_tie_decides_nothing() -> None:
    objects = [node(f"n{number}") for number in range(5)] + [bound("a", "n3", 1), pod("wait", 1)]
    assert told(objects, config=CONFIG) == set()
    assert told(objects, nodes=[node("n9", labels=SSD)]) == set()


@pytest.mark.parametrize("place", [f"n{number}" for number in range(1, 6)])
def test_pod_that_has_to_leave_a_better_node_lands_where_it_runs_if_that_is_as_good(place: str) -> None:
    large = {**node("n0"), "status": {"allocatable": {"cpu": "64", "memory": "64Gi", "pods": "110"}}}
    objects = [large, *(node(f"n{number}", labels=SSD) for number in range(1, 6)), bound("a", place, 1)]
    assert told(objects, policies=[KEEP]) == {("a", "stays", "n0", place)}


@pytest.mark.parametrize(
    ("before", "after", "moved"),
    [
        (0, 0, set()),
        (0, 1, {("a", "moves", "n2", "n1")}),
        (1, 0, {("a", "stays", "n1", "n2")}),
        (1, 7, set()),
    ],
)
def test_plan_follows_the_tier_of_a_policy(before: int, after: int, moved: set[tuple[str, ...]]) -> None:
    def zone(tier: int) -> Object:
        rule = {"name": "west", "cases": ['node.labels["zone"] == "west" → 1', "else → 0"]}
        return policy("zone", tier=tier, scores=[rule])

    objects = [
        node("n1", labels={"zone": "west"}), node("n2"), bound("fixed", "n1", 3, nodeSelector={"zone": "west"}),
        bound("a", "n2", 1),
    ]  # fmt: skip
    assert told([*objects, zone(before)], policies=[zone(after)]) == moved


def test_plan_tells_many_pods_without_a_controller_together() -> None:
    objects = ours([node("n1"), *(bound(f"p{number}", "n1") for number in range(5)), owned(bound("a", "n1"))])
    found = policysched.plan(objects, policies=[policy("off", **requiring("false"))])
    assert [(one.workload, one.pods) for one in found.workloads] == [
        ("default/* (Pod)", 5),
        ("default/web (Deployment)", 1),
    ]
    assert found.summary == "6 of 6 pods would get no node (5 of Pod default/*, Deployment default/web) if recreated"


def test_plan_names_policies_that_decide_nothing() -> None:
    objects = ours([node("n1"), node("n2"), bound("a", "n1")])
    rules = [policy("all", **requiring("node.free.cpu >= 0")), policy("off", mode="Disabled", **requiring("true"))]
    found = policysched.plan(objects, policies=rules)
    assert found.idle_policies == (
        "all: is evaluated for 1 of 1 pod but rejects no node and scores all nodes equally",
        "off: mode is Disabled",
    )


def test_plan_leaves_out_what_cannot_be_read_and_names_it() -> None:
    broken = bound("bad", "n1")
    broken["spec"]["containers"] = [{"name": "c", "resources": {"requests": {"cpu": "much"}}}]
    found = policysched.plan([*ours([node("n1"), node("n2"), bound("a", "n1", 1)]), broken], without_nodes=["n1"])
    [said] = found.left_out
    assert said.startswith('pod "/bad": spec.containers[0].resources.requests.cpu: ')
    assert (found.pods, found.counts) == (1, {Effect.MOVES: 1})


def test_plan_does_not_decide_about_pods_of_others() -> None:
    other = bound("other", "n1")
    other["spec"]["schedulerName"] = "default-scheduler"
    ended = {**bound("ended", "n1"), "status": {"phase": "Succeeded"}}
    gated = pod("gated", schedulingGates=[{"name": "g"}])
    found = policysched.plan(
        ours([node("n1"), other, ended, gated, bound("a", "n1")]), policies=[KEEP], scheduler_name="policysched"
    )
    assert (found.pods, found.others, found.gated, found.changes) == (1, 2, 1, True)


@pytest.mark.parametrize(
    ("change", "problem"),
    [
        ({"without_nodes": ["n9"]}, 'no node "n9" in the cluster'),
        ({"without_policies": ["p"]}, 'no policy "p" in the cluster'),
        ({"replicas": {"web": 1}}, "--replicas web: the cluster has no pod"),
        ({"nodes": [pod()]}, "--nodes: expected only Node objects"),
        ({"policies": [policy("b", **requiring("node.nam"))]}, "policy b cannot be used: it does not compile"),
    ],
)
def test_plan_refuses_a_change_that_cannot_be_made(change: Any, problem: str) -> None:
    with pytest.raises(UsageError, match=problem):
        policysched.plan([node("n1")], **change)


def test_plan_that_is_interrupted_tells_what_is_known(monkeypatch: pytest.MonkeyPatch) -> None:
    objects = ours([node("n1"), node("n2", labels=SSD), *(bound(f"p{number}", "n1") for number in range(9))])
    looked = SideComparison._running

    def interrupted(self: SideComparison, *pods: Any) -> None:
        if self.pods == 4:
            raise KeyboardInterrupt
        looked(self, *pods)

    monkeypatch.setattr(SideComparison, "_running", interrupted)
    found = policysched.plan(objects, policies=[policy("off", **requiring("false"))])
    assert (found.pods, found.unseen, found.counts) == (4, 5, {Effect.UNSCHEDULABLE: 4})
    assert found.summary.endswith("interrupted: 5 pods not evaluated")
