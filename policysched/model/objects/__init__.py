"""Every object that scheduling reads, under one import.

`meta` has what all kinds share, `pods`, `cluster` and `storage` the kinds. Quantities stay the texts they were
(`Amount`), and nothing here knows arrays or the network.

Source: k8s.io/api/core/v1/types.go, k8s.io/api/resource/v1, k8s.io/api/scheduling/v1, k8s.io/api/storage/v1, v0.36.
"""

from __future__ import annotations

from policysched.model.objects.cluster import (
    ContainerImage,
    DeviceClass,
    DeviceClassSpec,
    LabelsSpec,
    Namespace,
    Node,
    NodeCondition,
    NodeSpec,
    NodeStatus,
    PodDisruptionBudget,
    PriorityClass,
    ReplicaSet,
    ReplicationController,
    SelectorSpec,
    Service,
    StatefulSet,
    Taint,
    Workload,
    workload_owner,
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
from policysched.model.objects.pods import (
    Affinity,
    ClaimSource,
    Container,
    ContainerPort,
    ContainerResourceClaim,
    ContainerStatus,
    ImageSource,
    NodeAffinitySpec,
    NodeSelector,
    NodeSelectorTerm,
    Pod,
    PodAffinity,
    PodAffinityTerm,
    PodCondition,
    PodResourceClaim,
    PodSpec,
    PodStatus,
    PreferredSchedulingTerm,
    ResourceRequirements,
    RestartRule,
    SchedulingGate,
    Toleration,
    TopologySpreadConstraint,
    Volume,
    WeightedPodAffinityTerm,
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

__all__ = [
    "Affinity", "Amount", "CSIDriver", "CSINode", "CSIStorageCapacity", "ClaimSource", "Container",
    "ContainerImage", "ContainerPort", "ContainerResourceClaim", "ContainerStatus", "DeviceClass",
    "DeviceClassSpec", "ImageSource", "Int32", "LabelSelector", "LabelsSpec", "Metadata", "Namespace", "Node",
    "NodeAffinitySpec", "NodeCondition", "NodeSelector", "NodeSelectorTerm", "NodeSpec", "NodeStatus", "OwnerReference",
    "PersistentVolume", "PersistentVolumeClaim", "Pod", "PodAffinity", "PodAffinityTerm", "PodCondition",
    "PodDisruptionBudget", "PodResourceClaim", "PodSpec", "PodStatus", "PreferredSchedulingTerm", "PriorityClass",
    "ReplicaSet",
    "ReplicationController", "Requirement", "ResourceList", "ResourceRequirements", "RestartRule", "SchedulingGate",
    "SelectorSpec", "Service", "StatefulSet", "StorageClass", "Stored", "Struct", "Taint", "Toleration",
    "TopologySpreadConstraint", "Volume", "VolumeAttachment", "WeightedPodAffinityTerm", "Workload",
    "workload_owner",
]  # fmt: skip
