"""ReplicaSet and Deployment controllers: pods from templates, and rollouts from old to new templates.

A ReplicaSet counts the pods that it controls and adopts none. When scaling down, pods without a node are deleted first,
then the youngest, as the real controller does as far as schedulers are concerned. A rolling update respects maxSurge
and maxUnavailable; Recreate waits until the old pods are deleted. Events are not aggregated, so that a trial shows
every step.
"""

from __future__ import annotations

import copy
import hashlib
import math
from collections.abc import Callable
from typing import Any

import msgspec

from policysched.apimachinery import Json
from policysched.apimachinery.errors import StatusError
from policysched.apimachinery.resources import PODS, builtin
from policysched.sandbox.controllers import Controller, Name
from policysched.sandbox.storage.actions import DeleteOptions, delete
from policysched.sandbox.storage.store import SAFE_LETTERS, Backend, Stored, StoreEvent, is_true
from policysched.sandbox.storage.writes import WriteOptions, create

REPLICA_SETS, DEPLOYMENTS, EVENTS = builtin("replicasets.apps"), builtin("deployments.apps"), builtin("events")
HASH_LABEL, REVISION = "pod-template-hash", "deployment.kubernetes.io/revision"


def _controller_of(obj: Json) -> Json:
    """Return the owner reference to an object's controller; empty without a controller."""
    return next((each for each in obj["metadata"].get("ownerReferences") or () if each.get("controller")), {})


def _controlled_by(owner: Json) -> list[Json]:
    """Return the ownerReferences of the objects that a workload creates: one reference to it as controller."""
    reference = {"apiVersion": "apps/v1", "kind": owner["kind"], "controller": True, "blockOwnerDeletion": True}
    return [reference | {name: owner["metadata"][name] for name in ("name", "uid")}]


