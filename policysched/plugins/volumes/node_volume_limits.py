"""NodeVolumeLimits: rejects nodes on which a CSI driver is missing or would exceed its limit of volumes.

The state counts the volumes of each driver by row. The volumes that a pod adds depend on whether the node has a CSINode
object: without one, volumes of migrated in-tree plugins are not counted for a driver. If a node lacks several drivers,
kube-scheduler reports any of them, and this plugin the first by name.

Source: plugins/nodevolumelimits/csi.go, v1.36 and v1.37.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from policysched.framework import (
    SKIP,
    Action,
    Aspect,
    Change,
    ChangedRow,
    Cluster,
    Code,
    Codes,
    Hint,
    Mask,
    Nothing,
    PerPod,
    Resource,
    Rows,
    Status,
    WhatIfFilter,
    unresolvable,
    unschedulable,
)
from policysched.model.csi_translation import TranslationError, inline_migration_of, translate_inline
from policysched.model.objects import CSINode, Pod, VolumeAttachment
from policysched.plugins.columns import codes_where, row_count
from policysched.plugins.hint_parts import has_place, pods_of
from policysched.plugins.volumes.claims import uses_claim, uses_volumes
from policysched.state.volumes.csi_names import CountingError, CSIVolumeName, csi_volumes

REASON: Final = "node(s) exceed max volume count"
EXCEEDED, WITHOUT_NODE, WITH_NODE, MISSING = 1, 2, 3, 4
"""Reason codes; a code from MISSING on is MISSING plus an index into the required drivers, then into the errors."""

Brought = frozenset[CSIVolumeName] | CountingError


@dataclass(frozen=True, slots=True)
class AddedVolumes:
    """The filter's state: CSI volumes that a pod would add to a node that has a CSINode object, or has none."""

    cluster: Cluster
    with_node: Brought
    without_node: Brought
    required: tuple[str, ...]
    """The sorted names of drivers that a node must have for the pod's volumes."""
    errors: tuple[tuple[int, str], ...]
    """The row numbers of the nodes on which volumes of placed pods are invalid, each with the error."""


def _may_be_csi(pod: Pod) -> bool:
    return any(one.persistent_volume_claim or one.ephemeral or inline_migration_of(one) for one in pod.spec.volumes)


def _brought(pod: Pod, cluster: Cluster, has_csi_node: bool) -> Brought:
    try:
        return frozenset(csi_volumes(pod, cluster.storage, has_csi_node=has_csi_node))
    except CountingError as error:
        return error


def _drivers(brought: Brought) -> set[str]:
    return set() if isinstance(brought, CountingError) else {one.driver for one in brought}


def _is_required(driver: str, cluster: Cluster) -> bool:
    stored = cluster.storage.csi_drivers.get(driver)
    return stored is not None and bool(stored.spec.prevent_pod_scheduling_if_missing)


def _exceeds(state: AddedVolumes, brought: Collection[CSIVolumeName], rows: Rows) -> Mask:
    """Return the nodes on which a driver would exceed its limit; volumes that the node already has do not count."""
    attachments = state.cluster.attachments
    exceeds: Mask = np.zeros(row_count(state.cluster.nodes, rows), np.bool_)
    by_driver: dict[str, list[CSIVolumeName]] = {}
    for one in brought:
        by_driver.setdefault(one.driver, []).append(one)
    for driver, volumes in by_driver.items():
        new = _new(volumes, state.cluster, rows)
        limits = attachments.limits(driver)[rows]
        too_many = attachments.counts(driver)[rows] + new > limits
        exceeds |= too_many if isinstance(new, int) else too_many & (new > 0)
    return exceeds


def _new(volumes: Sequence[CSIVolumeName], cluster: Cluster, rows: Rows) -> NDArray[np.int64] | int:
    """Return the number of volumes that are new on each node, or a single number if it is the same for all nodes."""
    there = [held for held in map(cluster.attachments.rows_with, volumes) if held]
    if not there:
        return len(volumes)
    counts = np.zeros(cluster.nodes.columns.capacity, np.int64)
    for held in there:
        counts[list(held)] += 1
    new: NDArray[np.int64] = len(volumes) - counts[rows]
    return new


def _limits(node: CSINode) -> dict[str, int]:
    drivers = node.spec.drivers
    return {one.name: (one.allocatable.count or 0) if one.allocatable is not None else 0 for one in drivers}


def _limit_rose(pod: Pod, change: Change, cluster: Cluster) -> bool:  # noqa: ARG001 - a hint's signature
    old, new = change.old, change.new
    if not isinstance(old, CSINode) or not isinstance(new, CSINode):
        return True
    before = _limits(old)
    return any(limit > before.get(name, 0) for name, limit in _limits(new).items())


def _deletion_helps(pod: Pod, change: Change, cluster: Cluster) -> bool:  # noqa: ARG001 - a hint's signature
    gone = pods_of(change)[0]
    return gone is not None and has_place(gone) and _may_be_csi(gone)


def _detaching_helps(pod: Pod, change: Change, cluster: Cluster) -> bool:  # noqa: ARG001 - a hint's signature
    attacher = change.old.spec.attacher if isinstance(change.old, VolumeAttachment) else ""
    for volume in pod.spec.volumes:
        if volume.persistent_volume_claim is not None:
            return True
        migration = inline_migration_of(volume)
        if migration is None:
            continue
        try:
            translate_inline(volume, migration)
        except TranslationError:
            return True
        if migration.driver == attacher:
            return True
    return False


