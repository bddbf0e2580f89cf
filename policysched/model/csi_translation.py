"""Translates in-tree cloud volumes to the CSI drivers that replaced them (CSI migration).

Scheduling needs three results: the driver of a disk, its handle (volumes with one handle are one volume), and its nodes
in terms of the driver's topology label. File systems, parameters and secrets are not translated. Azure file shares and
vSphere disks are not either: kube-scheduler knows that they migrated, but does not treat them as volumes of a driver.

Source: k8s.io/csi-translation-lib translate.go, plugins/*.go, v0.36.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, Final
from urllib.parse import urlsplit

from msgspec.structs import replace

from policysched.model.objects.meta import Requirement
from policysched.model.objects.pods import (
    AWSDisk,
    AzureDisk,
    CinderDisk,
    GCEDisk,
    NodeSelector,
    NodeSelectorTerm,
    PortworxDisk,
    Volume,
)
from policysched.model.objects.storage import PersistentVolume, VolumeNodeAffinity

ZONE: Final = "topology.kubernetes.io/zone"
REGION: Final = "topology.kubernetes.io/region"
BETA_ZONE: Final = "failure-domain.beta.kubernetes.io/zone"
BETA_REGION: Final = "failure-domain.beta.kubernetes.io/region"
_CINDER: Final = "cinder.csi.openstack.org"
_DELIMITER: Final = "__"
_UNSPECIFIED: Final = "UNSPECIFIED"
_EBS_VOLUME: Final = re.compile(r"vol-[^/]*")


class TranslationError(Exception):
    """Raised if a disk cannot be translated to CSI, because the driver does not support its name or kind."""


@dataclass(frozen=True, slots=True)
class Migration:
    """An in-tree volume plugin and the CSI driver that replaced it."""

    field: str
    """The name of the field in a volume's spec that contains the in-tree source."""
    in_tree: str
    driver: str
    topology_key: str | None
    """The node label in which the CSI driver states the zone; None if zone labels are not translated."""
    handle: Callable[[Any, Mapping[str, str]], str]
    """Function that returns the CSI volume handle of an in-tree source, given the labels of its PersistentVolume."""


def migration_of(volume: PersistentVolume) -> Migration | None:
    """Return the CSI migration that applies to a persistent volume; None if none applies."""
    return next((one for one in MIGRATIONS if getattr(volume.spec, one.field) is not None), None)


def inline_migration_of(volume: Volume) -> Migration | None:
    """Return the CSI migration that applies to a pod's inline disk; None if none applies."""
    return next((one for one in MIGRATIONS if getattr(volume, one.field) is not None), None)


def translate(volume: PersistentVolume, migration: Migration) -> str:
    """Return the CSI volume handle of an in-tree persistent volume.

    Raises:
        TranslationError: the volume's name cannot be translated.
    """
    return migration.handle(getattr(volume.spec, migration.field), volume.metadata.labels)


def translate_affinity(volume: PersistentVolume, migration: Migration) -> VolumeNodeAffinity | None:
    """Return a volume's node affinity and zone labels as a node affinity with the CSI driver's topology label."""
    key = migration.topology_key
    return _topology(volume, key) if key else volume.spec.node_affinity


def translate_inline(volume: Volume, migration: Migration) -> str:
    """Return the CSI volume handle of a pod's inline in-tree disk.

    Raises:
        TranslationError: the disk's name cannot be translated.
    """
    return migration.handle(getattr(volume, migration.field), {})


def _topology(volume: PersistentVolume, key: str) -> VolumeNodeAffinity | None:
    """Return a volume's node affinity with the driver's topology label for the zones in its affinity or labels.

    Source: plugins/in_tree_volume.go (translateTopologyFromInTreeToCSI).
    """
    terms = _terms(volume)
    zone, region = _topology_labels(volume, terms)
    if _values(terms, zone):
        terms = _renamed(terms, zone, key)
    elif zone in volume.metadata.labels:
        zones = {one.strip() for one in volume.metadata.labels[zone].split(_DELIMITER)} - {""}
        if zones:
            added = Requirement(key=key, operator="In", values=tuple(sorted(zones)))
            given = terms or [NodeSelectorTerm()]
            terms = [replace(one, match_expressions=(*one.match_expressions, added)) for one in given]
    if region == BETA_REGION and _values(terms, region):
        terms = _renamed(terms, region, REGION)
    if not terms:
        return volume.spec.node_affinity
    return VolumeNodeAffinity(required=NodeSelector(node_selector_terms=terms))


