"""Labels of generated pods and namespaces, and the label selectors that look for them.

Knows nothing of nodes. Keys and values come from short lists, so that a random selector meets random
labels often; a few selectors cannot be parsed, as the API server lets through what was valid once.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

if TYPE_CHECKING:
    from random import Random

Labels: TypeAlias = "dict[str, str]"
Selector: TypeAlias = "dict[str, Any] | None"

POOL = {
    "app": ["web", "db", "cache"],
    "tier": ["front", "back", ""],
    "pod-template-hash": ["1", "2"],
    "example.com/team": ["a", "b"],
}
CARRIED = {"app": 0.9, "tier": 0.5, "pod-template-hash": 0.7, "example.com/team": 0.2}
"""How often a pod carries a label."""
SPACES = {"env": ["prod", "dev"], "team": ["a", "b"]}
UNPARSABLE: list[dict[str, Any]] = [
    {"key": "app", "operator": "Like", "values": ["w.*"]},
    {"key": "app", "operator": "In", "values": []},
    {"key": "app", "operator": "NotIn"},
    {"key": "app", "operator": "Exists", "values": ["web"]},
    {"key": "app", "operator": "DoesNotExist", "values": ["web"]},
    {"key": "not a key", "operator": "Exists"},
    {"key": "app", "operator": "In", "values": ["not a value!"]},
    {"key": "app", "operator": "Gt", "values": ["1"]},
    {"key": "app", "operator": ""},
]


def labels(rng: Random) -> Labels:
    """Label a pod."""
    return {label: rng.choice(POOL[label]) for label, share in CARRIED.items() if rng.random() < share}


def of_namespace(rng: Random) -> Labels:
    """Label a namespace."""
    return {label: rng.choice(values) for label, values in SPACES.items() if rng.random() < 0.7}


def selector(rng: Random, own: Labels | None = None) -> Selector:
    """Draw a selector of pods.

    Args:
        rng: what draws.
        own: labels that the selector shall match, where it names labels at all.
    """
    shape = rng.random()
    if shape < 0.02:
        return None
    if shape < 0.05:
        return {}
    if shape < 0.06:
        return {"matchExpressions": [rng.choice(UNPARSABLE)]}
    if own and rng.random() < 0.6:
        return _exactly(rng, own)
    return _drawn(rng, POOL)


def of_namespaces(rng: Random) -> dict[str, Any]:
    """Draw a selector of namespaces; the empty one matches all, also those that nobody knows."""
    shape = rng.random()
    if shape < 0.35:
        return {}
    if shape < 0.4:
        return {"matchLabels": {"env": "nobody"}}
    if shape < 0.41:
        return {"matchExpressions": [rng.choice(UNPARSABLE)]}
    if shape < 0.55:
        return {"matchExpressions": [_absence(rng)]}
    return _drawn(rng, SPACES)


def _absence(rng: Random) -> dict[str, Any]:
    """Draw an expression that namespaces without labels match, too."""
    label = rng.choice(list(SPACES))
    if rng.random() < 0.5:
        return {"key": label, "operator": "DoesNotExist"}
    return {"key": label, "operator": "NotIn", "values": [rng.choice(SPACES[label])]}


def _exactly(rng: Random, own: Labels) -> dict[str, Any]:
    chosen = rng.sample(sorted(own), min(len(own), rng.choice([1, 1, 2])))
    if rng.random() < 0.7:
        return {"matchLabels": {label: own[label] for label in chosen}}
    return {"matchExpressions": [{"key": label, "operator": "In", "values": [own[label]]} for label in chosen]}


def _drawn(rng: Random, pool: dict[str, list[str]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    if rng.random() < 0.6:
        chosen = rng.choices(list(pool), range(len(pool), 0, -1), k=rng.choice([1, 1, 1, 2]))
        found["matchLabels"] = {label: rng.choice(pool[label]) for label in chosen}
    if not found or rng.random() < 0.2:
        found["matchExpressions"] = [_expression(rng, pool) for _ in range(rng.choice([1, 1, 2]))]
    return found


def _expression(rng: Random, pool: dict[str, list[str]]) -> dict[str, Any]:
    label = rng.choice(list(pool))
    operator = rng.choice(["In", "In", "In", "NotIn", "NotIn", "Exists", "DoesNotExist"])
    if operator in {"In", "NotIn"}:
        values = pool[label]
        return {"key": label, "operator": operator, "values": rng.sample(values, rng.randint(1, len(values)))}
    return {"key": label, "operator": operator}
