"""Arguments of plugins for generated configurations, all of them valid but for what older releases do not know.

Knows nothing of cases. Resources and labels are those that generated nodes and pods have.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from . import affinity as labels

if TYPE_CHECKING:
    from random import Random

Thing: TypeAlias = dict[str, Any]

RESOURCES = ("cpu", "memory", "ephemeral-storage", "example.com/gpu", "hugepages-2Mi")
STRANGE = ("pods", "example.com/nowhere", "storage", "")
WEIGHTS = (None, 0, 1, 2, 3, 50, 100)
DURATIONS = ("10s", "1m30s", "1.5h", "0", "1500ms")


def fit(rng: Random) -> Thing:
    """Draw arguments of NodeResourcesFit: how it scores, and sometimes what its filter overlooks."""
    found: Thing = {}
    if rng.random() < 0.15:
        found["ignoredResources"] = rng.sample(["example.com/gpu", "cpu", "example.com/nowhere"], rng.randint(0, 2))
    if rng.random() < 0.15:
        found["ignoredResourceGroups"] = [rng.choice(["example.com", "example", "cpu"])]
    if not found or rng.random() < 0.7:
        found["scoringStrategy"] = strategy(rng)
    return found


def strategy(rng: Random) -> Thing:
    """Draw a scoring strategy of NodeResourcesFit."""
    kind = rng.choice(["LeastAllocated", "MostAllocated", "MostAllocated", *["RequestedToCapacityRatio"] * 3])
    found: Thing = {"type": kind}
    if rng.random() < 0.7:
        found["resources"] = [_weighted(rng, name) for name in _resources(rng)]
    if kind == "RequestedToCapacityRatio":
        found["requestedToCapacityRatio"] = {"shape": shape(rng)}
    return found


def shape(rng: Random) -> list[Thing]:
    """Draw the points of a curve: rising, falling, or anything."""
    levels = sorted(rng.sample(range(101), rng.choice([1, 2, 2, 3, 5])))
    if rng.random() < 0.4:
        levels = [0, 100] if len(levels) == 2 else sorted({0, *levels, 100})
    scores = [rng.randint(0, 10) for _ in levels]
    orders: list[Callable[[list[int]], list[int]]] = [sorted, lambda scores: sorted(scores, reverse=True), list]
    order = rng.choice(orders)
    return [{"utilization": level, "score": score} for level, score in zip(levels, order(scores), strict=True)]


def balance(rng: Random) -> Thing:
    """Draw arguments of NodeResourcesBalancedAllocation."""
    resources: list[Thing] = [{"name": name} for name in _resources(rng)]
    for one in resources:
        if rng.random() < 0.3:
            one["weight"] = rng.choice([0, 1])
    return {"resources": resources}


def affinity(rng: Random) -> Thing:
    """Draw arguments of NodeAffinity: what it demands and what it likes for every pod."""
    added: Thing = {}
    if rng.random() < 0.6:
        terms = [_term(rng) for _ in range(rng.choice([0, 1, 1, 2]))]
        added["requiredDuringSchedulingIgnoredDuringExecution"] = {"nodeSelectorTerms": terms}
    if not added or rng.random() < 0.5:
        wishes = [
            {"weight": rng.choice([0, 1, 7, 100, 5000]), "preference": _term(rng)} for _ in range(rng.randint(1, 3))
        ]
        added["preferredDuringSchedulingIgnoredDuringExecution"] = wishes
    return {"addedAffinity": added}


def peers(rng: Random) -> Thing:
    """Draw arguments of InterPodAffinity."""
    found: Thing = {"hardPodAffinityWeight": rng.choice([0, 1, 5, 100])}
    if rng.random() < 0.5:
        found["ignorePreferredTermsOfExistingPods"] = rng.random() < 0.7
    return found


def preemption(rng: Random) -> Thing:
    """Draw arguments of DefaultPreemption."""
    return {"minCandidateNodesPercentage": rng.choice([1, 10, 100]), "minCandidateNodesAbsolute": rng.choice([0, 100])}


def volume_binding(rng: Random) -> Thing:
    """Draw arguments of VolumeBinding: its timeout, and sometimes how it scores, which releases before 1.37 refuse."""
    found: Thing = {"bindTimeoutSeconds": rng.choice([0, 600, None])}
    if rng.random() < 0.3:
        found["shape"] = rng.choice([None, [], shape(rng), shape(rng)])
    return found


def dynamic_resources(rng: Random) -> Thing:
    """Draw arguments of DynamicResources."""
    return {"filterTimeout": rng.choice(DURATIONS), "bindingTimeout": rng.choice(["1s", "10m", "1h2m3.5s"])}


def _resources(rng: Random) -> list[str]:
    found = rng.sample(RESOURCES, rng.choice([1, 2, 2, 3, 5]))
    return [*found, rng.choice(STRANGE)] if rng.random() < 0.1 else found


def _weighted(rng: Random, name: str) -> Thing:
    drawn = rng.choice(WEIGHTS)
    return {"name": name} if drawn is None else {"name": name, "weight": drawn}


def _term(rng: Random) -> Thing:
    return {"matchExpressions": [_expression(rng) for _ in range(rng.choice([0, 1, 1, 1, 2]))]}


def _expression(rng: Random) -> Thing:
    key, values = rng.choice([("topology.kubernetes.io/zone", labels.ZONES), ("disk", labels.DISKS)])
    operator = rng.choice(["In", "In", "NotIn", "Exists", "DoesNotExist", "Gt"])
    if operator == "Gt":
        return {"key": "example.com/cores", "operator": operator, "values": [rng.choice(["4", "8"])]}
    chosen = {"values": rng.sample(values, rng.randint(1, 2))} if operator in {"In", "NotIn"} else {}
    return {"key": key, "operator": operator, **chosen}
