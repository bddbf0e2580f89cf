"""Dry-runs of pod groups: who fits, what stands against the others, and the same results as in a running scheduler."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import msgspec
import pytest

from policysched.app.demo.devices import claiming_pod, device_objects
from policysched.app.dry_run.dry_run import dry_run
from policysched.app.dry_run.group import dry_run_group
from policysched.app.dry_run.group_tables import group_parts
from policysched.app.dry_run.results import GroupReport
from policysched.errors import UsageError
from policysched.model.objects import Node, Pod, PodGroup, PodStatus
from policysched.model.release import Release
from tests.app.showing import lines
from tests.build import node, pod
from tests.extenders.rejecting import rejecting_extender
from tests.groups import GATED, GATED_38, TOPOLOGY_38, group, member
from tests.schedule.groups.parts import CLAIMS_DONE, NO_VICTIMS, PARENT, RELEASES, below, conditions, messages, submit
from tests.schedule.stand import running

FIT_ERROR = "0/1 nodes are available: 1 Insufficient cpu."


def raw(one: Node | Pod | PodGroup) -> dict[str, Any]:
    """The object as kubectl prints it, without the identity that an API server gives a pod."""
    found: dict[str, Any] = msgspec.to_builtins(one)
    if isinstance(one, Pod):
        found["metadata"].pop("uid", None)
    version = {"PodGroup": "scheduling.k8s.io/v1beta1"}.get(type(one).__name__, "v1")
    return {"apiVersion": version, "kind": type(one).__name__, **found}


def members(count: int, cpu: int = 1, **fields: Any) -> list[Pod]:
    """Members of the group g."""
    return [member(f"p{number}", requests={"cpu": cpu}, **fields) for number in range(count)]


def decided(
    of: PodGroup, pods: list[Pod], *objects: Node | Pod, release: Release = GATED_38, **more: Any
) -> GroupReport:
    """The dry-run of pods of a group on nodes."""
    cluster = [raw(of), *map(raw, objects)]
    return dry_run_group(
        cluster, [raw(one) for one in pods], more.pop("policies", ()), seed=1, kube_version=release.minor, **more
    )


def _ended(one: Pod) -> Pod:
    return msgspec.structs.replace(one, status=PodStatus(phase="Succeeded"))


def nodes_of(report: GroupReport) -> dict[str, str]:
    """The node of each member that fits, by name."""
    told = report.to_dict()["members"]
    return {one["pod"].removeprefix("default/"): one["node"] for one in told if "node" in one}


def test_group_that_fits_gets_a_node_for_each_member() -> None:
    report = decided(group(least=3), members(3), node("n1"))
    assert report.to_dict() == {
        "podGroup": "default/g",
        "schedulerName": "policysched",
        "reference": "1.38",
        "minCount": 3,
        "result": "Scheduled",
        "members": [{"pod": f"default/p{number}", "node": "n1"} for number in range(3)],
    }


def test_members_are_decided_with_earlier_members_in_place() -> None:
    report = decided(group(least=2), members(2, cpu=3), node("n1"), node("n2"))
    assert sorted(nodes_of(report).values()) == ["n1", "n2"]


def test_member_that_fits_no_node_has_its_decision_and_the_others_the_reason_of_the_group() -> None:
    told = decided(group(least=5), members(6), node("n1")).to_dict()
    assert (told["result"], told["message"]) == (
        "Unschedulable",
        f"{below(5, 4, 2, 0)}, {CLAIMS_DONE}, {NO_VICTIMS}",
    )
    fitting, failed = told["members"][:4], told["members"][4:]
    assert fitting == [{"pod": f"default/p{number}", "node": "n1", "message": PARENT} for number in range(4)]
    assert [one["message"] for one in failed] == [FIT_ERROR] * 2
    assert failed[0]["decision"]["rejected"]["n1"]["reasons"] == ["Insufficient cpu"]
    assert failed[0]["decision"]["fitError"] == FIT_ERROR


def test_decisions_of_twenty_members_are_recorded() -> None:
    told = decided(group(), members(30, cpu=9), node("n1")).to_dict()
    failed = [one for one in told["members"] if one.get("message") == FIT_ERROR]
    assert (len(failed), sum("decision" in one for one in failed)) == (30, 20)


def test_members_after_the_end_of_the_cycle_are_not_evaluated() -> None:
    told = decided(group(least=4), members(4, cpu=3), node("n1")).to_dict()
    assert told["members"][2:] == [
        {"pod": f"default/p{number}", "evaluated": False, "message": PARENT} for number in (2, 3)
    ]


@pytest.mark.parametrize("release", RELEASES, ids=lambda one: one.minor)
def test_group_without_its_quorum_is_not_tried(release: Release) -> None:
    told = decided(group(least=3), members(2), node("n1"), release=release).to_dict()
    assert told["result"] == "Unschedulable"
    assert "to meet its quorum" in told["message"] or "waiting for minCount pods" in told["message"]
    assert told["members"] == [{"pod": "default/p0", "evaluated": False}, {"pod": "default/p1", "evaluated": False}]


def test_victims_and_nominations_of_preemption_are_reported() -> None:
    low = pod("low", on="n1", requests={"cpu": 1}, priority=-1)
    told = decided(group(least=4), members(4), node("n1"), low).to_dict()
    assert (told["result"], told["victims"]) == ("Unschedulable", ["default/low"])
    assert told["message"].endswith("preempting 1 victims")
    assert [one["nominated"] for one in told["members"]] == ["n1"] * 4


def test_placed_members_count() -> None:
    placed = member("placed", on="n1", requests={"cpu": 1})
    told = decided(group(least=3), members(2), node("n1"), placed).to_dict()
    assert (told["result"], told["placed"], len(told["members"])) == ("Scheduled", 1, 2)


def test_pending_members_of_the_cluster_are_decided_too_and_before_the_given_ones() -> None:
    others = [member("waits"), _ended(member("ends")), member("elsewhere", of="other"), pod("alone")]
    told = decided(group(least=3), members(2), node("n1"), *others).to_dict()
    assert [one["pod"] for one in told["members"]] == ["default/waits", "default/p0", "default/p1"]


def test_given_member_replaces_the_one_of_the_cluster() -> None:
    told = decided(group(least=1), members(1, cpu=3), node("n1"), member("p0", requests={"cpu": 9})).to_dict()
    assert told["members"] == [{"pod": "default/p0", "node": "n1"}]


def test_member_of_another_priority_is_an_error() -> None:
    report = decided(group(least=2), [*members(1), member("high", priority=7)], node("n1"))
    assert report.result == "Error"
    assert "should have the same priority as the root pod group's priority, got 7" in report.to_dict()["message"]


def test_group_has_the_priority_of_its_class() -> None:
    priority_class = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}}
    of = raw(group(least=1))
    of["spec"] |= {"priorityClassName": "high"}
    of["spec"].pop("priority", None)
    one = raw(members(1)[0])
    one["spec"] |= {"priorityClassName": "high"}
    one["spec"].pop("priority", None)
    cluster = [raw(node("n1")), priority_class | {"value": 7}, of]
    assert dry_run_group(cluster, [one], kube_version="1.38").result == "Scheduled"


def test_rules_of_policies_are_in_the_decisions_of_members() -> None:
    policy = {
        "apiVersion": "policysched.io/v1beta1",
        "kind": "SchedulingPolicy",
        "metadata": {"name": "ssd"},
        "spec": {"filters": [{"name": "only", "require": 'node.labels["disk"] == "ssd"', "message": "no SSD"}]},
    }
    nodes = (node("n1", labels={"disk": "ssd"}), node("n2", labels={"disk": "hdd"}))
    assert nodes_of(decided(group(least=2), members(2), *nodes, policies=[policy])) == {"p0": "n1", "p1": "n1"}
    told = decided(group(least=5), members(5), *nodes, policies=[policy]).to_dict()
    assert told["members"][4]["decision"]["rejected"]["n2"]["reasons"] == ["policy ssd/only: no SSD"]


RACK_POLICY: dict[str, Any] = {
    "apiVersion": "policysched.io/v1beta1",
    "kind": "SchedulingPolicy",
    "metadata": {"name": "racks"},
    "spec": {
        "placement": {
            "topologyKey": "rack",
            "filters": [
                {
                    "name": "holds-all",
                    "require": "placement.size > 0 and placement.nodes.sum(node.free.cpu) >= group.requests.cpu",
                }
            ],
            "scores": [{"name": "fullest", "value": "100 - scale(placement.nodes.sum(node.free.cpu), 0, 40)"}],
        }
    },
}


def test_placement_rules_are_explained_by_clause_and_score() -> None:
    nodes = [node(f"r{rack}-{place}", labels={"rack": f"r{rack}"}) for rack in range(3) for place in range(rack + 1)]
    told = decided(group(least=7), members(7), *nodes, policies=[RACK_POLICY]).to_dict()
    assert (told["result"], told["placement"], len(told["placements"])) == ("Scheduled", "r1", 3)
    assert {one["node"] for one in told["members"]} == {"r1-0", "r1-1"}
    clause = "placement.nodes.sum(node.free.cpu) >= group.requests.cpu"
    values = {"placement.nodes.sum(node.free.cpu)": "4", "group.requests.cpu": "7"}
    assert told["placements"]["r0"]["policies"]["racks"] == {
        "mode": "Enforce",
        "filters": {"holds-all": {"result": "false", "clauses": {clause: values}}},
    }
    assert told["placements"]["r1"]["policies"]["racks"] == {"mode": "Enforce", "scores": {"fullest": 80}}
    assert told["placements"]["r2"]["policies"]["racks"]["scores"] == {"fullest": 70}
    assert "notApplied" not in told
    shown = [line for part in group_parts(told) for line in lines(part)]
    values_shown = "(placement.nodes.sum(node.free.cpu) is 4, group.requests.cpu is 7)"
    assert f"r0 racks holds-all rejects: {clause} {values_shown}" in shown
    assert "r1 racks fullest gives 80" in shown


def test_placement_rules_in_mode_shadow_are_explained_without_effect() -> None:
    nodes = [node(f"r{rack}", labels={"rack": f"r{rack}"}) for rack in range(2)]
    rule = {"name": "second", "require": 'placement.name == "r1"'}
    shadow = {"mode": "Shadow", "placement": {"filters": [rule]}}
    policy = RACK_POLICY | {"metadata": {"name": "shadow"}, "spec": shadow}
    told = decided(group(least=2), members(2), *nodes, policies=[RACK_POLICY, policy]).to_dict()
    assert told["placements"]["r0"]["fits"]
    assert told["placements"]["r0"]["policies"]["shadow"]["filters"] == {
        "second": {"result": "false", "clauses": {'placement.name == "r1"': {"placement.name": '"r0"'}}}
    }
    assert "shadow" not in told["placements"]["r1"]["policies"]
    shown = [line for part in group_parts(told) for line in lines(part)]
    assert 'r0 shadow second rejects: placement.name == "r1" (placement.name is "r0") (Shadow)' in shown


def test_policy_with_placement_rules_only_is_named_if_it_does_not_apply() -> None:
    nodes = [node(f"r{rack}", labels={"rack": f"r{rack}"}) for rack in range(2)]
    spec = RACK_POLICY["spec"] | {"appliesTo": "pod.priority > 5"}
    told = decided(group(least=2), members(2), *nodes, policies=[RACK_POLICY | {"spec": spec}]).to_dict()
    assert told["notApplied"] == {"racks": "appliesTo is false: pod.priority > 5"}
    alone = dry_run([raw(nodes[0])], raw(pod("alone")), [RACK_POLICY]).to_dict()
    assert alone["notApplied"] == {"racks": "the policy has rules for pod groups only"}


def test_members_do_not_get_the_same_device() -> None:
    pods = [claiming_pod(f"p{number}", "small-gpu") for number in range(4)]
    for one in pods:
        one["spec"]["schedulingGroup"] = {"podGroupName": "g"}
    cluster = [raw(group(least=3)), *device_objects()]
    told = dry_run_group(cluster, pods, kube_version="1.38").to_dict()
    assert sorted(one.get("node", "none") for one in told["members"]) == ["gpu-1", "gpu-1", "gpu-2", "none"]
    assert "cannot allocate all claims" in told["members"][3]["message"]


@pytest.mark.parametrize("release", [GATED, GATED_38], ids=["1.37", "1.38"])
@pytest.mark.parametrize("count", [2, 6])
def test_members_share_a_claim_of_their_group(release: Release, count: int) -> None:
    pods = [claiming_pod(f"p{number}", "small-gpu") for number in range(count)]
    for one in pods:
        one["spec"]["schedulingGroup"] = {"podGroupName": "g"}
        one["spec"]["containers"][0]["resources"]["requests"] = {"cpu": "1"}
    of = raw(group(least=count))
    of["spec"]["resourceClaims"] = pods[0]["spec"]["resourceClaims"]
    told = dry_run_group([of, *device_objects()], pods, seed=1, kube_version=release.minor).to_dict()
    nodes = [one.get("node", "none") for one in told["members"]]
    assert len(set(nodes[:4])) == 1
    assert nodes[4:] == ["none"] * (count - 4)
    reason = told.get("message", "")
    assert ("minimum threshold" in reason or "minCount" in reason) is (count > 4)


def test_gates_of_members_are_ignored_with_a_note() -> None:
    one = raw(members(1)[0])
    one["spec"]["schedulingGates"] = [{"name": "quota"}]
    report = dry_run_group([raw(node("n1")), raw(group(least=1))], [one], kube_version="1.38")
    assert report.result == "Scheduled"
    assert report.notes == ("pod has scheduling gates: quota; the decision is for the pod without gates",)


def test_a_group_has_to_be_among_the_objects() -> None:
    with pytest.raises(UsageError, match='pod group "default/g" is not among the objects'):
        dry_run_group([raw(node("n1"))], [raw(one) for one in members(1)], kube_version="1.38")


@pytest.fixture
def extended() -> Iterator[dict[str, Any]]:
    """Run an extender, and return a configuration with it."""
    with rejecting_extender() as configuration:
        yield configuration


def test_extenders_decide_about_members(extended: dict[str, Any]) -> None:
    nodes = [node("n1"), node("n2")]
    record = decided(group(least=4), members(4), *nodes, config=extended).to_dict()
    assert (record["result"], [one["node"] for one in record["members"]]) == ("Scheduled", ["n2"] * 4)
    record = decided(group(least=5), members(5), *nodes, config=extended).to_dict()
    assert record["result"] == "Unschedulable"
    assert record["members"][4]["message"].startswith("0/2 nodes are available: 1 Insufficient cpu, 1 not here.")
    record = decided(group(least=1), [member("p9")], *nodes, config=extended).to_dict()
    assert (record["result"], "no answer" in record["message"]) == ("Error", True)


def test_a_group_preempts_where_extenders_accept_its_members(extended: dict[str, Any]) -> None:
    olds = [pod(f"old-{number}", on=f"n{number}", priority=-1, requests={"cpu": 4}) for number in (1, 2)]
    nodes = [node("n1"), node("n2")]
    record = decided(group(least=1), members(1, cpu=4), *nodes, *olds, config=extended).to_dict()
    assert record["victims"] == ["default/old-2"]
    assert record["members"][0]["nominated"] == "n2"
    record = decided(group(least=2), members(2, cpu=4), *nodes, *olds, config=extended).to_dict()
    assert "victims" not in record


@pytest.mark.parametrize("release", RELEASES, ids=lambda one: one.minor)
@pytest.mark.parametrize("least", [1, 4, 5, 6, 7])
@pytest.mark.parametrize("cpu", ["3", "4", "6", "8"])
@pytest.mark.parametrize("priority", [0, -1])
async def test_result_is_that_of_a_running_scheduler(release: Release, least: int, cpu: str, priority: int) -> None:
    """Six pods of one CPU on a node with a placed pod: the results, nodes and messages are equal."""
    one = node("n1", allocatable={"cpu": cpu})
    placed = pod("web", on="n1", requests={"cpu": 1}, priority=priority)
    async with running(one, release=release) as stand:
        stand.scheduler.set_pod(placed)
        await submit(stand, group(least=least), *members(6))
        bound, written, told = dict(stand.bound), conditions(stand), messages(stand)
    cluster = [raw(group(least=least)), raw(one), raw(placed)]
    pods = [raw(member) for member in members(6)]
    record = await _in_thread(cluster, pods, release)
    assert _bound(record) == bound
    if written:
        assert (record["result"] == "Scheduled", record.get("message", "")) == (
            written[0][0] == "True",
            written[0][2],
        )
    else:
        assert all("evaluated" in one for one in record["members"])
    evicted = told.pop("web", "")
    if record["result"] != "Scheduled":
        assert record.get("victims", []) == (["default/web"] if evicted else [])
    explained = {one["pod"].removeprefix("default/"): one.get("message") for one in record["members"]}
    assert {name: message for name, message in explained.items() if message} == told


async def _in_thread(cluster: list[Any], pods: list[Any], release: Release) -> dict[str, Any]:
    """Decide in a thread: a dry-run has an event loop of its own."""

    report = await asyncio.to_thread(dry_run_group, cluster, pods, seed=1, kube_version=release.minor)
    return report.to_dict()


def _bound(record: dict[str, Any]) -> dict[str, str]:
    if record["result"] != "Scheduled":
        return {}
    return {one["pod"].removeprefix("default/"): one["node"] for one in record["members"] if "node" in one}


RACK = "example.com/rack"
RACKS = [node(f"{rack}-{number}", labels={RACK: rack}) for rack in "ab" for number in ((1,) if rack == "a" else (1, 2))]


def test_group_with_a_topology_is_on_one_rack() -> None:
    report = decided(group(least=6, key=RACK), members(6), *RACKS, release=TOPOLOGY_38)
    told = report.to_dict()
    assert {name[0] for name in nodes_of(report).values()} == {"b"}
    assert told["placement"] == "b"
    assert told["placements"] == {
        "a": {
            "nodes": 1, "fitting": 4, "fits": False,
            "message": below(6, 4, 1, 1),
        },
        "b": {"nodes": 2, "fitting": 6, "fits": True},
    }  # fmt: skip


def test_group_that_fits_no_rack_has_the_decision_of_the_first() -> None:
    told = decided(group(least=9, key=RACK), members(9), *RACKS, release=TOPOLOGY_38).to_dict()
    assert "placement" not in told
    assert [one["fits"] for one in told["placements"].values()] == [False, False]
    [failed] = [one for one in told["members"] if "decision" in one]
    assert failed["decision"]["fitError"] == FIT_ERROR
    assert list(failed["decision"]["rejected"]) == ["a-1"]


def test_scores_of_placements_are_told() -> None:
    told = decided(group(least=2, key=RACK), members(2), *RACKS, release=TOPOLOGY_38).to_dict()
    assert told["placement"] == "a"
    assert {name: one["scores"]["PodGroupPodsCount"] for name, one in told["placements"].items()} == {
        "a": 100,
        "b": 100,
    }
    scores = [one["scores"]["NodeResourcesFit"] for one in told["placements"].values()]
    assert scores[0] > scores[1]
