"""Labels, taints, and what pods say about them: selectors, node affinity and tolerations.

Knows nothing of resources. Keys and values come from short lists, so that a random selector meets
random labels often; among them are values that are no integers, for Gt and Lt.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from random import Random

ZONES = ["z1", "z2", "z3"]
DISKS = ["ssd", "hdd", ""]
CORES = ["4", "8", "16", "007", "0", "abc", "3.5", "9223372036854775807", "99999999999999999999"]
BOUNDS = ["4", "8", "10", "0", "007", "-1", "abc", "1.5", "", "9223372036854775807", "99999999999999999999"]
TAINT_KEYS = ["dedicated", "example.com/gpu", "spot", "node.kubernetes.io/not-ready"]
TAINT_VALUES = ["", "a", "b", "5", "10"]
EFFECTS = ["NoSchedule", "PreferNoSchedule", "NoExecute"]


def labels(rng: Random, node: str) -> dict[str, str]:
    """Label a node; every label but the host name is missing now and then."""
    found = {"kubernetes.io/hostname": node}
    for key, values in (("topology.kubernetes.io/zone", ZONES), ("disk", DISKS), ("example.com/cores", CORES)):
        if rng.random() < 0.75:
            found[key] = rng.choice(values)
    return found


def taints(rng: Random) -> list[dict[str, str]]:
    """Taint a node with up to three taints of distinct key and effect."""
    found: dict[tuple[str, str], dict[str, str]] = {}
    for _ in range(rng.choice([0, 0, 1, 1, 2, 3])):
        taint = {"key": rng.choice(TAINT_KEYS), "effect": rng.choices(EFFECTS, [2, 4, 1])[0]}
        if value := rng.choice(TAINT_VALUES):
            taint["value"] = value
        found[taint["key"], taint["effect"]] = taint
    return list(found.values())


def tolerations(rng: Random) -> list[dict[str, Any]]:
    """Tolerate some taints: by value, by existence, all of a key, all of an effect, or everything."""
    found = []
    for _ in range(rng.randint(1, 4)):
        toleration: dict[str, Any] = {"operator": rng.choice(["Equal", "Exists", "Exists"])}
        if toleration["operator"] == "Equal" or rng.random() < 0.9:
            toleration["key"] = rng.choice(TAINT_KEYS)
        if toleration["operator"] == "Equal":
            toleration["value"] = rng.choice(TAINT_VALUES)
            if rng.random() < 0.3:
                del toleration["operator"]
        if rng.random() < 0.6:
            toleration["effect"] = rng.choice(EFFECTS)
        if toleration.get("effect") == "NoExecute" and rng.random() < 0.5:
            toleration["tolerationSeconds"] = rng.choice([0, 300])
        found.append(toleration)
    return found


def unschedulable_toleration(rng: Random) -> dict[str, Any]:
    """Tolerate the taint of cordoned nodes."""
    toleration = {"key": "node.kubernetes.io/unschedulable", "operator": "Exists"}
    if rng.random() < 0.7:
        toleration["effect"] = rng.choice(["NoSchedule", "NoSchedule", "NoExecute"])
    return toleration


def node_selector(rng: Random) -> dict[str, str]:
    """Select nodes by one or two labels."""
    pool = [("topology.kubernetes.io/zone", ZONES), ("disk", DISKS), ("example.com/cores", CORES[:3])]
    return {key: rng.choice(values) for key, values in rng.sample(pool, rng.choice([1, 1, 2]))}


def _expression(rng: Random) -> dict[str, Any]:
    key, values = rng.choice([("topology.kubernetes.io/zone", ZONES), ("disk", DISKS), ("example.com/cores", CORES)])
    operator = rng.choice(["In", "In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt"])
    if operator in {"Gt", "Lt"}:
        return {"key": "example.com/cores", "operator": operator, "values": [rng.choice(BOUNDS)]}
    if operator in {"In", "NotIn"}:
        return {"key": key, "operator": operator, "values": rng.sample(values, rng.randint(1, 2))}
    return {"key": key, "operator": operator}


def _invalid(rng: Random) -> dict[str, Any]:
    return rng.choice(
        [
            {"key": "disk", "operator": "In", "values": []},
            {"key": "disk", "operator": "In"},
            {"key": "disk", "operator": "Exists", "values": ["ssd"]},
            {"key": "disk", "operator": "Like", "values": ["s.*"]},
            {"key": "example.com/cores", "operator": "Gt", "values": ["1", "2"]},
            {"key": "not a key", "operator": "Exists"},
            {"key": "disk", "operator": "NotIn", "values": ["not a value!"]},
        ]
    )


def _field(rng: Random, names: list[str]) -> dict[str, Any]:
    values = [rng.choice([*names, "absent"])]
    operator = rng.choice(["In", "In", "In", "NotIn"])
    if rng.random() < 0.06:
        return rng.choice(
            [
                {"key": "metadata.name", "operator": operator, "values": [*values, "other"]},
                {"key": "metadata.namespace", "operator": operator, "values": values},
                {"key": "metadata.name", "operator": "Exists"},
            ]
        )
    return {"key": "metadata.name", "operator": operator, "values": values}


def _term(rng: Random, names: list[str], *, field: float, invalid: float) -> dict[str, Any]:
    term: dict[str, Any] = {}
    if rng.random() < field:
        term["matchFields"] = [_field(rng, names) for _ in range(rng.choice([1, 1, 2]))]
    if "matchFields" not in term or rng.random() < 0.3:
        term["matchExpressions"] = [_expression(rng) for _ in range(rng.choice([0, 1, 1, 1, 2]))]
    if rng.random() < invalid:
        term["matchExpressions"] = [_invalid(rng), *term.get("matchExpressions", [])]
    return term


def required(rng: Random, names: list[str]) -> dict[str, Any]:
    """Require one of one to three terms; in a third of them every term names nodes."""
    field = rng.choice([0.0, 0.2, 1.0])
    terms = [_term(rng, names, field=field, invalid=0.08) for _ in range(rng.choice([1, 1, 2, 3]))]
    return {"nodeSelectorTerms": terms}


def preferred(rng: Random, names: list[str]) -> list[dict[str, Any]]:
    """Prefer up to four weighted terms; an empty one among them matches nothing."""
    return [
        {
            "weight": rng.choice([1, 3, 10, 50, 100]),
            "preference": _term(rng, names, field=0.1, invalid=0.005),
        }
        for _ in range(rng.randint(1, 4))
    ]
