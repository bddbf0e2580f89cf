"""Every object that scheduling reads, under one import.

The structs live by subject (`meta`, `affinity`, `volumes`, `pods`, `nodes`); this module adds the small
kinds and gives all of them out, so that importers need not know where the seams are. Quantities stay the
texts they were (`Amount`), and nothing here knows arrays or the network.

Source: k8s.io/api/core/v1/types.go, k8s.io/api/resource/v1, k8s.io/api/scheduling/v1, k8s.io/api/storage/v1, v0.36.
"""

from __future__ import annotations

from policysched.model.objects.affinity import (
    Affinity,
    NodeAffinity,
    NodeSelector,
    NodeSelectorTerm,
    PodAffinity,
    PodAffinityTerm,
    PreferredSchedulingTerm,
    Toleration,
    TopologySpreadConstraint,
    WeightedPodAffinityTerm,
)
from policysched.model.objects.meta import (
    Amount,
    Int32,
    LabelSelector,
    Metadata,
    OwnerReference,
    Requirement,
    ResourceList,
    Struct,
)
from policysched.model.objects.nodes import ContainerImage, Node, NodeCondition, NodeSpec, NodeStatus, Taint
from policysched.model.objects.pods import (
    Container,
    ContainerPort,
    ContainerResourceClaim,
    ContainerStatus,
    Pod,
    PodCondition,
    PodResourceClaim,
    PodSpec,
    PodStatus,
    ResourceRequirements,
    RestartRule,
    SchedulingGate,
)
from policysched.model.objects.storage import (
    CSIDriver,
    CSINode,
    CSIStorageCapacity,
    PersistentVolume,
    PersistentVolumeClaim,
    StorageClass,
    Stored,
    VolumeAttachment,
)
from policysched.model.objects.volumes import ClaimSource, ImageSource, Volume
from policysched.model.objects.workloads import (
    LabelsSpec,
    ReplicaSet,
    ReplicationController,
    SelectorSpec,
    Service,
    StatefulSet,
    Workload,
    workload_owner,
)

__all__ = [
    "Affinity",
    "Amount",
    "CSIDriver",
    "CSINode",
    "CSIStorageCapacity",
    "ClaimSource",
    "Container",
    "ContainerImage",
    "ContainerPort",
    "ContainerResourceClaim",
    "ContainerStatus",
    "DeviceClass",
    "DeviceClassSpec",
    "ImageSource",
    "Int32",
    "LabelSelector",
    "LabelsSpec",
    "Metadata",
    "Namespace",
    "Node",
    "NodeAffinity",
    "NodeCondition",
    "NodeSelector",
    "NodeSelectorTerm",
    "NodeSpec",
    "NodeStatus",
    "OwnerReference",
    "PersistentVolume",
    "PersistentVolumeClaim",
    "Pod",
    "PodAffinity",
    "PodAffinityTerm",
    "PodCondition",
    "PodResourceClaim",
    "PodSpec",
    "PodStatus",
    "PreferredSchedulingTerm",
    "PriorityClass",
    "ReplicaSet",
    "ReplicationController",
    "Requirement",
    "ResourceList",
    "ResourceRequirements",
    "RestartRule",
    "SchedulingGate",
    "SelectorSpec",
    "Service",
    "StatefulSet",
    "StorageClass",
    "Stored",
    "Struct",
    "Taint",
    "Toleration",
    "TopologySpreadConstraint",
    "Volume",
    "VolumeAttachment",
    "WeightedPodAffinityTerm",
    "Workload",
    "workload_owner",
]


class Namespace(Struct, frozen=True):
    """A namespace, for its labels."""

    metadata: Metadata = Metadata()


class DeviceClassSpec(Struct, frozen=True):
    """What a device class stands for."""

    extended_resource_name: str | None = None


class DeviceClass(Struct, frozen=True):
    """A class of devices, for the extended resource that it maps."""

    metadata: Metadata = Metadata()
    spec: DeviceClassSpec = DeviceClassSpec()


class PriorityClass(Struct, frozen=True):
    """A name for a priority."""

    metadata: Metadata = Metadata()
    value: Int32 = 0
    global_default: bool = False
    preemption_policy: str = "PreemptLowerPriority"
