"""VolumeRestrictions: rejects nodes where a disk of the pod is used, and pods whose ReadWriteOncePod claim is used.

Both kinds of conflict end when the other pod is deleted.

Source: plugins/volumerestrictions/volume_restrictions.go, v1.36.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from itertools import chain
from typing import Final

import numpy as np

from policysched.framework import (
    SKIP,
    Action,
    Aspect,
    Change,
    ChangedRow,
    Cluster,
    Codes,
    Hint,
    PerPod,
    PreparedFilter,
    Resource,
    Rows,
    Status,
    WhatIfFilter,
    unresolvable,
    unschedulable,
)
from policysched.model.objects import Pod
from policysched.model.objects.storage import READ_WRITE_ONCE_POD
from policysched.plugins.columns import row_count
from policysched.plugins.hint_parts import pods_of
from policysched.plugins.volumes.claims import claim_missing, stated_claims, states_claim, stored_claim, uses_volumes
from policysched.state.volumes.volume_users import DISK_KINDS, DiskKind, VolumeUsers, disks_of, disks_of_volume

DISK_REASON: Final = "node(s) had no available disk"
CLAIM_REASON: Final = (
    "node(s) unavailable due to PersistentVolumeClaim with ReadWriteOncePod access mode already in-use by another pod"
)
DISK, CLAIM = 1, 2


@dataclass(frozen=True, slots=True)
class Conflicts:
    """The filter's state: the placed pods that use the pod's disks or ReadWriteOncePod claims."""

    cluster: Cluster
    disks: Disks
    rows: Mapping[int, int]
    """The number of pods on each node that use a disk of the pod in a conflicting way."""
    claims: ExclusiveClaims
    in_use: int
    """The number of the pod's ReadWriteOncePod claims that placed pods use."""


class Disks:
    """The volumes of a pod that no other pod may use at the same time."""

    __slots__ = ("_names", "_writable")

    def __init__(self, pod: Pod) -> None:
        self._writable = disks_of(pod)
        self._names: dict[DiskKind, set[str]] = {}
        for kind, name, *_ in self._writable:
            self._names.setdefault(DISK_KINDS[kind], set()).add(name)

    def conflict_with(self, other: Pod) -> bool:
        """Return whether another pod uses one of the disks in a conflicting way."""
        alike = chain.from_iterable(kind.named(other.spec.volumes, names) for kind, names in self._names.items())
        theirs = (disk for volume in alike for disk in disks_of_volume(volume))
        return any(disk in self._writable and (self._writable[disk] or not read_only) for disk, read_only in theirs)

    def conflicting(self, users: VolumeUsers) -> set[str]:
        """Return the identities of the placed pods that use one of the disks in a conflicting way.

        Cost: O(disks and their users), however many volumes other pods have.
        """
        found: set[str] = set()
        for disk, writable in self._writable.items():
            theirs = users.of_disk(disk)
            found.update(theirs if writable else (identity for identity, writes in theirs.items() if writes))
        return found

    def __len__(self) -> int:
        return len(self._writable)


@dataclass(frozen=True, slots=True)
class ExclusiveClaims:
    """The ReadWriteOncePod claims of a pod."""

    namespace: str
    names: frozenset[str]

    def count_in_use(self, cluster: Cluster) -> int:
        """Return how many of the claims are used by pods on existing nodes."""
        users, present = cluster.storage.volume_users, cluster.nodes.present.data
        rows = (users.rows_stating(f"{self.namespace}/{name}") for name in self.names)
        return sum(any(present[row] for row in stating) for stating in rows)

    def count_volumes(self, pod: Pod) -> int:
        """Return how many volumes of a pod use one of the claims; namespaces are ignored, as in kube-scheduler."""
        sources = (volume.persistent_volume_claim for volume in pod.spec.volumes)
        return sum(source is not None and source.claim_name in self.names for source in sources)


def _deletion_helps(pod: Pod, change: Change, cluster: Cluster) -> bool:  # noqa: ARG001 - a hint's signature
    gone = pods_of(change)[0]
    if gone is None or gone.metadata.namespace != pod.metadata.namespace:
        return False
    return Disks(pod).conflict_with(gone) or not set(stated_claims(pod)).isdisjoint(stated_claims(gone))


class VolumeRestrictions(PerPod, WhatIfFilter[Conflicts]):
    """The VolumeRestrictions plugin: rejects conflicting uses of disks and ReadWriteOncePod claims."""

    name = "VolumeRestrictions"
    filter_reads = Aspect.PODS
    hints = (
        Hint(Resource.ASSIGNED_POD, Action.DELETE, _deletion_helps),
        Hint(Resource.PENDING_POD, Action.DELETE, _deletion_helps),
        Hint(Resource.NODE, Action.ADD),
        Hint(Resource.CLAIM, Action.ADD, states_claim),
    )
    has_own_results = staticmethod(uses_volumes)

    def prepare_filter(self, pod: Pod, cluster: Cluster) -> PreparedFilter[Conflicts]:
        """Return the placed pods with conflicting disks, and how many ReadWriteOncePod claims are in use.

        Cost: O(volumes of the pod, and the placed pods that use them).
        """
        exclusive = []
        for name in stated_claims(pod):
            claim = stored_claim(cluster.storage, pod, name)
            if claim is None:
                return unresolvable(claim_missing(name))
            if READ_WRITE_ONCE_POD in claim.spec.access_modes:
                exclusive.append(name)
        claims = ExclusiveClaims(pod.metadata.namespace, frozenset(exclusive))
        in_use = claims.count_in_use(cluster) if exclusive else 0
        disks = Disks(pod)
        if not disks and not in_use:
            return SKIP
        users = cluster.storage.volume_users
        rows = Counter(users.pods[identity].row for identity in disks.conflicting(users))
        return Conflicts(cluster, disks, rows, claims, in_use)

    def filter(self, state: Conflicts, rows: Rows) -> Codes:
        """Reject nodes with a conflicting disk; reject all nodes if a ReadWriteOncePod claim is in use."""
        nodes = state.cluster.nodes
        codes = np.full(row_count(nodes, rows), CLAIM if state.in_use else 0, np.int32)
        numbers = np.arange(nodes.columns.capacity)[rows]
        codes[np.isin(numbers, list(state.rows))] = DISK
        return codes

    def filter_changed(self, state: Conflicts, changed: ChangedRow) -> Status | None:
        """Return the rejection if a disk or a claim is in use on a simulated node, else None.

        A claim is counted once, and each volume of a removed pod subtracts one: at most one pod uses a claim.
        """
        disks, claims = state.disks, state.claims
        more = changed.more(disks, lambda placed: disks.conflict_with(placed.pod))
        if state.rows.get(changed.row, 0) + more > 0:
            return self.reason(state, DISK)
        in_use = state.in_use
        if claims.names:
            in_use += changed.more(claims, lambda placed: claims.count_volumes(placed.pod))
            in_use += changed.more_elsewhere(lambda placed: claims.count_volumes(placed.pod))
        return self.reason(state, CLAIM) if in_use > 0 else None

    def reason(self, state: Conflicts, code: int) -> Status:  # noqa: ARG002 - the code says it all
        """Return the status that a reason code stands for: a disk or a ReadWriteOncePod claim is in use."""
        return unschedulable(DISK_REASON if code == DISK else CLAIM_REASON)
