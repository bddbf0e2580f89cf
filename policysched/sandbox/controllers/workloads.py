"""The ReplicaSet and Deployment controllers: pods from templates, and rollouts from old templates to new ones.

A ReplicaSet counts the pods that it controls and adopts none. Which pods go first on scaling down follows the real
controller in what matters to a scheduler: pods without a node before running ones, then the youngest. A rolling update
keeps to maxSurge and maxUnavailable, Recreate waits until the old pods are gone. Events are not counted up, because in
trying things out every step is worth its line.
"""

from __future__ import annotations

import copy
import hashlib
import math
from collections.abc import Callable
from typing import Any

import msgspec

from policysched.sandbox.controllers import Controller, Name
from policysched.sandbox.objects import Json
from policysched.sandbox.objects.errors import StatusError
from policysched.sandbox.objects.resources import PODS, builtin
from policysched.sandbox.storage.actions import DeleteOptions, delete
from policysched.sandbox.storage.store import Backend, Stored, StoreEvent, is_true
from policysched.sandbox.storage.writes import WriteOptions, create

REPLICA_SETS, DEPLOYMENTS = builtin("replicasets.apps"), builtin("deployments.apps")
HASH_LABEL, REVISION = "pod-template-hash", "deployment.kubernetes.io/revision"
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


def _controller_of(obj: Json) -> Json:
    """Return the reference to an object's controller, empty where it has none."""
    return next((each for each in obj["metadata"].get("ownerReferences") or () if each.get("controller")), {})


def _owner_reference(kind: str, owner: Json) -> Json:
    metadata = owner["metadata"]
    flags = {"controller": True, "blockOwnerDeletion": True}
    return {"apiVersion": "apps/v1", "kind": kind, "name": metadata["name"], "uid": metadata["uid"]} | flags


def _record(backend: Backend, kind: str, obj: Json, reason: str, message: str) -> None:
    """Write an event about a workload."""
    metadata, now, source = obj["metadata"], backend.timestamp(), f"{kind.lower()}-controller"
    # Names sort by time; the version keeps those of one instant apart.
    stamp = int(backend.now().timestamp() * 1000) * 1_000_000 + backend.store.revision % 1_000_000
    involved = {"apiVersion": "apps/v1", "kind": kind}
    involved |= {name: metadata[name] for name in ("name", "namespace", "uid", "resourceVersion")}
    event = {
        "metadata": {"name": f"{metadata['name']}.{stamp:x}"},
        "involvedObject": involved,
        "reason": reason,
        "message": message,
        "type": "Normal",
        "source": {"component": source},
        "reportingComponent": source,
        "firstTimestamp": now,
        "lastTimestamp": now,
        "count": 1,
    }
    try:
        create(backend, builtin("events"), metadata["namespace"], event, WriteOptions())
    except StatusError:
        return  # a namespace that ends takes no more events


