"""A fixed clock, pods, gates and a queue for the tests of the queue."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Any

from policysched.framework import (
    Action,
    Change,
    Cluster,
    Hint,
    PreEnqueuePlugin,
    QueueSortPlugin,
    Resource,
    Status,
    unschedulable,
)
from policysched.model.objects import Metadata, Node, Pod, PodSpec, SchedulingGate
from policysched.schedule.queue.hints import Interests
from policysched.schedule.queue.queue import Queue
from policysched.schedule.queue.queued_pod import QueuedPod
from policysched.schedule.queue.subqueues import Backoff

NODE_ADDED = Change(Resource.NODE, Action.ADD, None, Node(metadata=Metadata(name="n")))
POD_REMOVED = Change(Resource.ASSIGNED_POD, Action.DELETE)
FIT = frozenset(("Fit",))
SPREAD = frozenset(("Spread",))


class StandingClock:
    def __init__(self, at: float = 1000.25) -> None:
        self.at = at

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.at)

    def monotonic(self) -> float:
        return self.at


class TickingClock(StandingClock):
    """A clock that advances by `tick` each time it is read."""

    tick = 0.0

    def monotonic(self) -> float:
        self.at += self.tick
        return self.at


class ByPriority(QueueSortPlugin):
    name = "PrioritySort"

    def key(self, pod: Pod, queued_at: float) -> tuple[Any, ...]:
        return (-(pod.spec.priority or 0), queued_at)


class Gates(PreEnqueuePlugin):
    """A PreEnqueue plugin that rejects pods with scheduling gates."""

    name = "SchedulingGates"

    def __init__(self) -> None:
        self.asked = 0
        self.blocks = True

    def pre_enqueue(self, pod: Pod, cluster: Cluster) -> Status | None:  # noqa: ARG002 - the protocol's signature
        self.asked += 1
        return unschedulable("gated") if self.blocks and pod.spec.scheduling_gates else None

    def events(self) -> Sequence[Hint]:
        return (Hint(Resource.PENDING_POD, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED),)


def pod(name: str, priority: int = 0, *, gates: Sequence[str] = (), **labels: str) -> Pod:
    return Pod(
        metadata=Metadata(name=name, namespace="d", uid=f"uid-{name}", labels=labels),
        spec=PodSpec(
            scheduler_name="p",
            priority=priority,
            scheduling_gates=[SchedulingGate(name=gate) for gate in gates],
        ),
    )


HINTS = {
    "Fit": (Hint(Resource.NODE, Action.ADD), Hint(Resource.ASSIGNED_POD, Action.DELETE)),
    "Spread": (
        Hint(Resource.ASSIGNED_POD, Action.ADD | Action.DELETE),
        Hint(Resource.PENDING_POD, Action.UPDATE_POD_LABEL),
    ),
}


def interests(*gates: Any, **hints: Sequence[Hint]) -> dict[str, Interests]:
    return {"p": Interests(gates, hints or HINTS)}


def queue(clock: StandingClock, profiles: dict[str, Interests] | None = None, **backoff: float) -> Queue:
    made = profiles if profiles is not None else interests()
    return Queue(clock, ByPriority(), Cluster(), profiles=made, backoff=Backoff(**backoff))


def popped(of: Queue, name: str = "a", **details: Any) -> QueuedPod:
    """Add a pod and pop the first pod, which is the added one if no other is ready."""
    of.add(pod(name, **details))
    queued = of.pop()
    assert queued is not None
    return queued


def drain(of: Queue) -> list[str]:
    """Pop and finish all ready pods; return their names in order."""
    names = []
    while (queued := of.pop()) is not None:
        names.append(queued.pod.metadata.name)
        of.done(queued)
    return names
