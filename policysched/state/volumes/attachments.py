"""How many volumes of each CSI driver are attached to each node, and its limits, kept per row.

A volume counts once on a node, however many pods there use it, and whether a pod or only a VolumeAttachment says that
it is there. Rows where any of that changed are counted anew when somebody asks next; in between nothing is recomputed.

A claim leads to its volume, an unbound one to the driver that will provision it;
disks of old in-tree plugins count as their driver's on nodes that have CSI drivers at all. What cannot be found out
does not count.

Source: pkg/scheduler/framework/plugins/nodevolumelimits/csi.go (Filter, getNodeVolumeAttachmentInfo,
filterAttachableVolumes, getCSIDriverInfo), utils.go, v1.36.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from policysched.model.csi_translation import (
    BY_IN_TREE,
    OVERLOOKED,
    TranslationError,
    inline_migration_of,
    migration_of,
    translate,
    translate_inline,
)
from policysched.model.objects import (
    CSINode,
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    StorageClass,
    Volume,
    VolumeAttachment,
)
from policysched.model.objects.storage import MIGRATED_PLUGINS, claim_name, class_of, is_made_for
from policysched.pausing import Pausing
from policysched.state.cluster_events import Change
from policysched.state.placed.pods import PlacedPod, PodTable
from policysched.state.tables.columns import Column, ColumnSet
from policysched.state.tables.nodes import NodeTable
from policysched.state.volumes.storage import Storage

NO_LIMIT: Final = 2**63 - 1
"""More than can ever be attached."""
MOST_DRIVERS: Final = 256
"""Of how many drivers there are columns."""


class DriverNumbers:
    """A number for each row and CSI driver, kept as it is said of rows; drivers that are asked about have a column.

    A node may name any number of drivers, and a column takes memory for all nodes.

    Args:
        columns: Where columns are made.
        absent: The number where nothing is said.
    """

    __slots__ = ("_absent", "_asked", "_columns", "_said")

    def __init__(self, columns: ColumnSet, absent: int) -> None:
        self._columns, self._absent = columns, absent
        self._said: dict[int, Mapping[str, int]] = {}
        self._asked: dict[str, Column] = {}

    def store(self, row: int, numbers: Mapping[str, int]) -> None:
        """Take what is said of a row."""
        if numbers:
            self._said[row] = numbers
        else:
            self._said.pop(row, None)
        for driver, column in self._asked.items():
            column.data[row] = numbers.get(driver, self._absent)

    def of(self, driver: str) -> NDArray[np.int64]:
        """Return the numbers of a driver.

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


