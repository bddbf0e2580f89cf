"""Pods, as far as scheduling reads them: affinity, tolerations, spreading, volumes, containers, status.

Only the shapes. What the terms mean is in `policysched.model.selection` and the plugins, what a pod asks for in sum in
`policysched.model.requests`. Sources of volumes that never matter to scheduling (config maps, secrets, empty
directories) are not named here, so a volume of that kind has no source.

Source: k8s.io/api/core/v1/types.go, v0.36.
"""

from __future__ import annotations

from typing import Any

import msgspec

from policysched.model.objects.meta import Int32, Int64, LabelSelector, Metadata, Requirement, ResourceList, Struct


class Toleration(Struct, frozen=True):
    """A pod's toleration; `operator` empty means Equal, `effect` empty means every effect."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class NodeSelectorTerm(Struct, frozen=True):
    """Requirements on labels and fields of a node, all of which must hold."""

    match_expressions: tuple[Requirement, ...] = ()
    match_fields: tuple[Requirement, ...] = ()


class NodeSelector(Struct, frozen=True):
    """Terms of which one must match."""

    node_selector_terms: list[NodeSelectorTerm] = []


class PreferredSchedulingTerm(Struct, frozen=True):
    """A term that adds `weight` to a node's score."""

    weight: Int32 = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinitySpec(Struct, frozen=True):
    """The nodes that a pod requires or prefers."""

    required: NodeSelector | None = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: list[PreferredSchedulingTerm] = msgspec.field(
        default_factory=list, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class PodAffinityTerm(Struct, frozen=True):
    """Pods to be near to or away from."""

    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    topology_key: str = ""
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class WeightedPodAffinityTerm(Struct, frozen=True):
    """A preferred pod affinity term."""

    weight: Int32 = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(Struct, frozen=True):
    """Affinity or anti-affinity to pods."""

    required: list[PodAffinityTerm] = msgspec.field(
        default_factory=list, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: list[WeightedPodAffinityTerm] = msgspec.field(
        default_factory=list, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(Struct, frozen=True):
    """All affinities of a pod."""

    node_affinity: NodeAffinitySpec | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(Struct, frozen=True):
    """How evenly matching pods must be spread over a topology."""

    max_skew: Int32 = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] = ()


class ClaimSource(Struct, frozen=True):
    """A volume that is a persistent volume claim."""

    claim_name: str = ""
    read_only: bool = False


class EphemeralSource(Struct, frozen=True):
    """A volume whose claim a controller makes for this pod, under the name `<pod>-<volume>`."""

    volume_claim_template: dict[str, Any] = {}


class ImageSource(Struct, frozen=True):
    """A volume that is an image."""

    reference: str = ""


class CSISource(Struct, frozen=True):
    """A volume of the pod's own that a CSI driver serves."""

    driver: str = ""


class GCEDisk(Struct, frozen=True):
    """A persistent disk of Google's."""

    pd_name: str = ""
    fs_type: str = ""
    partition: Int32 = 0
    read_only: bool = False


class AWSDisk(Struct, frozen=True):
    """An elastic block store volume of Amazon's."""

    volume_id: str = msgspec.field(default="", name="volumeID")
    fs_type: str = ""
    partition: Int32 = 0
    read_only: bool = False


class AzureDisk(Struct, frozen=True):
    """A data disk of Azure's."""

    disk_name: str = ""
    disk_uri: str = msgspec.field(default="", name="diskURI")
    kind: str | None = None


class AzureFile(Struct, frozen=True):
    """A file share of Azure's."""

    secret_name: str = ""
    share_name: str = ""


class CinderDisk(Struct, frozen=True):
    """A volume of OpenStack's."""

    volume_id: str = msgspec.field(default="", name="volumeID")


class VSphereDisk(Struct, frozen=True):
    """A disk of vSphere's."""

    volume_path: str = ""


class PortworxDisk(Struct, frozen=True):
    """A volume of Portworx's."""

    volume_id: str = msgspec.field(default="", name="volumeID")


class ISCSIDisk(Struct, frozen=True):
    """A disk reached over iSCSI."""

    target_portal: str = ""
    iqn: str = ""
    lun: Int32 = 0
    read_only: bool = False


class RBDImage(Struct, frozen=True):
    """A block image of Ceph's."""

    monitors: tuple[str, ...] = ()
    image: str = ""
    pool: str = "rbd"
    read_only: bool = False


class Volume(Struct, frozen=True):
    """A pod's volume; of the sources, those that scheduling looks at."""

    name: str = ""
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: EphemeralSource | None = None
    image: ImageSource | None = None
    csi: CSISource | None = None
    gce_persistent_disk: GCEDisk | None = None
    aws_elastic_block_store: AWSDisk | None = None
    azure_disk: AzureDisk | None = None
    azure_file: AzureFile | None = None
    cinder: CinderDisk | None = None
    vsphere_volume: VSphereDisk | None = None
    portworx_volume: PortworxDisk | None = None
    iscsi: ISCSIDisk | None = None
    rbd: RBDImage | None = None


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
    claims: tuple[ContainerResourceClaim, ...] = ()


class RestartRule(Struct, frozen=True):
    """A rule that restarts a container, or all of the pod's, on certain exits."""

    action: str = ""


class Container(Struct, frozen=True):
    """A container, as far as it takes resources, ports and images."""

    name: str = ""
    image: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    ports: tuple[ContainerPort, ...] = ()
    restart_policy: str | None = None
    restart_policy_rules: tuple[RestartRule, ...] = ()


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
    runtime_class_name: str = ""


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


class PodClaimStatus(Struct, frozen=True):
    """The claim that was made from a template for a pod; without a name none is needed."""

    name: str = ""
    resource_claim_name: str | None = None


class ContainerExtendedRequest(Struct, frozen=True):
    """The request of the special claim that stands for an extended resource of a container."""

    container_name: str = ""
    resource_name: str = ""
    request_name: str = ""


class PodExtendedClaimStatus(Struct, frozen=True):
    """The claim that was made for a pod's extended resources."""

    request_mappings: tuple[ContainerExtendedRequest, ...] = ()
    resource_claim_name: str = ""


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
    resource_claim_statuses: list[PodClaimStatus] = []
    extended_resource_claim_status: PodExtendedClaimStatus | None = None


class Pod(Struct, frozen=True, weakref=True, gc=True):
    """A pod."""

    metadata: Metadata = Metadata()
    spec: PodSpec = PodSpec()
    status: PodStatus = PodStatus()

    @property
    def key(self) -> str:
        """`namespace/name`."""
        return f"{self.metadata.namespace}/{self.metadata.name}"
