"""The life of nodes and namespaces: taints that conditions ask for, default accounts, emptied namespaces.

These are the parts of the controller manager that a scheduler notices. A node without conditions is taken for
one that a kubelet has just joined, and becomes Ready.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from policysched.sandbox.controllers.backlog import Backlog
from policysched.sandbox.objects import Json
from policysched.sandbox.storage.deletion import DeleteOptions, delete
from policysched.sandbox.storage.writes import WriteOptions, create

if TYPE_CHECKING:
    from policysched.sandbox.controllers.backlog import Name
    from policysched.sandbox.storage.backend import Backend
    from policysched.sandbox.storage.store import StoreEvent

_PREFIX = "node.kubernetes.io/"
# condition, the status that taints, the taint's key
_TAINTS = (
    ("Ready", "False", "not-ready"),
    ("Ready", "Unknown", "unreachable"),
    ("MemoryPressure", "True", "memory-pressure"),
    ("DiskPressure", "True", "disk-pressure"),
    ("PIDPressure", "True", "pid-pressure"),
    ("NetworkUnavailable", "True", "network-unavailable"),
)
_OWN = frozenset(_PREFIX + name for *_, name in (*_TAINTS, ("", "", "unschedulable")))


class NodeLifecycle:
    """Keeps the NoSchedule taints of nodes in step with their conditions and cordons."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._backlog = Backlog()

    def hear(self, event: StoreEvent) -> bool:
        """Note new and changed nodes."""
        return event.key == "nodes" and event.type != "DELETED" and self._backlog.add(event.entry.key)

    def work(self, most: int) -> bool:
        """Correct nodes."""
        return self._backlog.work(most, self._look)

    def _look(self, name: Name) -> None:
        entry = self._backend.store.get("nodes", *name)
        if entry is None:
            return
        node = entry.object
        if not node["status"].get("conditions"):
            node = node | {"status": node["status"] | {"conditions": [self._ready()]}}
        taints = _taints(node, self._backend.timestamp())
        spec = {key: value for key, value in node["spec"].items() if key != "taints"}
        node = node | {"spec": spec | ({"taints": taints} if taints else {})}
        if node != entry.object:
            self._backend.store.write("nodes", node)

    def _ready(self) -> Json:
        now = self._backend.timestamp()
        said = {"reason": "KubeletReady", "message": "kubelet is posting ready status"}
        return {"type": "Ready", "status": "True", "lastHeartbeatTime": now, "lastTransitionTime": now} | said


def _taints(node: Json, now: str) -> list[Json]:
    """Return the taints a node should have; those of others stay as they are."""
    found = {each["type"]: each["status"] for each in node["status"]["conditions"]}
    wanted = {_PREFIX + key for kind, status, key in _TAINTS if found.get(kind) == status}
    if node["spec"].get("unschedulable"):
        wanted.add(_PREFIX + "unschedulable")
    present = node["spec"].get("taints") or []
    kept = [each for each in present if not _is_own(each) or each["key"] in wanted]
    have = {each["key"] for each in kept if _is_own(each)}
    added = [{"key": key, "effect": "NoSchedule", "timeAdded": now} for key in sorted(wanted - have)]
    return kept + added


def _is_own(taint: Json) -> bool:
    return taint["key"] in _OWN and taint["effect"] == "NoSchedule"


class Namespaces:
    """Gives new namespaces their default account and empties those that are deleted."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._backlog = Backlog()
        self._rechecked: set[str] = set()

    def hear(self, event: StoreEvent) -> bool:
        """Note new and ending namespaces, and what leaves an ending one."""
        if event.key == "namespaces":
            return event.type != "DELETED" and self._backlog.add(event.entry.key)
        ending = event.type == "DELETED" and event.entry.key[0] in self._rechecked
        return ending and self._backlog.add(("", event.entry.key[0]))

    def work(self, most: int) -> bool:
        """Furnish and empty namespaces."""
        return self._backlog.work(most, self._look)

    def _look(self, name: Name) -> None:
        entry = self._backend.store.get("namespaces", *name)
        if entry is None:
            self._rechecked.discard(name[1])
        elif entry.object["metadata"].get("deletionTimestamp"):
            self._empty(name[1])
        elif self._backend.store.get("serviceaccounts", name[1], "default") is None:
            self._account(name[1])

    def _account(self, namespace: str) -> None:
        resource = self._backend.registry.stored_as("serviceaccounts")
        if resource is not None:
            account = {"metadata": {"name": "default"}}
            create(self._backend, resource, namespace, account, WriteOptions(loaded=True))

    def _empty(self, namespace: str) -> None:
        self._rechecked.add(namespace)
        left = False
        for key in self._backend.store.resources():
            resource = self._backend.registry.stored_as(key)
            if resource is None or not resource.namespaced:
                continue
            for entry in self._backend.store.entries(key, namespace):
                _, gone = delete(self._backend, resource, entry, DeleteOptions())
                left = left or not gone
        if not left:
            self._rechecked.discard(namespace)
            self._backend.store.remove("namespaces", "", namespace)
