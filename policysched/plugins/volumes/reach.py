"""Which nodes can reach a volume, and where a class may provision one: masks over rows.

Knows node labels. Selectors of volumes name no fields of nodes: a field requirement there is looked at on no node. What
cannot be parsed matches nowhere.

Shapes: N rows in use -> (N,) bool.
Source: component-helpers/storage/volume/helpers.go (CheckNodeAffinity), pkg/apis/core/v1/helper/helpers.go
(MatchTopologySelectorTerms), plugins/volumebinding/binder.go (tryTranslatePVToCSI, nodeHasAccess), v1.36.
"""

from __future__ import annotations

from collections.abc import Iterable

import msgspec
import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from policysched.framework import Cluster, Mask
from policysched.model.csi_translation import Migration, TranslationError, migration_of, translate, translate_affinity
from policysched.model.objects import CSIStorageCapacity, PersistentVolume, Requirement, StorageClass
from policysched.model.objects.storage import VolumeNodeAffinity, affinity_key
from policysched.model.quantity import MIN, value
from policysched.model.selection.node_selectors import NodeSelectorMatcher, NodeTerm, lenient_node_selector
from policysched.model.selection.selectors import SelectorError, compile_selector, requirement
from policysched.plugins.nodes.node_selection import selector_test

KEPT = 256
"""How many masks are kept."""
_ENCODER = msgspec.json.Encoder()


class Reach:
    """Which rows can reach volumes, found out once for each affinity as long as no node changes.

    Its masks are not to be changed.

    Args:
        cluster: The rows.
        row: The only one that is asked about; None for all.
    """

    __slots__ = ("_cluster", "_masks", "_row", "_rows", "_seen", "everywhere")

    def __init__(self, cluster: Cluster, row: int | None = None) -> None:
        self._cluster = cluster
        self._row = row
        self._masks: LRUCache[bytes, Mask] = LRUCache(KEPT)
        self._seen = (-1, 0)
        self._rows: slice
        self.everywhere: Mask
        """All rows."""
        self.refresh()

    def is_in(self, cluster: Cluster) -> bool:
        """Tell whether it looks at this cluster."""
        return self._cluster is cluster

    def refresh(self) -> None:
        """Forget what a change of nodes may have changed; a row for pods of a node to come makes masks too short."""
        now = (self._cluster.journal.about_nodes, self._cluster.nodes.size)
        if self._seen != now:
            self._seen = now
            self._masks.clear()
            self._rows = slice(0, now[1]) if self._row is None else slice(self._row, self._row + 1)
            self.everywhere = np.ones(self._rows.stop - self._rows.start, np.bool_)

    def holds(self, affinity: VolumeNodeAffinity | None, key: bytes = b"") -> Mask:
        """Tell on which rows a volume's node affinity holds.

        Args:
            affinity: What it says.
            key: Its key, where that is known.
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

    def of(self, volume: PersistentVolume) -> tuple[Mask, Mask | None, str]:
        """Tell on which rows a bound volume can be reached, in its driver's labels where the node has moved to that.

        Returns:
            Where it can; where that cannot be told, None for nowhere; and why.
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
        """Tell on which rows a volume's node affinity holds in its driver's labels."""
        key = _ENCODER.encode([migration.driver, volume.spec.node_affinity, volume.metadata.labels])
        mask = self._masks.get(key)
        if mask is None:
            mask = self._masks[key] = self.holds(translate_affinity(volume, migration))
        return mask

    def allowed(self, of_class: StorageClass) -> Mask:
        """Tell on which rows a class may provision: everywhere, or where one of its terms holds."""
        if not of_class.allowed_topologies:
            return self.everywhere
        key = b"topologies" + _ENCODER.encode(of_class.allowed_topologies)
        mask = self._masks.get(key)
        if mask is None:
            mask = self._masks[key] = _holds(_topologies(of_class), self._cluster, self._rows)
        return mask


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


def largest_capacity(name: str, capacities: Iterable[CSIStorageCapacity], cluster: Cluster) -> NDArray[np.int64]:
    """Tell how large a volume of a class a driver says that it can make on each row, MIN where it says nothing.

    Shapes: (N,).
    Units: bytes.
    """
    largest, rows_in_use = np.full(cluster.nodes.size, MIN, np.int64), slice(0, cluster.nodes.size)
    for one in capacities:
        limit = one.capacity if one.maximum_volume_size is None else one.maximum_volume_size
        if one.storage_class_name != name or limit is None or one.node_topology is None:
            continue
        try:
            selector = compile_selector(one.node_topology)
        except SelectorError:
            continue
        if selector.requirements is not None:
            rows = _holds(NodeSelectorMatcher(terms=(NodeTerm(selector.requirements),)), cluster, rows_in_use)
            np.maximum(largest, value(limit), out=largest, where=rows)
    return largest


def _holds(selector: NodeSelectorMatcher, cluster: Cluster, rows: slice) -> Mask:
    return selector_test(selector, cluster.nodes)(rows)
