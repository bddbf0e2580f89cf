"""`RowVolumes`: the volumes attached to one node, with the number of pods and VolumeAttachments of each volume.

A pod may have tens of thousands of volumes, and a node many such pods. So the claims of each pod are stored, and uses
are counted by claim and by CSI name: removing a pod subtracts its uses, and a changed claim changes one name.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Sequence
from operator import itemgetter

from policysched.model.objects.storage import is_made_for
from policysched.state.placed.pods import PlacedPod
from policysched.state.volumes.csi_names import (
    CountingError,
    CSIVolumeName,
    VolumeUses,
    claims_made_for,
    name_of,
    volume_uses,
)
from policysched.state.volumes.storage import Storage

_DRIVER = itemgetter(0)


class RowVolumes:
    """The volumes that are attached to one node.

    Args:
        row: The row.
        node: The node's name.
        has_csi_node: Whether the node has a CSINode.
        storage: The stored claims and volumes.
        rows_of: The rows of the pods that use each volume; this object updates its row.
    """

    __slots__ = (
        "_attached", "_attachments", "_faults", "_last_fault", "_names", "_order", "_row", "_rows_of",
        "_storage", "_used", "_users", "counts", "has_csi_node", "node", "pods",
    )  # fmt: skip

    def __init__(
        self, row: int, node: str, *, has_csi_node: bool, storage: Storage, rows_of: dict[CSIVolumeName, set[int]]
    ) -> None:
        self.node, self.has_csi_node = node, has_csi_node
        self.counts: dict[str, int] = {}
        """Number of attached volumes of each CSI driver."""
        self._row, self._storage, self._rows_of = row, storage, rows_of
        self.pods: dict[str, VolumeUses] = {}
        """The volumes of each counted pod, by pod identity; no volumes for a pod whose volumes cannot be determined."""
        self._order: dict[str, int] = {}
        """The order of arrival of pods whose volumes are unknown, or may become so after a change of a claim."""
        self._faults: dict[str, str] = {}
        self._last_fault: str | None = None
        self._users: dict[str | CSIVolumeName, int] = {}
        """Number of pods that use each claim or inline disk."""
        self._names: dict[str | CSIVolumeName, CSIVolumeName] = {}
        """The CSI name of each claim's volume and of each inline disk."""
        self._used: dict[CSIVolumeName, int] = {}
        """Number of claims and inline disks that stand for the CSI volume with each name."""
        self._attachments: dict[str, CSIVolumeName] = {}
        """The CSI name of the volume of each VolumeAttachment."""
        self._attached: dict[CSIVolumeName, int] = {}

    @property
    def is_empty(self) -> bool:
        """Whether no pods and no VolumeAttachments are counted on the node."""
        return not (self.pods or self._attachments)

    @property
    def error(self) -> str:
        """The error of the last pod whose volumes cannot be determined; empty if there is no such pod."""
        if self._last_fault is None and self._faults:
            self._last_fault = max(self._faults, key=self._order.__getitem__)
        return "" if self._last_fault is None else self._faults[self._last_fault]

    def clear(self) -> None:
        """Forget the volumes of all pods on the node."""
        for name in self._used:
            self._leave(name)
        self._used.clear()

    def add(self, identity: str, placed: PlacedPod, order: int | None) -> None:
        """Count the volumes of a pod on the node.

        Args:
            identity: The pod's identity.
            placed: The pod.
            order: A number above those of earlier pods; None if the pod is counted again.
        """
        try:
            uses = volume_uses(placed.pod, self._storage, has_csi_node=self.has_csi_node)
        except CountingError as error:
            uses = VolumeUses((), claims_made_for(placed.pod))
            self._faults[identity] = str(error)
            self._last_fault = None if order is None else identity
        self.pods[identity] = uses
        items, made_for_it = uses
        if order is not None and (made_for_it or not items):
            self._order[identity] = order
        users = self._users
        for item in items:
            if item in users:
                users[item] += 1
            else:
                users[item] = 1
                self._name(item)

    def remove(self, identity: str, *, goes: bool) -> None:
        """Subtract the volumes of a pod; if `goes` is false, the pod is counted again and keeps its order."""
        if goes:
            self._order.pop(identity, None)
        uses = self.pods.pop(identity)
        if self._faults.pop(identity, None) is not None and identity == self._last_fault:
            self._last_fault = None
        users = self._users
        for item in uses.items:
            count = users[item] - 1
            if count:
                users[item] = count
            else:
                del users[item]
                self._unname(item)

    def counts_alike(self, identity: str) -> bool:
        """Return whether a pod is counted and no change of its claims can make its volumes unknown."""
        return identity in self.pods and identity not in self._order

    def rename(self, claim: str) -> None:
        """Update the CSI name of a claim's volume, if a pod on the node uses the claim."""
        if claim in self._users and self._names.get(claim) != name_of(
            claim, self._storage, has_csi_node=self.has_csi_node
        ):
            self._unname(claim)
            self._name(claim)

    def can_be_told(self, identity: str, claim: str) -> bool:
        """Return whether a change of a claim cannot change whether the volumes of a pod can be determined."""
        uses = self.pods.get(identity)
        if uses is None:
            return True
        if identity in self._faults:
            return claim not in uses.made_for_it
        stored = self._storage.claims.stored(claim) if claim in uses.made_for_it else None
        return stored is None or is_made_for(stored, self._storage.pods[identity].pod)

    def attach(self, attachment: str) -> None:
        """Count the volume of a VolumeAttachment again after the attachment changed."""
        before = self._attachments.pop(attachment, None)
        if before is not None:
            if self._attached[before] > 1:
                self._attached[before] -= 1
            else:
                del self._attached[before]
                if before not in self._used:
                    self._count(before.driver, -1)
        name = self._attached_name(attachment)
        if name is not None:
            self._attachments[attachment] = name
            self._attached[name] = self._attached.get(name, 0) + 1
            if self._attached[name] == 1 and name not in self._used:
                self._count(name.driver, 1)

    def counts_with(self, pods: Iterable[tuple[str, PlacedPod]]) -> tuple[set[CSIVolumeName], dict[str, int], str]:
        """Return the number of attached volumes by driver as if only the given pods were on the node.

        Returns:
            The volumes that the pods use, the number of attached volumes by driver, and an error if the volumes of a
            pod cannot be determined.
        Cost: O(volumes of the pods), in built-in functions for pods on the row.
        """
        used: set[CSIVolumeName] = set()
        wrong = ""
        for identity, placed in pods:
            wrong = self._faults.get(identity, wrong)
            uses = self.pods.get(identity)
            if uses is not None:
                used.update(filter(None, map(self._names.get, uses.items)))
                continue
            try:
                items: Sequence[str | CSIVolumeName] = volume_uses(
                    placed.pod, self._storage, has_csi_node=self.has_csi_node
                ).items
            except CountingError as error:
                wrong = str(error)
                continue
            named = (name_of(item, self._storage, has_csi_node=self.has_csi_node) for item in items)
            used.update(filter(None, named))
        return used, Counter(map(_DRIVER, used.union(self._attached))), wrong

    def _attached_name(self, attachment: str) -> CSIVolumeName | None:
        one = self._storage.attachments.get(attachment)
        if one is None or one.spec.node_name != self.node or not one.spec.attacher:
            return None
        named = one.spec.source.persistent_volume_name
        volume = self._storage.volumes.stored(named) if named is not None else None
        if volume is None or volume.spec.csi is None:
            return None
        return CSIVolumeName(one.spec.attacher, volume.spec.csi.volume_handle)

    def _name(self, item: str | CSIVolumeName) -> None:
        name = name_of(item, self._storage, has_csi_node=self.has_csi_node)
        if name is None:
            return
        self._names[item] = name
        if name in self._used:
            self._used[name] += 1
            return
        self._used[name] = 1
        self._rows_of.setdefault(name, set()).add(self._row)
        if name not in self._attached:
            self.counts[name.driver] = self.counts.get(name.driver, 0) + 1

    def _unname(self, item: str | CSIVolumeName) -> None:
        name = self._names.pop(item, None)
        if name is None:
            return
        count = self._used[name] - 1
        if count:
            self._used[name] = count
            return
        del self._used[name]
        self._leave(name)
        if name not in self._attached:
            self._count(name.driver, -1)

    def _leave(self, name: CSIVolumeName) -> None:
        rows = self._rows_of[name]
        rows.discard(self._row)
        if not rows:
            del self._rows_of[name]

    def _count(self, driver: str, more: int) -> None:
        count = self.counts.get(driver, 0) + more
        if count:
            self.counts[driver] = count
        else:
            del self.counts[driver]
