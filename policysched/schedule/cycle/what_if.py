"""Simulates nodes: filter results of a pod as if other pods were added or removed (PreFilterExtensions).

Preemption and simulations use what-ifs. A what-if changes neither the cluster nor cached results, and its cost does not
depend on the number of nodes and pod classes. `Trial` evaluates one node, `verdicts_on` many nodes at once if all
filters that read pods can do that.

Source: pkg/scheduler/framework/runtime/framework.go (RunPreFilterExtensionAddPod, RunPreFilterExtensionRemovePod,
RunFilterPluginsWithNominatedPods).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np

from policysched.framework import (
    ABOUT_PODS,
    ChangedRow,
    ChangedRows,
    Cluster,
    Codes,
    RowVerdicts,
    Status,
    WhatIfFilter,
)
from policysched.framework.out_of_tree.adapter import PodCycle
from policysched.framework.out_of_tree.node_info import NodeInfo
from policysched.model.objects import Pod
from policysched.schedule.cycle.results.out_of_tree_results import OutOfTreeResults
from policysched.schedule.cycle.results.plugin_results import FilterResults
from policysched.state.nominated.columns import PodsByRow
from policysched.state.placed.pods import PlacedPod

POD_ASPECTS: Final = int(ABOUT_PODS)
"""The parts of a node that change if pods are placed or removed, as a plain integer for faster comparisons."""


class Trial:
    """A simulation of one node for one pod: other pods can be added or removed. It is valid until the cluster changes.

    Args:
        cluster: The cluster.
        filters: The current results of the pod's filters in their order.
        row: The row of an existing node.
        nominated: The pods nominated to the node for which the pod must leave room.
        cycle: The state that out-of-tree plugins share; it is not changed.
    """

    __slots__ = ("_filters", "_nominated", "_plain", "_with_nominated")

    def __init__(
        self,
        cluster: Cluster,
        filters: Sequence[FilterResults],
        row: int,
        nominated: Sequence[Pod] = (),
        cycle: PodCycle | None = None,
    ) -> None:
        self._filters = filters
        self._nominated = nominated
        self._plain = _OtherPods(cluster, row, cycle)
        self._with_nominated: ChangedRow | None = None
        if nominated:
            self._with_nominated = ChangedRow(cluster, row)
            for pod in nominated:
                self._with_nominated.add(pod)

    def remove(self, pod: Pod) -> None:
        """Remove from the simulated node a pod that is placed on the node or was added to the simulation.

        Raises:
            ValueError: The node has no such pod.
        """
        self._plain.remove(pod)
        if self._with_nominated is not None:
            self._with_nominated.remove(pod)

    def add(self, pod: Pod) -> None:
        """Add to the simulated node a pod that was removed from the simulation, or that is placed on no node.

        Raises:
            ValueError: The pod is already placed.
        """
        self._plain.add(pod)
        if self._with_nominated is not None:
            self._with_nominated.add(pod)

    def remove_elsewhere(self, pod: PlacedPod) -> None:
        """Remove, in the simulation, a pod that is placed on another node."""
        self._plain.remove_elsewhere(pod)
        if self._with_nominated is not None:
            self._with_nominated.remove_elsewhere(pod)

    def restore_elsewhere(self, pod: PlacedPod) -> None:
        """Restore, in the simulation, a pod that was removed from another node."""
        self._plain.restore_elsewhere(pod)
        if self._with_nominated is not None:
            self._with_nominated.restore_elsewhere(pod)

    def verdict(self) -> Status | None:
        """Return the status of the first filter that rejects the simulated node; None if the pod fits on the node.

        The pod must fit with the nominated pods, and without them.
        """
        return self.verdict_with_nominated() or self._verdict(self._plain.changed, self._cycle())

    def verdict_with_nominated(self) -> Status | None:
        """Return the status that rejects the pod together with the node's nominated pods; None if the pod fits."""
        changed, cycle = self._with_nominated, self._plain.cycle
        if changed is None:
            return None
        if cycle is not None:
            cycle = cycle.clone()
            node = NodeInfo(changed.cluster, changed.row, changed)
            told = (cycle.tell("add_pod", pod, node) for pod in self._nominated)
            if (failure := next(filter(None, told), None)) is not None:
                return failure
        return self._verdict(changed, cycle)

    def _cycle(self) -> PodCycle | None:
        """Return the CycleState to use for the simulated node without its nominated pods.

        It is a clone if pods are nominated to the node for which the pod need not leave room: the pod itself and pods
        of lower priority.
        """
        changed, cycle = self._plain.changed, self._plain.cycle
        if cycle is None or self._with_nominated is not None:
            return cycle
        name = changed.cluster.nodes.names[changed.row]
        return cycle.clone() if changed.cluster.nominations.on_node(name) else cycle

    def _verdict(self, changed: ChangedRow, cycle: PodCycle | None) -> Status | None:
        if self._plain.failure is not None:
            return self._plain.failure
        is_changed = changed.history or changed.elsewhere
        for one in self._filters:
            if cycle is not None and isinstance(one, OutOfTreeResults):
                status = one.out_of_tree.filter_changed(cycle, changed)
                if status is not None:
                    return status
            elif is_changed and one.reads & POD_ASPECTS and isinstance(one.plugin, WhatIfFilter):
                status = one.plugin.filter_changed(one.state, changed)
                if status is not None:
                    return one.named(status)
            elif one.rejects_any and (code := int(one.codes[changed.row])):
                return one.reason(code)
        return None