class Attachments:
    """Attached volumes and limits by row.

    Shapes: columns (capacity,) int64.
    """

    def __init__(self, columns: ColumnSet, nodes: NodeTable, pods: PodTable, storage: Storage) -> None:
        self._columns, self._nodes, self._pods, self._storage = columns, nodes, pods, storage
        self._counts, self._limits = DriverNumbers(columns, 0), DriverNumbers(columns, NO_LIMIT)
        self._limited = columns.new(np.bool_)
        self._has_csi_node = columns.new(np.bool_)
        self._migrated: dict[str, Column] = {}
        self._by_row: dict[int, set[CSIVolumeName]] = {}
        self._rows_of: dict[CSIVolumeName, set[int]] = {}
        self._errors: dict[int, str] = {}
        self._stale: set[int] = set()
        """The rows with other volumes."""
        self._renewed: set[int] = set()
        """The rows with another node, or another CSINode object."""

    def touch(self, row: int) -> None:
        """Count a row anew before the next answer: a pod with volumes came or went."""
        self._stale.add(row)
        if self._nodes.nodes[row] is None:
            # the row may have been another node's, and a CSINode object may be there before its node
            self._renewed.add(row)

    def touch_node(self, row: int) -> None:
        """Look at a row's node anew before the next answer, and count the row anew."""
        self._renewed.add(row)
        self._stale.add(row)

    def refresh(self) -> None:
        """Count what is stale.

        Cost: O(pods with volumes on the rows that changed).
        """
        for row in self._renewed:
            self._renew(row)
        self._renewed.clear()
        for row in self._stale:
            self._count(row)
        self._stale.clear()

    def refreshing(self) -> Pausing[None]:
        """Count what is stale, and what becomes so meanwhile, pausing after each row."""
        while self._stale:
            while self._renewed:
                self._renew(self._renewed.pop())
            self._count(self._stale.pop())
            yield

    def migrated(self, in_tree: str) -> NDArray[np.bool_]:
        """Tell which rows have moved from an in-tree plugin to the driver that took its place."""
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
        """Which rows have a limit for some driver."""
        data: NDArray[np.bool_] = self._limited.data
        return data

    @property
    def has_csi_node(self) -> NDArray[np.bool_]:
        """Which rows have a CSINode object."""
        data: NDArray[np.bool_] = self._has_csi_node.data
        return data

    def counts(self, driver: str) -> NDArray[np.int64]:
        """Return how many volumes of a driver are attached."""
        return self._counts.of(driver)

    def limits(self, driver: str) -> NDArray[np.int64]:
        """Return how many volumes of a driver may be attached, NO_LIMIT where any number may."""
        return self._limits.of(driver)

    def rows_with(self, volume: CSIVolumeName) -> Collection[int]:
        """Return the rows with a pod that uses a volume."""
        return self._rows_of.get(volume, ())

    @property
    def errors(self) -> dict[int, str]:
        """What is wrong with the volumes of the pods on a row, for rows where they cannot be told."""
        return self._errors

    def follow(self, change: Change) -> None:
        """Record what a change of claims, volumes, classes or CSI objects touches."""
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
                self._touch_node(obj.spec.node_name)

    def _touch_volume(self, name: str) -> None:
        for key in self._storage.claims_of(name):
            self._touch_users(key)
        for one in self._storage.attachments_of(name):
            self._touch_node(one.spec.node_name)

    def _touch_class(self, name: str) -> None:
        """Touch the rows with claims of a class that have no volume yet: for them its provisioner counts."""
        for claim in self._storage.claims.all_stored():
            if class_of(claim) == name and self._storage.volumes.stored(claim.spec.volume_name) is None:
                self._touch_users(claim.key)

    def _touch_users(self, claim: str) -> None:
        self._stale.update(self._storage.pods[identity].row for identity in self._storage.users(claim))

    def _touch_node(self, name: str) -> None:
        row = self._nodes.row_of.get(name)
        if row is not None:
            self.touch_node(row)

    def used_by(self, pods: Iterable[PlacedPod], *, has_csi_node: bool) -> tuple[set[CSIVolumeName], str]:
        """Return the volumes that pods on one node use, and what is wrong with them, empty where nothing is."""
        used: set[CSIVolumeName] = set()
        wrong = ""
        for placed in pods:
            try:
                used |= csi_volumes(placed.pod, self._storage, has_csi_node=has_csi_node, placed=True)
            except CountingError as error:
                wrong = str(error)
        return used, wrong

    def attached(self, row: int, used: Collection[CSIVolumeName]) -> set[CSIVolumeName]:
        """Return the volumes of a row whose pods use some: these, and those that a VolumeAttachment names."""
        found = set(used)
        for one in self._storage.attached_to(self._nodes.names[row]):
            named = one.spec.source.persistent_volume_name
            volume = self._storage.volumes.stored(named) if one.spec.attacher and named is not None else None
            if volume is not None and volume.spec.csi is not None:
                found.add(CSIVolumeName(one.spec.attacher, volume.spec.csi.volume_handle))
        return found

    def _count(self, row: int) -> None:
        used, error = self.used_by(self._pods.on_row(row), has_csi_node=bool(self._has_csi_node.data[row]))
        self._errors.pop(row, None)
        if error:
            self._errors[row] = error
        self._note_used(row, used)
        counts: dict[str, int] = {}
        for one in self.attached(row, used):
            counts[one.driver] = counts.get(one.driver, 0) + 1
        self._counts.store(row, counts)

    def _renew(self, row: int) -> None:
        node = self._storage.csi_nodes.get(self._nodes.names[row])
        self._has_csi_node.data[row] = node is not None
        moved = _moved(node)
        for in_tree, column in self._migrated.items():
            column.data[row] = in_tree in moved
        limits = {
            one.name: one.allocatable.count
            for one in (node.spec.drivers if node is not None else ())
            if one.allocatable is not None and one.allocatable.count is not None
        }
        self._limited.data[row] = bool(limits)
        self._limits.store(row, limits)

    def _note_used(self, row: int, used: set[CSIVolumeName]) -> None:
        before = self._by_row.pop(row, set())
        for gone in before - used:
            rows = self._rows_of[gone]
            rows.discard(row)
            if not rows:
                del self._rows_of[gone]
        for come in used - before:
            self._rows_of.setdefault(come, set()).add(row)
        if used:
            self._by_row[row] = used


