"""The ReplicaSet controller: as many pods as asked for, made from the template.

It counts the pods that it controls and adopts none. Which pods go first on scaling down follows the real
controller in what matters to a scheduler: pods without a node before running ones, then the youngest.
"""

from __future__ import annotations

import copy
from typing import TYPE_CHECKING

from policysched.sandbox.controllers.backlog import Backlog
from policysched.sandbox.controllers.recorder import record
from policysched.sandbox.objects import Json
from policysched.sandbox.objects.errors import StatusError
from policysched.sandbox.objects.resources import PODS
from policysched.sandbox.storage.deletion import DeleteOptions, delete
from policysched.sandbox.storage.writes import WriteOptions, create

if TYPE_CHECKING:
    from policysched.sandbox.controllers.backlog import Name
    from policysched.sandbox.storage.backend import Backend
    from policysched.sandbox.storage.store import Stored, StoreEvent

REPLICA_SETS = "replicasets.apps"


def controller_of(obj: Json) -> Json | None:
    """Return the reference to an object's controller."""
    references = obj["metadata"].get("ownerReferences") or ()
    return next((each for each in references if each.get("controller")), None)


def owner_reference(api_version: str, kind: str, owner: Json) -> Json:
    """Write the reference of a controlled object to its controller."""
    metadata = owner["metadata"]
    flags = {"controller": True, "blockOwnerDeletion": True}
    return {"apiVersion": api_version, "kind": kind, "name": metadata["name"], "uid": metadata["uid"]} | flags


def is_ready(pod: Json) -> bool:
    """Tell whether a pod is ready."""
    conditions = pod["status"].get("conditions") or ()
    return any(each["type"] == "Ready" and each["status"] == "True" for each in conditions)


class ReplicaSets:
    """Keeps every ReplicaSet at its number of pods."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._backlog = Backlog()
        self._pods: dict[str, dict[Name, None]] = {}

    def hear(self, event: StoreEvent) -> bool:
        """Note ReplicaSets that changed or whose pods did."""
        if event.key == REPLICA_SETS:
            return event.type != "DELETED" and self._backlog.add(event.entry.key)
        if event.key != "pods":
            return False
        reference = controller_of(event.entry.object)
        if reference is None or reference["kind"] != "ReplicaSet":
            return False
        pods = self._pods.setdefault(reference["uid"], {})
        if event.type == "DELETED":
            pods.pop(event.entry.key, None)
        else:
            pods[event.entry.key] = None
        return self._backlog.add((event.entry.key[0], reference["name"]))

    def work(self, most: int) -> bool:
        """Bring ReplicaSets to their numbers."""
        return self._backlog.work(most, self._look)

    def _look(self, name: Name) -> None:
        entry = self._backend.store.get(REPLICA_SETS, *name)
        if entry is None:
            return
        pods = self._active(entry.object)
        if not entry.object["metadata"].get("deletionTimestamp"):
            self._scale(entry.object, pods)
        self._report(name, self._active(entry.object))

    def _active(self, replica_set: Json) -> list[Stored]:
        names = list(self._pods.get(replica_set["metadata"]["uid"], ()))
        entries = (self._backend.store.get("pods", *name) for name in names)
        return [entry for entry in entries if entry is not None and _counts(entry.object)]

    def _terminating(self, replica_set: Json) -> int:
        names = self._pods.get(replica_set["metadata"]["uid"], ())
        entries = (self._backend.store.get("pods", *name) for name in names)
        return sum(entry is not None and "deletionTimestamp" in entry.object["metadata"] for entry in entries)

    def _scale(self, replica_set: Json, pods: list[Stored]) -> None:
        missing = replica_set["spec"]["replicas"] - len(pods)
        for _ in range(missing):
            if not self._create(replica_set):
                return
        if missing < 0:
            pods.sort(key=lambda entry: entry.revision, reverse=True)
            pods.sort(key=lambda entry: (bool(entry.object["spec"].get("nodeName")), is_ready(entry.object)))
            for entry in pods[:-missing]:
                delete(self._backend, PODS, entry, DeleteOptions())
                self._tell(replica_set, "SuccessfulDelete", f"Deleted pod: {entry.key[1]}")

    def _create(self, replica_set: Json) -> bool:
        template = copy.deepcopy(replica_set["spec"]["template"])
        namespace, name = replica_set["metadata"]["namespace"], replica_set["metadata"]["name"]
        metadata = template["metadata"] | {"generateName": f"{name}-"}
        metadata["ownerReferences"] = [owner_reference("apps/v1", "ReplicaSet", replica_set)]
        try:
            body = {"metadata": metadata, "spec": template["spec"]}
            pod = create(self._backend, PODS, namespace, body, WriteOptions())
        except StatusError:
            return False  # the namespace ends, or the template is refused: the next change tries again
        self._tell(replica_set, "SuccessfulCreate", f"Created pod: {pod.key[1]}")
        return True

    def _tell(self, replica_set: Json, reason: str, message: str) -> None:
        about = ("apps/v1", "ReplicaSet", replica_set)
        record(self._backend, about, reason, message, "replicaset-controller")

    def _report(self, name: Name, pods: list[Stored]) -> None:
        entry = self._backend.store.get(REPLICA_SETS, *name)
        if entry is None:
            return
        ready = sum(is_ready(pod.object) for pod in pods)
        counts = {"replicas": len(pods), "fullyLabeledReplicas": len(pods)}
        counts |= {"readyReplicas": ready, "availableReplicas": ready}
        status = {key: count for key, count in counts.items() if count or key == "replicas"}
        status["terminatingReplicas"] = self._terminating(entry.object)
        status["observedGeneration"] = entry.object["metadata"]["generation"]
        if status != entry.object.get("status"):
            self._backend.store.write(REPLICA_SETS, entry.object | {"status": status})


def _counts(pod: Json) -> bool:
    ended = pod["status"].get("phase") in ("Succeeded", "Failed")
    return not ended and not pod["metadata"].get("deletionTimestamp")
