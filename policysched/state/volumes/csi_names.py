"""Names of CSI volumes: the driver and the volume handle of volumes that pods use.

A bound claim has the name of its volume, an unbound claim a name for the driver that will provision it. Disks of
in-tree plugins count for the CSI driver on nodes with a CSINode. Volumes without a name do not count.

Source: pkg/scheduler/framework/plugins/nodevolumelimits/csi.go (filterAttachableVolumes, getCSIDriverInfo), utils.go,
v1.36.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from policysched.model.csi_translation import (
    BY_IN_TREE,
    OVERLOOKED,
    TranslationError,
    inline_migration_of,
    migration_of,
    translate,
    translate_inline,
)
from policysched.model.objects import PersistentVolume, PersistentVolumeClaim, Pod, Volume
from policysched.model.objects.storage import claim_name, class_of, is_made_for
from policysched.state.volumes.storage import Storage

_NONE: Final[frozenset[str]] = frozenset()


class CSIVolumeName(NamedTuple):
    """The identity of a CSI volume: the CSI driver and the volume handle."""

    driver: str
    handle: str


class CountingError(Exception):
    """Raised if the volumes of a pod cannot be determined; `missing` is true if a claim does not exist."""

    def __init__(self, message: str, *, missing: bool = False) -> None:
        super().__init__(message)
        self.missing = missing


class VolumeUses(NamedTuple):
    """The different volumes that a placed pod uses: claims by `namespace/name`, and inline disks by CSI name."""

    items: tuple[str | CSIVolumeName, ...] = ()
    made_for_it: frozenset[str] = _NONE
    """The claims that are created for the pod's generic ephemeral volumes."""


def csi_volumes(pod: Pod, storage: Storage, *, has_csi_node: bool) -> set[CSIVolumeName]:
    """Return the volumes that CSI drivers would attach for a pending pod.

    Args:
        pod: The pod.
        storage: The stored claims and volumes.
        has_csi_node: Whether the node has a CSINode; without it, in-tree disks do not count.

    Raises:
        CountingError: The volumes cannot be determined.
    """
    found = set()
    for volume in pod.spec.volumes:
        name = claim_name(pod, volume)
        if name is None:
            one = _inline(volume, has_csi_node)
        else:
            key, claim = _claim_of(pod, volume, name, storage)
            if claim is None:
                raise CountingError(f'looking up PVC {key}: persistentvolumeclaim "{name}" not found', missing=True)
            one = _of_claim(claim, storage, has_csi_node)
        if one is not None:
            found.add(one)
    return found


def volume_uses(pod: Pod, storage: Storage, *, has_csi_node: bool) -> VolumeUses:
    """Return the volumes of a placed pod, including claims that were deleted.

    Raises:
        CountingError: The volumes cannot be determined.
    """
    items: dict[str | CSIVolumeName, None] = {}
    made_for_it: list[str] = []
    for volume in pod.spec.volumes:
        name = claim_name(pod, volume)
        if name is None:
            one = _inline(volume, has_csi_node)
            if one is not None:
                items[one] = None
            continue
        key = _claim_of(pod, volume, name, storage)[0]
        items[key] = None
        if volume.ephemeral is not None:
            made_for_it.append(key)
    return VolumeUses(tuple(items), frozenset(made_for_it) if made_for_it else _NONE)


def claims_made_for(pod: Pod) -> frozenset[str]:
    """Return the claims of a pod's ephemeral volumes; if another pod owns one, the pod's volumes are unknown."""
    names = (claim_name(pod, one) for one in pod.spec.volumes if one.ephemeral is not None)
    return frozenset(f"{pod.metadata.namespace}/{name}" for name in names if name)


def name_of(item: str | CSIVolumeName, storage: Storage, *, has_csi_node: bool) -> CSIVolumeName | None:
    """Return the CSI name of a claim's volume or of an inline disk; None if no volume limit applies to it."""
    if isinstance(item, CSIVolumeName):
        return item
    claim = storage.claims.stored(item)
    return None if claim is None else _of_claim(claim, storage, has_csi_node)


def _claim_of(pod: Pod, volume: Volume, name: str, storage: Storage) -> tuple[str, PersistentVolumeClaim | None]:
    """Return the key of the claim of a pod's volume, and the claim, or None if the claim does not exist."""
    if not name:
        raise CountingError("PersistentVolumeClaim had no name")
    key = f"{pod.metadata.namespace}/{name}"
    claim = storage.claims.stored(key)
    if claim is not None and volume.ephemeral is not None and not is_made_for(claim, pod):
        raise CountingError(f"PVC {key} was not created for pod {pod.key} (pod is not owner)")
    return key, claim


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
    """Return a unique CSI name for the volume that will be provisioned for a claim; None if no limit applies."""
    of_class = storage.classes.get(class_of(claim))
    if of_class is None or of_class.provisioner in OVERLOOKED or not of_class.provisioner:
        return None
    migration = BY_IN_TREE.get(of_class.provisioner)
    if migration is not None and not has_csi_node:
        return None
    driver = of_class.provisioner if migration is None else migration.driver
    return CSIVolumeName(driver, f"unbound-{claim.key}")