class _OtherPods:
    """The pods removed from and added to a simulated node, and the CycleState after AddPod and RemovePod."""

    __slots__ = ("_is_clone", "changed", "cycle", "failure")

    def __init__(self, cluster: Cluster, row: int, cycle: PodCycle | None) -> None:
        self.changed = ChangedRow(cluster, row)
        self.cycle, self._is_clone = cycle, False
        self.failure: Status | None = None
        """The status of the first plugin that failed at AddPod or RemovePod."""

    def add(self, pod: Pod) -> None:
        self.changed.add(pod)
        if self.cycle is not None:
            self._tell(self.cycle, "add_pod", pod)

    def remove(self, pod: Pod) -> None:
        self.changed.remove(pod)
        if self.cycle is not None:
            self._tell(self.cycle, "remove_pod", pod)

    def remove_elsewhere(self, placed: PlacedPod) -> None:
        self.changed.remove_elsewhere(placed)
        if self.cycle is not None:
            self._tell(self.cycle, "remove_pod", placed.pod, NodeInfo(self.changed.cluster, placed.row))

    def restore_elsewhere(self, placed: PlacedPod) -> None:
        self.changed.restore_elsewhere(placed)
        if self.cycle is not None:
            self._tell(self.cycle, "add_pod", placed.pod, NodeInfo(self.changed.cluster, placed.row))

    def _tell(self, cycle: PodCycle, method: str, pod: Pod, node: NodeInfo | None = None) -> None:
        if not self._is_clone:
            self.cycle, self._is_clone = cycle.clone(), True
        node = node or NodeInfo(self.changed.cluster, self.changed.row, self.changed)
        self.failure = self.failure or (self.cycle or cycle).tell(method, pod, node)


def verdicts_on(
    changed: ChangedRows, filters: Sequence[FilterResults], nominated: PodsByRow, cycle: PodCycle | None
) -> RowVerdicts | None:
    """Return the filter results of many simulated nodes; None if a filter can only be called node by node.

    Args:
        changed: The rows with pods added or removed.
        filters: The current results of the pod's filters in their order.
        nominated: The pods nominated to rows for which the pod must leave room.
        cycle: The state that out-of-tree plugins share. A plugin with AddPod or RemovePod is called row by row.

    Cost: a few operations over the rows for each filter.
    """
    if cycle is not None and cycle.extended:
        return None
    without = _first_of(changed, filters)
    if without is None or not nominated:
        return without
    beside = _first_of(changed.with_nominated(nominated), filters)
    return None if beside is None else beside.over(without)


def _codes_on(one: FilterResults, changed: ChangedRows) -> Codes | None:
    """Return an in-tree filter's reason codes for simulated nodes; None if the filter can only be called node by node.

    Shapes: (R,).
    """
    if one.reads & POD_ASPECTS:
        plugin = one.plugin
        return plugin.filter_changed_rows(one.state, changed) if isinstance(plugin, WhatIfFilter) else None
    return one.codes[changed.rows] if one.rejects_any else np.zeros(changed.rows.size, np.int32)


def _first_of(changed: ChangedRows, filters: Sequence[FilterResults]) -> RowVerdicts | None:
    """Return the first filter that rejects each simulated node; None if a filter can only be called node by node."""
    rejecting: list[tuple[FilterResults, Codes]] = []
    for one in filters:
        codes = None if isinstance(one, OutOfTreeResults) else _codes_on(one, changed)
        if codes is None:
            return None
        if np.count_nonzero(codes):
            rejecting.append((one, codes))
    return _verdicts(changed.rows.size, rejecting)


def _verdicts(size: int, rejecting: Sequence[tuple[FilterResults, Codes]]) -> RowVerdicts:
    first = np.zeros(size, np.int32)
    for place in range(len(rejecting), 0, -1):
        np.putmask(first, rejecting[place - 1][1] != 0, place)

    def status_of(index: int) -> Status | None:
        place = int(first[index])
        return rejecting[place - 1][0].reason(int(rejecting[place - 1][1][index])) if place else None

    return RowVerdicts(first == 0, status_of)
