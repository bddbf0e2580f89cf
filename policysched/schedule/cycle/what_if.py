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
        nominated: The pods nominated to the node that are to be left their place.
    """

    __slots__ = ("_changed", "_filters", "_with_nominated")

    def __init__(
        self, cluster: Cluster, filters: Sequence[FilterResults], row: int, nominated: Sequence[Pod] = ()
    ) -> None:
        self._filters = filters
        self._changed = ChangedRow(cluster, row)
        self._with_nominated: ChangedRow | None = None
        if nominated:
            self._with_nominated = ChangedRow(cluster, row)
            for pod in nominated:
                self._with_nominated.add(pod)

    def remove(self, pod: Pod) -> None:
        """Take a pod away that is placed on the node or was added here.

        Raises:
            ValueError: The pod is not there.
        """
        self._changed.remove(pod)
        if self._with_nominated is not None:
            self._with_nominated.remove(pod)

    def add(self, pod: Pod) -> None:
        """Add a pod that was taken away here, or one that is placed nowhere, such as one nominated to the node.

        Raises:
            ValueError: The pod is placed already.
        """
        self._changed.add(pod)
        if self._with_nominated is not None:
            self._with_nominated.add(pod)

    def verdict(self) -> Status | None:
        """Return the status of the first filter that would reject the node, None where the pod could go there.

        Where pods are nominated to the node it has to pass with them, and then without them.
        """
        return self.verdict_with_nominated() or self._verdict_on(self._changed)

    def verdict_with_nominated(self) -> Status | None:
        """Return what keeps the pod out together with the nominated pods, None where there are none or it fits."""
        return None if self._with_nominated is None else self._verdict_on(self._with_nominated)

    def _verdict_on(self, changed: ChangedRow) -> Status | None:
        for one in self._filters:
            if changed.history and one.reads & ABOUT_PODS:
                status = cast("FilterOfChangedRow", one.plugin).filter_changed(one.state, changed)
                if status is not None:
                    return status.by(one.plugin.name)
            elif one.rejects_any and (code := int(one.codes[changed.row])):
                return one.reason(code)
        return None
