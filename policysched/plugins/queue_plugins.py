"""PrioritySort (QueueSort) and SchedulingGates (PreEnqueue).

Both know the pod alone. PrioritySort gives a key instead of comparing two pods, so that the queue's heap compares
tuples.

Source: plugins/queuesort/priority_sort.go, plugins/schedulinggates/scheduling_gates.go, v1.36.
"""

from __future__ import annotations

from typing import Any

from policysched.framework import Action, Cluster, Hint, Resource, Status, unresolvable
from policysched.model.objects import Pod
from policysched.model.pod_requirements import pod_priority
from policysched.plugins.bases import HintTable
from policysched.plugins.hint_parts import updates_itself


class PrioritySort:
    """The plugin: higher priority first, and among equals who waits longer."""

    name = "PrioritySort"

    def key(self, pod: Pod, queued_at: float) -> tuple[Any, ...]:
        """Return the sort key."""
        return (-pod_priority(pod), queued_at)


class SchedulingGates(HintTable):
    """The plugin: a pod with gates does not enter the active queue; only the end of its own gates lets it in."""

    name = "SchedulingGates"
    hints = (Hint(Resource.PENDING_POD, Action.UPDATE_POD_SCHEDULING_GATES_ELIMINATED, updates_itself),)

    def pre_enqueue(self, pod: Pod, cluster: Cluster) -> Status | None:  # noqa: ARG002 - the protocol's signature
        """Name the gates, if there are any."""
        gates = " ".join(gate.name for gate in pod.spec.scheduling_gates)
        return unresolvable(f"waiting for scheduling gates: [{gates}]") if pod.spec.scheduling_gates else None
