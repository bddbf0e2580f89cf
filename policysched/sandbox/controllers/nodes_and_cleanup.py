"""Simulated kubelets, node lifecycle controller, garbage collector and namespace controller.

Images and commands are ignored: every container starts at once and runs forever. A node without conditions is treated
as newly joined and becomes Ready. Dependents are found by an index of owner references, so a deletion does not search
all objects.
"""

from __future__ import annotations

from collections.abc import Callable

from policysched.apimachinery import Json
from policysched.apimachinery.resources import builtin
from policysched.sandbox.controllers import Controller, Name, UidIndex
from policysched.sandbox.storage.actions import DeleteOptions, delete, with_condition
from policysched.sandbox.storage.store import Backend, Stored, StoreEvent, is_true
from policysched.sandbox.storage.writes import WriteOptions, create, store_update

Place = tuple[str, Name]
_FOREGROUND, _ORPHAN = "foregroundDeletion", "orphan"
_POD_CONDITIONS = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
_PREFIX = "node.kubernetes.io/"
# condition, status for which the taint is set, key of the taint
_TAINTS = (
    ("Ready", "False", "not-ready"),
    ("Ready", "Unknown", "unreachable"),
    ("MemoryPressure", "True", "memory-pressure"),
    ("DiskPressure", "True", "disk-pressure"),
    ("PIDPressure", "True", "pid-pressure"),
    ("NetworkUnavailable", "True", "network-unavailable"),
)
_OWN = frozenset(_PREFIX + name for *_, name in (*_TAINTS, ("", "", "unschedulable")))


class Kubelets(Controller):
    """Starts and ends the pods of every node."""

    def __init__(self, backend: Backend, wake: Callable[[], None]) -> None:
        super().__init__(backend, wake)
        self._without_node: dict[str, set[Name]] = {}
        self._addresses = 0

    def on_event(self, event: StoreEvent) -> None:
        """Enqueue pods that are new on a node or being deleted."""
        if event.key == "nodes" and event.type == "ADDED":
            for name in self._without_node.pop(event.entry.key[1], ()):
                self.enqueue(name)
        elif event.key == "pods" and event.type != "DELETED":
            pod = event.entry.object
            ends, pending = pod["metadata"].get("deletionTimestamp"), pod["status"].get("phase") == "Pending"
            if pod["spec"].get("nodeName") and (ends or pending):
                self.enqueue(event.entry.key)

    def reconcile(self, name: Name) -> None:
        """Start or end a pod."""
        entry = self._store.get("pods", *name)
        if entry is None:
            return
        pod = entry.object
        node = pod["spec"].get("nodeName", "")
        if pod["metadata"].get("deletionTimestamp"):
            self._end(pod)
        elif self._store.get("nodes", "", node):
            self._store.write("pods", pod | {"status": self._running(pod)})
        else:
            self._without_node.setdefault(node, set()).add(name)

    def _end(self, pod: Json) -> None:
        metadata = pod["metadata"]
        if not metadata.get("finalizers"):
            self._store.remove("pods", metadata["namespace"], metadata["name"])
        elif metadata.get("deletionGracePeriodSeconds"):
            ended = metadata | {"deletionGracePeriodSeconds": 0}
            self._store.write("pods", pod | {"metadata": ended})

    def _running(self, pod: Json) -> Json:
        now, address = self._backend.timestamp(), self._next_address()
        conditions = pod["status"].get("conditions") or []
        for kind in _POD_CONDITIONS:
            if not is_true(pod, kind):
                conditions = with_condition(conditions, kind, now)
        started = {
            "phase": "Running",
            "conditions": conditions,
            "podIP": address,
            "podIPs": [{"ip": address}],
            "startTime": now,
            "containerStatuses": [_container(each, now) for each in pod["spec"].get("containers") or ()],
        }
        return {**pod["status"], **started}

    def _next_address(self) -> str:
        self._addresses = self._addresses % 0xFFFFFE + 1
        return ".".join(str(part) for part in (10, *self._addresses.to_bytes(3, "big")))


def _container(container: Json, now: str) -> Json:
    return {
        "name": container["name"],
        "image": container.get("image", ""),
        "imageID": "",
        "containerID": f"sandbox://{container['name']}",
        "ready": True,
        "started": True,
        "restartCount": 0,
        "lastState": {},
        "state": {"running": {"startedAt": now}},
    }


class NodeLifecycleController(Controller):
    """Sets the NoSchedule taints of nodes from their conditions and cordons."""

    def on_event(self, event: StoreEvent) -> None:
        """Enqueue added and changed nodes."""
        if event.key == "nodes" and event.type != "DELETED":
            self.enqueue(event.entry.key)

    def reconcile(self, name: Name) -> None:
        """Set the conditions and taints of a node."""
        entry = self._store.get("nodes", *name)
        if entry is None:
            return
        node, now = entry.object, self._backend.timestamp()
        if not node["status"].get("conditions"):
            ready = {"type": "Ready", "status": "True", "lastHeartbeatTime": now, "lastTransitionTime": now}
            ready |= {"reason": "KubeletReady", "message": "kubelet is posting ready status"}
            node = node | {"status": node["status"] | {"conditions": [ready]}}
        taints = _taints(node, now)
        spec = {key: value for key, value in node["spec"].items() if key != "taints"}
        node = node | {"spec": spec | ({"taints": taints} if taints else {})}
        if node != entry.object:
            self._store.write("nodes", node)