class NodeVolumeLimits(PerPod, WhatIfFilter[AddedVolumes]):
    """The NodeVolumeLimits plugin: filters nodes by the CSI drivers' limits of volumes.

    Args:
        requires_drivers: Whether nodes without a driver are rejected, if its CSIDriver object demands that.
    """

    name = "NodeVolumeLimits"
    filter_reads = Aspect.PODS
    hints = (
        Hint(Resource.CSI_NODE, Action.ADD),
        Hint(Resource.CSI_NODE, Action.UPDATE, _limit_rose),
        Hint(Resource.ASSIGNED_POD, Action.DELETE, _deletion_helps),
        Hint(Resource.PENDING_POD, Action.DELETE, _deletion_helps),
        Hint(Resource.CLAIM, Action.ADD, uses_claim),
        Hint(Resource.ATTACHMENT, Action.DELETE, _detaching_helps),
    )
    filters_alone = True
    has_own_results = staticmethod(uses_volumes)

    def __init__(self, *, requires_drivers: bool = False) -> None:
        self._requires_drivers = requires_drivers

    def prepare_filter(self, pod: Pod, cluster: Cluster) -> AddedVolumes | Nothing:
        """Return the CSI volumes of the pod; skip pods without CSI volumes."""
        if not _may_be_csi(pod):
            return SKIP
        cluster.attachments.refresh()
        errors = tuple(sorted(cluster.attachments.errors.items()))
        size = cluster.nodes.size
        everywhere = np.count_nonzero(cluster.attachments.has_csi_node[:size]) == size
        with_node = _brought(pod, cluster, True)
        without_node = frozenset() if everywhere else _brought(pod, cluster, False)
        required: tuple[str, ...] = ()
        if self._requires_drivers:
            drivers = sorted(_drivers(with_node) | _drivers(without_node))
            required = tuple(one for one in drivers if _is_required(one, cluster))
        return AddedVolumes(cluster, with_node, without_node, required, errors)

    def filter(self, state: AddedVolumes, rows: Rows) -> Codes:
        """Reject nodes on which a CSI driver is missing or would exceed its limit."""
        attachments = state.cluster.attachments
        has_node = attachments.has_csi_node[rows]
        codes = np.zeros(row_count(state.cluster.nodes, rows), np.int32)
        if isinstance(state.with_node, CountingError):
            codes[has_node] = WITH_NODE
        elif state.with_node:
            codes = codes_where(has_node & _exceeds(state, state.with_node, rows), EXCEEDED)
            self._mark_errors(state, rows, codes, attachments.limited[rows])
        if isinstance(state.without_node, CountingError):
            codes[~has_node] = WITHOUT_NODE
        for place, driver in reversed([*enumerate(state.required)]):
            needed = np.where(has_node, driver in _drivers(state.with_node), driver in _drivers(state.without_node))
            codes[needed & ~attachments.installed(driver)[rows]] = MISSING + place
        return codes

    def reads_other_rows(self, state: AddedVolumes) -> bool:  # noqa: ARG002 - the same for all states
        """Return False: the result for a node depends on this node alone."""
        return False

    def filter_changed(self, state: AddedVolumes, changed: ChangedRow) -> Status | None:
        """Return the rejection of a simulated node, or None if the volumes fit.

        Cost: O(volumes of the row's pods) in built-in loops.
        """
        attachments, row = state.cluster.attachments, changed.row
        has_node = bool(attachments.has_csi_node[row])
        brought = state.with_node if has_node else state.without_node
        if isinstance(brought, CountingError):
            return self.reason(state, WITH_NODE if has_node else WITHOUT_NODE)
        needed = _drivers(brought)
        for place, driver in enumerate(state.required):
            if driver in needed and not attachments.installed(driver)[row]:
                return self.reason(state, MISSING + place)
        if not has_node or not brought:
            return None
        used, counts, error = attachments.counts_with(row, changed.pods())
        if error and attachments.limited[row]:
            return Status(Code.ERROR, (error,))
        new = Counter(one.driver for one in brought - used)
        exceeds = any(counts.get(driver, 0) + count > attachments.limits(driver)[row] for driver, count in new.items())
        return self.reason(state, EXCEEDED) if exceeds else None

    def reason(self, state: AddedVolumes, code: int) -> Status:
        """Return the status that a reason code stands for: exceeded limit, missing driver or invalid volume."""
        if code == EXCEEDED:
            return unschedulable(REASON)
        if code >= MISSING:
            place = code - MISSING
            if place < len(state.required):
                return unschedulable(f"{state.required[place]} CSI driver is not installed on the node")
            return Status(Code.ERROR, (state.errors[place - len(state.required)][1],))
        error = state.with_node if code == WITH_NODE else state.without_node
        missing = isinstance(error, CountingError) and error.missing
        return unresolvable(str(error)) if missing else Status(Code.ERROR, (str(error),))

    @staticmethod
    def _mark_errors(state: AddedVolumes, rows: Rows, codes: Codes, limited: Mask) -> None:
        """Set the reason codes of the nodes on which volumes of placed pods are invalid."""
        if not state.errors:
            return
        marks = np.zeros(state.cluster.nodes.columns.capacity, np.int32)
        marks[[row for row, _ in state.errors]] = MISSING + len(state.required) + np.arange(len(state.errors))
        marked = np.where(limited, marks[rows], 0)
        np.copyto(codes, marked, where=marked > 0)
