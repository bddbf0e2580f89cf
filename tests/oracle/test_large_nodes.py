"""Decisions about nodes with thousands of labels, annotations, images and taints, beside kube-scheduler's.

Takes random cases about pods on their own and enlarges them: the cluster's nodes to about 1 MB each, and the pod by
tolerations and node affinity for a part of what the nodes have.
"""

from __future__ import annotations

from random import Random
from typing import TYPE_CHECKING, Any

import pytest

from .compare import differences
from .generate import single
from .judge import ours
from .minors import AT_EACH_MINOR
from .seed import seed

if TYPE_CHECKING:
    from collections.abc import Iterable

    from .oracle import Case, Oracle

pytestmark = pytest.mark.oracle

SEED = seed()
CASES = 3
MANY = 2000


def few(rng: Random) -> Iterable[int]:
    return (number for number in range(MANY) if rng.random() < 0.9)


def enlarge_node(rng: Random, node: dict[str, Any]) -> None:
    metadata, spec, status = node["metadata"], node.setdefault("spec", {}), node.setdefault("status", {})
    labels = {f"feature.example.com/{number}": rng.choice(["true", "false"]) for number in few(rng)}
    metadata["labels"] = labels | (metadata.get("labels") or {})
    metadata["annotations"] = {f"example.com/{number}": "x" * 2000 for number in range(100)}
    soft = [{"key": f"example.com/{number}", "effect": "PreferNoSchedule"} for number in few(rng)]
    hard = [
        {"key": f"example.com/{number}", "value": "v", "effect": "NoSchedule"} for number in range(rng.choice([0, 9]))
    ]
    spec["taints"] = [*soft, *hard, *spec.get("taints", [])]
    repository = "registry.example.com/team/app"
    status["images"] = [
        {
            "names": [f"{repository}-{number}@sha256:{number:064x}", f"{repository}-{number}:v1"],
            "sizeBytes": 10**8 + number,
        }
        for number in few(rng)
    ] + status.get("images", [])
    status["conditions"] = [*status.get("conditions", []), {"type": "Odd", "status": "True", "message": "m" * 200_000}]


def enlarge_pod(rng: Random, pod: dict[str, Any]) -> None:
    spec = pod["spec"]
    tolerated = [{"key": f"example.com/{number}", "operator": "Exists"} for number in range(rng.choice([8, MANY // 2]))]
    spec["tolerations"] = [*spec.get("tolerations", []), *tolerated]
    spec["containers"][0]["image"] = f"registry.example.com/team/app-{rng.randrange(MANY)}:v1"
    terms = [
        {"matchExpressions": [{"key": f"feature.example.com/{number}", "operator": "In", "values": ["true"]}]}
        for number in rng.sample(range(MANY), 500)
    ]
    affinity = spec.setdefault("affinity", {}).setdefault("nodeAffinity", {})
    affinity["preferredDuringSchedulingIgnoredDuringExecution"] = [
        {"weight": 1 + number % 100, "preference": term} for number, term in enumerate(terms)
    ]
    if rng.random() < 0.5:
        required = affinity.setdefault("requiredDuringSchedulingIgnoredDuringExecution", {"nodeSelectorTerms": []})
        required["nodeSelectorTerms"] += terms


def enlarged(number: int) -> Case:
    rng = Random(f"{SEED}/large/{number}")
    case = single(rng, f"{SEED}-l{number}")
    enlarge_pod(rng, case["pod"])
    for node in [one for one in case["objects"] if one["kind"] == "Node"][:6]:
        enlarge_node(rng, node)
    return case


@AT_EACH_MINOR
def test_decisions_about_large_nodes_are_those_of_kube_scheduler(oracle: Oracle) -> None:
    results = []
    for number in range(CASES):
        case = enlarged(number)
        decided = ours(case, oracle.minor)
        assert differences(decided, oracle.decide(case)) == [], f"POLICYSCHED_SEED={SEED}, case {number}"
        results.append(decided["result"])
    assert set(results) <= {"Scheduled", "Unschedulable"}, results