class ReplicaSetController(Controller):
    """Keeps every ReplicaSet at its number of pods."""

    def __init__(self, backend: Backend, wake: Callable[[], None]) -> None:
        super().__init__(backend, wake)
        self._pods: dict[str, dict[Name, None]] = {}

    def hear(self, event: StoreEvent) -> None:
        """Queue ReplicaSets that changed or whose pods did."""
        if event.key == REPLICA_SETS.key and event.type != "DELETED":
            self.enqueue(event.entry.key)
        reference = _controller_of(event.entry.object) if event.key == PODS.key else {}
        if reference.get("kind") != "ReplicaSet":
            return
        pods = self._pods.setdefault(reference["uid"], {})
        if event.type == "DELETED":
            pods.pop(event.entry.key, None)
        else:
            pods[event.entry.key] = None
        self.enqueue((event.entry.key[0], reference["name"]))

    def reconcile(self, name: Name) -> None:
        """Bring a ReplicaSet to its number and report what there is."""
        entry = self._backend.store.get(REPLICA_SETS.key, *name)
        if entry is None:
            return
        if not entry.object["metadata"].get("deletionTimestamp"):
            self._scale(entry.object)
        self._report(name)

    def _controlled(self, replica_set: Json) -> list[Stored]:
        names = list(self._pods.get(replica_set["metadata"]["uid"], ()))
        entries = (self._backend.store.get("pods", *name) for name in names)
        return [entry for entry in entries if entry is not None]

    def _scale(self, replica_set: Json) -> None:
        pods = [entry for entry in self._controlled(replica_set) if _is_active(entry.object)]
        missing = replica_set["spec"]["replicas"] - len(pods)
        for _ in range(missing):
            if not self._create(replica_set):
                return
        if missing < 0:
            pods.sort(key=lambda entry: entry.revision, reverse=True)
            pods.sort(key=lambda entry: (bool(entry.object["spec"].get("nodeName")), is_true(entry.object, "Ready")))
            for entry in pods[:-missing]:
                delete(self._backend, PODS, entry, DeleteOptions())
                _record(self._backend, "ReplicaSet", replica_set, "SuccessfulDelete", f"Deleted pod: {entry.key[1]}")

    def _create(self, replica_set: Json) -> bool:
        template = copy.deepcopy(replica_set["spec"]["template"])
        namespace, name = replica_set["metadata"]["namespace"], replica_set["metadata"]["name"]
        metadata = template["metadata"] | {"generateName": f"{name}-"}
        metadata["ownerReferences"] = [_owner_reference("ReplicaSet", replica_set)]
        try:
            body = {"metadata": metadata, "spec": template["spec"]}
            pod = create(self._backend, PODS, namespace, body, WriteOptions())
        except StatusError:
            return False  # the namespace ends, or the template is refused: the next change tries again
        _record(self._backend, "ReplicaSet", replica_set, "SuccessfulCreate", f"Created pod: {pod.key[1]}")
        return True

    def _report(self, name: Name) -> None:
        entry = self._backend.store.get(REPLICA_SETS.key, *name)
        if entry is None:
            return
        controlled = [pod.object for pod in self._controlled(entry.object)]
        active = [pod for pod in controlled if _is_active(pod)]
        ready = sum(is_true(pod, "Ready") for pod in active)
        counts = {"fullyLabeledReplicas": len(active), "readyReplicas": ready, "availableReplicas": ready}
        status = {"replicas": len(active)} | {key: count for key, count in counts.items() if count}
        status["terminatingReplicas"] = sum("deletionTimestamp" in pod["metadata"] for pod in controlled)
        status["observedGeneration"] = entry.object["metadata"]["generation"]
        if status != entry.object.get("status"):
            self._backend.store.write(REPLICA_SETS.key, entry.object | {"status": status})


def _is_active(pod: Json) -> bool:
    ended = pod["status"].get("phase") in ("Succeeded", "Failed")
    return not ended and not pod["metadata"].get("deletionTimestamp")