def _record(backend: Backend, obj: Json, reason: str, message: str) -> None:
    """Create an event about a workload."""
    metadata, now, source = obj["metadata"], backend.timestamp(), f"{obj['kind'].lower()}-controller"
    # Names sort by time; the resourceVersion separates events of the same millisecond.
    stamp = int(backend.now().timestamp() * 1000) * 1_000_000 + backend.store.revision % 1_000_000
    involved = {name: metadata[name] for name in ("name", "namespace", "uid", "resourceVersion")}
    event = {
        "metadata": {"name": f"{metadata['name']}.{stamp:x}"},
        "involvedObject": {"apiVersion": "apps/v1", "kind": obj["kind"]} | involved,
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
        create(backend, EVENTS, metadata["namespace"], event, WriteOptions())
    except StatusError:
        return  # a namespace that is being deleted accepts no events


class ReplicaSetController(Controller):
    """Keeps the number of pods of every ReplicaSet at its replica count."""

    def __init__(self, backend: Backend, wake: Callable[[], None]) -> None:
        super().__init__(backend, wake)
        self._pods: dict[str, dict[Name, None]] = {}

    def on_event(self, event: StoreEvent) -> None:
        """Enqueue ReplicaSets that changed, and ReplicaSets whose pods changed."""
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
        """Create or delete pods of a ReplicaSet and write its status."""
        entry = self._store.get(REPLICA_SETS.key, *name)
        if entry is not None and not entry.object["metadata"].get("deletionTimestamp"):
            self._scale(entry.object)
        entry = self._store.get(REPLICA_SETS.key, *name)
        if entry is not None:
            self._report(entry.object)

    def _controlled(self, replica_set: Json) -> list[Stored]:
        entries = (self._store.get("pods", *name) for name in self._pods.get(replica_set["metadata"]["uid"], ()))
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
                _record(self._backend, replica_set, "SuccessfulDelete", f"Deleted pod: {entry.key[1]}")

    def _create(self, replica_set: Json) -> bool:
        template = copy.deepcopy(replica_set["spec"]["template"])
        owner = {"generateName": f"{replica_set['metadata']['name']}-", "ownerReferences": _controlled_by(replica_set)}
        body = {"metadata": template["metadata"] | owner, "spec": template["spec"]}
        try:
            pod = create(self._backend, PODS, replica_set["metadata"]["namespace"], body, WriteOptions())
        except StatusError:
            return False  # the namespace is being deleted or the template is rejected; the next change retries
        _record(self._backend, replica_set, "SuccessfulCreate", f"Created pod: {pod.key[1]}")
        return True

    def _report(self, replica_set: Json) -> None:
        controlled = [pod.object for pod in self._controlled(replica_set)]
        active = [pod for pod in controlled if _is_active(pod)]
        ready = sum(is_true(pod, "Ready") for pod in active)
        counts = {"fullyLabeledReplicas": len(active), "readyReplicas": ready, "availableReplicas": ready}
        status = {"replicas": len(active)} | {key: count for key, count in counts.items() if count}
        status["terminatingReplicas"] = sum("deletionTimestamp" in pod["metadata"] for pod in controlled)
        status["observedGeneration"] = replica_set["metadata"]["generation"]
        if status != replica_set.get("status"):
            self._store.write(REPLICA_SETS.key, replica_set | {"status": status})


def _is_active(pod: Json) -> bool:
    ended = pod["status"].get("phase") in ("Succeeded", "Failed")
    return not ended and not pod["metadata"].get("deletionTimestamp")


class DeploymentController(Controller):
    """Rolls out every Deployment: one ReplicaSet per template, scaled step by step."""

    def on_event(self, event: StoreEvent) -> None:
        """Enqueue Deployments that changed, and Deployments whose ReplicaSets changed."""
        if event.key == DEPLOYMENTS.key and event.type != "DELETED":
            self.enqueue(event.entry.key)
        elif event.key == REPLICA_SETS.key:
            reference = _controller_of(event.entry.object)
            if reference:
                self.enqueue((event.entry.key[0], reference["name"]))

    def reconcile(self, name: Name) -> None:
        """Advance a rollout by one step."""
        entry = self._store.get(DEPLOYMENTS.key, *name)
        if entry is None or entry.object["metadata"].get("deletionTimestamp"):
            return
        deployment = entry.object
        sets, digest = self._sets(deployment), _template_hash(deployment["spec"]["template"])
        new = next((each for each in sets if (each["metadata"].get("labels") or {}).get(HASH_LABEL) == digest), None)
        if not deployment["spec"].get("paused"):
            new = self._roll(deployment, sets, new, digest)
        self._report(deployment, self._sets(deployment), new)

    def _sets(self, deployment: Json) -> list[Json]:
        namespace, uid = deployment["metadata"]["namespace"], deployment["metadata"]["uid"]
        sets = [entry.object for entry in self._store.entries(REPLICA_SETS.key, namespace)]
        return sorted((each for each in sets if _controller_of(each).get("uid") == uid), key=_revision)

    def _roll(self, deployment: Json, sets: list[Json], new: Json | None, digest: str) -> Json | None:
        old = [each for each in sets if each is not new]
        surge = unavailable = 0
        if deployment["spec"]["strategy"]["type"] == "Recreate":
            for each in old:
                self._resize(deployment, each, 0)
            if any(_count(each, "replicas") for each in old):
                return new
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
        """Set the newest revision on an old ReplicaSet to whose pod template the Deployment was rolled back."""
        entry = self._store.get(REPLICA_SETS.key, new["metadata"]["namespace"], new["metadata"]["name"])
        if entry is not None and _revision(entry.object) < revision:
            self._store.write(REPLICA_SETS.key, _annotated(entry.object, str(revision)))

    def _grow(self, deployment: Json, new: Json, old: list[Json], surge: int) -> None:
        wanted, size = deployment["spec"]["replicas"], new["spec"]["replicas"]
        room = wanted + surge - size - sum(each["spec"]["replicas"] for each in old)
        self._resize(deployment, new, wanted if size > wanted else min(wanted, size + max(room, 0)))

    def _shrink(self, deployment: Json, new: Json, old: list[Json], unavailable: int) -> None:
        """Scale down old ReplicaSets: first unavailable pods, then as many available pods as the rollout permits."""
        least = deployment["spec"]["replicas"] - unavailable
        available = [_count(each, "availableReplicas") for each in (*old, new)]
        spare = sum(each["spec"]["replicas"] for each in old) + available[-1] - least
        ready = sum(available) - least
        for each, up in zip(old, available, strict=False):
            size = each["spec"]["replicas"]
            sick = max(min(size - up, spare), 0)
            well = max(min(up, ready, spare - sick), 0)
            spare, ready = spare - sick - well, ready - well
            self._resize(deployment, each, size - sick - well)

    def _resize(self, deployment: Json, replica_set: Json, size: int) -> None:
        name = replica_set["metadata"]["name"]
        entry = self._store.get(REPLICA_SETS.key, replica_set["metadata"]["namespace"], name)
        if entry is None or entry.object["spec"]["replicas"] == size:
            return
        metadata, spec, before = entry.object["metadata"], entry.object["spec"], entry.object["spec"]["replicas"]
        metadata = metadata | {"generation": metadata["generation"] + 1}
        self._store.write(REPLICA_SETS.key, entry.object | {"metadata": metadata, "spec": spec | {"replicas": size}})
        way = "up" if size > before else "down"
        message = f"Scaled {way} replica set {name} from {before} to {size}"
        _record(self._backend, deployment, "ScalingReplicaSet", message)

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
                "ownerReferences": _controlled_by(deployment),
            },
            "spec": {"replicas": 0, "selector": selector, "template": template},
        }
        try:
            return create(self._backend, REPLICA_SETS, metadata["namespace"], replica_set, WriteOptions()).object
        except StatusError:
            return None  # an old ReplicaSet of this name is still being deleted; its last change retries

    def _report(self, deployment: Json, sets: list[Json], new: Json | None) -> None:
        """Write a Deployment's counts, conditions, and the observed generation that `rollout status` waits for."""
        new = next((each for each in sets if new and each["metadata"]["uid"] == new["metadata"]["uid"]), None)
        wanted, old = deployment["spec"]["replicas"], deployment.get("status") or {}
        counts = {
            name: sum(_count(each, name) for each in sets)
            for name in ("replicas", "readyReplicas", "availableReplicas")
        }
        counts["updatedReplicas"] = _count(new or {}, "replicas")
        counts["unavailableReplicas"] = max(max(wanted, counts["replicas"]) - counts["availableReplicas"], 0)
        status: Json = {name: count for name, count in counts.items() if count}
        status["terminatingReplicas"] = sum(_count(each, "terminatingReplicas") for each in sets)
        status["observedGeneration"] = deployment["metadata"]["generation"]
        name, now = new["metadata"]["name"] if new else "", self._backend.timestamp()
        status["conditions"] = _conditions(deployment, counts, name, now)
        status |= {"collisionCount": old["collisionCount"]} if old.get("collisionCount") else {}
        changed = deployment | {"status": status}
        if new is not None:
            changed = _annotated(changed, new["metadata"]["annotations"][REVISION])
        if changed != deployment:
            self._store.write(DEPLOYMENTS.key, changed)


