"""What decides that pods would get another node, and which nodes would be asked for more than they have."""

from __future__ import annotations

from typing import Any

import pytest

import policysched
from policysched.app.plan.results import Excess
from tests.app.dry_runs import Object, node, pod, policy, requiring
from tests.app.plan.test_plan import KEEP, SSD, ours
from tests.app.why.test_why import bound

PREFERS = policy("prefers", scores=[{"name": "s", "cases": ['node.labels["disk"] == "ssd" → 100', "else → 0"]}])
LARGE = {**node("large"), "status": {"allocatable": {"cpu": "64", "memory": "64Gi", "pods": "110"}}}
BUSY = [bound("busy", "n1", 3), bound("other", "n2", 3)]


@pytest.mark.parametrize(
    ("objects", "change", "effect", "by"),
    [
        ([node("n1"), node("n2", labels=SSD)], {"policies": [KEEP]}, "moves", "policy keep/r"),
        ([node("n1"), node("n2")], {"policies": [KEEP]}, "unschedulable", "policy keep/r"),
        ([node("n1"), node("n2", labels=SSD)], {"policies": [PREFERS]}, "moves", "score of SchedulingPolicy/prefers"),
        (
            [node("n1"), node("n2", labels=SSD), PREFERS, bound("b", "n2", 1)],
            {"without_policies": ["prefers"]},
            "stays",
            "score of NodeResourcesFit",
        ),
        ([node("n1"), node("n2", labels=SSD), KEEP, bound("b", "n2", 1)], {"without_policies": ["keep"]}, "stays",
         "no longer: policy keep/r"),
        ([node("n1"), node("n2")], {"nodes": [LARGE]}, "moves", "new node: score of NodeResourcesFit"),
        ([node("n1"), node("n2")], {"without_nodes": ["n1"]}, "moves", "node removed"),
    ],
)  # fmt: skip
def test_cause_is_what_the_change_does_to_either_node(objects: list[Object], change: Any, effect: str, by: str) -> None:
    found = policysched.plan(ours([*objects, bound("a", "n1", 1)]), **change)
    [one] = [one for one in found.effects if one.pod == "default/a"]
    assert (str(one.effect), one.by, one.node) == (effect, by, "n1")
    assert one.runs is ("without_nodes" not in change)


def test_waiting_pod_that_gets_a_node_names_the_new_one() -> None:
    found = policysched.plan(ours([node("n1"), pod("a", 5)]), nodes=[LARGE])
    [one] = found.effects
    assert (str(one.effect), one.after, one.by, one.node, one.runs) == ("schedulable", "large", "", "", False)
    assert found.running == 0
    assert found.summary == "1 of 1 pod would get a node"


def test_pods_without_a_controller_are_told_by_what_decides() -> None:
    pods = [bound(f"p{number}", "large", "100m") for number in range(4)]
    large = [bound(f"q{number}", "large", "700m") for number in range(4)]
    rules = policy("rules", filters=[
        {"name": "small", "when": "pod.requests.cpu < 200m", "require": 'node.labels["disk"] == "ssd"'},
        {"name": "large", "when": "pod.requests.cpu > 200m", "require": 'node.labels["disk"] == "ssd"'},
    ])  # fmt: skip
    found = policysched.plan(ours([LARGE, node("n2", labels=SSD), *pods, *large]), policies=[rules])
    told = {(one.workload, str(one.effect), one.by): one.pods for one in found.workloads}
    assert sum(told.values()) == 8
    assert {by for _, _, by in told} == {"policy rules/small", "policy rules/large"}
    assert {name for name, _, _ in told} == {"default/* (Pod)"}


def test_nodes_that_cannot_take_all_that_would_land_there_are_marked() -> None:
    small = {**node("n2", labels=SSD), "status": {"allocatable": {"cpu": "4", "memory": "8Gi", "pods": "3"}}}
    pods = [bound(f"p{number}", "large", "800m") for number in range(5)]
    found = policysched.plan(ours([LARGE, small, *pods]), policies=[KEEP])
    [there] = [one for one in found.nodes if one.gains]
    assert (there.node, there.gains, there.over) == ("n2", 5, (Excess("pods", "5", "3"),))
    pods = [bound(f"p{number}", "large", "900m") for number in range(5)]
    told = policysched.plan(ours([LARGE, node("n2", labels=SSD), *pods]), policies=[KEEP]).to_dict()
    [over] = [one["over"] for one in told["nodes"] if one["gains"]]
    assert over == {"cpu": {"asked": "4500m", "allocatable": "4"}}


@pytest.mark.parametrize(
    ("resource", "asked", "allocatable", "text"),
    [
        ("cpu", "369012m", "104", "369 of 104 cpu"),
        ("memory", "979258Mi", "512Gi", "956Gi of 512Gi memory"),
        ("cpu", "104500m", "104", "104500m of 104 cpu"),
        ("nvidia.com/gpu", "5", "2", "5 of 2 nvidia.com/gpu"),
    ],
)
def test_excess_is_rounded_for_people(resource: str, asked: str, allocatable: str, text: str) -> None:
    assert Excess(resource, asked, allocatable).text == text


@pytest.mark.parametrize("leaves", [True, False])
def test_room_that_leaving_pods_make_counts(leaves: bool) -> None:
    goes = labelled(bound("goes", "n2", 1), "goes")
    come = [labelled(bound(f"p{number}", "large", "1200m"), "come") for number in range(3)]
    prefers = selecting(policy("prefers", weight=9, scores=PREFERS["spec"]["scores"]), "goes")
    keep = selecting(policy("keep", **requiring('node.labels["disk"] == "ssd"')), "come")
    away = selecting(policy("away", **requiring('node.labels["disk"] != "ssd"')), "goes")
    objects = ours([LARGE, node("n2", labels=SSD), prefers, goes, *come])
    found = policysched.plan(objects, policies=[keep, away] if leaves else [keep])
    assert [one.gains for one in found.nodes if one.node == "n2"] == [3]
    assert found.over == ({} if leaves else {"n2": (Excess("cpu", "4600m", "4"),)})


def labelled(made: Object, app: str) -> Object:
    return {**made, "metadata": {**made["metadata"], "labels": {"app": app}}}


def selecting(made: Object, app: str) -> Object:
    return {**made, "spec": {**made["spec"], "podSelector": {"matchLabels": {"app": app}}}}


def test_summary_says_what_only_new_nodes_do() -> None:
    found = policysched.plan(ours([node("n1"), node("n2"), *BUSY]), nodes=[LARGE])
    assert found.summary == ("2 of 2 pods would get another node if recreated; 2 only because a new node scores higher")
