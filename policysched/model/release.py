"""Differences between the Kubernetes releases whose kube-scheduler is reproduced: one table.

A `Release` has one field for each difference, and a field for a feature gate that can be turned on. Plugins, queue,
metrics and configuration take the fields that they need when they are created; no other module compares versions, and
no decision reads a version.

Source: pkg/scheduler, pkg/apis, pkg/api/pod and component-helpers of the named versions, with default feature gates.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, replace
from typing import Final

_MINOR: Final = re.compile(r"v?([0-9]{1,4})\.([0-9]{1,4})(?![0-9])")


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A release of Kubernetes, with the differences between its scheduler and those of other releases."""

    version: str
    """The version with which decisions, events and metrics are compared, such as v1.36.5."""
    is_preview: bool = False
    """Whether the release is a beta of Kubernetes."""
    generic_workload: bool = False
    """Whether the feature gate GenericWorkload is on: pods with a scheduling group are scheduled by pod groups."""
    topology_aware: bool = False
    """Whether the feature gate TopologyAwareWorkloadScheduling is on: pod groups are placed by topology."""
    workload_claims: bool = False
    """Whether the feature gate DRAWorkloadResourceClaims is on: pods share the resource claims of their pod group."""
    node_name_is_first: bool
    """Whether NodeName precedes NodeUnschedulable among the default plugins.

    Source: pkg/scheduler/apis/config/v1/default_plugins.go.
    """
    node_name_narrows: bool
    """Whether NodeName names the pod's node at PreFilter, where NodeUnschedulable and TaintToleration act too.

    Source: pkg/scheduler/framework/plugins/nodename.
    """
    image_volumes_count: bool
    """Whether ImageLocality scales scores by the number of containers and image volumes, instead of containers only.

    Source: pkg/scheduler/framework/plugins/imagelocality.
    """
    merges_namespaces: bool
    """Whether the namespaceSelector of a pod's own affinity terms is evaluated for existing namespaces only.

    Otherwise, a selector that only excludes labels matches every namespace.

    Source: pkg/scheduler/framework/plugins/interpodaffinity.
    """
    empty_spreading_counts: bool
    """Whether a topology spread constraint with an empty selector counts all pods of the namespace, instead of none.

    Source: pkg/scheduler/framework/plugins/podtopologyspread/common.go.
    """
    node_features: tuple[str, ...]
    """The features that nodes can declare and pods can require, sorted.

    Source: k8s.io/component-helpers/nodedeclaredfeatures.
    """
    resizes_compare_sums: bool
    """Whether a pod under resize uses the largest of its requested, allocated and actual sums.

    Otherwise, it uses the sum of the largest amounts of its containers.

    Source: k8s.io/component-helpers/resource/helpers.go.
    """
    fit_scores_pod_level: bool
    """Whether NodeResourcesFit scores a pending pod by its pod-level requests and its resize too.

    Source: pkg/scheduler/framework/plugins/noderesources/fit.go.
    """
    completes_pod_level: bool
    """Whether the API server completes pod-level requests and limits of every pod that has any, after admission.

    Otherwise, it completes the requests of pods with pod-level limits, before admission.

    Source: pkg/api/pod/util.go.
    """
    scores_storage_capacity: bool
    """Whether VolumeBinding scores nodes by storage capacity, and has the argument `shape`.

    Source: pkg/scheduler/framework/plugins/volumebinding.
    """
    missing_driver_rejects: bool
    """Whether NodeVolumeLimits rejects nodes without a CSI driver that has `preventPodSchedulingIfMissing`.

    Source: pkg/scheduler/framework/plugins/nodevolumelimits/csi.go.
    """
    exact_capacities: bool
    """Whether claims are compared with the storage of drivers exactly, instead of in whole bytes of 64 bits.

    Source: pkg/scheduler/framework/plugins/volumebinding.
    """
    no_deallocation_is_reported: bool
    """Whether the message of a pod that does not fit states why none of its claims was deallocated.

    The reasons are "no new claims to deallocate" and "still not schedulable".

    Source: pkg/scheduler/framework/plugins/dynamicresources.
    """
    preempted_node_is_reported: bool
    """Whether the message of a preempting pod names the node and the number of victims.

    Source: pkg/scheduler/framework/preemption/preemption.go.
    """
    unbound_victim_retries: bool
    """Whether a preempting pod is retried without backoff if its last victim was not bound yet.

    Source: pkg/scheduler/framework/preemption/executor.go.
    """
    gangs_wait_at_permit: bool
    """Whether members of a gang wait at Permit until enough of them have a node.

    Source: pkg/scheduler/framework/plugins/gangscheduling.
    """
    group_generation_is_renewed: bool
    """Whether a scheduled pod group's condition follows later generations of the group.

    Source: pkg/scheduler/schedule_one_podgroup.go.
    """
    lack_of_victims_is_final: bool
    """Whether the message of a pod group without victims omits the other plugins at PodGroupPostFilter.

    Source: pkg/scheduler/framework/preemption/podgrouppreemption.go.
    """
    preemption_policy_comes_first: bool
    """Whether a pod group that never preempts is rejected even if it waits for victims of an earlier preemption.

    Source: pkg/scheduler/framework/preemption/podgrouppreemption.go.
    """
    preemption_ranks_nodes: bool
    """Whether the members of a preempting pod group go to the nodes whose victims cost least.

    Source: pkg/scheduler/framework/plugins/defaultpreemption/default_preemption.go (RankNodes).
    """
    group_preemption_clears_nominations: bool
    """Whether the preemption of a pod group clears the nominations of pods of lower priority.

    Source: pkg/scheduler/framework/preemption/executor.go (getLowerPriorityNominatedPods).
    """
    placement_search_ends_early: bool
    """Whether a pod group tries its nominated placement first, and stops when enough placements are feasible.

    Otherwise, all placements are evaluated.

    Source: pkg/scheduler/algorithm_podgroup.go (podGroupSchedulingPlacementAlgorithm).
    """
    empty_topology_is_domain: bool
    """Whether nodes with an empty value of a topology key are a placement of a pod group.

    Source: pkg/scheduler/framework/plugins/topologyaware/topology_placement.go.
    """
    members_rank_as_groups: bool
    """Whether a pod of a pod group is a more important victim than other pods of its priority.

    Source: pkg/scheduler/framework/preemption/types.go (NewPodVictim).
    """
    selector_errors_name_devices: bool
    """Whether the error of a device selector names the device, with a hint if an attribute or capacity is missing.

    Source: k8s.io/dynamic-resource-allocation/structured, k8s.io/dynamic-resource-allocation/cel/errors.go.
    """
    selectors_follow_cel_0_29: bool
    """Whether device selectors can read attributes that are lists, which have the type `dyn`, and follow cel-go 0.29.

    Otherwise, an attribute that is a list fails every selector, attributes have the type `any`, `duration` takes
    integers, and `or` and `orValue` return a value that is not optional.

    Source: k8s.io/dynamic-resource-allocation/cel/compile.go, github.com/google/cel-go.
    """
    device_taint_rules_apply: bool
    """Whether DeviceTaintRules taint devices, in addition to the taints that drivers publish.

    Source: k8s.io/dynamic-resource-allocation/resourceslice/tracker.
    """
    configurations_apply_to_all: bool
    """Whether a device configuration for all requests of a claim is allocated once and names no requests.

    Otherwise, it is allocated once for each request, with the names of the requests.

    Source: k8s.io/dynamic-resource-allocation/structured.
    """
    counters_reach_all_nodes: bool
    """Whether every node sees a pool of devices with shared counters.

    Otherwise, only the nodes that reach one of its slices see the pool: other nodes are not rejected for its faults.

    Source: k8s.io/dynamic-resource-allocation/structured.
    """
    qualifies_capacities: bool
    """Whether a device capacity that is named without a domain has the driver's domain, in requests and allocations.

    Source: k8s.io/dynamic-resource-allocation/structured.
    """
    incomplete_pool_rejects_node: bool
    """Whether a pool of devices that is invalid or being updated rejects a request for all devices on its nodes only.

    Otherwise, the pod fails.

    Source: k8s.io/dynamic-resource-allocation/structured.
    """
    all_includes_consumed: bool
    """Whether a request for all devices includes devices without enough free capacity, so that it is not satisfied.

    Otherwise, it is satisfied by the other devices.

    Source: k8s.io/dynamic-resource-allocation/structured.
    """
    ignores_compatibility_groups: bool
    """Whether slices with devices in compatibility groups are ignored, so that their pools are incomplete.

    Source: k8s.io/dynamic-resource-allocation/structured.
    """
    refuses_derived_attributes: bool
    """Whether a request for devices with derived attributes fails the pod, instead of being treated as one without.

    Source: k8s.io/dynamic-resource-allocation/structured.
    """
    empty_shares_count: bool
    """Whether another share of a device takes no shared counters, even if the allocated shares consume no capacity.

    Source: k8s.io/dynamic-resource-allocation/structured.
    """
    rounded_capacities_keep_form: bool
    """Whether a device capacity that is rounded to a step is written in the form of the step.

    Otherwise, it is written in binary form: 3000 instead of 3k.

    Source: k8s.io/dynamic-resource-allocation/structured.
    """
    capacities_are_fractional: bool
    """Whether requested device capacities are rounded to steps of thousandths if possible, instead of whole units.

    Source: k8s.io/dynamic-resource-allocation/structured.
    """
    capacity_errors_fail: bool
    """Whether a pod fails that requests a capacity beyond 64-bit integers, or a negative one.

    Source: k8s.io/dynamic-resource-allocation/structured.
    """
    distinct_compares_all: bool
    """Whether `distinctAttribute` compares all devices, instead of the latest device of each request.

    Source: k8s.io/dynamic-resource-allocation/structured.
    """
    budgets_stop_at_violation: bool
    """Whether other disruption budgets do not count a pod whose eviction violates a budget.

    Source: pkg/scheduler/framework/preemption/util.go.
    """
    empty_budget_selects_all: bool
    """Whether a disruption budget with an empty selector protects all pods of its namespace.

    Source: pkg/scheduler/framework/preemption/util.go.
    """
    uid_breaks_ties: bool
    """Whether preemption evicts the pod with the highest UID first, of pods with equal priority and start.

    Otherwise, the last pod of the node.

    Source: pkg/scheduler/framework/preemption/util.go.
    """
    evicts_first_unstarted: bool
    """Whether preemption evicts the first pod of the node first, of pods with equal priority that have not started.

    Otherwise, the last pod.

    Source: pkg/scheduler/util/utils.go (MoreImportantPod), pkg/scheduler/framework/preemption/types.go (NewVictim).
    """
    extenders_add_victims: bool
    """Whether extenders also receive nodes on which no eviction is needed, and can add victims there.

    Without such an extender, the node is no candidate. Otherwise, such a node fails the preemption.

    Source: pkg/scheduler/framework/preemption/preemption.go.
    """
    taint_updates_wake_all: bool
    """Whether a change of a node's taints retries all pods that wait for nodes, whichever plugins rejected them.

    Source: pkg/scheduler/scheduler.go.
    """
    shrinking_node_wakes: bool
    """Whether a pod is retried if its nominated node no longer has its cpu, memory or ephemeral storage.

    Source: pkg/scheduler/framework/plugins/noderesources/fit.go.
    """
    messages_name_pod_group: bool
    """Whether messages of pods name their pod group, and a group with unequal members has the reason PodGroupError.

    Source: pkg/scheduler/framework/plugins/gangscheduling.
    """
    pending_pod_event: str
    """The name of a pending pod in the event labels of metrics, followed by what happened to the pod.

    Source: k8s.io/kube-scheduler/framework/types.go.
    """
    own_update_event: str
    """The name of a pending pod in the event labels of metrics about its own updates.

    Source: pkg/scheduler/backend/queue/scheduling_queue.go.
    """
    entity_label: str
    """The label that distinguishes pods and groups in scheduler_queued_entities; empty if no metric counts entities.

    Source: pkg/scheduler/metrics/metrics.go.
    """
    help_names_profiles: bool
    """Whether the help texts of metrics mention scheduler profiles, and composite pod groups.

    Source: pkg/scheduler/metrics/metrics.go.
    """
    latencies_are_beta: bool
    """Whether the durations of plugins and of the scheduling algorithm are BETA metrics, instead of ALPHA.

    Source: pkg/scheduler/metrics/metrics.go.
    """
    hides_preemption_durations: bool
    """Whether the metric scheduler_preemption_goroutines_duration_seconds is deprecated, so that it is not exported.

    Source: pkg/scheduler/metrics/metrics.go.
    """
    counts_claims_by_owner: bool
    """Whether created claims are counted in dynamic_resource_allocation_resourceclaim_creates_total, by owner.

    Source: k8s.io/dynamic-resource-allocation/resourceclaim/metrics/metrics.go.
    """
    configuration_fields: frozenset[str]
    """The fields of a KubeSchedulerConfiguration that 1.36 does not have.

    Source: k8s.io/kube-scheduler/config/v1/types.go.
    """
    points_without_arguments: frozenset[str]
    """The extension points that give a plugin no default arguments.

    A plugin with arguments that is enabled only there needs an entry in `pluginConfig`.

    Source: pkg/scheduler/apis/config/v1/defaults.go.
    """
    has_deferred_pod_scheduling: bool
    """Whether the plugin DeferredPodScheduling exists; it is not enabled by default.

    Source: pkg/scheduler/framework/plugins/deferredpodscheduling.
    """
    preemption_reserves: bool
    """Whether DefaultPreemption acts at reserve, where it is disabled by default.

    Source: pkg/scheduler/framework/plugins/defaultpreemption.
    """
    one_placement_generator: bool
    """Whether a profile can have only one placementGenerate plugin.

    Source: pkg/scheduler/framework/runtime/framework.go.
    """
    validates_placement_points: bool
    """Whether removed plugins are refused at placementGenerate and placementScore like at other points.

    Source: pkg/scheduler/apis/config/validation/validation.go.
    """

    @property
    def minor(self) -> str:
        """The minor, such as 1.36."""
        return minor_of(self.version)

    def skew(self, version: str) -> int:
        """Return by how many minors an API server is newer than the release; 0 if the version has no minor.

        Args:
            version: The server's `gitVersion`.
        """
        minor = minor_of(version)
        return _order(minor) - _order(self.minor) if minor else 0


