"""Pods with the fields that scheduling reads: affinity, tolerations, spreading, volumes, containers, status.

These are structs only. `policysched.model.selection` and the plugins interpret terms, `policysched.model.requests` sums
requests. Volume sources that never affect scheduling (config maps, secrets, empty directories) are missing, so such a
volume has no source.

Source: k8s.io/api/core/v1/types.go, v0.36.
"""

from __future__ import annotations

from typing import Any

import msgspec

from policysched.model.objects.meta import Int32, Int64, LabelSelector, Metadata, Requirement, ResourceList, Struct


class Toleration(Struct, frozen=True):
    """A toleration of node taints; an empty `operator` means Equal, an empty `effect` every effect."""

    key: str = ""
    operator: str = ""
    value: str = ""
    effect: str = ""


class NodeSelectorTerm(Struct, frozen=True):
    """Requirements on the labels and fields of a node, which must all be met."""

    match_expressions: tuple[Requirement, ...] = ()
    match_fields: tuple[Requirement, ...] = ()


class NodeSelector(Struct, frozen=True):
    """A node selector: a node must match at least one of its terms."""

    node_selector_terms: list[NodeSelectorTerm] = []


class PreferredSchedulingTerm(Struct, frozen=True):
    """A node selector term that adds `weight` to the score of nodes that it matches."""

    weight: Int32 = 0
    preference: NodeSelectorTerm = NodeSelectorTerm()


