"""Persistent volumes, claims, storage classes and what CSI drivers say of themselves, as far as scheduling reads them.

Only the shapes. Which claim fits which volume is worked out by the plugin VolumeBinding; how a disk of the cloud
providers' old plugins is named by their CSI drivers, in `policysched.model.csi_translation`.

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
    """A claim that a volume is meant for; one without a UID was named before it existed."""

    kind: str = ""
    api_version: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""


class CSIVolume(Struct, frozen=True):
    """A volume that a CSI driver serves."""

    driver: str = ""
    volume_handle: str = ""


class VolumeNodeAffinity(Struct, frozen=True):
    """The nodes that can reach a volume."""

    required: NodeSelector | None = None


class PersistentVolumeSpec(Struct, frozen=True):
    """What a volume is; of the sources, those that count against limits of nodes."""

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
    """Where a volume stands: Pending, Available, Bound, Released or Failed."""

    phase: str = ""


class PersistentVolume(Struct, frozen=True):
    """A volume."""

    metadata: Metadata = Metadata()
    spec: PersistentVolumeSpec = PersistentVolumeSpec()
    status: PersistentVolumeStatus = PersistentVolumeStatus()


class ClaimResources(Struct, frozen=True):
    """How much a claim asks for."""

    requests: ResourceList = {}


class PersistentVolumeClaimSpec(Struct, frozen=True):
    """What a claim asks for; an absent class differs from an empty one."""

    access_modes: tuple[str, ...] = ()
    selector: LabelSelector | None = None
    resources: ClaimResources = ClaimResources()
    volume_name: str = ""
    storage_class_name: str | None = None
    volume_mode: str | None = None
    volume_attributes_class_name: str | None = None


class PersistentVolumeClaimStatus(Struct, frozen=True):
    """Where a claim stands: Pending, Bound or Lost."""

    phase: str = ""


class PersistentVolumeClaim(Struct, frozen=True):
    """A claim."""

    metadata: Metadata = Metadata()
    spec: PersistentVolumeClaimSpec = PersistentVolumeClaimSpec()
    status: PersistentVolumeClaimStatus = PersistentVolumeClaimStatus()

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.metadata.namespace}/{self.metadata.name}"


class TopologyLabel(Struct, frozen=True):
    """The values that a label of a node may have."""

    key: str = ""
    values: tuple[str, ...] = ()


class TopologyTerm(Struct, frozen=True):
    """Labels that a node must all have."""

    match_label_expressions: list[TopologyLabel] = []


class StorageClass(Struct, frozen=True):
    """A class of volumes."""

    metadata: Metadata = Metadata()
    provisioner: str = ""
    volume_binding_mode: str | None = None
    allowed_topologies: list[TopologyTerm] = []


class VolumeNodeResources(Struct, frozen=True):
    """How many volumes of a driver a node can have attached, None for no limit."""

    count: Int32 | None = None


class CSINodeDriver(Struct, frozen=True):
    """A CSI driver on a node."""

    name: str = ""
    allocatable: VolumeNodeResources | None = None


class CSINodeSpec(Struct, frozen=True):
    """The CSI drivers on a node."""

    drivers: list[CSINodeDriver] = []


class CSINode(Struct, frozen=True):
    """What CSI drivers say of the node of its name."""

    metadata: Metadata = Metadata()
    spec: CSINodeSpec = CSINodeSpec()


class CSIDriverSpec(Struct, frozen=True):
    """What a CSI driver wants of the scheduler."""

    storage_capacity: bool | None = None


class CSIDriver(Struct, frozen=True):
    """A CSI driver."""

    metadata: Metadata = Metadata()
    spec: CSIDriverSpec = CSIDriverSpec()


class CSIStorageCapacity(Struct, frozen=True):
    """How much a driver can still provision of a class on some nodes."""

    metadata: Metadata = Metadata()
    node_topology: LabelSelector | None = None
    storage_class_name: str = ""
    capacity: str | int | float | None = None
    maximum_volume_size: str | int | float | None = None


class AttachmentSource(Struct, frozen=True):
    """What is attached."""

    persistent_volume_name: str | None = None


class VolumeAttachmentSpec(Struct, frozen=True):
    """What is attached where."""

    attacher: str = ""
    node_name: str = ""
    source: AttachmentSource = AttachmentSource()


class VolumeAttachment(Struct, frozen=True):
    """A volume that is attached to a node, or on its way there."""

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
    """Return the class of a volume or a claim: the old annotation counts before the field.

    Source: k8s.io/component-helpers/storage/volume/pv_helpers.go (GetPersistentVolumeClaimClass).
    """
    annotated = stored.metadata.annotations.get(BETA_CLASS)
    return annotated if annotated is not None else stored.spec.storage_class_name or ""


def affinity_key(affinity: VolumeNodeAffinity | None) -> bytes:
    """Return what a volume's node affinity says as bytes: volumes of equal ones are reached from the same nodes."""
    return _ENCODER.encode(affinity)


def claim_name(pod: Pod, volume: Volume) -> str | None:
    """Return the name of the claim behind a pod's volume, None where there is none.

    Source: k8s.io/component-helpers/storage/ephemeral/ephemeral.go (VolumeClaimName).
    """
    if volume.persistent_volume_claim is not None:
        return volume.persistent_volume_claim.claim_name
    return f"{pod.metadata.name}-{volume.name}" if volume.ephemeral is not None else None


def is_made_for(claim: PersistentVolumeClaim, pod: Pod) -> bool:
    """Whether a pod controls a claim: one that was made for its ephemeral volume.

    Source: k8s.io/component-helpers/storage/ephemeral/ephemeral.go (VolumeIsForPod).
    """
    owner = next((one for one in claim.metadata.owner_references if one.controller), None)
    same_namespace = claim.metadata.namespace == pod.metadata.namespace
    return same_namespace and owner is not None and owner.uid == pod.metadata.uid


def is_fully_bound(claim: PersistentVolumeClaim) -> bool:
    """Whether both halves of a binding are written: naming a volume is not enough."""
    return bool(claim.spec.volume_name) and BIND_COMPLETED in claim.metadata.annotations
