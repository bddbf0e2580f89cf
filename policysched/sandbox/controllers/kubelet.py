"""The part of all nodes' kubelets: bound pods come to run, deleted ones go.

It knows pods and whether their node exists. Images and commands mean nothing to it: every container starts at
once and runs for ever.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from policysched.sandbox.controllers.backlog import Backlog
from policysched.sandbox.objects import Json
from policysched.sandbox.storage.binding import with_condition

if TYPE_CHECKING:
    from policysched.sandbox.controllers.backlog import Name
    from policysched.sandbox.storage.backend import Backend
    from policysched.sandbox.storage.store import StoreEvent

_CONDITIONS = ("PodReadyToStartContainers", "Initialized", "Ready", "ContainersReady", "PodScheduled")


class Kubelet:
    """Runs and ends the pods of every node."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._backlog = Backlog()
        self._homeless: dict[str, set[Name]] = {}
        self._addresses = 0

    def hear(self, event: StoreEvent) -> bool:
        """Note pods that have a node and are new there or on their way out."""
        if event.key == "nodes" and event.type == "ADDED":
            return self._joined(event.entry.key[1])
        return event.key == "pods" and event.type != "DELETED" and self._note(event.entry.object)

    def _joined(self, node: str) -> bool:
        waiting = self._homeless.pop(node, set())
        for name in waiting:
            self._backlog.add(name)
        return bool(waiting)

    def _note(self, pod: Json) -> bool:
        if not pod["spec"].get("nodeName"):
            return False
        metadata = pod["metadata"]
        if not metadata.get("deletionTimestamp") and pod["status"].get("phase") != "Pending":
            return False
        return self._backlog.add((metadata["namespace"], metadata["name"]))

    def work(self, most: int) -> bool:
        """Start and end pods."""
        return self._backlog.work(most, self._look)

    def _look(self, name: Name) -> None:
        entry = self._backend.store.get("pods", *name)
        if entry is None:
            return
        pod = entry.object
        if pod["metadata"].get("deletionTimestamp"):
            self._end(pod)
            return
        node = pod["spec"].get("nodeName", "")
        if self._backend.store.get("nodes", "", node):
            self._backend.store.write("pods", pod | {"status": self._running(pod)})
        else:
            self._homeless.setdefault(node, set()).add(name)

    def _end(self, pod: Json) -> None:
        metadata = pod["metadata"]
        if not metadata.get("finalizers"):
            self._backend.store.remove("pods", metadata["namespace"], metadata["name"])
        elif metadata.get("deletionGracePeriodSeconds"):
            ended = metadata | {"deletionGracePeriodSeconds": 0}
            self._backend.store.write("pods", pod | {"metadata": ended})

    def _running(self, pod: Json) -> Json:
        now, status = self._backend.timestamp(), pod["status"]
        address = self._next_address()
        conditions = status.get("conditions")
        for kind in _CONDITIONS:
            if not _holds(conditions, kind):
                conditions = with_condition(conditions, kind, now)
        started = {
            "phase": "Running",
            "conditions": conditions,
            "podIP": address,
            "podIPs": [{"ip": address}],
            "startTime": now,
            "containerStatuses": [_container(each, now) for each in pod["spec"].get("containers") or ()],
        }
        return {**status, **started}

    def _next_address(self) -> str:
        self._addresses = self._addresses % 0xFFFFFE + 1
        return ".".join(str(part) for part in (10, *self._addresses.to_bytes(3, "big")))


def _holds(conditions: list[Json] | None, kind: str) -> bool:
    return any(each["type"] == kind and each["status"] == "True" for each in conditions or ())


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
