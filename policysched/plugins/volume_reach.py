"""Which nodes can reach a volume, and where a class may provision one: masks over rows.

Knows node labels. Selectors of volumes name no fields of nodes: a field requirement there is looked at on no node. What
cannot be parsed matches nowhere.

Shapes: N rows in use -> (N,) bool.
Source: component-helpers/storage/volume/helpers.go (CheckNodeAffinity), pkg/apis/core/v1/helper/helpers.go
(MatchTopologySelectorTerms), plugins/volumebinding/binder.go (tryTranslatePVToCSI, nodeHasAccess), v1.36.
"""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np

from policysched.framework import Cluster, Mask
from policysched.model.csi_translation import Migration, TranslationError, migration_of, translate
from policysched.model.node_selectors import NodeSelectorMatcher, NodeTerm, lenient_node_selector
from policysched.model.objects import CSIStorageCapacity, PersistentVolume, Requirement, StorageClass
from policysched.model.quantity import value
from policysched.model.selectors import SelectorError, compile_selector, requirement
from policysched.model.storage import MIGRATED_PLUGINS, VolumeNodeAffinity
from policysched.plugins.node_selection import selector_test


def affinity_holds(affinity: VolumeNodeAffinity | None, cluster: Cluster) -> Mask:
    """Tell on which rows a volume's node affinity holds."""
    if affinity is None or affinity.required is None:
        return np.ones(cluster.nodes.size, np.bool_)
    terms = tuple(NodeTerm(labels=term.labels) for term in lenient_node_selector(affinity.required).terms or ())
    return _holds(NodeSelectorMatcher(terms=terms), cluster)


def reaches(volume: PersistentVolume, cluster: Cluster) -> tuple[Mask, Mask, str]:
    """Tell on which rows a bound volume can be reached, in the labels of its driver where the node has migrated to it.

    Returns:
        Where it can, where that cannot be told, and why.
    """
    plain = affinity_holds(volume.spec.node_affinity, cluster)
    nowhere = np.zeros(cluster.nodes.size, np.bool_)
    migration = migration_of(volume)
    moved = _migrated_rows(migration, cluster) if migration is not None else nowhere
    if migration is None or not moved.any():
        return plain, nowhere, ""
    try:
        translated = translate(volume, migration)
    except TranslationError as error:
        return plain, moved, f"could not translate pv: {error}"
    return np.where(moved, affinity_holds(translated.node_affinity, cluster), plain), nowhere, ""


def is_migrated(migration: Migration, node: str, cluster: Cluster) -> bool:
    """Tell whether a node has moved from an in-tree plugin to the driver that took its place."""
    csi_node = cluster.storage.csi_nodes.get(node)
    annotated = csi_node.metadata.annotations.get(MIGRATED_PLUGINS, "") if csi_node is not None else ""
    return migration.in_tree in annotated.split(",")


def topology_allows(of_class: StorageClass, cluster: Cluster) -> Mask:
    """Tell on which rows a class may provision: everywhere, or where one of its terms holds."""
    if not of_class.allowed_topologies:
        return np.ones(cluster.nodes.size, np.bool_)
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
    return _holds(NodeSelectorMatcher(terms=tuple(terms)), cluster)


def has_capacity(name: str, size: int, capacities: Iterable[CSIStorageCapacity], cluster: Cluster) -> Mask:
    """Tell on which rows a driver says that it can provision so many bytes of a class.

    Units: bytes.
    """
    enough = np.zeros(cluster.nodes.size, np.bool_)
    for one in capacities:
        limit = one.capacity if one.maximum_volume_size is None else one.maximum_volume_size
        if one.storage_class_name != name or limit is None or value(limit) < size or one.node_topology is None:
            continue
        try:
            selector = compile_selector(one.node_topology)
        except SelectorError:
            continue
        enough |= _holds(NodeSelectorMatcher(labels=selector), cluster)
    return enough


def _migrated_rows(migration: Migration, cluster: Cluster) -> Mask:
    moved = np.zeros(cluster.nodes.size, np.bool_)
    for name in cluster.storage.csi_nodes:
        row = cluster.nodes.row_of.get(name)
        if row is not None and is_migrated(migration, name, cluster):
            moved[row] = True
    return moved


def _holds(selector: NodeSelectorMatcher, cluster: Cluster) -> Mask:
    return selector_test(selector, cluster.nodes)(slice(0, cluster.nodes.size))