def minor_of(version: str) -> str:
    """Return the minor of a version such as v1.36.5+k3s1; empty if the text is not a version."""
    found = _MINOR.match(version)
    return "" if found is None else f"{found[1]}.{found[2]}"


V1_36: Final = Release(
    version="v1.36.5",
    node_name_is_first=False,
    node_name_narrows=False,
    image_volumes_count=False,
    merges_namespaces=False,
    empty_spreading_counts=False,
    node_features=(
        "ExtendWebSocketsToKubelet",
        "InPlacePodLevelResourcesVerticalScaling",
        "InPlacePodVerticalScalingInitContainers",
        "RestartAllContainersOnContainerExits",
        "UserNamespacesHostNetworkSupport",
    ),
    resizes_compare_sums=False,
    fit_scores_pod_level=False,
    completes_pod_level=False,
    scores_storage_capacity=False,
    missing_driver_rejects=False,
    exact_capacities=False,
    no_deallocation_is_reported=True,
    preempted_node_is_reported=False,
    unbound_victim_retries=False,
    gangs_wait_at_permit=True,
    group_generation_is_renewed=True,
    lack_of_victims_is_final=True,
    placement_search_ends_early=False,
    empty_topology_is_domain=True,
    members_rank_as_groups=True,
    preemption_policy_comes_first=True,
    preemption_ranks_nodes=False,
    group_preemption_clears_nominations=False,
    selector_errors_name_devices=False,
    selectors_follow_cel_0_29=False,
    device_taint_rules_apply=False,
    configurations_apply_to_all=False,
    counters_reach_all_nodes=True,
    qualifies_capacities=False,
    incomplete_pool_rejects_node=False,
    all_includes_consumed=False,
    ignores_compatibility_groups=False,
    refuses_derived_attributes=False,
    empty_shares_count=False,
    rounded_capacities_keep_form=False,
    capacities_are_fractional=False,
    capacity_errors_fail=False,
    distinct_compares_all=False,
    budgets_stop_at_violation=False,
    empty_budget_selects_all=False,
    uid_breaks_ties=False,
    evicts_first_unstarted=True,
    extenders_add_victims=False,
    taint_updates_wake_all=True,
    messages_name_pod_group=False,
    shrinking_node_wakes=False,
    pending_pod_event="UnschedulablePod",
    own_update_event="UnschedulablePod",
    entity_label="",
    help_names_profiles=False,
    latencies_are_beta=False,
    hides_preemption_durations=False,
    counts_claims_by_owner=False,
    configuration_fields=frozenset(),
    points_without_arguments=frozenset(),
    has_deferred_pod_scheduling=False,
    preemption_reserves=False,
    one_placement_generator=True,
    validates_placement_points=False,
)
V1_37: Final = replace(
    V1_36,
    version="v1.37.2",
    node_name_is_first=True,
    node_name_narrows=True,
    image_volumes_count=True,
    merges_namespaces=True,
    node_features=(
        "DRANodeAllocatableResources",
        "DRAOptionalNodeOperations",
        "ExtendWebSocketsToKubelet",
        "InPlacePodLevelResourcesVerticalScaling",
        "InPlacePodVerticalScalingInitContainers",
        "InPlacePodVerticalScalingMemoryBackedVolumes",
        "RestartAllContainersOnContainerExits",
        "UserNamespacesHostNetworkSupport",
        "VolumeBindMountOptions",
    ),
    resizes_compare_sums=True,
    completes_pod_level=True,
    scores_storage_capacity=True,
    missing_driver_rejects=True,
    no_deallocation_is_reported=False,
    preempted_node_is_reported=True,
    unbound_victim_retries=True,
    selector_errors_name_devices=True,
    selectors_follow_cel_0_29=True,
    device_taint_rules_apply=True,
    configurations_apply_to_all=True,
    counters_reach_all_nodes=False,
    all_includes_consumed=True,
    ignores_compatibility_groups=True,
    refuses_derived_attributes=True,
    empty_shares_count=True,
    rounded_capacities_keep_form=True,
    capacity_errors_fail=True,
    distinct_compares_all=True,
    budgets_stop_at_violation=True,
    evicts_first_unstarted=False,
    taint_updates_wake_all=False,
    pending_pod_event="UnscheduledPod",
    own_update_event="TargetPod",
    entity_label="type",
    latencies_are_beta=True,
    hides_preemption_durations=True,
    counts_claims_by_owner=True,
    configuration_fields=frozenset({"podGroupPostFilter"}),
    points_without_arguments=frozenset({"podGroupPostFilter"}),
    has_deferred_pod_scheduling=True,
)
V1_38: Final = replace(
    V1_37,
    version="v1.38.0-beta.0",
    is_preview=True,
    empty_spreading_counts=True,
    node_features=(
        "DRANodeAllocatableResources",
        "DRAOptionalNodeOperations",
        "ExtendWebSocketsToKubelet",
        "InPlacePodLevelResourcesVerticalScaling",
        "InPlacePodVerticalScalingInitContainers",
        "InPlacePodVerticalScalingMemoryBackedVolumes",
        "PodCertificateMLDSA",
        "RestartAllContainersOnContainerExits",
        "SecurityProfileOCI",
        "UserNamespacesHostNetworkSupport",
        "VolumeBindMountOptions",
    ),
    fit_scores_pod_level=True,
    gangs_wait_at_permit=False,
    group_generation_is_renewed=False,
    lack_of_victims_is_final=False,
    placement_search_ends_early=True,
    empty_topology_is_domain=False,
    members_rank_as_groups=False,
    preemption_policy_comes_first=False,
    preemption_ranks_nodes=True,
    group_preemption_clears_nominations=True,
    capacities_are_fractional=True,
    exact_capacities=True,
    qualifies_capacities=True,
    incomplete_pool_rejects_node=True,
    empty_budget_selects_all=True,
    messages_name_pod_group=True,
    uid_breaks_ties=True,
    extenders_add_victims=True,
    shrinking_node_wakes=True,
    entity_label="entity",
    help_names_profiles=True,
    configuration_fields=frozenset({"podGroupPostFilter", "placementFeasible", "percentageOfPlacementsToScore"}),
    points_without_arguments=frozenset(),
    preemption_reserves=True,
    one_placement_generator=False,
    validates_placement_points=True,
)
RELEASES: Final = {release.minor: release for release in (V1_36, V1_37, V1_38)}
"""The reproduced Kubernetes releases by minor, oldest first."""
DEFAULT: Final = V1_37
"""The release for decisions without a server."""


def with_pod_groups(release: Release, *, by_topology: bool = False, shares_claims: bool = False) -> Release | None:
    """Return a release with the feature gate GenericWorkload; None if the gate cannot be turned on: it is alpha.

    Args:
        release: The release.
        by_topology: Whether the gate TopologyAwareWorkloadScheduling is on, too.
        shares_claims: Whether the gate DRAWorkloadResourceClaims is on, too.
    """
    if _order(release.minor) < _order("1.37"):
        return None
    return replace(release, generic_workload=True, topology_aware=by_topology, workload_claims=shares_claims)


def _order(minor: str) -> int:
    major, number = map(int, minor.split("."))
    return major * 10_000 + number
