"""Affinity and anti-affinity of generated pods towards other pods.

Knows nothing of which pods are there. The rules of pods already placed are narrower than those of the pod
to schedule: a cluster in which everybody keeps everybody away has one answer only.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import selectors, topology

if TYPE_CHECKING:
    from random import Random

    from .selectors import Labels

REQUIRED = "requiredDuringSchedulingIgnoredDuringExecution"
PREFERRED = "preferredDuringSchedulingIgnoredDuringExecution"
NAMESPACES = ["default", "team-a", "team-b", "gone"]
"""`gone` has pods but no object."""
LABEL_KEYS = ["pod-template-hash", "example.com/team"]
WEIGHTS = [1, 1, 5, 10, 50, 100]
ODD_WEIGHTS = [0, -1, -50, 1000]
"""Weights that the API server would refuse."""


def wanted(rng: Random, own: Labels) -> dict[str, Any]:
    """Draw the rules of the pod to schedule: about one or two of the four kinds, seldom all."""
    if rng.random() < 0.07:
        return {"podAffinity": {REQUIRED: [_self(rng, own)]}}
    often = rng.choice([0.15, 0.35, 0.6])
    rules = _rules(rng, own, {"podAffinity": often * 0.7, "podAntiAffinity": often})
    return rules or _rules(rng, own, {"podAffinity": 0.5, "podAntiAffinity": 0.5})


def standing(rng: Random, own: Labels) -> dict[str, Any]:
    """Draw the rules of a pod that is placed already."""
    return _rules(rng, own, {"podAffinity": 0.3, "podAntiAffinity": 0.2})


def _rules(rng: Random, own: Labels, required: dict[str, float]) -> dict[str, Any]:
    rules: dict[str, Any] = {}
    for kind, share in required.items():
        found: dict[str, Any] = {}
        if rng.random() < share:
            found[REQUIRED] = [term(rng, own) for _ in range(rng.choice([1, 1, 1, 2]))]
        if rng.random() < 0.35:
            found[PREFERRED] = [_weighted(rng, own) for _ in range(rng.choice([1, 1, 2, 3]))]
        if found or rng.random() < 0.02:
            rules[kind] = found
    return rules


def _weighted(rng: Random, own: Labels) -> dict[str, Any]:
    weight = rng.choice(ODD_WEIGHTS if rng.random() < 0.03 else WEIGHTS)
    return {"weight": weight, "podAffinityTerm": term(rng, own)}


def _self(rng: Random, own: Labels) -> dict[str, Any]:
    """Ask for pods like this one, which may be the first of its kind."""
    return {"topologyKey": topology.key(rng), "labelSelector": {"matchLabels": own}}


def term(rng: Random, own: Labels) -> dict[str, Any]:
    """Draw one term, with namespaces and label keys now and then."""
    found: dict[str, Any] = {"topologyKey": topology.key(rng)}
    if (chosen := selectors.selector(rng, own if rng.random() < 0.2 else None)) is not None:
        found["labelSelector"] = chosen
    if rng.random() < 0.15:
        found["namespaces"] = rng.sample(NAMESPACES, rng.choice([1, 1, 2]))
    if rng.random() < 0.2:
        found["namespaceSelector"] = selectors.of_namespaces(rng)
    if chosen is not None and rng.random() < 0.1:
        _merge_keys(rng, found, own)
    return found


def _merge_keys(rng: Random, found: dict[str, Any], own: Labels) -> None:
    """Leave a term as the API server does that has merged the pod's own labels into its selector.

    Source: pkg/registry/core/pod/strategy.go, applyMatchLabelKeysAndMismatchLabelKeys.
    """
    field, operator = rng.choice([("matchLabelKeys", "In"), ("mismatchLabelKeys", "NotIn")])
    keys = rng.sample(LABEL_KEYS, rng.choice([1, 1, 2]))
    merged = [{"key": key, "operator": operator, "values": [own[key]]} for key in keys if key in own]
    chosen = found["labelSelector"]
    found[field] = keys
    found["labelSelector"] = {**chosen, "matchExpressions": [*chosen.get("matchExpressions", []), *merged]}
