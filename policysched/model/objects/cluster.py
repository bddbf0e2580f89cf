"""Nodes, namespaces, priority classes, Services and workload controllers: the fields that scheduling reads.

These are structs only. Amounts are texts (`ResourceList`), because they are compared far more often than parsed.
`policysched.plugins.pod_topology_spread.constraints` decides which selectors apply to a pod with default spreading.

Source: k8s.io/api/core/v1/types.go, k8s.io/api/apps/v1, k8s.io/api/scheduling/v1, v0.36.
"""

from __future__ import annotations

from typing import Final

from policysched.model.objects.meta import Int32, Int64, LabelSelector, Metadata, ResourceList, Struct
from policysched.model.objects.pods import Pod


class Taint(Struct, frozen=True):
    """A node's taint."""

    key: str = ""
    value: str = ""
    effect: str = ""


class NodeSpec(Struct, frozen=True):
    """Spec of a node."""

    unschedulable: bool = False
    taints: list[Taint] = []


class ContainerImage(Struct, frozen=True):
    """An image on a node."""

    names: list[str] = []
    size_bytes: Int64 = 0


class NodeCondition(Struct, frozen=True):
    """A condition of a node."""

    type: str = ""
    status: str = ""


class NodeAddress(Struct, frozen=True):
    """An address of a node with its type, such as `InternalIP`."""

    type: str = ""
    address: str = ""


class NodeSystemInfo(Struct, frozen=True):
    """The versions of a node's software."""

    kubelet_version: str = ""
    kernel_version: str = ""
    container_runtime_version: str = ""
    os_image: str = ""


class NodeStatus(Struct, frozen=True):
    """Status of a node."""

    capacity: ResourceList = {}
    allocatable: ResourceList = {}
    conditions: list[NodeCondition] = []
    images: list[ContainerImage] = []
    addresses: list[NodeAddress] = []
    node_info: NodeSystemInfo = NodeSystemInfo()
    declared_features: list[str] = []


class Node(Struct, frozen=True):
    """A node."""

    metadata: Metadata = Metadata()
    spec: NodeSpec = NodeSpec()
    status: NodeStatus = NodeStatus()


REPLICATION_CONTROLLER: Final = "ReplicationController"
REPLICA_SET: Final = "ReplicaSet"
STATEFUL_SET: Final = "StatefulSet"
_KINDS: Final = {
    ("v1", REPLICATION_CONTROLLER): REPLICATION_CONTROLLER,
    ("apps/v1", REPLICA_SET): REPLICA_SET,
    ("apps/v1", STATEFUL_SET): STATEFUL_SET,
}


class LabelsSpec(Struct, frozen=True):
    """The spec of an object that selects pods by plain labels."""

    selector: dict[str, str] | None = None


class SelectorSpec(Struct, frozen=True):
    """The spec of an object that selects pods by a label selector."""

    selector: LabelSelector | None = None


class Service(Struct, frozen=True):
    """A Service; without a selector it has no pods."""

    metadata: Metadata = Metadata()
    spec: LabelsSpec = LabelsSpec()


class ReplicationController(Struct, frozen=True):
    """A replication controller."""

    metadata: Metadata = Metadata()
    spec: LabelsSpec = LabelsSpec()


class ReplicaSet(Struct, frozen=True):
    """A replica set."""

    metadata: Metadata = Metadata()
    spec: SelectorSpec = SelectorSpec()


class StatefulSet(Struct, frozen=True):
    """A stateful set."""

    metadata: Metadata = Metadata()
    spec: SelectorSpec = SelectorSpec()


Workload = Service | ReplicationController | ReplicaSet | StatefulSet


def workload_owner(pod: Pod) -> tuple[str, str] | None:
    """Return kind and name of the workload that controls a pod; None if no supported workload does.

    Source: pkg/scheduler/framework/plugins/helper/spread.go (DefaultSelector).
    """
    owner = next((one for one in pod.metadata.owner_references if one.controller), None)
    if owner is None:
        return None
    # an empty group can be written with its slash
    version = owner.api_version[1:] if owner.api_version.startswith("/") else owner.api_version
    kind = _KINDS.get((version, owner.kind))
    return None if kind is None else (kind, owner.name)


class Namespace(Struct, frozen=True):
    """A namespace with its labels."""

    metadata: Metadata = Metadata()


class PodDisruptionBudgetSpec(Struct, frozen=True):
    """The pods of a disruption budget; the disruption controller computes how many may be disrupted."""

    selector: LabelSelector | None = None


class PodDisruptionBudgetStatus(Struct, frozen=True):
    """The number of allowed disruptions, and the pods whose eviction is already subtracted from it."""

    disruptions_allowed: Int32 = 0
    disrupted_pods: dict[str, str | None] = {}


class PodDisruptionBudget(Struct, frozen=True):
    """A limit on the number of pods that are disrupted at the same time."""

    metadata: Metadata = Metadata()
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


class PriorityClass(Struct, frozen=True):
    """A named priority for pods."""

    metadata: Metadata = Metadata()
    value: Int32 = 0
    global_default: bool = False
    preemption_policy: str = "PreemptLowerPriority"
