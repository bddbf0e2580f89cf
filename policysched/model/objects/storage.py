"""Persistent volumes, claims, storage classes and CSI objects: the fields that scheduling reads.

These are structs only. The plugin VolumeBinding matches claims and volumes; `policysched.model.csi_translation`
translates in-tree disks.

Source: k8s.io/api/core/v1/types.go, k8s.io/api/storage/v1/types.go, v0.36.
"""

from __future__ import annotations

from typing import Final

import msgspec

from policysched.model.objects.meta import Int32, LabelSelector, Metadata, ResourceList, Struct
from policysched.model.objects.pods import (
    AWSDisk,
    AzureDisk,
    AzureFile,
    CinderDisk,
    GCEDisk,
    NodeSelector,
    Pod,
    PortworxDisk,
    Volume,
    VSphereDisk,
)

_ENCODER: Final = msgspec.json.Encoder(order="deterministic")
BIND_COMPLETED: Final = "pv.kubernetes.io/bind-completed"
BOUND_BY_CONTROLLER: Final = "pv.kubernetes.io/bound-by-controller"
SELECTED_NODE: Final = "volume.kubernetes.io/selected-node"
BETA_CLASS: Final = "volume.beta.kubernetes.io/storage-class"
MIGRATED_PLUGINS: Final = "storage.alpha.kubernetes.io/migrated-plugins"
NO_PROVISIONER: Final = "kubernetes.io/no-provisioner"
WAIT_FOR_FIRST_CONSUMER: Final = "WaitForFirstConsumer"
READ_WRITE_ONCE_POD: Final = "ReadWriteOncePod"


class ObjectReference(Struct, frozen=True):
    """A reference (claimRef) from a volume to its claim; without a UID, it was reserved before the claim existed."""

    kind: str = ""
    api_version: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class CSIVolume(Struct, frozen=True):
    """A volume of a CSI driver."""

    driver: str = ""
    volume_handle: str = ""


class VolumeNodeAffinity(Struct, frozen=True):
    """The nodes from which a volume is accessible."""

    required: NodeSelector | None = None


class PersistentVolumeSpec(Struct, frozen=True):
    """Spec of a persistent volume, with the sources that count against volume limits of nodes."""

    capacity: ResourceList = {}
    access_modes: tuple[str, ...] = ()
    storage_class_name: str = ""
    volume_mode: str | None = None
    claim_ref: ObjectReference | None = None
    node_affinity: VolumeNodeAffinity | None = None
    volume_attributes_class_name: str | None = None
    csi: CSIVolume | None = None
    gce_persistent_disk: GCEDisk | None = None
    aws_elastic_block_store: AWSDisk | None = None
    azure_disk: AzureDisk | None = None
    azure_file: AzureFile | None = None
    cinder: CinderDisk | None = None
    vsphere_volume: VSphereDisk | None = None
    portworx_volume: PortworxDisk | None = None


class PersistentVolumeStatus(Struct, frozen=True):
    """Phase of a volume: Pending, Available, Bound, Released or Failed."""

    phase: str = ""


class PersistentVolume(Struct, frozen=True):
    """A persistent volume."""

    metadata: Metadata = Metadata()
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()


class ClaimResources(Struct, frozen=True):
    """The size that a claim requests."""

    requests: ResourceList = {}


class PersistentVolumeClaimSpec(Struct, frozen=True):
    """Spec of a persistent volume claim; an absent storage class differs from an empty storage class."""

    access_modes: tuple[str, ...] = ()
    selector: LabelSelector | None = None
    resources: ClaimResources = ClaimResources()
    volume_name: str = ""
    storage_class_name: str | None = None
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeClaimStatus(Struct, frozen=True):
    """Phase of a claim: Pending, Bound or Lost."""

    phase: str = ""


class PersistentVolumeClaim(Struct, frozen=True):
    """A persistent volume claim."""

    metadata: Metadata = Metadata()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.metadata.namespace}/{self.metadata.name}"


class TopologyLabel(Struct, frozen=True):
    """A node label with its allowed values."""

    key: str = ""
    values: tuple[str, ...] = ()


