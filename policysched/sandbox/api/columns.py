"""The columns that `kubectl get` shows for workloads and pods, and what stands in them.

Each kind has a list of columns with a function from the object to its cell; nothing here knows of requests.
Wide columns have priority 1. The names and forms are those that kubectl users know.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from policysched.sandbox.api.durations import since
from policysched.sandbox.objects import Json
from policysched.sandbox.storage.subresources import selector_text

if TYPE_CHECKING:
    from collections.abc import Callable
    from datetime import datetime

    Cell = Callable[[dict[str, Any], datetime], Any]


@dataclass(frozen=True, slots=True)
class Column:
    """A column: its title, the cell's function, its type and whether only `-o wide` shows it."""

    name: str
    cell: Cell
    type: str = "string"
    wide: bool = False


def at(path: str, absent: Any = "") -> Cell:
    """Show the field at a path."""
    steps = path.split(".")

    def read(obj: Any, _: datetime) -> Any:
        for step in steps:
            obj = obj.get(step) if isinstance(obj, dict) else None
        return absent if obj is None or obj == "" else obj

    return read


def _name(obj: Json, _: datetime) -> str:
    name: str = obj["metadata"]["name"]
    return name


def _age(obj: Json, now: datetime) -> str:
    return since(obj["metadata"].get("creationTimestamp"), now)


NAME = Column("Name", _name)
AGE = Column("Age", _age)


def _containers(obj: Json) -> list[Json]:
    spec = obj["spec"]
    found: list[Json] = spec.get("template", {}).get("spec", spec).get("containers") or []
    return found


def _selector(obj: Json, _: datetime) -> str:
    return selector_text(obj["spec"].get("selector")) or "<none>"


WORKLOAD = [
    Column("Containers", lambda obj, _: ",".join(each["name"] for each in _containers(obj)), wide=True),
    Column("Images", lambda obj, _: ",".join(each.get("image", "") for each in _containers(obj)), wide=True),
]
SELECTOR = Column("Selector", _selector, wide=True)


def ready(pod: Json, _: datetime) -> str:
    """Count the ready containers of a pod."""
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return f"{sum(bool(each.get('ready')) for each in statuses)}/{len(pod['spec'].get('containers') or ())}"


def pod_status(pod: Json, _: datetime) -> str:
    """Name a pod's state: the phase, or what keeps it there."""
    status = pod.get("status") or {}
    reason = status.get("reason") or status.get("phase", "")
    for condition in status.get("conditions") or ():
        if condition["type"] == "PodScheduled" and condition.get("reason") == "SchedulingGated":
            reason = "SchedulingGated"
    for each in reversed(status.get("containerStatuses") or ()):
        state = each.get("state") or {}
        reason = (state.get("waiting") or state.get("terminated") or {}).get("reason") or reason
    if pod["metadata"].get("deletionTimestamp"):
        return "Unknown" if status.get("reason") == "NodeLost" else "Terminating"
    return str(reason)


def _restarts(pod: Json, _: datetime) -> str:
    statuses = (pod.get("status") or {}).get("containerStatuses") or ()
    return str(sum(each.get("restartCount", 0) for each in statuses))


def _readiness_gates(pod: Json, _: datetime) -> str:
    gates = pod["spec"].get("readinessGates")
    if not gates:
        return "<none>"
    conditions = (pod.get("status") or {}).get("conditions") or ()
    true = {each["type"] for each in conditions if each["status"] == "True"}
    return f"{sum(gate['conditionType'] in true for gate in gates)}/{len(gates)}"


POD = [
    NAME,
    Column("Ready", ready),
    Column("Status", pod_status),
    Column("Restarts", _restarts),
    AGE,
    Column("IP", at("status.podIP", "<none>"), wide=True),
    Column("Node", at("spec.nodeName", "<none>"), wide=True),
    Column("Nominated Node", at("status.nominatedNodeName", "<none>"), wide=True),
    Column("Readiness Gates", _readiness_gates, wide=True),
]


def _ready_replicas(obj: Json, _: datetime) -> str:
    return f"{(obj.get('status') or {}).get('readyReplicas', 0)}/{obj['spec'].get('replicas', 0)}"


DEPLOYMENT = [
    NAME,
    Column("Ready", _ready_replicas),
    Column("Up-to-date", at("status.updatedReplicas", 0)),
    Column("Available", at("status.availableReplicas", 0)),
    AGE,
    *WORKLOAD,
    SELECTOR,
]
REPLICA_SET = [
    NAME,
    Column("Desired", at("spec.replicas", 0), "integer"),
    Column("Current", at("status.replicas", 0), "integer"),
    Column("Ready", at("status.readyReplicas", 0), "integer"),
    AGE,
    *WORKLOAD,
    SELECTOR,
]
STATEFUL_SET = [NAME, Column("Ready", _ready_replicas), AGE, *WORKLOAD]
DAEMON_SET = [
    NAME,
    Column("Desired", at("status.desiredNumberScheduled", 0), "integer"),
    Column("Current", at("status.currentNumberScheduled", 0), "integer"),
    Column("Ready", at("status.numberReady", 0), "integer"),
    Column("Up-to-date", at("status.updatedNumberScheduled", 0), "integer"),
    Column("Available", at("status.numberAvailable", 0), "integer"),
    Column(
        "Node Selector",
        lambda obj, _: selector_text(obj["spec"]["template"]["spec"].get("nodeSelector")) or "<none>",
    ),
    AGE,
    *WORKLOAD,
    SELECTOR,
]