def _topology_labels(volume: PersistentVolume, terms: list[NodeSelectorTerm]) -> tuple[str, str]:
    keys = {one.key for term in terms for one in term.match_expressions}
    for known in (keys, volume.metadata.labels.keys()):
        if ZONE in known:
            return ZONE, REGION
        if BETA_ZONE in known:
            return BETA_ZONE, BETA_REGION
    return ZONE, REGION


def _terms(volume: PersistentVolume) -> list[NodeSelectorTerm]:
    affinity = volume.spec.node_affinity
    return affinity.required.node_selector_terms if affinity and affinity.required else []


def _values(terms: list[NodeSelectorTerm], key: str) -> set[str]:
    return {value for term in terms for one in term.match_expressions if one.key == key for value in one.values}


def _renamed(terms: list[NodeSelectorTerm], old: str, new: str) -> list[NodeSelectorTerm]:
    return [
        replace(
            term,
            match_expressions=tuple(replace(one, key=new) if one.key == old else one for one in term.match_expressions),
        )
        for term in terms
    ]


def _ebs(disk: AWSDisk, _: Mapping[str, str]) -> str:
    name = disk.volume_id
    if not name.startswith("aws://"):
        return name
    path = urlsplit(name).path.strip("/")
    if _EBS_VOLUME.fullmatch(path) is None:
        raise TranslationError(
            f"failed to translate Kubernetes ID to EBS Volume ID Invalid format for AWS volume ({name})"
        )
    return path


def _gce(disk: GCEDisk, labels: Mapping[str, str]) -> str:
    zones = (labels.get(BETA_ZONE) or labels.get(ZONE, "")).split(_DELIMITER)
    if len(zones) > 1:
        return f"projects/{_UNSPECIFIED}/regions/{_gce_region(zones)}/disks/{disk.pd_name}"
    return f"projects/{_UNSPECIFIED}/zones/{zones[0] or _UNSPECIFIED}/disks/{disk.pd_name}"


def _gce_region(zones: list[str]) -> str:
    failed = "failed to get region from zones: "
    for zone in zones:
        if zone.count("-") != 2:
            text = f"zone in unexpected format, expected: {{locale}}-{{region}}-{{zone}}, got: {zone}"
            raise TranslationError(failed + text)
    regions = {zone.rpartition("-")[0] for zone in zones}
    if len(regions) != 1:
        shown = " ".join(f"{one}:{{}}" for one in sorted(regions))
        raise TranslationError(f"{failed}multiple or no regions gotten from zones, got: map[{shown}]")
    return regions.pop()


def _azure_disk(disk: AzureDisk, _: Mapping[str, str]) -> str:
    if disk.kind is not None and disk.kind.lower() != "managed":
        raise TranslationError(f"kind({disk.kind}) is not supported in csi migration")
    return disk.disk_uri


def _volume_id(disk: CinderDisk | PortworxDisk, _: Mapping[str, str]) -> str:
    return disk.volume_id


MIGRATIONS: Final = (
    Migration("gce_persistent_disk", "kubernetes.io/gce-pd", "pd.csi.storage.gke.io", "topology.gke.io/zone", _gce),
    Migration(
        "aws_elastic_block_store", "kubernetes.io/aws-ebs", "ebs.csi.aws.com", "topology.ebs.csi.aws.com/zone", _ebs
    ),
    Migration(
        "cinder",
        "kubernetes.io/cinder",
        _CINDER,
        "topology.cinder.csi.openstack.org/zone",
        _volume_id,
    ),
    Migration("azure_disk", "kubernetes.io/azure-disk", "disk.csi.azure.com", None, _azure_disk),
    Migration("portworx_volume", "kubernetes.io/portworx-volume", "pxd.portworx.com", None, _volume_id),
)
BY_IN_TREE: Final[Mapping[str, Migration]] = {one.in_tree: one for one in MIGRATIONS}
"""The migrations by name of the in-tree plugin, which older StorageClasses have as their provisioner."""
OVERLOOKED: Final = frozenset(("kubernetes.io/azure-file", "kubernetes.io/vsphere-volume"))
"""The in-tree volume plugins whose volumes do not count against the volume limits of nodes."""
