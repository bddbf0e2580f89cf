"""VolumeZone: rejects nodes outside of the zones and regions of the pod's bound volumes.

A node without zone and region labels passes, because a cluster of one zone need not label its nodes.

Source: plugins/volumezone/volume_zone.go; cloud-provider/volume/helpers/zones.go (LabelZonesToSet), v1.36.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final

import numpy as np

from policysched.framework import (
    SKIP,
    Action,
    Aspect,
    Change,
    Cluster,
    Hint,
    Mask,
    PerPod,
    PreparedFilter,
    Resource,
    Rows,
    Status,
    unresolvable,
)
from policysched.model.csi_translation import BETA_REGION, BETA_ZONE, REGION, ZONE
from policysched.model.objects import PersistentVolume, PersistentVolumeClaim, Pod, StorageClass
from policysched.model.objects.storage import WAIT_FOR_FIRST_CONSUMER, class_of
from policysched.plugins.bases import OneReasonFilter, RowTest
from policysched.plugins.columns import row_count
from policysched.plugins.volumes.claims import (
    claim_missing,
    class_missing,
    stated_claims,
    states_claim,
    stored_claim,
    uses_volumes,
    volume_missing,
)
from policysched.state.tables.interner import MISSING
from policysched.state.tables.nodes import NodeTable
from policysched.state.volumes.storage import Storage

REASON: Final = "node(s) had no available volume zone"
LABELS: Final = (BETA_ZONE, BETA_REGION, ZONE, REGION)
_STABLE: Final = {BETA_ZONE: ZONE, BETA_REGION: REGION}


@dataclass(frozen=True, slots=True)
class Topology:
    """A zone or region label of a volume, with the values that a node may have for it."""

    key: str
    values: frozenset[str]


def topologies_of(volume: PersistentVolume) -> list[Topology]:
    """Return the zone and region labels of a volume with their allowed values; an invalid label is ignored."""
    labels = volume.metadata.labels
    found = [
        Topology(key, frozenset(one.strip() for one in labels[key].split("__"))) for key in LABELS if key in labels
    ]
    return [one for one in found if "" not in one.values]


def _volume_of(storage: Storage, pod: Pod, name: str) -> PersistentVolume | Status | None:
    """Return the volume of a claim; None if the claim waits for the pod; a rejection if the volume is missing."""
    if not name:
        return unresolvable("PersistentVolumeClaim had no name")
    claim = stored_claim(storage, pod, name)
    if claim is None:
        return unresolvable(claim_missing(name))
    if not claim.spec.volume_name:
        return _unbound(storage, claim)
    volume = storage.volumes.stored(claim.spec.volume_name)
    return volume if volume is not None else unresolvable(volume_missing(claim.spec.volume_name))


def _unbound(storage: Storage, claim: PersistentVolumeClaim) -> Status | None:
    name = class_of(claim)
    if not name:
        return unresolvable("PersistentVolumeClaim had no pv name and storageClass name")
    of_class = storage.classes.get(name)
    if of_class is None:
        return unresolvable(class_missing(name))
    if of_class.volume_binding_mode is None:
        return unresolvable(f'VolumeBindingMode not set for StorageClass "{name}"')
    waits = of_class.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER
    return None if waits else unresolvable("PersistentVolume had no name")


def _waits(pod: Pod, change: Change, cluster: Cluster) -> bool:  # noqa: ARG001 - a hint's signature
    return isinstance(change.new, StorageClass) and change.new.volume_binding_mode == WAIT_FOR_FIRST_CONSUMER


def _topology_changed(pod: Pod, change: Change, cluster: Cluster) -> bool:  # noqa: ARG001 - a hint's signature
    old, new = change.old, change.new
    if not isinstance(old, PersistentVolume) or not isinstance(new, PersistentVolume):
        return True
    return topologies_of(old) != topologies_of(new)


def _outside(topologies: Iterable[Topology], nodes: NodeTable, rows: Rows) -> Mask:
    """Return the nodes that have zone or region labels, but not an allowed value of one of them. Shapes: (R,)."""
    columns = {key: nodes.labels(key)[rows] for key in LABELS}
    labelled: Mask = np.zeros(row_count(nodes, rows), np.bool_)
    for column in columns.values():
        labelled |= column != MISSING
    outside: Mask = np.zeros(labelled.size, np.bool_)
    for topology in topologies:
        found = columns[topology.key]
        if topology.key in _STABLE:
            found = np.where(found == MISSING, columns[_STABLE[topology.key]], found)
        wanted = [nodes.strings.find(value) for value in topology.values]
        outside |= ~np.isin(found, [code for code in wanted if code != MISSING])
    return labelled & outside


class VolumeZone(PerPod, OneReasonFilter[RowTest]):
    """The VolumeZone plugin: filters nodes by the zones and regions of the pod's bound volumes."""

    name = "VolumeZone"
    filter_reads = Aspect.LABELS
    rejection = unresolvable(REASON)
    hints = (
        Hint(Resource.STORAGE_CLASS, Action.ADD, _waits),
        Hint(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL),
        Hint(Resource.CLAIM, Action.ADD | Action.UPDATE, states_claim),
        Hint(Resource.VOLUME, Action.ADD | Action.UPDATE, _topology_changed),
    )
    filters_alone = True
    has_own_results = staticmethod(uses_volumes)

    def prepare_filter(self, pod: Pod, cluster: Cluster) -> PreparedFilter[RowTest]:
        """Return the zones and regions of the pod's bound volumes; SKIP for pods whose volumes have none."""
        topologies: list[Topology] = []
        for name in stated_claims(pod):
            volume = _volume_of(cluster.storage, pod, name)
            if isinstance(volume, Status):
                return volume
            if volume is not None:
                topologies += topologies_of(volume)
        distinct = list(dict.fromkeys(topologies))
        return RowTest(lambda rows: _outside(distinct, cluster.nodes, rows)) if distinct else SKIP
