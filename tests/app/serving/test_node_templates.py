"""Nodes in the body of POST /dry-run: whether a new node like each takes the pod, and the reasons why not."""

from __future__ import annotations

import json
import random
from typing import Any

import pytest

import policysched
from policysched.app.serving.dry_run.pod_requests import Options, read_pods
from policysched.errors import UsageError
from policysched.model.release import DEFAULT
from policysched.schedule.cycle.node_templates import MOST_TEMPLATES
from tests.app.dry_runs import Object, node, pod, policy, requiring
from tests.app.serving.test_dry_runs import Live, post, served
from tests.oracle.generate import singles

FAST = policy("fast", filters=[{"name": "ssd", "require": 'node.labels["disk"] == "ssd" and node.free.cpu >= 2'}])
TAINT = {"key": "team", "value": "data", "effect": "NoSchedule"}


def body(*objects: Object) -> bytes:
    return json.dumps({"kind": "List", "apiVersion": "v1", "items": [*objects]}).encode()


async def templates_of(live: Live, *objects: Object) -> dict[str, Any]:
    [asked] = read_pods(body(*objects), Options(), DEFAULT).pods
    found: dict[str, Any] = (await live.decide(asked)).record["nodeTemplates"]
    return found


async def test_reasons_are_listed_for_each_template_by_plugin_rule_and_clause() -> None:
    live = await Live().told(node("n1"), FAST)
    taking = node("taking", labels={"disk": "ssd"})
    tainted = node("tainted", spec={"taints": [TAINT]}) | {"status": {"allocatable": {"cpu": "1", "pods": "9"}}}
    found = await templates_of(live, pod(cpu="2"), taking, tainted)
    assert found["taking"] == {"fits": True}
    assert [(one["plugin"], one["reasons"]) for one in found["tainted"]["rejected"]] == [
        ("TaintToleration", ["node(s) had untolerated taint(s)"]),
        ("NodeResourcesFit", ["Insufficient cpu"]),
        ("SchedulingPolicy/fast", ['policy fast/ssd: node.labels["disk"] == "ssd" and node.free.cpu >= 2']),
    ]
    clauses = ['node.labels["disk"] == "ssd"', "node.free.cpu >= 2"]
    assert found["tainted"]["rules"] == {"fast": {"ssd": {"result": "false", "clauses": clauses}}}


async def test_template_is_a_new_ready_node_with_its_host_name() -> None:
    rules = ["node.ready", "node.age < 1min", 'node.labels["kubernetes.io/hostname"] == "new"']
    live = await Live().told(
        node("n1"), policy(filters=[{"name": f"r{number}", "require": one} for number, one in enumerate(rules)])
    )
    old = node("new")
    old["metadata"] |= {"creationTimestamp": "2020-01-01T00:00:00Z", "uid": "u"}
    assert (await templates_of(live, pod(), old))["new"] == {"fits": True}
    broken = node("new") | {
        "status": {"allocatable": {"pods": 9}, "conditions": [{"type": "Ready", "status": "False"}]}
    }
    assert list((await templates_of(live, pod(), broken))["new"]["rules"]["p"]) == ["r0"]


async def test_each_template_is_evaluated_alone_as_part_of_the_cluster() -> None:
    spread = [
        {
            "maxSkew": 1,
            "topologyKey": "zone",
            "whenUnsatisfiable": "DoNotSchedule",
            "labelSelector": {"matchLabels": {"app": "web"}},
        }
    ]
    placed = pod("old", nodeName="n1")
    wanted = pod(topologySpreadConstraints=spread)
    for one in (placed, wanted):
        one["metadata"]["labels"] = {"app": "web"}
    live = await Live().told(node("n1", labels={"zone": "a"}), node("n2", labels={"zone": "b"}), placed)
    same, empty = node("same", labels={"zone": "a"}), node("empty", labels={"zone": "c"})
    found = await templates_of(live, wanted, same, empty)
    assert {name: one["fits"] for name, one in found.items()} == {"same": False, "empty": True}
    assert found["same"]["rejected"][0]["plugin"] == "PodTopologySpread"


