"""VolumeRestrictions: disks that one pod holds at a time, and claims that one pod in the cluster holds at a time.

Knows which placed pods use which disks and claims. Both kinds of conflict end when the other pod goes.

Source: plugins/volumerestrictions/volume_restrictions.go, v1.36.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, Final

import numpy as np

from policysched.framework import (
    SKIP,
    Action,
    Aspect,
    Change,
    Cluster,
    Codes,
    Hint,
    Resource,
    Rows,
    Status,
    unresolvable,
    unschedulable,
)
from policysched.model.objects import Pod, Volume
from policysched.model.objects.storage import READ_WRITE_ONCE_POD
from policysched.plugins.helper.bases import OwnRowOnly, row_count
from policysched.plugins.helper.hints import pods_of
from policysched.plugins.volumes.claims import claim_missing, stated_claims, states_claim, stored_claim
from policysched.state.volumes.storage import has_volumes

DISK_REASON: Final = "node(s) had no available disk"
CLAIM_REASON: Final = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
DISK, CLAIM = 1, 2


@dataclass(frozen=True, slots=True)
class Conflicts:
    """Where a pod's disks are taken, and whether one of its claims is."""

    cluster: Cluster
    rows: frozenset[int]
    claimed: bool


class VolumeRestrictions(OwnRowOnly):
    """The plugin."""

    name = "VolumeRestrictions"
    filter_reads = Aspect.NONE
    per_pod = staticmethod(has_volumes)

    def prepare_filter(self, pod: Pod, cluster: Cluster) -> Any:
        """Find the rows that hold a pod with one of these disks, and claims in use.

        Cost: O(volumes of placed pods, where the pod has disks of its own).
        """
        exclusive = []
        for name in stated_claims(pod):
            claim = stored_claim(cluster.storage, pod, name)
            if claim is None:
                return unresolvable(claim_missing(name))
            if READ_WRITE_ONCE_POD in claim.spec.access_modes:
                exclusive.append(name)
        claimed = _is_any_in_use(cluster, pod, exclusive)
        disks = Disks(pod)
        if not disks and not claimed:
            return SKIP
        placed = cluster.storage.pods.values() if disks else ()
        rows = frozenset(one.row for one in placed if disks.conflict_with(one.pod))
        return Conflicts(cluster, rows, claimed)

    def filter(self, state: Conflicts, rows: Rows) -> Codes:
        """Reject rows with a conflicting disk, and all rows where a claim is in use."""
        nodes = state.cluster.nodes
        codes = np.full(row_count(nodes, rows), CLAIM if state.claimed else 0, np.int32)
        numbers = np.arange(nodes.columns.capacity)[rows]
        codes[np.isin(numbers, list(state.rows))] = DISK
        return codes

    def reason(self, state: Conflicts, code: int) -> Status:  # noqa: ARG002 - the code says it all
        """Name the conflict."""
        return unschedulable(DISK_REASON if code == DISK else CLAIM_REASON)

    def events(self) -> Sequence[Hint]:
        """Pods that give back a disk or a claim, new nodes, and claims that come."""
        return (
            Hint(Resource.ASSIGNED_POD, Action.DELETE, _deletion_helps),
            Hint(Resource.PENDING_POD, Action.DELETE, _deletion_helps),
            Hint(Resource.NODE, Action.ADD),
            Hint(Resource.CLAIM, Action.ADD, states_claim),
        )


class Disks:
    """A pod's own volumes that others must not use at the same time, found by those of another pod."""

    __slots__ = ("_writable",)

    def __init__(self, pod: Pod) -> None:
        self._writable: dict[Hashable, bool] = {}
        for volume in pod.spec.volumes:
            for disk, read_only in _disks(volume):
                self._writable[disk] = not read_only or self._writable.get(disk, False)

    def conflict_with(self, other: Pod) -> bool:
        """Tell whether another pod uses one of these disks in a way that excludes this one."""
        if not self._writable:
            return False
        theirs = (disk for volume in other.spec.volumes for disk in _disks(volume))
        return any(disk in self._writable and (self._writable[disk] or not read_only) for disk, read_only in theirs)

    def __len__(self) -> int:
        return len(self._writable)


def _disks(volume: Volume) -> Iterator[tuple[Hashable, bool]]:
    """Name the disks of a volume, an image once for each of its monitors; tell whether all may share it to read."""
    if volume.gce_persistent_disk is not None:
        yield ("gce", volume.gce_persistent_disk.pd_name), volume.gce_persistent_disk.read_only
    if volume.aws_elastic_block_store is not None:
        yield ("aws", volume.aws_elastic_block_store.volume_id), False
    if volume.iscsi is not None:
        yield ("iscsi", volume.iscsi.iqn), volume.iscsi.read_only
    if volume.rbd is not None:
        for monitor in volume.rbd.monitors:
            yield ("rbd", volume.rbd.pool, volume.rbd.image, monitor), volume.rbd.read_only


def _is_any_in_use(cluster: Cluster, pod: Pod, names: Iterable[str]) -> bool:
    """Tell whether a pod on a node that is there states one of the claims."""
    present = cluster.nodes.present.data
    stated: dict[str, frozenset[str]] = {}
    for name in names:
        for identity in cluster.storage.users(f"{pod.metadata.namespace}/{name}"):
            user = cluster.storage.pods[identity]
            if identity not in stated:
                stated[identity] = frozenset(stated_claims(user.pod) if present[user.row] else ())
            if name in stated[identity]:
                return True
    return False


def _deletion_helps(pod: Pod, change: Change, cluster: Cluster) -> bool:  # noqa: ARG001 - a hint's signature
    gone = pods_of(change)[0]
    if gone is None or gone.metadata.namespace != pod.metadata.namespace:
        return False
    return Disks(pod).conflict_with(gone) or not set(stated_claims(pod)).isdisjoint(stated_claims(gone))
