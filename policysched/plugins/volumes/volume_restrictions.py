"""VolumeRestrictions: disks that one pod holds at a time, and claims that one pod in the cluster holds at a time.

Knows which placed pods use which disks and claims. Both kinds of conflict end when the other pod goes.

Source: plugins/volumerestrictions/volume_restrictions.go, v1.36.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
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
    by_pod = True

    def prepare_filter(self, pod: Pod, cluster: Cluster) -> Any:
        """Find the rows that hold a pod with one of these disks, and claims in use.

        Cost: O(disks of placed pods that belong to no claim).
        """
        exclusive = []
        for name in stated_claims(pod):
            claim = stored_claim(cluster.storage, pod, name)
            if claim is None:
                return unresolvable(claim_missing(name))
            if READ_WRITE_ONCE_POD in claim.spec.access_modes:
                exclusive.append(name)
        claimed = any(_is_in_use(cluster, pod, name) for name in exclusive)
        disks = [volume for volume in pod.spec.volumes if is_restricted(volume)]
        if not disks and not claimed:
            return SKIP
        placed = cluster.storage.pods.values() if disks else ()
        rows = frozenset(one.row for one in placed if conflict(disks, one.pod))
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


def is_restricted(volume: Volume) -> bool:
    """Tell whether a pod's own volume is a disk that others must not use at the same time."""
    return bool(volume.gce_persistent_disk or volume.aws_elastic_block_store or volume.rbd or volume.iscsi)


def conflict(disks: Iterable[Volume], other: Pod) -> bool:
    """Tell whether another pod uses one of these disks in a way that excludes it."""
    return any(_same_disk(disk, theirs) for disk in disks for theirs in other.spec.volumes)


def _same_disk(one: Volume, other: Volume) -> bool:
    if one.gce_persistent_disk and other.gce_persistent_disk:
        ours, theirs = one.gce_persistent_disk, other.gce_persistent_disk
        if ours.pd_name == theirs.pd_name and not (ours.read_only and theirs.read_only):
            return True
    if one.aws_elastic_block_store and other.aws_elastic_block_store:
        return one.aws_elastic_block_store.volume_id == other.aws_elastic_block_store.volume_id
    if one.iscsi and other.iscsi:
        return one.iscsi.iqn == other.iscsi.iqn and not (one.iscsi.read_only and other.iscsi.read_only)
    if one.rbd and other.rbd:
        same = (one.rbd.pool, one.rbd.image) == (other.rbd.pool, other.rbd.image)
        shared = not set(one.rbd.monitors).isdisjoint(other.rbd.monitors)
        return same and shared and not (one.rbd.read_only and other.rbd.read_only)
    return False


def _is_in_use(cluster: Cluster, pod: Pod, name: str) -> bool:
    """Tell whether a pod on a node that is there states the claim."""
    present = cluster.nodes.present.data
    users = (cluster.storage.pods[identity] for identity in cluster.storage.users(f"{pod.metadata.namespace}/{name}"))
    return any(present[one.row] and name in stated_claims(one.pod) for one in users)


def _deletion_helps(pod: Pod, change: Change, cluster: Cluster) -> bool:  # noqa: ARG001 - a hint's signature
    gone = pods_of(change)[0]
    if gone is None or gone.metadata.namespace != pod.metadata.namespace:
        return False
    disks = [volume for volume in pod.spec.volumes if is_restricted(volume)]
    return conflict(disks, gone) or not set(stated_claims(pod)).isdisjoint(stated_claims(gone))