async def test_cluster_and_decisions_are_as_before() -> None:
    live = await Live().told(node("n1"), FAST)
    cluster, queue = live.scheduler.cluster, live.scheduler.queue
    before = (await live.record(pod()), cluster.nodes.count, dict(cluster.nodes.row_of), queue.counts())
    await templates_of(live, pod(), *(node(f"t{number}", labels={"disk": "ssd"}) for number in range(MOST_TEMPLATES)))
    assert (await live.record(pod()), cluster.nodes.count, dict(cluster.nodes.row_of), queue.counts()) == before


@pytest.mark.parametrize("index", range(40))
def test_template_fits_if_the_pod_fits_the_node_once_it_exists(index: int) -> None:
    [case] = singles(20261130, [index])
    nodes = [one for one in case["objects"] if one["kind"] == "Node"]
    left = random.Random(index).choice(nodes)
    name = left["metadata"]["name"]
    there = [one for one in case["objects"] if one.get("spec", {}).get("nodeName") != name]
    ready = [{"type": "Ready", "status": "True"}]
    new = left | {"status": left.get("status", {}) | {"conditions": ready}}
    new["metadata"] = {"name": name, "labels": {"kubernetes.io/hostname": name} | left["metadata"].get("labels", {})}
    rest = [one for one in there if one is not left]
    of = case["pod"] | {"spec": {key: value for key, value in case["pod"]["spec"].items() if key != "schedulerName"}}
    if of.get("status", {}).get("nominatedNodeName"):
        del of["status"]
    found = policysched.dry_run(rest, of, FAST, node_templates=new).to_dict()["nodeTemplates"][name]
    with_node = policysched.dry_run([*rest, new], of, FAST).to_dict()
    assert found["fits"] == (name in with_node.get("total", {}))
    if not found["fits"] and "preFilter" not in with_node:
        assert with_node["rejected"][name] in found["rejected"]


@pytest.mark.parametrize(
    ("objects", "code", "said"),
    [
        ([node("a")], 400, "body: node templates without pods; send pods, too"),
        ([pod(), node("")], 400, "the node template has no name"),
        ([pod(), node("a"), node("a")], 400, 'node "a": metadata.name: two node templates have this name'),
        ([pod(), node("a") | {"status": {"allocatable": {"cpu": "many"}}}], 400, "status.allocatable"),
        ([pod(), node("a") | {"spec": {"taints": 5}}], 400, "spec.taints"),
        ([pod(), *(node(f"t{one}") for one in range(MOST_TEMPLATES + 1))], 400, "more than 32 node templates"),
        ([pod(), node("n1")], 422, 'node template "n1": a node or a placed pod has this node name'),
        ([pod(), node("gone")], 422, 'node template "gone": a node or a placed pod has this node name'),
    ],
)
async def test_bad_template_is_refused(objects: list[Object], code: int, said: str) -> None:
    live = await Live().told(node("n1"), pod("left", nodeName="gone"))
    async with served(live) as port:
        status, text, _ = await post(port, body(*objects))
        assert (status, said in json.loads(text)["message"]) == (code, True), text
    assert sorted(live.scheduler.cluster.nodes.row_of) == ["gone", "n1"]


async def test_templates_are_answered_for_each_pod_of_the_body() -> None:
    async with served(await Live().told(node("n1"))) as port:
        _, text, _ = await post(port, body(pod("a"), pod("b", cpu="9"), node("new")))
        assert [one["nodeTemplates"]["new"]["fits"] for one in json.loads(text)["items"]] == [True, False]


def test_template_of_another_kind_is_an_error() -> None:
    with pytest.raises(UsageError, match="expected a Node"):
        policysched.dry_run([node()], pod(), node_templates=pod("other"))


def test_rejection_by_a_shadow_policy_is_not_a_reason() -> None:
    shadow = policy(mode="Shadow", **requiring('node.name == "n1"'))
    told = policysched.dry_run([node("n1")], pod(), shadow, node_templates=node("new")).to_dict()
    assert told["nodeTemplates"] == {"new": {"fits": True}}
