"""Nodes, namespaces, priority classes, Services and the controllers of pods, as scheduling reads them.

Only the shapes. Amounts stay the texts that they were (`ResourceList`), because most are compared with earlier ones far
more often than they are parsed; whose selectors count for a pod that spreads by default is worked out in
`policysched.plugins.pod_topology_spread.constraints`.

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
    """What is wanted of a node."""

    unschedulable: bool = False
    taints: list[Taint] = []


class ContainerImage(Struct, frozen=True):
    """An image present on a node."""

    names: list[str] = []
    size_bytes: Int64 = 0


class NodeCondition(Struct, frozen=True):
    """One of a node's conditions."""

    type: str = ""
    status: str = ""


class NodeAddress(Struct, frozen=True):
    """An address of a node, by its type, as `InternalIP`."""

    type: str = ""
    address: str = ""


class NodeSystemInfo(Struct, frozen=True):
    """The versions of a node's software."""

    kubelet_version: str = ""
    kernel_version: str = ""
    container_runtime_version: str = ""
    os_image: str = ""


class NodeStatus(Struct, frozen=True):
    """What a node has."""

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
    """A spec that selects pods by plain labels."""

    selector: dict[str, str] | None = None


class SelectorSpec(Struct, frozen=True):
    """A spec that selects pods by a label selector."""

    selector: LabelSelector | None = None


class Service(Struct, frozen=True):
    """A service; without a selector it has no pods of its own."""

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
    """Return kind and name of the controller that says which pods the pod belongs to, None where none of them does.

    Source: pkg/scheduler/framework/plugins/helper/spread.go (DefaultSelector).
    """
    owner = next((one for one in pod.metadata.owner_references if one.controller), None)
    if owner is None:
        return None
    # an empty group may be written with its slash
    version = owner.api_version[1:] if owner.api_version.startswith("/") else owner.api_version
    kind = _KINDS.get((version, owner.kind))
    return None if kind is None else (kind, owner.name)


class Namespace(Struct, frozen=True):
    """A namespace, for its labels."""

    metadata: Metadata = Metadata()


class PodDisruptionBudgetSpec(Struct, frozen=True):
    """Which pods a budget is about; how many of them may go is worked out by its controller."""

    selector: LabelSelector | None = None


class PodDisruptionBudgetStatus(Struct, frozen=True):
    """How many of a budget's pods may go now, and whose eviction is counted already."""

    disruptions_allowed: Int32 = 0
    disrupted_pods: dict[str, str | None] = {}


class PodDisruptionBudget(Struct, frozen=True):
    """A budget of pods that may be disrupted at a time."""

    metadata: Metadata = Metadata()
    spec: PodDisruptionBudgetSpec = PodDisruptionBudgetSpec()
    status: PodDisruptionBudgetStatus = PodDisruptionBudgetStatus()


class PriorityClass(Struct, frozen=True):
    """A name for a priority."""

    metadata: Metadata = Metadata()
    value: Int32 = 0
    global_default: bool = False
    preemption_policy: str = "PreemptLowerPriority"
