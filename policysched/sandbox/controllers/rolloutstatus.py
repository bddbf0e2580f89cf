"""A Deployment's status: counts, conditions and the observed generation that `rollout status` waits for.

It reads ReplicaSets and writes the Deployment's status alone, and only where it differs.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from policysched.sandbox.objects import Json

if TYPE_CHECKING:
    from policysched.sandbox.controllers.backlog import Name
    from policysched.sandbox.storage.backend import Backend

_DEPLOYMENTS = "deployments.apps"
_REVISION = "deployment.kubernetes.io/revision"


def report(backend: Backend, name: Name, sets: list[Json], digest: str) -> None:
    """Write what the ReplicaSets come to."""
    entry = backend.store.get(_DEPLOYMENTS, *name)
    if entry is None:
        return
    deployment = entry.object
    new = next((each for each in sets if digest and each["metadata"]["name"].endswith(f"-{digest}")), None)
    status = _counts(deployment, sets, new)
    status["conditions"] = _conditions(backend, deployment, status, new)
    if (deployment.get("status") or {}).get("collisionCount"):
        status["collisionCount"] = deployment["status"]["collisionCount"]
    metadata = deployment["metadata"]
    if new is not None:
        revision = {_REVISION: new["metadata"]["annotations"][_REVISION]}
        metadata = metadata | {"annotations": (metadata.get("annotations") or {}) | revision}
    changed = deployment | {"metadata": metadata, "status": status}
    if changed != deployment:
        backend.store.write(_DEPLOYMENTS, changed)


def _counts(deployment: Json, sets: list[Json], new: Json | None) -> Json:
    def total(name: str) -> int:
        return sum((each.get("status") or {}).get(name, 0) for each in sets)

    wanted, available = deployment["spec"]["replicas"], total("availableReplicas")
    counts = {
        "replicas": total("replicas"),
        "updatedReplicas": ((new or {}).get("status") or {}).get("replicas", 0),
        "readyReplicas": total("readyReplicas"),
        "availableReplicas": available,
        "unavailableReplicas": max(max(wanted, total("replicas")) - available, 0),
    }
    found: Json = {name: count for name, count in counts.items() if count}
    found["terminatingReplicas"] = total("terminatingReplicas")
    return found | {"observedGeneration": deployment["metadata"]["generation"]}


def _conditions(backend: Backend, deployment: Json, status: Json, new: Json | None) -> list[Json]:
    spec = deployment["spec"]
    wanted, available = spec["replicas"], status.get("availableReplicas", 0)
    enough = available >= wanted - _missing_allowed(spec)
    complete = status.get("updatedReplicas", 0) == wanted == available == status.get("replicas", 0)
    name = new["metadata"]["name"] if new else ""
    progress = (
        ("NewReplicaSetAvailable", f'ReplicaSet "{name}" has successfully progressed.')
        if complete
        else ("ReplicaSetUpdated", f'ReplicaSet "{name}" is progressing.')
    )
    availability = (
        ("MinimumReplicasAvailable", "Deployment has minimum availability.")
        if enough
        else ("MinimumReplicasUnavailable", "Deployment does not have minimum availability.")
    )
    old = (deployment.get("status") or {}).get("conditions") or []
    return [
        _condition(backend, old, "Available", "True" if enough else "False", availability),
        _condition(backend, old, "Progressing", "True", progress),
    ]


def _missing_allowed(spec: Json) -> int:
    value = str((spec["strategy"].get("rollingUpdate") or {}).get("maxUnavailable", 0))
    return int(value[:-1]) * int(spec["replicas"]) // 100 if value.endswith("%") else int(value)


def _condition(backend: Backend, old: list[Json], kind: str, value: str, said: tuple[str, str]) -> Json:
    now = backend.timestamp()
    found: Json = {"type": kind, "status": value, "reason": said[0], "message": said[1]}
    for before in old:
        if before["type"] == kind and before["status"] == value:
            same = before["reason"] == said[0] and before["message"] == said[1]
            times = {"lastTransitionTime": before["lastTransitionTime"]}
            return found | times | {"lastUpdateTime": before["lastUpdateTime"] if same else now}
    return found | {"lastTransitionTime": now, "lastUpdateTime": now}