class DeploymentController(Controller):
    """Rolls every Deployment out: a ReplicaSet for each template, sized step by step."""

    def hear(self, event: StoreEvent) -> None:
        """Queue Deployments that changed or whose ReplicaSets did."""
        if event.key == DEPLOYMENTS.key and event.type != "DELETED":
            self.enqueue(event.entry.key)
        elif event.key == REPLICA_SETS.key:
            reference = _controller_of(event.entry.object)
            if reference:
                self.enqueue((event.entry.key[0], reference["name"]))

    def reconcile(self, name: Name) -> None:
        """Take a rollout a step further."""
        entry = self._backend.store.get(DEPLOYMENTS.key, *name)
        if entry is None or entry.object["metadata"].get("deletionTimestamp"):
            return
        deployment = entry.object
        sets = self._sets(deployment)
        digest = _template_hash(deployment["spec"]["template"])
        new = next((each for each in sets if _hash(each) == digest), None)
        if not deployment["spec"].get("paused"):
            new = self._roll(deployment, sets, new, digest)
        _report(self._backend, name, self._sets(deployment), digest if new else "")

    def _sets(self, deployment: Json) -> list[Json]:
        namespace, uid = deployment["metadata"]["namespace"], deployment["metadata"]["uid"]
        sets = [entry.object for entry in self._backend.store.entries(REPLICA_SETS.key, namespace)]
        return sorted((each for each in sets if _controller_of(each).get("uid") == uid), key=_revision)

    def _roll(self, deployment: Json, sets: list[Json], new: Json | None, digest: str) -> Json | None:
        old = [each for each in sets if each is not new]
        if deployment["spec"]["strategy"]["type"] == "Recreate":
            for each in old:
                self._resize(deployment, each, 0)
            if any((each.get("status") or {}).get("replicas") for each in old):
                return new
            surge, unavailable = 0, 0
        else:
            surge, unavailable = _bounds(deployment)
        if new is None:
            new = self._create(deployment, digest, _next_revision(sets))
            if new is None:
                return None
        self._renumber(new, _next_revision(old))
        self._grow(deployment, new, old, surge)
        self._shrink(deployment, new, old, unavailable)
        return new

    def _renumber(self, new: Json, revision: int) -> None:
        """Count a template that was taken up again as the latest."""
        entry = self._backend.store.get(REPLICA_SETS.key, new["metadata"]["namespace"], new["metadata"]["name"])
        if entry is not None and _revision(entry.object) < revision:
            metadata = entry.object["metadata"]
            annotations = (metadata.get("annotations") or {}) | {REVISION: str(revision)}
            changed = entry.object | {"metadata": metadata | {"annotations": annotations}}
            self._backend.store.write(REPLICA_SETS.key, changed)

    def _grow(self, deployment: Json, new: Json, old: list[Json], surge: int) -> None:
        wanted, size = deployment["spec"]["replicas"], new["spec"]["replicas"]
        room = wanted + surge - size - sum(each["spec"]["replicas"] for each in old)
        self._resize(deployment, new, wanted if size > wanted else min(wanted, size + max(room, 0)))

    def _shrink(self, deployment: Json, new: Json, old: list[Json], unavailable: int) -> None:
        """Take pods off the old sets: first those that are not available, then as many as may be missing."""
        least = deployment["spec"]["replicas"] - unavailable
        spare = sum(each["spec"]["replicas"] for each in [new, *old]) - least
        spare -= new["spec"]["replicas"] - _available(new)
        ready = sum(_available(each) for each in [new, *old]) - least
        for each in old:
            size = each["spec"]["replicas"]
            sick = max(min(size - _available(each), spare), 0)
            well = max(min(_available(each), ready, spare - sick), 0)
            spare, ready = spare - sick - well, ready - well
            self._resize(deployment, each, size - sick - well)

    def _resize(self, deployment: Json, replica_set: Json, size: int) -> None:
        metadata = replica_set["metadata"]
        entry = self._backend.store.get(REPLICA_SETS.key, metadata["namespace"], metadata["name"])
        before = entry.object["spec"]["replicas"] if entry else size
        if entry is None or before == size:
            return
        present = entry.object["metadata"]
        changed = {"metadata": present | {"generation": present["generation"] + 1}}
        changed["spec"] = entry.object["spec"] | {"replicas": size}
        self._backend.store.write(REPLICA_SETS.key, entry.object | changed)
        way = "up" if size > before else "down"
        message = f"Scaled {way} replica set {metadata['name']} from {before} to {size}"
        _record(self._backend, "Deployment", deployment, "ScalingReplicaSet", message)

    def _create(self, deployment: Json, digest: str, revision: int) -> Json | None:
        metadata, spec = deployment["metadata"], deployment["spec"]
        template, selector = copy.deepcopy(spec["template"]), copy.deepcopy(spec["selector"])
        labels = (template["metadata"].get("labels") or {}) | {HASH_LABEL: digest}
        template["metadata"]["labels"] = labels
        selector["matchLabels"] = (selector.get("matchLabels") or {}) | {HASH_LABEL: digest}
        replica_set = {
            "metadata": {
                "name": f"{metadata['name']}-{digest}",
                "labels": dict(labels),
                "annotations": {REVISION: str(revision)},
                "ownerReferences": [_owner_reference("Deployment", deployment)],
            },
            "spec": {"replicas": 0, "selector": selector, "template": template},
        }
        try:
            return create(self._backend, REPLICA_SETS, metadata["namespace"], replica_set, WriteOptions()).object
        except StatusError:
            return None  # an old set of that name is still going: its last change tries again


