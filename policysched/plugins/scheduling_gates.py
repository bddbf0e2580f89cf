"""SchedulingGates: a pod with gates does not enter the active queue.

Knows the pod alone. Only the update that takes the last gate away lets it in, so no other event is asked for.

Source: plugins/schedulinggates/scheduling_gates.go, v1.36.
"""

from __future__ import annotations

from collections.abc import Sequence

from policysched.framework import Action, Change, Cluster, Hint, Resource, Status, unresolvable
from policysched.model.objects import Pod
from policysched.plugins.helper.hints import updates_itself


class SchedulingGates:
    """The plugin."""

    name = "SchedulingGates"

    def pre_enqueue(self, pod: Pod) -> Status | None:
        """Name the gates, if there are any."""
        gates = " ".join(gate.name for gate in pod.spec.scheduling_gates)
        return unresolvable(f"waiting for scheduling gates: [{gates}]") if pod.spec.scheduling_gates else None

    def events(self) -> Sequence[Hint]:
        """Only the end of its own gates helps."""
        return (Hint(Resource.PENDING_POD, Action.UPDATE_POD_GATES_ELIMINATED, _own_update_helps),)


def _own_update_helps(pod: Pod, change: Change, cluster: Cluster) -> bool:  # noqa: ARG001 - a hint's signature
    return updates_itself(pod, change)
