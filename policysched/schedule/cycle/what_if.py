"""What-if: the verdict of a pod class on one node with some pods taken away or added.

Preemption and simulations ask it. Nothing is changed by asking, neither the cluster nor what is kept of any class, and
it costs what the pods at hand and the filters cost, however many nodes and classes there are.

Source: pkg/scheduler/framework/runtime/framework.go (RunPreFilterExtensionAddPod, RunPreFilterExtensionRemovePod,
RunFilterPluginsWithNominatedPods).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import cast

from policysched.framework import ABOUT_PODS, ChangedRow, Cluster, FilterOfChangedRow, Status
from policysched.model.objects import Pod
from policysched.schedule.cycle.plugin_results import FilterResults


class Trial:
    """A node with other pods than it has, for one pod class. It holds until the cluster changes.

    Args:
        cluster: The cluster.
        filters: The class's filters in their order, up to date.
        row: The row of a node that is there.
    """

    __slots__ = ("_changed", "_filters")

    def __init__(self, cluster: Cluster, filters: Sequence[FilterResults], row: int) -> None:
        self._filters = filters
        self._changed = ChangedRow(cluster, row)

    def remove(self, pod: Pod) -> None:
        """Take a pod away that is placed on the node or was added here.

        Raises:
            ValueError: The pod is not there.
        """
        self._changed.remove(pod)

    def add(self, pod: Pod) -> None:
        """Add a pod that was taken away here, or one that is placed nowhere, such as one nominated to the node.

        Raises:
            ValueError: The pod is placed already.
        """
        self._changed.add(pod)

    def verdict(self) -> Status | None:
        """Return the status of the first filter that would reject the node, None where the pod could go there."""
        changed = self._changed
        for one in self._filters:
            if changed.history and one.reads & ABOUT_PODS:
                status = cast("FilterOfChangedRow", one.plugin).filter_changed(one.state, changed)
                if status is not None:
                    return status.by(one.plugin.name)
            elif one.rejects_any and (code := int(one.codes[changed.row])):
                return one.reason(code)
        return None