def _template_hash(template: Json) -> str:
    """Name a pod template by its content."""
    digest = hashlib.sha256(msgspec.json.encode(template, order="sorted")).digest()
    return "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest[:10])


def _hash(replica_set: Json) -> str:
    found: str = (replica_set["metadata"].get("labels") or {}).get(HASH_LABEL, "")
    return found


def _next_revision(sets: list[Json]) -> int:
    return max(map(_revision, sets), default=0) + 1


def _revision(replica_set: Json) -> int:
    return int((replica_set["metadata"].get("annotations") or {}).get(REVISION, "0"))


def _available(replica_set: Json) -> int:
    count: int = (replica_set.get("status") or {}).get("availableReplicas", 0)
    return count


def _bounds(deployment: Json) -> tuple[int, int]:
    """Return how many pods may be too many and how many may be missing."""
    rolling, wanted = deployment["spec"]["strategy"].get("rollingUpdate") or {}, deployment["spec"]["replicas"]
    surge = _share(rolling.get("maxSurge", "25%"), wanted, math.ceil)
    unavailable = _share(rolling.get("maxUnavailable", "25%"), wanted, math.floor)
    return (surge, unavailable) if surge or unavailable else (0, 1)


def _share(value: Any, of: int, rounded: Callable[[float], int]) -> int:
    text = str(value)
    return rounded(of * int(text[:-1]) / 100) if text.endswith("%") else int(text)


def _report(backend: Backend, name: Name, sets: list[Json], digest: str) -> None:
    """Write a Deployment's counts, its conditions and the observed generation that `rollout status` waits for."""
    entry = backend.store.get(DEPLOYMENTS.key, *name)
    if entry is None:
        return
    deployment = entry.object
    new = next((each for each in sets if digest and each["metadata"]["name"].endswith(f"-{digest}")), None)
    status = _counts(deployment, sets, new)
    status["conditions"] = _conditions(backend.timestamp(), deployment, status, new)
    collisions = (deployment.get("status") or {}).get("collisionCount")
    status |= {"collisionCount": collisions} if collisions else {}
    metadata = deployment["metadata"]
    if new is not None:
        revision = {REVISION: new["metadata"]["annotations"][REVISION]}
        metadata = metadata | {"annotations": (metadata.get("annotations") or {}) | revision}
    changed = deployment | {"metadata": metadata, "status": status}
    if changed != deployment:
        backend.store.write(DEPLOYMENTS.key, changed)


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


def _conditions(now: str, deployment: Json, status: Json, new: Json | None) -> list[Json]:
    spec, available = deployment["spec"], status.get("availableReplicas", 0)
    rolling = spec["strategy"].get("rollingUpdate") or {}
    enough = available >= spec["replicas"] - _share(rolling.get("maxUnavailable", 0), spec["replicas"], math.floor)
    complete = status.get("updatedReplicas", 0) == spec["replicas"] == available == status.get("replicas", 0)
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
        _condition(now, old, "Available", "True" if enough else "False", availability),
        _condition(now, old, "Progressing", "True", progress),
    ]


def _condition(now: str, old: list[Json], kind: str, value: str, said: tuple[str, str]) -> Json:
    found: Json = {"type": kind, "status": value, "reason": said[0], "message": said[1]}
    for before in old:
        if before["type"] == kind and before["status"] == value:
            same = before["reason"] == said[0] and before["message"] == said[1]
            times = {"lastTransitionTime": before["lastTransitionTime"]}
            return found | times | {"lastUpdateTime": before["lastUpdateTime"] if same else now}
    return found | {"lastTransitionTime": now, "lastUpdateTime": now}