class NodeAffinitySpec(Struct, frozen=True):
    """The nodes that a pod requires or prefers."""

    required: NodeSelector | None = msgspec.field(default=None, name="requiredDuringSchedulingIgnoredDuringExecution")
    preferred: list[PreferredSchedulingTerm] = msgspec.field(
        default_factory=list, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class PodAffinityTerm(Struct, frozen=True):
    """An affinity or anti-affinity term: selector of other pods, and topology key."""

    label_selector: LabelSelector | None = None
    namespaces: tuple[str, ...] = ()
    topology_key: str = ""
    namespace_selector: LabelSelector | None = None
    match_label_keys: tuple[str, ...] = ()
    mismatch_label_keys: tuple[str, ...] = ()


class WeightedPodAffinityTerm(Struct, frozen=True):
    """A preferred pod affinity or anti-affinity term with its weight."""

    weight: Int32 = 0
    pod_affinity_term: PodAffinityTerm = PodAffinityTerm()


class PodAffinity(Struct, frozen=True):
    """Affinity or anti-affinity to other pods."""

    required: list[PodAffinityTerm] = msgspec.field(
        default_factory=list, name="requiredDuringSchedulingIgnoredDuringExecution"
    )
    preferred: list[WeightedPodAffinityTerm] = msgspec.field(
        default_factory=list, name="preferredDuringSchedulingIgnoredDuringExecution"
    )


class Affinity(Struct, frozen=True):
    """Node affinity, pod affinity and anti-affinity of a pod."""

    node_affinity: NodeAffinitySpec | None = None
    pod_affinity: PodAffinity | None = None
    pod_anti_affinity: PodAffinity | None = None


class TopologySpreadConstraint(Struct, frozen=True):
    """A constraint on how evenly matching pods are spread over a topology."""

    max_skew: Int32 = 0
    topology_key: str = ""
    when_unsatisfiable: str = ""
    label_selector: LabelSelector | None = None
    min_domains: Int32 | None = None
    node_affinity_policy: str | None = None
    node_taints_policy: str | None = None
    match_label_keys: tuple[str, ...] = ()


class ClaimSource(Struct, frozen=True):
    """A volume backed by a PersistentVolumeClaim."""

    claim_name: str = ""
    read_only: bool = False


class EphemeralSource(Struct, frozen=True):
    """A volume whose claim `<pod>-<volume>` a controller creates for the pod."""

    volume_claim_template: dict[str, Any] = {}


class ImageSource(Struct, frozen=True):
    """A volume backed by an image."""

    reference: str = ""


class CSISource(Struct, frozen=True):
    """An inline volume of a CSI driver."""

    driver: str = ""


class GCEDisk(Struct, frozen=True):
    """A Google persistent disk."""

    pd_name: str = ""
    fs_type: str = ""
    partition: Int32 = 0
    read_only: bool = False


class AWSDisk(Struct, frozen=True):
    """An Amazon elastic block store volume."""

    volume_id: str = msgspec.field(default="", name="volumeID")
    fs_type: str = ""
    partition: Int32 = 0
    read_only: bool = False


class AzureDisk(Struct, frozen=True):
    """An Azure data disk."""

    disk_name: str = ""
    disk_uri: str = msgspec.field(default="", name="diskURI")
    kind: str | None = None


class AzureFile(Struct, frozen=True):
    """An Azure file share."""

    secret_name: str = ""
    share_name: str = ""


class CinderDisk(Struct, frozen=True):
    """An OpenStack Cinder volume."""

    volume_id: str = msgspec.field(default="", name="volumeID")


class VSphereDisk(Struct, frozen=True):
    """A vSphere disk."""

    volume_path: str = ""


class PortworxDisk(Struct, frozen=True):
    """A Portworx volume."""

    volume_id: str = msgspec.field(default="", name="volumeID")


class ISCSIDisk(Struct, frozen=True):
    """An iSCSI disk."""

    target_portal: str = ""
    iqn: str = ""
    lun: Int32 = 0
    read_only: bool = False


class RBDImage(Struct, frozen=True):
    """A Ceph block image."""

    monitors: tuple[str, ...] = ()
    image: str = ""
    pool: str = "rbd"
    read_only: bool = False


class PodCertificate(Struct, frozen=True):
    """A source of a projected volume: a certificate that the kubelet requests for the pod."""

    key_type: str = ""


class ProjectedPart(Struct, frozen=True):
    """A part of a projected volume."""

    pod_certificate: PodCertificate | None = None


class ProjectedSource(Struct, frozen=True):
    """A volume with several parts, such as tokens and certificates."""

    sources: tuple[ProjectedPart, ...] = ()


class Volume(Struct, frozen=True):
    """A volume of a pod, with the sources that affect scheduling."""

    name: str = ""
    persistent_volume_claim: ClaimSource | None = None
    ephemeral: EphemeralSource | None = None
    image: ImageSource | None = None
    projected: ProjectedSource | None = None
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
    """A port of a container; `host_port` is 0 if the container uses no port of the node."""

    container_port: Int32 = 0
    host_port: Int32 = 0
    host_ip: str = msgspec.field(default="", name="hostIP")
    protocol: str = "TCP"


class ContainerResourceClaim(Struct, frozen=True):
    """A reference from a container to one of the pod's resource claims."""

    name: str = ""
    request: str = ""


class ResourceRequirements(Struct, frozen=True):
    """Requests and limits of a container or a pod."""

    requests: ResourceList = {}
    limits: ResourceList = {}
    claims: tuple[ContainerResourceClaim, ...] = ()


class RestartRule(Struct, frozen=True):
    """A rule that restarts a container, or all containers of the pod, on certain exit codes."""

    action: str = ""


class VolumeMount(Struct, frozen=True):
    """A mount of a volume into a container."""

    bind_mount_options: tuple[str, ...] = ()


class SeccompProfile(Struct, frozen=True):
    """Profile of the system calls that containers may make."""

    type: str = ""


class SecurityContext(Struct, frozen=True):
    """Security settings of a pod or a container."""

    seccomp_profile: SeccompProfile | None = None


class Container(Struct, frozen=True):
    """A container: name, image, resources, ports, restart policy, mounts and security settings."""

    name: str = ""
    image: str = ""
    resources: ResourceRequirements = ResourceRequirements()
    ports: tuple[ContainerPort, ...] = ()
    restart_policy: str | None = None
    restart_policy_rules: tuple[RestartRule, ...] = ()
    volume_mounts: tuple[VolumeMount, ...] = ()
    security_context: SecurityContext | None = None


class EphemeralContainer(Struct, frozen=True):
    """A container for debugging that was added to a pod after its creation; it has no resources."""

    volume_mounts: tuple[VolumeMount, ...] = ()
    security_context: SecurityContext | None = None


class PodResourceClaim(Struct, frozen=True):
    """A resource claim that a pod uses, by name or template."""

    name: str = ""
    resource_claim_name: str | None = None
    resource_claim_template_name: str | None = None


class SchedulingGate(Struct, frozen=True):
    """A scheduling gate; a pod with gates is not scheduled."""

    name: str = ""


class PodSchedulingGroup(Struct, frozen=True):
    """The pod group to which a pod belongs."""

    pod_group_name: str = ""


class PodSpec(Struct, frozen=True):
    """Spec of a pod."""

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
    ephemeral_containers: list[EphemeralContainer] = []
    overhead: ResourceList = {}
    resources: ResourceRequirements | None = None
    resource_claims: list[PodResourceClaim] = []
    scheduling_gates: list[SchedulingGate] = []
    scheduling_group: PodSchedulingGroup | None = None
    volumes: list[Volume] = []
    host_network: bool = False
    host_users: bool | None = None
    runtime_class_name: str = ""
    security_context: SecurityContext | None = None


class PodCondition(Struct, frozen=True):
    """A condition of a pod."""

    type: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    observed_generation: Int64 = 0


class ContainerStatus(Struct, frozen=True):
    """The resources of a container as the kubelet reports them."""

    name: str = ""
    resources: ResourceRequirements | None = None
    allocated_resources: ResourceList = {}


class PodClaimStatus(Struct, frozen=True):
    """The claim created from a template for a pod; without a name, no claim is needed."""

    name: str = ""
    resource_claim_name: str | None = None


class ContainerExtendedRequest(Struct, frozen=True):
    """Maps a container's extended resource to a request in the claim that was created for the resource."""

    container_name: str = ""
    resource_name: str = ""
    request_name: str = ""


class PodExtendedClaimStatus(Struct, frozen=True):
    """The claim created for the extended resources of a pod."""

    request_mappings: tuple[ContainerExtendedRequest, ...] = ()
    resource_claim_name: str = ""


class PodStatus(Struct, frozen=True):
    """Status of a pod."""

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