def _taints(node: Json, now: str) -> list[Json]:
    """Return a node's taints after an update of the controller's own taints; other taints are kept."""
    found = {each["type"]: each["status"] for each in node["status"]["conditions"]}
    wanted = {_PREFIX + key for kind, status, key in _TAINTS if found.get(kind) == status}
    if node["spec"].get("unschedulable"):
        wanted.add(_PREFIX + "unschedulable")
    kept = [each for each in node["spec"].get("taints") or [] if not _is_own(each) or each["key"] in wanted]
    have = {each["key"] for each in kept if _is_own(each)}
    return kept + [{"key": key, "effect": "NoSchedule", "timeAdded": now} for key in sorted(wanted - have)]


def _is_own(taint: Json) -> bool:
    return taint["key"] in _OWN and taint["effect"] == "NoSchedule"


class GarbageCollector(Controller):
    """Deletes or orphans the dependents of deleted owners; its queue contains the UIDs of the owners."""

    def __init__(self, backend: Backend, wake: Callable[[], None]) -> None:
        super().__init__(backend, wake)
        self._dependents: UidIndex[Place] = UidIndex()
        self._owners: dict[str, Place] = {}

    def on_event(self, event: StoreEvent) -> None:
        """Index the object's owners, and enqueue owners that were deleted or wait for their dependents."""
        metadata, place = event.entry.object["metadata"], (event.key, event.entry.key)
        before, owners = _owners_of(event.before), _owners_of(event.entry)
        self._dependents.update(place, before, () if event.type == "DELETED" else owners)
        if event.type == "DELETED":
            self._owners.pop(metadata["uid"], None)
            if self._dependents.of(metadata["uid"]):
                self.enqueue(("", metadata["uid"]))
            for uid in owners:
                if uid in self._owners:
                    self.enqueue(("", uid))
        elif metadata.get("deletionTimestamp") and {_FOREGROUND, _ORPHAN} & set(metadata.get("finalizers") or ()):
            self._owners[metadata["uid"]] = place
            self.enqueue(("", metadata["uid"]))

    def reconcile(self, name: Name) -> None:
        """Delete or orphan an owner's dependents; then remove the owner's finalizer."""
        uid = name[1]
        owner = self._owner(uid)
        dependents = sorted(self._dependents.of(uid))
        if owner is not None and _ORPHAN in (owner.object["metadata"].get("finalizers") or ()):
            for place in dependents:
                self._disown(place, uid)
            self._release(uid, owner, _ORPHAN)
            return
        for place in dependents:
            self._delete(place)
        if owner is not None and not self._dependents.of(uid):
            self._release(uid, owner, _FOREGROUND)

    def _owner(self, uid: str) -> Stored | None:
        place = self._owners.get(uid)
        entry = self._store.get(place[0], *place[1]) if place else None
        return entry if entry and entry.object["metadata"]["uid"] == uid else None

    def _delete(self, place: Place) -> None:
        entry = self._store.get(place[0], *place[1])
        resource = self._backend.registry.stored_as(place[0])
        if entry is not None and resource is not None and not entry.object["metadata"].get("deletionTimestamp"):
            delete(self._backend, resource, entry, DeleteOptions(propagation="Background"))

    def _disown(self, place: Place, uid: str) -> None:
        entry = self._store.get(place[0], *place[1])
        if entry is not None:
            metadata = entry.object["metadata"]
            kept = [each for each in metadata["ownerReferences"] if each["uid"] != uid]
            self._store.write(place[0], entry.object | {"metadata": metadata | {"ownerReferences": kept}})

    def _release(self, uid: str, owner: Stored, finalizer: str) -> None:
        resource = self._backend.registry.stored_as(self._owners.pop(uid)[0])
        metadata = dict(owner.object["metadata"])
        metadata["finalizers"] = [each for each in metadata["finalizers"] if each != finalizer]
        if resource is not None:
            store_update(self._backend, resource, owner.object | {"metadata": metadata})


def _owners_of(entry: Stored | None) -> list[str]:
    """Return the UIDs of the owners of an object."""
    return [] if entry is None else [one["uid"] for one in entry.object["metadata"].get("ownerReferences") or ()]


class NamespaceController(Controller):
    """Creates the default service account of new namespaces, and empties deleted namespaces."""

    def __init__(self, backend: Backend, wake: Callable[[], None]) -> None:
        super().__init__(backend, wake)
        self._ending: set[str] = set()

    def on_event(self, event: StoreEvent) -> None:
        """Enqueue added and terminating namespaces, and a terminating namespace in which an object is deleted."""
        if event.key == "namespaces":
            if event.type != "DELETED":
                self.enqueue(event.entry.key)
        elif event.type == "DELETED" and event.entry.key[0] in self._ending:
            self.enqueue(("", event.entry.key[0]))

    def reconcile(self, name: Name) -> None:
        """Create the service account of a namespace, or delete its objects."""
        entry, namespace = self._store.get("namespaces", *name), name[1]
        if entry is None:
            self._ending.discard(namespace)
        elif entry.object["metadata"].get("deletionTimestamp"):
            self._empty(namespace)
        elif self._store.get("serviceaccounts", namespace, "default") is None:
            account: Json = {"metadata": {"name": "default"}}
            create(self._backend, builtin("serviceaccounts"), namespace, account, WriteOptions(loaded=True))

    def _empty(self, namespace: str) -> None:
        self._ending.add(namespace)
        left = False
        for key in self._store.resources():
            resource = self._backend.registry.stored_as(key)
            if resource is None or not resource.namespaced:
                continue
            for entry in self._store.entries(key, namespace):
                _, gone = delete(self._backend, resource, entry, DeleteOptions())
                left = left or not gone
        if not left:
            self._ending.discard(namespace)
            self._store.remove("namespaces", "", namespace)
