"""Pods, as far as scheduling reads them.

Only the shapes, and their volumes and constraints by import; what a pod asks for in sum is worked out in
`policysched.model.requests`.

Source: k8s.io/api/core/v1/types.go, v0.36.
"""

from __future__ import annotations

import msgspec

from policysched.model.objects.affinity import Affinity, Toleration, TopologySpreadConstraint
from policysched.model.objects.meta import Int32, Int64, Metadata, ResourceList, Struct
from policysched.model.objects.volumes import Volume


class ContainerPort(Struct, frozen=True):
    """A port of a container; `host_port` 0 means none."""

    container_port: Int32 = 0
    host_port: Int32 = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = "TCP"


class ContainerResourceClaim(Struct, frozen=True):
    """A container's use of one of the pod's resource claims."""

    name: str = ""
    request: str = ""


class ResourceRequirements(Struct, frozen=True):
    """Requests and limits of a container or a pod."""

    requests: ResourceList = {}
    limits: ResourceList = {}
    claims: list[ContainerResourceClaim] = []


class RestartRule(Struct, frozen=True):
    """A rule that restarts a container, or all of the pod's, on certain exits."""

    action: str = ""


class Container(Struct, frozen=True):
    """A container, as far as it takes resources, ports and images."""

    name: str = ""
    image: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    ports: list[ContainerPort] = []
    restart_policy: str | None = None
    restart_policy_rules: list[RestartRule] = []


class PodResourceClaim(Struct, frozen=True):
    """A resource claim of the pod."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class SchedulingGate(Struct, frozen=True):
    """A gate that keeps the pod from being scheduled."""

    name: str = ""


class PodSpec(Struct, frozen=True):
    """What a pod asks for."""

    node_name: str = ""
    scheduler_name: str = "default-scheduler"
    priority: Int32 | None = None
    priority_class_name: str = ""
    preemption_policy: str | None = None
    service_account_name: str = ""
    node_selector: dict[str, str] = {}
    affinity: Affinity | None = None
    tolerations: list[Toleration] = []
    topology_spread_constraints: list[TopologySpreadConstraint] = []
    containers: list[Container] = []
    init_containers: list[Container] = []
    overhead: ResourceList = {}
    resources: ResourceRequirements | None = None
    resource_claims: list[PodResourceClaim] = []
    scheduling_gates: list[SchedulingGate] = []
    volumes: list[Volume] = []
    host_network: bool = False
    host_users: bool | None = None


class PodCondition(Struct, frozen=True):
    """One of a pod's conditions."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: Int64 = 0


class ContainerStatus(Struct, frozen=True):
    """What the kubelet says a container really holds."""

    name: str = ""
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList = {}


class PodStatus(Struct, frozen=True):
    """Where the pod stands."""

    phase: str = ""
    conditions: list[PodCondition] = []
    nominated_node_name: str = ""
    qos_class: str = ""
    start_time: str | None = None
    container_statuses: list[ContainerStatus] = []
    init_container_statuses: list[ContainerStatus] = []
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList = {}


class Pod(Struct, frozen=True, weakref=True, gc=True):
    """A pod."""

    metadata: Metadata = Metadata()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.metadata.namespace}/{self.metadata.name}"
