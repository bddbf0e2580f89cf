"""The plugins PrioritySort (QueueSort) and SchedulingGates (PreEnqueue).

Both use only the pod. PrioritySort returns a sort key instead of comparing two pods, so that the queue's heap compares
tuples.

Source: plugins/queuesort/priority_sort.go, plugins/schedulinggates/scheduling_gates.go, v1.36.
"""

from __future__ import annotations

from typing import Any

from policysched.framework import (
    Action,
    Cluster,
    Hint,
    PreEnqueuePlugin,
    QueueSortPlugin,
    Resource,
    Status,
    unresolvable,
)
from policysched.model.objects import Pod
from policysched.model.pod_requirements import pod_priority
from policysched.plugins.hint_parts import updates_itself


class PrioritySort(QueueSortPlugin):
    """The PrioritySort plugin: higher priority first, then the pod that was queued earlier."""

    name = "PrioritySort"

    def key(self, pod: Pod, queued_at: float) -> tuple[Any, ...]:
        """Return a pod's sort key in the queue: higher priority first, then earlier queued pods."""
        return (-pod_priority(pod), queued_at)


class SchedulingGates(PreEnqueuePlugin):
    """The SchedulingGates plugin: gates a pod until its last scheduling gate is removed."""

    name = "SchedulingGates"
    hints = (Hint(Resource.PENDING_POD, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED, updates_itself),)

    def pre_enqueue(self, pod: Pod, cluster: Cluster) -> Status | None:  # noqa: ARG002 - the base's signature
        """Return the rejection of a pod that has scheduling gates, else None."""
        gates = " ".join(gate.name for gate in pod.spec.scheduling_gates)
        return unresolvable(f"waiting for scheduling gates: [{gates}]") if pod.spec.scheduling_gates else None