def _template_hash(template: Json) -> str:
    """Return the hash of a pod template, for names and labels."""
    digest = hashlib.sha256(msgspec.json.encode(template, order="sorted")).digest()
    return "".join(SAFE_LETTERS[byte % len(SAFE_LETTERS)] for byte in digest[:10])


def _annotated(obj: Json, revision: str) -> Json:
    """Return a copy of a ReplicaSet or Deployment with a given revision in its annotation."""
    annotations = (obj["metadata"].get("annotations") or {}) | {REVISION: revision}
    return obj | {"metadata": obj["metadata"] | {"annotations": annotations}}


def _next_revision(sets: list[Json]) -> int:
    return max(map(_revision, sets), default=0) + 1


def _revision(replica_set: Json) -> int:
    return int((replica_set["metadata"].get("annotations") or {}).get(REVISION, "0"))


def _count(replica_set: Json, name: str) -> int:
    count: int = (replica_set.get("status") or {}).get(name, 0)
    return count


def _bounds(deployment: Json) -> tuple[int, int]:
    """Return maxSurge and maxUnavailable as numbers of pods."""
    rolling, wanted = deployment["spec"]["strategy"].get("rollingUpdate") or {}, deployment["spec"]["replicas"]
    surge = _share(rolling.get("maxSurge", "25%"), wanted, math.ceil)
    unavailable = _share(rolling.get("maxUnavailable", "25%"), wanted, math.floor)
    return (surge, unavailable) if surge or unavailable else (0, 1)


def _share(value: Any, of: int, rounded: Callable[[float], int]) -> int:
    text = str(value)
    return rounded(of * int(text[:-1]) / 100) if text.endswith("%") else int(text)


def _conditions(deployment: Json, counts: dict[str, int], name: str, now: str) -> list[Json]:
    """Return the conditions of a Deployment whose newest ReplicaSet has this name."""
    strategy, wanted, available = deployment["spec"]["strategy"], deployment["spec"]["replicas"], "availableReplicas"
    missing = _share((strategy.get("rollingUpdate") or {}).get("maxUnavailable", 0), wanted, math.floor)
    enough = counts[available] >= wanted - missing
    complete = counts["updatedReplicas"] == wanted == counts[available] == counts["replicas"]
    has = ("Available", "has") if enough else ("Unavailable", "does not have")
    progress = (
        ("NewReplicaSetAvailable", "has successfully progressed")
        if complete
        else ("ReplicaSetUpdated", "is progressing")
    )
    rows = (
        ("Available", str(enough), f"MinimumReplicas{has[0]}", f"Deployment {has[1]} minimum availability."),
        ("Progressing", "True", progress[0], f'ReplicaSet "{name}" {progress[1]}.'),
    )
    conditions = [dict(zip(("type", "status", "reason", "message"), row, strict=True)) for row in rows]
    old = {(each["type"], each["status"]): each for each in (deployment.get("status") or {}).get("conditions") or ()}
    for each in conditions:
        before = old.get((each["type"], each["status"]), {})
        same = all(before.get(name) == each[name] for name in ("reason", "message"))
        each["lastTransitionTime"] = before.get("lastTransitionTime", now)
        each["lastUpdateTime"] = before["lastUpdateTime"] if same else now
    return conditions
