"""`Attachments`: for each node the installed CSI drivers, their volume limits and the numbers of attached volumes.

A volume counts once per node, however many pods or VolumeAttachments name it. Changes are counted at the next
`refresh`, and only these: a pod with many volumes takes no time when another pod is placed on its node.

Source: pkg/scheduler/framework/plugins/nodevolumelimits/csi.go (Filter, getNodeVolumeAttachmentInfo),
v1.36.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Mapping
from typing import Final

import numpy as np
from numpy.typing import NDArray

from policysched.model.objects import CSINode, PersistentVolume, PersistentVolumeClaim, StorageClass, VolumeAttachment
from policysched.model.objects.storage import MIGRATED_PLUGINS, class_of
from policysched.state.cluster_events import Change
from policysched.state.placed.pods import PlacedPod, PodTable, pod_id
from policysched.state.tables.columns import Column, ColumnSet
from policysched.state.tables.nodes import NodeTable
from policysched.state.volumes.csi_names import CSIVolumeName
from policysched.state.volumes.row_volumes import RowVolumes
from policysched.state.volumes.storage import Storage

NO_LIMIT: Final = 2**63 - 1
"""The volume limit of a CSI driver for which the CSINode states no limit."""
MOST_DRIVERS: Final = 256
"""Maximum number of CSI drivers with an array over nodes; beyond it, all are dropped, and created again when read."""


class DriverNumbers:
    """A number for each node and CSI driver, such as a limit; a driver whose numbers are read gets an array over nodes.

    A node may name any number of drivers, and a column takes memory for all nodes.

    Args:
        columns: Creates the columns.
        absent: The number for a row without the driver.
    """

    __slots__ = ("_absent", "_asked", "_columns", "_said")

    def __init__(self, columns: ColumnSet, absent: int) -> None:
        self._columns, self._absent = columns, absent
        self._said: dict[int, Mapping[str, int]] = {}
        self._asked: dict[str, Column] = {}

    def store(self, row: int, numbers: Mapping[str, int]) -> None:
        """Set the numbers of the CSI drivers of one node."""
        if numbers:
            self._said[row] = numbers
        else:
            self._said.pop(row, None)
        for driver, column in self._asked.items():
            column.data[row] = numbers.get(driver, self._absent)

    def of(self, driver: str) -> NDArray[np.int64]:
        """Return the number of a CSI driver for each node.

        Shapes: (capacity,).
        """
        column = self._asked.get(driver)
        if column is None:
            if len(self._asked) >= MOST_DRIVERS:
                self._asked.clear()
            column = self._asked[driver] = self._columns.new(np.int64, self._absent)
            for row, numbers in self._said.items():
                column.data[row] = numbers.get(driver, self._absent)
        data: NDArray[np.int64] = column.data
        return data


class StaleRow:
    """Changes of pods, claims and attachments on one node that its counts of attached volumes do not include yet."""

    __slots__ = ("attachments", "pods", "uses")

    def __init__(self) -> None:
        self.pods: dict[str, bool] = {}
        """The pods to count again, by identity, in the order of arrival; true if the pod was placed or removed."""
        self.uses: dict[tuple[str, str], None] = {}
        """The changed claims, each with the identity of a pod on the node that uses the claim."""
        self.attachments: dict[str, None] = {}
        """The names of the VolumeAttachments that were added, changed or deleted."""


class Attachments:
    """For each node and CSI driver, the number of attached volumes and the limit.

    Shapes: columns (capacity,) int64.
    """

    def __init__(self, columns: ColumnSet, nodes: NodeTable, pods: PodTable, storage: Storage) -> None:
        self._columns, self._nodes, self._pods, self._storage = columns, nodes, pods, storage
        self._counts, self._limits = DriverNumbers(columns, 0), DriverNumbers(columns, NO_LIMIT)
        self._installed = DriverNumbers(columns, 0)
        self._limited = columns.new(np.bool_)
        self._has_csi_node = columns.new(np.bool_)
        self._migrated: dict[str, Column] = {}
        self._by_row: dict[int, RowVolumes] = {}
        self._rows_of: dict[CSIVolumeName, set[int]] = {}
        self._errors: dict[int, str] = {}
        self._arrivals = itertools.count()
        self._stale: dict[int, StaleRow] = {}
        """The rows of the nodes whose counts are not up to date, with the changes to include."""
        self._renewed: set[int] = set()
        """The rows whose node is new, or whose node's CSINode changed."""

    def touch(self, row: int, identity: str) -> None:
        """Record that a pod with volumes was placed on a node or removed from it."""
        pods = self._stale_row(row).pods
        pods.pop(identity, None)  # it moves behind earlier pods
        pods[identity] = True
        if self._nodes.nodes[row] is None:
            # The row may have had another node, and a CSINode may exist before its node.
            self._renewed.add(row)

    def counts_alike(self, row: int, identity: str) -> bool:
        """Return whether a new version of a pod with equal volumes leaves the counts of its node unchanged."""
        known = self._by_row.get(row)
        return known is not None and row not in self._stale and known.counts_alike(identity)

    def touch_node(self, row: int) -> None:
        """Record that the node in a row, or its CSINode, changed."""
        self._renewed.add(row)
        self._stale_row(row)

    def forget(self, row: int) -> None:
        """Forget the counts of a row that has neither a node nor pods any more."""
        known = self._by_row.pop(row, None)
        if known is not None:
            known.clear()
        self.touch_node(row)

    def refresh(self) -> None:
        """Bring the counts of attached volumes of all nodes up to date.

        Cost: O(volumes of placed and removed pods + changed claims and attachments).
        """
        for row in tuple(self._stale):
            self.refresh_row(row)

    def refresh_row(self, row: int) -> None:
        """Bring the counts of attached volumes of one node up to date."""
        stale = self._stale.get(row)
        if stale is None:
            return
        known = self._by_row.get(row)
        if known is None or row in self._renewed:
            known = self._current(row, stale)
        for claim, identity in stale.uses:  # first: a pod is then counted once even if several of its claims changed
            if identity in stale.pods:
                continue
            if known.can_be_told(identity, claim):
                known.rename(claim)
            else:
                stale.pods[identity] = False
        for identity, moved in stale.pods.items():
            self._recount(row, known, identity, moved=moved)
        for name in stale.attachments:
            known.attach(name)
        self._finish(row, known)

    def migrated(self, in_tree: str) -> NDArray[np.bool_]:
        """Return a mask of the nodes on which an in-tree volume plugin is migrated to its CSI driver."""
        column = self._migrated.get(in_tree)
        if column is None:
            column = self._migrated[in_tree] = self._columns.new(np.bool_)
            for name, node in self._storage.csi_nodes.items():
                row = self._nodes.row_of.get(name)
                if row is not None:
                    column.data[row] = in_tree in _moved(node)
        data: NDArray[np.bool_] = column.data
        return data

    @property
    def limited(self) -> NDArray[np.bool_]:
        """Mask of the nodes on which any CSI driver has a volume limit."""
        data: NDArray[np.bool_] = self._limited.data
        return data

    @property
    def has_csi_node(self) -> NDArray[np.bool_]:
        """Mask of the nodes that have a CSINode."""
        data: NDArray[np.bool_] = self._has_csi_node.data
        return data

    def counts(self, driver: str) -> NDArray[np.int64]:
        """Return the number of attached volumes of a CSI driver on each node."""
        return self._counts.of(driver)

    def limits(self, driver: str) -> NDArray[np.int64]:
        """Return the volume limit of a CSI driver on each node; NO_LIMIT if the CSINode states none."""
        return self._limits.of(driver)

    def installed(self, driver: str) -> NDArray[np.bool_]:
        """Return a mask of the nodes whose CSINode lists a CSI driver."""
        installed: NDArray[np.bool_] = self._installed.of(driver) != 0
        return installed

    def rows_with(self, volume: CSIVolumeName) -> Collection[int]:
        """Return the rows of the nodes whose pods use a CSI volume."""
        return self._rows_of.get(volume, ())

    @property
    def errors(self) -> dict[int, str]:
        """By row, the error of each node with a pod whose volumes cannot be determined."""
        return self._errors

    def follow(self, change: Change) -> None:
        """Record the nodes whose counts may change with a changed claim, volume, StorageClass or CSI object."""
        for obj in (change.old, change.new):
            if isinstance(obj, PersistentVolumeClaim):
                self._touch_users(obj.key)
            elif isinstance(obj, PersistentVolume):
                self._touch_volume(obj.metadata.name)
            elif isinstance(obj, StorageClass):
                self._touch_class(obj.metadata.name)
            elif isinstance(obj, CSINode):
                self._touch_node(obj.metadata.name)
            elif isinstance(obj, VolumeAttachment):
                self._touch_attachment(obj)

    def _touch_volume(self, name: str) -> None:
        for key in self._storage.claims_of(name):
            self._touch_users(key)
        for one in self._storage.attachments_of(name):
            self._touch_attachment(one)

    def _touch_class(self, name: str) -> None:
        """Record the uses of a StorageClass's claims that have no volume yet and count for the class's provisioner."""
        for claim in self._storage.claims.all_stored():
            if class_of(claim) == name and self._storage.volumes.stored(claim.spec.volume_name) is None:
                self._touch_users(claim.key)

    def _touch_users(self, claim: str) -> None:
        for identity in self._storage.users(claim):
            self._stale_row(self._storage.pods[identity].row).uses[claim, identity] = None

    def _touch_attachment(self, attachment: VolumeAttachment) -> None:
        row = self._nodes.row_of.get(attachment.spec.node_name)
        if row is not None:
            self._stale_row(row).attachments[attachment.metadata.name] = None

    def _touch_node(self, name: str) -> None:
        row = self._nodes.row_of.get(name)
        if row is not None:
            self.touch_node(row)

    def _stale_row(self, row: int) -> StaleRow:
        stale = self._stale.get(row)
        if stale is None:
            stale = self._stale[row] = StaleRow()
        return stale

    def counts_with(self, row: int, pods: Iterable[PlacedPod]) -> tuple[set[CSIVolumeName], dict[str, int], str]:
        """Return the number of attached volumes by driver as if only the given pods were on the node of a row.

        Returns:
            The volumes that the pods use, the number of attached volumes by driver, and an error if the volumes of a
            pod cannot be determined.
        """
        self.refresh_row(row)
        found = self._by_row.get(row)
        if found is None:
            found = self._made(row)
        return found.counts_with((pod_id(one.pod), one) for one in pods)

    def _current(self, row: int, stale: StaleRow) -> RowVolumes:
        """Return the volumes of a node, to be updated; without volumes if the node or its CSINode is another one."""
        if row not in self._renewed:  # the row has no counts yet
            known = self._by_row[row] = self._made(row)
            return known
        self._renewed.discard(row)
        self._renew(row)
        before, name = self._by_row.get(row), self._nodes.names[row]
        if before is not None and before.node == name and before.has_csi_node == bool(self._has_csi_node.data[row]):
            return before
        if before is not None:
            before.clear()
        stale.uses.clear()
        stale.attachments = dict.fromkeys(one.metadata.name for one in self._storage.attached_to(name))
        identities = (pod_id(one.pod) for one in self._pods.on_row(row))
        stale.pods = dict.fromkeys((one for one in identities if one in self._storage.pods), True)
        made = self._by_row[row] = self._made(row)
        return made

    def _made(self, row: int) -> RowVolumes:
        has_csi_node = bool(self._has_csi_node.data[row])
        return RowVolumes(
            row, self._nodes.names[row], has_csi_node=has_csi_node, storage=self._storage, rows_of=self._rows_of
        )

    def _recount(self, row: int, known: RowVolumes, identity: str, *, moved: bool) -> None:
        """Count the volumes of a pod again; only subtract them if the pod is no longer on the node."""
        if identity in known.pods:
            known.remove(identity, goes=moved)
        placed = self._storage.pods.get(identity)
        if placed is not None and placed.row == row:
            known.add(identity, placed, next(self._arrivals) if moved else None)

    def _finish(self, row: int, known: RowVolumes) -> None:
        """Make the up-to-date counts of a node available to readers."""
        del self._stale[row]
        if known.error:
            self._errors[row] = known.error
        elif self._errors:
            self._errors.pop(row, None)
        self._counts.store(row, known.counts)
        if known.is_empty:
            del self._by_row[row]

    def _renew(self, row: int) -> None:
        node = self._storage.csi_nodes.get(self._nodes.names[row])
        self._has_csi_node.data[row] = node is not None
        moved = _moved(node)
        for in_tree, column in self._migrated.items():
            column.data[row] = in_tree in moved
        drivers = node.spec.drivers if node is not None else ()
        self._installed.store(row, dict.fromkeys([one.name for one in drivers], 1))
        limits = {
            one.name: one.allocatable.count
            for one in drivers
            if one.allocatable is not None and one.allocatable.count is not None
        }
        self._limited.data[row] = bool(limits)
        self._limits.store(row, limits)


def _moved(node: CSINode | None) -> list[str]:
    annotated = node.metadata.annotations.get(MIGRATED_PLUGINS, "") if node is not None else ""
    return annotated.split(",")
