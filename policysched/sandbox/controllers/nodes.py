"""Kubelets and the node lifecycle controller: bound pods run, deleted ones end, nodes are tainted by condition.

Images and commands mean nothing: every container starts at once and runs for ever. A node without conditions is taken
for one that a kubelet has just joined, and becomes Ready.
"""

from __future__ import annotations

from collections.abc import Callable

from policysched.sandbox.controllers.controller import Controller, Name
from policysched.sandbox.objects import Json
from policysched.sandbox.storage.store import Backend, StoreEvent
from policysched.sandbox.storage.subresources import with_condition

_POD_CONDITIONS = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")
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


class Kubelets(Controller):
    """Runs and ends the pods of every node."""

    def __init__(self, backend: Backend, wake: Callable[[], None]) -> None:
        super().__init__(backend, wake)
        self._without_node: dict[str, set[Name]] = {}
        self._addresses = 0

    def hear(self, event: StoreEvent) -> None:
        """Queue pods that have a node and are new there or on their way out."""
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
        entry = self._backend.store.get("pods", *name)
        if entry is None:
            return
        pod = entry.object
        node = pod["spec"].get("nodeName", "")
        if pod["metadata"].get("deletionTimestamp"):
            self._end(pod)
        elif self._backend.store.get("nodes", "", node):
            self._backend.store.write("pods", pod | {"status": self._running(pod)})
        else:
            self._without_node.setdefault(node, set()).add(name)

    def _end(self, pod: Json) -> None:
        metadata = pod["metadata"]
        if not metadata.get("finalizers"):
            self._backend.store.remove("pods", metadata["namespace"], metadata["name"])
        elif metadata.get("deletionGracePeriodSeconds"):
            ended = metadata | {"deletionGracePeriodSeconds": 0}
            self._backend.store.write("pods", pod | {"metadata": ended})

    def _running(self, pod: Json) -> Json:
        now, address = self._backend.timestamp(), self._next_address()
        conditions = pod["status"].get("conditions") or []
        for kind in _POD_CONDITIONS:
            if not any(each["type"] == kind and each["status"] == "True" for each in conditions):
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
    """Keeps the NoSchedule taints of nodes in step with their conditions and cordons."""

    def hear(self, event: StoreEvent) -> None:
        """Queue new and changed nodes."""
        if event.key == "nodes" and event.type != "DELETED":
            self.enqueue(event.entry.key)

    def reconcile(self, name: Name) -> None:
        """Give a node its conditions and taints."""
        entry = self._backend.store.get("nodes", *name)
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
            self._backend.store.write("nodes", node)


def _taints(node: Json, now: str) -> list[Json]:
    """Return the taints a node should have; those of others stay as they are."""
    found = {each["type"]: each["status"] for each in node["status"]["conditions"]}
    wanted = {_PREFIX + key for kind, status, key in _TAINTS if found.get(kind) == status}
    if node["spec"].get("unschedulable"):
        wanted.add(_PREFIX + "unschedulable")
    kept = [each for each in node["spec"].get("taints") or [] if not _is_own(each) or each["key"] in wanted]
    have = {each["key"] for each in kept if _is_own(each)}
    return kept + [{"key": key, "effect": "NoSchedule", "timeAdded": now} for key in sorted(wanted - have)]


def _is_own(taint: Json) -> bool:
    return taint["key"] in _OWN and taint["effect"] == "NoSchedule"
