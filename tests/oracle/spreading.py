"""Topology spread constraints of generated pods.

Knows nothing of which pods are there. Selectors match the pod itself more often than not, as they do in
practice: a constraint that counts others only cannot be violated by the pod.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import selectors, topology

if TYPE_CHECKING:
    from random import Random

    from .selectors import Labels

ACTIONS = ["DoNotSchedule", "DoNotSchedule", "DoNotSchedule", "ScheduleAnyway", "ScheduleAnyway"]
POLICIES = ["Honor", "Ignore"]
SKEWS = [1, 1, 1, 1, 1, 2, 2, 2, 3, 3, 5, 50]


def constraints(rng: Random, own: Labels) -> list[dict[str, Any]]:
    """Draw up to three constraints; no two agree in key and action, as the API server wants it."""
    found = [constraint(rng, own) for _ in range(rng.choice([1, 1, 2, 3]))]
    return list({(one["topologyKey"], one["whenUnsatisfiable"]): one for one in found}.values())


def constraint(rng: Random, own: Labels) -> dict[str, Any]:
    """Draw one constraint."""
    found: dict[str, Any] = {
        "maxSkew": rng.choice(SKEWS),
        "topologyKey": topology.key(rng),
        "whenUnsatisfiable": rng.choice(ACTIONS),
    }
    if (chosen := selectors.selector(rng, own if rng.random() < 0.85 else None)) is not None:
        found["labelSelector"] = chosen
    if found["whenUnsatisfiable"] == "DoNotSchedule" and rng.random() < 0.25:
        found["minDomains"] = rng.choice([1, 2, 3, 4, 6, 20])
    for field in ("nodeAffinityPolicy", "nodeTaintsPolicy"):
        if rng.random() < 0.3:
            found[field] = rng.choice(POLICIES)
    if rng.random() < 0.3:
        _label_keys(rng, found, own)
    return found


def _label_keys(rng: Random, found: dict[str, Any], own: Labels) -> None:
    """Name labels of the pod's own; an object from before v1.34 does not have them in its selector.

    Source: pkg/registry/core/pod/strategy.go, applyMatchLabelKeys.
    """
    keys = rng.sample(["pod-template-hash", "example.com/team", "absent"], rng.choice([1, 1, 2]))
    found["matchLabelKeys"] = keys
    if "labelSelector" in found and rng.random() < 0.4:
        chosen = found["labelSelector"]
        merged = [{"key": key, "operator": "In", "values": [own[key]]} for key in keys if key in own]
        found["labelSelector"] = {**chosen, "matchExpressions": [*chosen.get("matchExpressions", []), *merged]}


def defaults(rng: Random) -> dict[str, Any]:
    """Draw arguments of the plugin: the system's constraints, constraints of one's own, or none."""
    if rng.random() < 0.3:
        return {"defaultingType": "System"}
    count = rng.choice([0, 1, 1, 1, 2, 2, 2])
    found = {}
    for _ in range(count):
        one: dict[str, Any] = {
            "maxSkew": rng.choice(SKEWS),
            "topologyKey": rng.choice(topology.KEYS[:-1]),
            "whenUnsatisfiable": rng.choice(ACTIONS),
        }
        if rng.random() < 0.2:
            one |= rng.choice([{"nodeTaintsPolicy": "Honor"}, {"minDomains": 3}, {"matchLabelKeys": ["tier"]}])
        found[one["topologyKey"], one["whenUnsatisfiable"]] = one
    return {"defaultingType": "List", "defaultConstraints": list(found.values())}