class TopologyTerm(Struct, frozen=True):
    """A list of topology labels; a node must have all of them."""

    match_label_expressions: list[TopologyLabel] = []


class StorageClass(Struct, frozen=True):
    """A storage class."""

    metadata: Metadata = Metadata()
    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: list[TopologyTerm] = []


class VolumeNodeResources(Struct, frozen=True):
    """The number of a driver's volumes that can be attached to a node; None for no limit."""

    count: Int32 | None = None


class CSINodeDriver(Struct, frozen=True):
    """A CSI driver on a node."""

    name: str = ""
    allocatable: VolumeNodeResources | None = None


class CSINodeSpec(Struct, frozen=True):
    """The CSI drivers on a node."""

    drivers: list[CSINodeDriver] = []


class CSINode(Struct, frozen=True):
    """The CSI drivers on the node of the same name."""

    metadata: Metadata = Metadata()
    spec: CSINodeSpec = CSINodeSpec()


class CSIDriverSpec(Struct, frozen=True):
    """The scheduling options of a CSI driver."""

    storage_capacity: bool | None = None
    prevent_pod_scheduling_if_missing: bool | None = None


class CSIDriver(Struct, frozen=True):
    """A CSI driver."""

    metadata: Metadata = Metadata()
    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(Struct, frozen=True):
    """The storage that a driver can still provision for a class in one topology segment."""

    metadata: Metadata = Metadata()
    node_topology: LabelSelector | None = None
    storage_class_name: str = ""
    capacity: str | int | float | None = None
    maximum_volume_size: str | int | float | None = None


class AttachmentSource(Struct, frozen=True):
    """The volume that an attachment attaches."""

    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(Struct, frozen=True):
    """The volume, node and attacher of an attachment."""

    attacher: str = ""
    node_name: str = ""
    source: AttachmentSource = AttachmentSource()


class VolumeAttachment(Struct, frozen=True):
    """The attachment of a volume to a node, completed or in progress."""

    metadata: Metadata = Metadata()
    spec: VolumeAttachmentSpec = VolumeAttachmentSpec()


Stored = (
    PersistentVolume
    | PersistentVolumeClaim
    | StorageClass
    | CSINode
    | CSIDriver
    | CSIStorageCapacity
    | VolumeAttachment
)


def class_of(stored: PersistentVolume | PersistentVolumeClaim) -> str:
    """Return the StorageClass of a volume or claim; the old annotation takes precedence over the field.

    Source: k8s.io/component-helpers/storage/volume/pv_helpers.go (GetPersistentVolumeClaimClass).
    """
    annotated = stored.metadata.annotations.get(BETA_CLASS)
    return annotated if annotated is not None else stored.spec.storage_class_name or ""


def affinity_key(affinity: VolumeNodeAffinity | None) -> bytes:
    """Return a key of a volume's node affinity; volumes with equal keys are accessible from the same nodes."""
    return _ENCODER.encode(affinity)


def claim_name(pod: Pod, volume: Volume) -> str | None:
    """Return the name of the claim behind a pod's volume; None if the volume uses no claim.

    Source: k8s.io/component-helpers/storage/ephemeral/ephemeral.go (VolumeClaimName).
    """
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    return f"{pod.metadata.name}-{volume.name}" if volume.ephemeral is not None else None


def is_made_for(claim: PersistentVolumeClaim, pod: Pod) -> bool:
    """Return whether a claim was created for an ephemeral volume of a pod: the pod is then the claim's controller.

    Source: k8s.io/component-helpers/storage/ephemeral/ephemeral.go (VolumeIsForPod).
    """
    owner = next((one for one in claim.metadata.owner_references if one.controller), None)
    same_namespace = claim.metadata.namespace == pod.metadata.namespace
    return same_namespace and owner is not None and owner.uid == pod.metadata.uid


def is_fully_bound(claim: PersistentVolumeClaim) -> bool:
    """Return whether a claim names its volume and the binding is complete; a volume name alone is not enough."""
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.metadata.annotations
