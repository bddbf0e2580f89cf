"""`VolumeTopology`: the nodes that match volumes' node affinity and StorageClasses' allowed topologies.

Field requirements in the node affinity of a volume match no node, and so do selectors that cannot be parsed.

Shapes: N rows in use -> (N,) bool.
Source: component-helpers/storage/volume/helpers.go (CheckNodeAffinity), pkg/apis/core/v1/helper/helpers.go
(MatchTopologySelectorTerms), plugins/volumebinding/binder.go (tryTranslatePVToCSI, nodeHasAccess), v1.36.
"""

from __future__ import annotations

from typing import TypeAlias

import msgspec
import numpy as np
from cachetools import LRUCache

from policysched.framework import NO_ROWS, Cluster, Mask, RowNumbers, Rows
from policysched.model.csi_translation import Migration, TranslationError, migration_of, translate, translate_affinity
from policysched.model.objects import LabelSelector, NodeSelector, PersistentVolume, Requirement, StorageClass
from policysched.model.objects.storage import VolumeNodeAffinity, affinity_key
from policysched.model.quantity import value
from policysched.model.selection.node_selectors import NodeSelectorMatcher, NodeTerm, lenient_node_selector
from policysched.model.selection.selectors import (
    LabelRequirement,
    Operator,
    SelectorError,
    compile_selector,
    requirement,
)
from policysched.plugins.nodes.node_selection import SelectorTest
from policysched.plugins.volumes.capacities import CapacityRows, Measure
from policysched.state.tables.interner import MISSING

KEPT = 256
"""Maximum number of cached masks of nodes."""
MOST_AFFINITIES = 1 << 16
"""Maximum number of cached node affinities of volumes."""
MOST_ROWS = 2 << 20
"""Maximum number of cached row numbers of all topologies together."""
FEW_ROWS = 16
"""Maximum number of a volume's nodes that are cached as row numbers; more nodes are cached as a mask."""
_ENCODER = msgspec.json.Encoder()
Demands: TypeAlias = tuple[LabelRequirement, ...]