def _moved(node: CSINode | None) -> list[str]:
    annotated = node.metadata.annotations.get(MIGRATED_PLUGINS, "") if node is not None else ""
    return annotated.split(",")


class CSIVolumeName(NamedTuple):
    """A driver and its handle of a volume; equal names are one volume, however many pods use it."""

    driver: str
    handle: str


class CountingError(Exception):
    """A pod's volumes cannot be told; `missing` where a claim that it needs is not there."""

    def __init__(self, message: str, *, missing: bool = False) -> None:
        super().__init__(message)
        self.missing = missing


def csi_volumes(pod: Pod, storage: Storage, *, has_csi_node: bool, placed: bool) -> set[CSIVolumeName]:
    """Name the volumes of a pod that CSI drivers attach.

    Args:
        pod: The pod.
        storage: Where its claims are.
        has_csi_node: Whether the node has a CSINode object, without which in-tree disks do not count as a driver's.
        placed: Whether the pod is on a node already: then claims that are gone are overlooked.

    Raises:
        CountingError: the volumes cannot be told.
    """
    named = (_name(pod, volume, storage, has_csi_node, placed) for volume in pod.spec.volumes)
    return {one for one in named if one is not None}


def _name(pod: Pod, volume: Volume, storage: Storage, has_csi_node: bool, placed: bool) -> CSIVolumeName | None:
    name = claim_name(pod, volume)
    if name is None:
        return _inline(volume, has_csi_node)
    if not name:
        raise CountingError("PersistentVolumeClaim had no name")
    key = f"{pod.metadata.namespace}/{name}"
    claim = storage.claims.stored(key)
    if claim is None:
        if placed:
            return None
        raise CountingError(f'looking up PVC {key}: persistentvolumeclaim "{name}" not found', missing=True)
    if volume.ephemeral is not None and not is_made_for(claim, pod):
        raise CountingError(f"PVC {key} was not created for pod {pod.key} (pod is not owner)")
    return _of_claim(claim, storage, has_csi_node)


def _inline(volume: Volume, has_csi_node: bool) -> CSIVolumeName | None:
    migration = inline_migration_of(volume)
    if migration is None or not has_csi_node:
        return None
    try:
        return CSIVolumeName(migration.driver, translate_inline(volume, migration))
    except TranslationError as error:
        raise CountingError(f"converting volume({volume.name}) from inline to csi: {error}") from error


def _of_claim(claim: PersistentVolumeClaim, storage: Storage, has_csi_node: bool) -> CSIVolumeName | None:
    volume = storage.volumes.stored(claim.spec.volume_name) if claim.spec.volume_name else None
    if volume is None:
        return _provisioned(claim, storage, has_csi_node)
    found = _of_volume(volume, has_csi_node)
    return found if found is not None and all(found) else None


def _of_volume(volume: PersistentVolume, has_csi_node: bool) -> CSIVolumeName | None:
    if volume.spec.csi is not None:
        return CSIVolumeName(volume.spec.csi.driver, volume.spec.csi.volume_handle)
    migration = migration_of(volume)
    if migration is None or not has_csi_node:
        return None
    try:
        return CSIVolumeName(migration.driver, translate(volume, migration))
    except TranslationError:
        return None


def _provisioned(claim: PersistentVolumeClaim, storage: Storage, has_csi_node: bool) -> CSIVolumeName | None:
    """Name the volume that is still to be made for a claim: it counts as one that no other claim has."""
    of_class = storage.classes.get(class_of(claim))
    if of_class is None or of_class.provisioner in OVERLOOKED or not of_class.provisioner:
        return None
    migration = BY_IN_TREE.get(of_class.provisioner)
    if migration is not None and not has_csi_node:
        return None
    driver = of_class.provisioner if migration is None else migration.driver
    return CSIVolumeName(driver, f"unbound-{claim.key}")
