"""The Deployment controller: a ReplicaSet for each template, and rollouts from the old ones to the new.

It makes ReplicaSets and sets their sizes; pods are theirs. A rolling update keeps to maxSurge and
maxUnavailable, Recreate waits until the old pods are gone.
"""

from __future__ import annotations

import copy
import hashlib
import math
from typing import TYPE_CHECKING, Any

from policysched.sandbox.controllers.backlog import Backlog
from policysched.sandbox.controllers.recorder import record
from policysched.sandbox.controllers.replicas import REPLICA_SETS, controller_of, owner_reference
from policysched.sandbox.controllers.rolloutstatus import report
from policysched.sandbox.objects import Json, encode
from policysched.sandbox.objects.errors import StatusError
from policysched.sandbox.storage.writes import WriteOptions, create

if TYPE_CHECKING:
    from policysched.sandbox.controllers.backlog import Name
    from policysched.sandbox.storage.backend import Backend
    from policysched.sandbox.storage.store import StoreEvent

DEPLOYMENTS = "deployments.apps"
HASH_LABEL, REVISION = "pod-template-hash", "deployment.kubernetes.io/revision"
_ALPHABET = "bcdfghjklmnpqrstvwxz2456789"


def template_hash(template: Json) -> str:
    """Name a pod template by its content."""
    digest = hashlib.sha256(encode(_sorted(template))).digest()
    return "".join(_ALPHABET[byte % len(_ALPHABET)] for byte in digest[:10])


def _sorted(value: Any) -> Any:
    match value:
        case dict():
            return {key: _sorted(value[key]) for key in sorted(value)}
        case list():
            return [_sorted(item) for item in value]
    return value


class Deployments:
    """Rolls every Deployment out."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._backlog = Backlog()

    def hear(self, event: StoreEvent) -> bool:
        """Note Deployments that changed or whose ReplicaSets did."""
        if event.key == DEPLOYMENTS:
            return event.type != "DELETED" and self._backlog.add(event.entry.key)
        if event.key != REPLICA_SETS:
            return False
        reference = controller_of(event.entry.object)
        return reference is not None and self._backlog.add((event.entry.key[0], reference["name"]))

    def work(self, most: int) -> bool:
        """Take rollouts a step further."""
        return self._backlog.work(most, self._look)

    def _look(self, name: Name) -> None:
        entry = self._backend.store.get(DEPLOYMENTS, *name)
        if entry is None or entry.object["metadata"].get("deletionTimestamp"):
            return
        deployment = entry.object
        sets = self._sets(deployment)
        digest = template_hash(deployment["spec"]["template"])
        new = next((each for each in sets if _hash(each) == digest), None)
        if not deployment["spec"].get("paused"):
            new = self._roll(deployment, sets, new, digest)
        present = self._sets(deployment)
        report(self._backend, name, present, digest if new else "")

    def _sets(self, deployment: Json) -> list[Json]:
        namespace, uid = deployment["metadata"]["namespace"], deployment["metadata"]["uid"]
        found = []
        for entry in self._backend.store.entries(REPLICA_SETS, namespace):
            reference = controller_of(entry.object)
            if reference is not None and reference["uid"] == uid:
                found.append(entry.object)
        return sorted(found, key=_revision)

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
            new = self._create(deployment, digest, _newest(sets) + 1)
            if new is None:
                return None
        self._renumber(new, _newest(old) + 1)
        self._grow(deployment, new, old, surge)
        self._shrink(deployment, new, old, unavailable)
        return new

    def _renumber(self, new: Json, revision: int) -> None:
        """Count a template that was taken up again as the latest."""
        name = new["metadata"]["namespace"], new["metadata"]["name"]
        entry = self._backend.store.get(REPLICA_SETS, *name)
        if entry is not None and _revision(entry.object) < revision:
            metadata = entry.object["metadata"]
            annotations = (metadata.get("annotations") or {}) | {REVISION: str(revision)}
            changed = entry.object | {"metadata": metadata | {"annotations": annotations}}
            self._backend.store.write(REPLICA_SETS, changed)

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
        entry = self._backend.store.get(REPLICA_SETS, metadata["namespace"], metadata["name"])
        if entry is None or entry.object["spec"]["replicas"] == size:
            return
        present = entry.object["metadata"]
        changed = {"metadata": present | {"generation": present["generation"] + 1}}
        changed["spec"] = entry.object["spec"] | {"replicas": size}
        self._backend.store.write(REPLICA_SETS, entry.object | changed)
        before, way = entry.object["spec"]["replicas"], "up" if size > entry.object["spec"]["replicas"] else "down"
        message = f"Scaled {way} replica set {metadata['name']} from {before} to {size}"
        about = ("apps/v1", "Deployment", deployment)
        record(self._backend, about, "ScalingReplicaSet", message, "deployment-controller")

    def _create(self, deployment: Json, digest: str, revision: int) -> Json | None:
        resource = self._backend.registry.stored_as(REPLICA_SETS)
        metadata, spec = deployment["metadata"], deployment["spec"]
        template = copy.deepcopy(spec["template"])
        labels = (template["metadata"].get("labels") or {}) | {HASH_LABEL: digest}
        template["metadata"]["labels"] = labels
        selector = copy.deepcopy(spec["selector"])
        selector["matchLabels"] = (selector.get("matchLabels") or {}) | {HASH_LABEL: digest}
        replica_set = {
            "metadata": {
                "name": f"{metadata['name']}-{digest}",
                "labels": dict(labels),
                "annotations": {REVISION: str(revision)},
                "ownerReferences": [owner_reference("apps/v1", "Deployment", deployment)],
            },
            "spec": {"replicas": 0, "selector": selector, "template": template},
        }
        if resource is None:
            return None
        try:
            return create(self._backend, resource, metadata["namespace"], replica_set, WriteOptions()).object
        except StatusError:
            return None  # an old set of that name is still going: its last change tries again


def _hash(replica_set: Json) -> str:
    found: str = (replica_set["metadata"].get("labels") or {}).get(HASH_LABEL, "")
    return found


def _newest(sets: list[Json]) -> int:
    return max(map(_revision, sets), default=0)


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


def _share(value: Any, of: int, rounded: Any) -> int:
    text = str(value)
    return int(rounded(of * int(text[:-1]) / 100)) if text.endswith("%") else int(text)
