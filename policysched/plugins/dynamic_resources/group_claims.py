"""Resource claims that the pods of a pod group share, with the feature gate DRAWorkloadResourceClaims.

A claim that pod and pod group state alike is the group's: it is reserved for the group instead of the pod, so that it
stays allocated until the group is deleted. If the group is rejected and has no placed member, its claims are released.

Source: k8s.io/dynamic-resource-allocation/resourceclaim/resourceclaim.go (BindTo, NameFromPodGroup, IsForPodGroup),
plugins/dynamicresources/dynamicresources.go (PodGroupPostFilter, deallocatePodGroupClaims), v1.37.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Iterable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any, Final, NamedTuple

from policysched.framework import Cluster, Code, Handle, Status, unresolvable, unschedulable
from policysched.framework.pod_groups import RejectedGroup
from policysched.model.objects import ConsumerReference, Pod, PodGroup, PodResourceClaim, ResourceClaim
from policysched.plugins.dynamic_resources.claim_writes import deallocate, released, unreserve
from policysched.plugins.dynamic_resources.pod_claims import claim_names, controller_of, is_reserved_for
from policysched.state.pod_groups import GroupState
from policysched.state.resource_claims import ResourceClaims

API_GROUP: Final = "scheduling.k8s.io"
DEALLOCATED: Final = unschedulable("deallocation of PodGroup ResourceClaim completed")
UNRESERVED: Final = unresolvable("ResourceClaim unreserved for PodGroup")


class ClaimRelease(NamedTuple):
    """A claim that is released for a pod or pod group that does not fit."""

    status: Status
    """The status of the plugin at PostFilter or PodGroupPostFilter."""
    claim: ResourceClaim
    request: Callable[[Handle], Coroutine[Any, Any, None]]


class NotedMember(NamedTuple):
    """An evaluated member of a pod group."""

    rejecting: Sequence[ResourceClaim]
    """The allocated claims for which some node rejected the member."""
    release: ClaimRelease | None
    """The claim to release for the member if the group is rejected."""


def consumers(pod: Pod, cluster: Cluster) -> Mapping[str, ConsumerReference]:
    """Return the reference to a pod's group for each claim of the pod that is the group's, by key of the claim."""
    state = _group_state(pod, cluster)
    group = None if state is None else state.group
    if group is None or not group.spec.resource_claims:
        return {}
    consumer = ConsumerReference(API_GROUP, "podgroups", group.metadata.name, group.metadata.uid)
    named = ((stated, name) for stated, name in claim_names(pod) if stated in group.spec.resource_claims)
    return {f"{pod.metadata.namespace}/{name}": consumer for _, name in named if isinstance(name, str)}


def release_of_group(rejected: RejectedGroup, members: Iterable[NotedMember]) -> ClaimRelease | Status | None:
    """Return the release of a claim of a rejected pod group, None if no claim is to be released, or an error.

    A claim because of which nodes rejected members is deallocated, also one that this cycle allocated, which changes
    nothing. If there is none, the group is removed from the reservedFor of one of its claims.
    """
    pod, group, known = rejected.pods[0], rejected.group, rejected.cluster.resource_claims
    state = _group_state(pod, rejected.cluster)
    if state is None or state.scheduled_count:
        return None
    for claim in (claim for member in members for claim in member.rejecting):
        if {one.uid for one in claim.status.reserved_for} <= {group.metadata.uid}:
            return ClaimRelease(DEALLOCATED, claim, released(pod, claim, partial(deallocate, known=known)))
    for one in _claims_of(group, known):
        if isinstance(one, Status):
            return one
        if one.status.allocation is not None and is_reserved_for(one, pod, or_group=True):
            request = released(pod, one, partial(unreserve, consumer=group.metadata.uid, known=known))
            return ClaimRelease(UNRESERVED, one, request)
    return None


def _claims_of(group: PodGroup, known: ResourceClaims) -> Iterator[ResourceClaim | Status]:
    """Yield the existing claims of a pod group, or the error for a claim that is missing."""
    made = {one.name: one.resource_claim_name for one in reversed(group.status.resource_claim_statuses)}
    for stated in group.spec.resource_claims:
        name = _claim_name(group, stated, made)
        if isinstance(name, Status):
            yield name
        elif name is not None:
            key = f"{group.metadata.namespace}/{name}"
            claim = known.get(key)
            if claim is None:
                yield Status(Code.ERROR, (f'could not find ResourceClaim "{key}"',))
            elif stated.resource_claim_name is not None or _is_made_for(claim, group):
                yield claim


def _claim_name(group: PodGroup, stated: PodResourceClaim, made: Mapping[str, str | None]) -> str | Status | None:
    if stated.resource_claim_name is not None:
        return stated.resource_claim_name
    if stated.resource_claim_template_name is None:
        why = f"PodGroup {group.key}, spec.resourceClaim {stated.name}: none of the supported fields are set"
        return Status(Code.ERROR, (why,))
    if stated.name in made:
        return made[stated.name]
    return Status(Code.ERROR, (f"PodGroup {group.key}: ResourceClaim not created yet",))


def _is_made_for(claim: ResourceClaim, group: PodGroup) -> bool:
    owner = controller_of(claim)
    return owner is not None and owner.uid == group.metadata.uid


def _group_state(pod: Pod, cluster: Cluster) -> GroupState | None:
    """Return the pod group whose claims a pod can use; None without a group, or without the feature gate."""
    groups = cluster.pod_groups if cluster.resource_claims.of_groups else None
    return None if groups is None else groups.of_pod(pod)
