"""Services and controllers of generated pods, from which default spreading takes its selector.

Knows nothing of constraints. Most owners are found and select their pods; the others are gone, select
nobody, are of a version or kind that does not count, or own without controlling.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from . import selectors

if TYPE_CHECKING:
    from random import Random

    from .selectors import Labels

KINDS = {"ReplicaSet": "apps/v1", "StatefulSet": "apps/v1", "ReplicationController": "v1"}
OTHERS = [
    ("extensions/v1beta1", "ReplicaSet"),
    ("apps/v1beta1", "StatefulSet"),
    ("apps/v1", "ReplicationController"),
    ("v1", "ReplicaSet"),
    ("batch/v1", "Job"),
    ("apps/v1", "DaemonSet"),
    ("not/a/version", "ReplicaSet"),
]
"""Owners that default spreading does not know, by version and kind."""


def services(rng: Random, namespace: str, own: Labels) -> list[dict[str, Any]]:
    """Draw up to three Services, one of them perhaps of another namespace; most select the pod."""
    return [_service(rng, f"service-{number}", namespace, own) for number in range(rng.choice([0, 1, 1, 1, 2, 3]))]


def _service(rng: Random, name: str, namespace: str, own: Labels) -> dict[str, Any]:
    spec: dict[str, Any] = {}
    shape = rng.random()
    if shape < 0.75 and own:
        chosen = rng.sample(sorted(own), min(len(own), rng.choice([1, 1, 2])))
        spec["selector"] = {label: own[label] for label in chosen}
    elif shape < 0.9:
        spec["selector"] = selectors.labels(rng)
    elif shape < 0.95:
        spec["selector"] = {}
    where = namespace if rng.random() < 0.9 else "team-b"
    return _object("v1", "Service", name, where, spec)


def controller(rng: Random, pod: dict[str, Any]) -> list[dict[str, Any]]:
    """Give a pod owners, and return those that exist."""
    namespace, own = pod["metadata"]["namespace"], pod["metadata"]["labels"]
    kind = rng.choice(list(KINDS))
    version, name = KINDS[kind], f"owner-{kind.lower()}"
    reference = _reference(version, kind, name, controls=rng.random() < 0.9)
    found = []
    if rng.random() < 0.9:
        found.append(_object(version, kind, name, namespace, _spec(rng, kind, own)))
    if rng.random() < 0.15:
        reference["apiVersion"], reference["kind"] = rng.choice(OTHERS)
    pod["metadata"]["ownerReferences"] = [reference]
    if rng.random() < 0.1:
        other = _reference("v1", "Node", "node-0", controls=not reference["controller"])
        pod["metadata"]["ownerReferences"].insert(0, other)
    return found


def _reference(version: str, kind: str, name: str, *, controls: bool) -> dict[str, Any]:
    return {"apiVersion": version, "kind": kind, "name": name, "uid": f"uid-{name}", "controller": controls}


def _spec(rng: Random, kind: str, own: Labels) -> dict[str, Any]:
    if kind == "ReplicationController":
        # where a Service and such a controller disagree about a label, the controller is believed
        odd = {"app": rng.choice(selectors.POOL["app"])} if rng.random() < 0.2 else {}
        return {"selector": _match_labels(rng, own) | odd, "template": {"metadata": {"labels": own}}}
    if rng.random() < 0.15:
        return {"selector": selectors.selector(rng, own)}
    chosen: dict[str, Any] = {"matchLabels": _match_labels(rng, own)}
    if rng.random() < 0.25:
        chosen["matchExpressions"] = [{"key": "example.com/team", "operator": "NotIn", "values": ["b"]}]
    return {"selector": chosen}


def _match_labels(rng: Random, own: Labels) -> Labels:
    chosen = rng.sample(sorted(own), min(len(own), rng.choice([1, 1, 2])))
    return {label: own[label] for label in chosen}


def _object(version: str, kind: str, name: str, namespace: str, spec: dict[str, Any]) -> dict[str, Any]:
    metadata = {"name": name, "namespace": namespace}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}