class VolumeTopology:
    """The nodes that can reach each volume; cached by the volume's node affinity until a node changes.

    Callers must not change the masks.

    Args:
        cluster: The cluster.
        row: The only row to evaluate; None for all rows.
        measure: Measures the sizes of volumes that drivers can provision.
    """

    __slots__ = (
        "_capacities",
        "_cluster",
        "_demands",
        "_few",
        "_masks",
        "_row",
        "_rows",
        "_rows_by_value",
        "_rows_of",
        "_seen",
        "everywhere",
        "measure",
    )

    def __init__(self, cluster: Cluster, row: int | None = None, measure: Measure = value) -> None:
        self._cluster = cluster
        self._row = row
        self.measure = measure
        self._masks: LRUCache[bytes, Mask] = LRUCache(KEPT)
        self._rows_of: LRUCache[bytes, RowNumbers] = LRUCache(MOST_ROWS, lambda rows: 1 + rows.size)
        """The nodes that match the topology of a CSIStorageCapacity, by topology."""
        self._demands: LRUCache[bytes, Demands] = LRUCache(MOST_AFFINITIES)
        """The label values that a node affinity with a single term requires, by affinity; empty if they are many."""
        self._few: LRUCache[bytes, RowNumbers | None] = LRUCache(MOST_AFFINITIES)
        """The row numbers of the nodes that match a node affinity if these are few; None for other affinities."""
        self._rows_by_value: dict[str, dict[int, RowNumbers]] = {}
        """The row numbers of the nodes by label key and value, for the labels of topologies."""
        self._capacities: dict[str, tuple[int, CapacityRows]] = {}
        """The storage on each node by StorageClass, with the version of the CSIStorageCapacities."""
        self._seen = (-1, 0)
        self._rows: slice
        self.everywhere: Mask
        """Mask of all nodes."""
        self.refresh()

    def is_in(self, cluster: Cluster) -> bool:
        """Return whether this cache belongs to a cluster."""
        return self._cluster is cluster

    def refresh(self) -> None:
        """Drop the cached results if nodes changed or were added."""
        now = (self._cluster.journal.about_nodes, self._cluster.nodes.size)
        if self._seen != now:
            self._seen = now
            self._masks.clear()
            self._rows_of.clear()
            self._few.clear()
            self._rows_by_value.clear()
            self._capacities.clear()
            self._rows = slice(0, now[1]) if self._row is None else slice(self._row, self._row + 1)
            self.everywhere = np.ones(self._rows.stop - self._rows.start, np.bool_)

    def holds(self, affinity: VolumeNodeAffinity | None, key: bytes = b"") -> Mask:
        """Return the nodes that match a volume's node affinity.

        Args:
            affinity: The node affinity.
            key: The key of the affinity, if it is known.
        """
        if affinity is None or affinity.required is None:
            return self.everywhere
        key = key or affinity_key(affinity)
        mask = self._masks.get(key)
        if mask is None:
            terms = lenient_node_selector(affinity.required).terms or ()
            selector = NodeSelectorMatcher(terms=tuple(NodeTerm(labels=term.labels) for term in terms))
            mask = self._masks[key] = _holds(selector, self._cluster, self._rows)
        return mask

    def few_rows(self, affinity: VolumeNodeAffinity | None, key: bytes) -> RowNumbers | None:
        """Return the nodes that match a volume's node affinity if these are few, as for a local volume; else None.

        The cost is a lookup in a table, without an operation on all nodes.

        Args:
            affinity: The node affinity.
            key: The key of the affinity.

        Returns:
            None if the affinity does not name few rows; use `holds`.
        """
        if affinity is None or affinity.required is None or self._row is not None:
            return None
        if key in self._few:
            return self._few[key]
        demands, rows = self._demands.get(key), None
        if demands is None:
            demands = self._demands[key] = _demands(affinity.required)
        if demands:
            found = self._rows_with(demands)
            rows = found if found.size <= FEW_ROWS else None
        self._few[key] = rows
        return rows

    def of(self, volume: PersistentVolume) -> tuple[Mask, Mask | None, str]:
        """Return the nodes that can reach a bound volume; if it is migrated to a CSI driver, by the driver's labels.

        Returns:
            The rows that reach the volume; the rows with an error, or None; the error.
        """
        plain = self.holds(volume.spec.node_affinity)
        migration = migration_of(volume)
        if migration is None:
            return plain, None, ""
        moved = self._cluster.attachments.migrated(migration.in_tree)[self._rows]
        if not moved.any():
            return plain, None, ""
        try:
            translate(volume, migration)
        except TranslationError as error:
            return plain, moved, f"could not translate pv: {error}"
        return np.where(moved, self._holds_for_driver(volume, migration), plain), None, ""

    def _holds_for_driver(self, volume: PersistentVolume, migration: Migration) -> Mask:
        """Return the nodes on which the CSI driver's labels match a volume's node affinity."""
        key = _ENCODER.encode([migration.driver, volume.spec.node_affinity, volume.metadata.labels])
        mask = self._masks.get(key)
        if mask is None:
            mask = self._masks[key] = self.holds(translate_affinity(volume, migration))
        return mask

    def allowed(self, of_class: StorageClass) -> Mask:
        """Return the nodes on which a StorageClass may provision volumes, by its allowed topologies."""
        if not of_class.allowed_topologies:
            return self.everywhere
        key = b"topologies" + _ENCODER.encode(of_class.allowed_topologies)
        mask = self._masks.get(key)
        if mask is None:
            mask = self._masks[key] = _holds(_topologies(of_class), self._cluster, self._rows)
        return mask

    def capacities(self, name: str) -> CapacityRows:
        """Return the storage that the driver of a StorageClass can provision on each node.

        Cost: O(capacities) after a change of a capacity; O(nodes) for each label of a topology after a change of nodes.
        """
        storage = self._cluster.storage
        known = self._capacities.get(name)
        if known is None or known[0] != storage.capacities_stamp:
            stated = [
                (one, self._rows_of_topology(one.node_topology))
                for one in storage.capacities.values()
                if one.storage_class_name == name and one.node_topology is not None
            ]
            made = CapacityRows(stated, self._cluster.nodes.size, self.measure)
            known = self._capacities[name] = (storage.capacities_stamp, made)
        return known[1]

    def _rows_of_topology(self, topology: LabelSelector) -> RowNumbers:
        """Return the nodes that match a topology's label selector; an invalid selector matches no node."""
        key = _ENCODER.encode(topology)
        rows = self._rows_of.get(key)
        if rows is None:
            try:
                rows = self._rows_with(compile_selector(topology).requirements)
            except SelectorError:
                rows = NO_ROWS
            if rows.size < MOST_ROWS:
                self._rows_of[key] = rows
        return rows

    def _rows_with(self, requirements: tuple[LabelRequirement, ...] | None) -> RowNumbers:
        """Return the nodes that match label requirements, looked up in an index of label values."""
        if requirements is None:
            return NO_ROWS
        first = next((one for one in requirements if one.operator is Operator.IN), None)
        if first is None:
            every = slice(0, self._cluster.nodes.size)
            return _holds(NodeSelectorMatcher(terms=(NodeTerm(requirements),)), self._cluster, every).nonzero()[0]
        by_value, find = self._by_value(first.key), self._cluster.strings.find
        found = [by_value[code] for code in map(find, sorted(set(first.values))) if code in by_value]
        rows = found[0] if len(found) == 1 else np.concatenate([NO_ROWS, *found])
        others = tuple(one for one in requirements if one is not first)
        if not others or not rows.size:
            return rows
        return rows[_holds(NodeSelectorMatcher(terms=(NodeTerm(others),)), self._cluster, rows)]

    def _by_value(self, key: str) -> dict[int, RowNumbers]:
        """Return the row numbers of the nodes with each value of a label."""
        if key not in self._rows_by_value:
            codes = self._cluster.nodes.labels(key)[: self._cluster.nodes.size]
            order = codes.argsort(kind="stable")
            values, starts = np.unique(codes[order], return_index=True)
            groups = dict(zip(values.tolist(), np.split(order, starts[1:]), strict=True))
            groups.pop(MISSING, None)
            self._rows_by_value[key] = groups
        return self._rows_by_value[key]


def _demands(required: NodeSelector) -> Demands:
    """Return the label requirements of a node affinity with one term and few values; empty for other affinities."""
    terms = lenient_node_selector(required).terms or ()
    if len(terms) != 1:
        return ()
    first = next((one for one in terms[0].labels if one.operator is Operator.IN), None)
    return terms[0].labels if first is not None and len(first.values) <= FEW_ROWS else ()


def _topologies(of_class: StorageClass) -> NodeSelectorMatcher:
    terms = []
    for term in of_class.allowed_topologies:
        try:
            labels = tuple(
                requirement(Requirement(key=one.key, operator="In", values=one.values))
                for one in term.match_label_expressions
            )
        except SelectorError:
            continue
        if labels:
            terms.append(NodeTerm(labels=labels))
    return NodeSelectorMatcher(terms=tuple(terms))


def _holds(selector: NodeSelectorMatcher, cluster: Cluster, rows: Rows) -> Mask:
    return SelectorTest(selector, cluster.nodes)(rows)
