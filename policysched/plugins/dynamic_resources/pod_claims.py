"""`PodClaims`: a pod's resource claims and their validation; queueing hints for pods that wait for claims.

Messages are those of kube-scheduler. The pod, or its pod group, must own a claim that was made from a template, but not
a claim that it names. Pods can share a claim. A claim that pod and pod group state alike is the group's: it is reserved
for the group.

Source: plugins/dynamicresources/dynamicresources.go (foreachPodResourceClaim, PreFilter, validateDeviceClass,
isClaimReadyForBinding, isClaimTimeout, EventsToRegister, isSchedulableAfterClaimChange, isSchedulableAfterPodChange),
k8s.io/dynamic-resource-allocation/resourceclaim, v1.36.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Iterator, Mapping, Sequence
from functools import partial
from itertools import chain
from typing import Final

from cachetools import LRUCache

from policysched.devices import Allocator, DeviceTables
from policysched.framework import Action, Change, Cluster, Code, Hint, HintIndex, Resource, Status, unresolvable
from policysched.model.objects import (
    AllocatedDeviceStatus,
    ConsumerReference,
    DeviceRequest,
    DeviceResult,
    OwnerReference,
    Pod,
    PodResourceClaim,
    ResourceClaim,
)
from policysched.model.objects.meta import seconds_of
from policysched.plugins.dynamic_resources.extended_resources import (
    ExtendedRequests,
    asks_for_classes,
    extended_requests,
)
from policysched.plugins.hint_parts import updates_itself
from policysched.state.placed.pods import pod_id
from policysched.state.pod_groups import group_key
from policysched.state.resource_claims import ResourceClaims

NAME: Final = "DynamicResources"
GROUPS: Final = "scheduling.k8s.io"
"""The API group of PodGroups."""
MOST_WAITING: Final = 1 << 14
"""Maximum number of pods whose missing claim is cached; beyond it, the least recently used is dropped."""
NOT_AVAILABLE: Final = unresolvable("resourceclaim not available on the node")
NO_DEVICES: Final = unresolvable("cannot allocate all claims")
NO_ALLOCATION: Final = Status(Code.ERROR, ("claim allocation not found for node",))
INVALID_POOLS: Final = unresolvable("invalid resource pools were encountered")


def has_claims(pod: Pod, cluster: Cluster) -> bool:
    """Return whether a pod needs devices: for claims, or for extended resources that device classes provide."""
    return bool(pod.spec.resource_claims) or asks_for_classes(pod, cluster)


class PodClaims:
    """The resource claims of a pod in the order of its spec; the special claim for extended resources is the last.

    Args:
        user: The claims in the pod's spec.
        extended: The extended resources that the pod requests of device classes, with the special claim.

    Attributes:
        to_allocate: The claims of the spec without an allocation.
    """

    __slots__ = ("_allocator", "extended", "to_allocate", "user")

    def __init__(self, user: Sequence[ResourceClaim], extended: ExtendedRequests | None = None) -> None:
        self.user, self.extended = user, extended
        self.to_allocate = [claim for claim in user if claim.status.allocation is None]
        self._allocator: Allocator | None = None

    def allocator(self, tables: DeviceTables) -> Allocator:
        """Return the allocator for the claims without an allocation."""
        if self._allocator is None:
            self._allocator = Allocator(tables, self.to_allocate)
        return self._allocator

    @property
    def all(self) -> list[ResourceClaim]:
        """All claims of the pod, including the special claim for extended resources."""
        return [*self.user, self.extended.claim] if self.extended is not None else [*self.user]

    @property
    def is_any_allocated(self) -> bool:
        """Whether any claim in the pod's spec has an allocation."""
        return len(self.to_allocate) < len(self.user)


def find_claims(pod: Pod, cluster: Cluster) -> PodClaims | Status | None:
    """Return a pod's claims, None for a pod without claims, or the PreFilter status that rejects the pod."""
    known = cluster.resource_claims
    user = stated_claims(pod, known)
    if isinstance(user, Status):
        return user
    if known.in_flight:
        user = [known.shared(claim.metadata.uid) or claim for claim in user]
    extended = extended_requests(pod, cluster)
    if not user and extended is None:
        return None
    found = PodClaims(user, extended)
    for claim in found.to_allocate:
        fault = _pending(claim, cluster) or request_fault(claim, cluster)
        if fault is not None:
            return fault
    special = None if extended is None else extended.claim
    if special is not None and special.status.allocation is None and (fault := _pending(special, cluster)):
        return fault
    return found


def _pending(claim: ResourceClaim, cluster: Cluster) -> Status | None:
    """Return the status that rejects a pod because one of its claims is being allocated for another pod."""
    if cluster.resource_claims.pending_allocation(claim.metadata.uid) is None:
        return None
    return unresolvable(f"resource claim {claim.key} is in the process of being allocated")


def stated_claims(pod: Pod, known: ResourceClaims) -> list[ResourceClaim] | Status:
    """Return the claims in a pod's spec, or the status for a claim that is missing or unusable."""
    found, made = [], _made(pod)
    for stated in pod.spec.resource_claims:
        claim = _stated_claim(pod, stated, made, known)
        if isinstance(claim, Status):
            return claim
        if claim is not None:
            found.append(claim)
    return found


def _stated_claim(
    pod: Pod, stated: PodResourceClaim, made: Mapping[str, str | None], known: ResourceClaims
) -> ResourceClaim | Status | None:
    """Return the claim for an entry in a pod's spec; None if it needs no claim; or the status of an unusable claim."""
    name = _claim_name(pod, stated, made)
    if name is None or isinstance(name, Status):
        return name
    return _usable(pod, f"{pod.metadata.namespace}/{name}", known, is_named=stated.resource_claim_name is not None)


class WaitedClaims:
    """For each waiting pod, the missing or unusable claim, which later checks look up first."""

    __slots__ = ("_places",)

    def __init__(self) -> None:
        self._places: LRUCache[str, int] = LRUCache(MOST_WAITING)

    def obstacle(self, pod: Pod, known: ResourceClaims) -> Status | None:
        """Return the status of a claim for which a pod waits; None if all its claims are usable.

        Cost: O(1) if the pod still waits for the same claim as at the last call.
        """
        identity = pod_id(pod)
        found = first_obstacle(pod, known, self._places.get(identity, 0))
        if found is None:
            self._places.pop(identity, None)
            return None
        self._places[identity], why = found
        return why


def first_obstacle(pod: Pod, known: ResourceClaims, begin: int) -> tuple[int, Status] | None:
    """Return index and status of the first claim for which a pod waits; None if all its claims are usable.

    Args:
        pod: The pod.
        known: All claims.
        begin: The place of the claim to check first; the claims before it are checked last.
    """
    entries, made = pod.spec.resource_claims, _made(pod)
    for place in chain(range(begin, len(entries)), range(min(begin, len(entries)))):
        claim = _stated_claim(pod, entries[place], made, known)
        if isinstance(claim, Status):
            return place, claim
    return None


def claim_names(pod: Pod) -> Iterator[tuple[PodResourceClaim, str | Status | None]]:
    """Yield the entries for claims in a pod's spec, each with the claim's name; None if the entry needs no claim."""
    made = _made(pod)
    return ((stated, _claim_name(pod, stated, made)) for stated in pod.spec.resource_claims)


def _made(pod: Pod) -> Mapping[str, str | None]:
    """Return the names of a pod's claims that were created from templates, by entry in the pod's spec."""
    return {one.name: one.resource_claim_name for one in reversed(pod.status.resource_claim_statuses)}


def _claim_name(pod: Pod, stated: PodResourceClaim, made: Mapping[str, str | None]) -> str | Status | None:
    if stated.resource_claim_name is not None:
        return stated.resource_claim_name
    if stated.resource_claim_template_name is None:
        why = "none of the supported fields are set"
        return unresolvable(f'pod "{pod.key}", spec.resourceClaim "{stated.name}": {why}')
    if stated.name in made:
        return made[stated.name]
    return unresolvable(f'pod "{pod.key}": ResourceClaim not created yet')


def _usable(pod: Pod, key: str, known: ResourceClaims, *, is_named: bool) -> ResourceClaim | Status:
    claim = known.get(key)
    if claim is None:
        return unresolvable(f'could not find ResourceClaim "{key}"')
    if claim.metadata.deletion_timestamp is not None:
        return unresolvable(f'resourceclaim "{claim.metadata.name}" is being deleted')
    if is_named or is_made_for(claim, pod):
        return claim
    group = group_key(pod) if known.of_groups else ""
    if group and _is_made_for_group(claim, group):
        return claim
    _, _, name = group.partition("/")
    who = f"neither Pod nor PodGroup {name} is the owner" if name else "Pod is not owner"
    return unresolvable(f"ResourceClaim {key} was not created for Pod {pod.key} ({who})")


def is_made_for(claim: ResourceClaim, pod: Pod) -> bool:
    """Return whether a claim was created for a pod: the pod is the claim's controller."""
    owner = controller_of(claim)
    return owner is not None and owner.uid == pod.metadata.uid


def _is_made_for_group(claim: ResourceClaim, key: str) -> bool:
    """Return whether a claim was created for the pod group with the key `namespace/name`, whatever its UID."""
    owner = controller_of(claim)
    return (
        owner is not None
        and owner.kind == "PodGroup"
        and owner.api_version.startswith(f"{GROUPS}/")
        and f"{claim.metadata.namespace}/{owner.name}" == key
    )


def controller_of(claim: ResourceClaim) -> OwnerReference | None:
    """Return the owner that controls a claim: the pod or pod group for which the claim was created from a template."""
    return next((one for one in claim.metadata.owner_references if one.controller), None)


def request_fault(claim: ResourceClaim, cluster: Cluster) -> Status | None:
    """Return the status of a claim with a missing device class or an unknown type of request; None if it is valid."""
    known = cluster.devices.tables.classes
    for request in claim.spec.devices.requests:
        exactly = request.exactly
        if exactly is not None and exactly.device_class_name in known:
            continue
        for name, device_class in _classes_named(request):
            if device_class is None:
                return unresolvable(f"resource claim {claim.key}, request {name}: unknown request type")
            if not device_class:
                return Status(Code.ERROR, (f"request {name}: unsupported request type",))
            if device_class not in known:
                return unresolvable(f"request {name}: device class {device_class} does not exist")
    return None


def _classes_named(request: DeviceRequest) -> list[tuple[str, str | None]]:
    """Yield a request or its alternatives, each with its device class; None for an unknown type of request."""
    if request.exactly is not None:
        return [(request.name, request.exactly.device_class_name)]
    if request.first_available:
        return [(f"{request.name}/{one.name}", one.device_class_name) for one in request.first_available]
    return [(request.name, None)]


def is_reserved(claim: ResourceClaim, uid: str) -> bool:
    """Return whether a claim is reserved for the pod or pod group with a UID."""
    return any(one.uid == uid for one in claim.status.reserved_for)


def is_reserved_for(claim: ResourceClaim, pod: Pod, *, or_group: bool = False) -> bool:
    """Return whether a claim is reserved for a pod; with `or_group`, also if it is reserved for the pod's group."""
    key = group_key(pod) if or_group else ""
    return any(one.uid == pod.metadata.uid or (key and _is_group(one, key)) for one in claim.status.reserved_for)


def _is_group(one: ConsumerReference, key: str) -> bool:
    is_group = one.api_group == GROUPS and one.resource == "podgroups"
    return is_group and one.name == key.partition("/")[2]


def results_of(claim: ResourceClaim) -> Sequence[DeviceResult]:
    """Return the allocated devices of a claim."""
    return () if claim.status.allocation is None else claim.status.allocation.devices.results


def status_of(claim: ResourceClaim, result: DeviceResult) -> AllocatedDeviceStatus | None:
    """Return the status that a driver reports for an allocated device; None if it reports no status."""
    names = (result.driver, result.pool, result.device)
    return next((one for one in claim.status.devices if (one.driver, one.pool, one.device) == names), None)


def binding_failure(claim: ResourceClaim) -> str:
    """Return the message of the first device whose binding failure condition is true; empty if no device failed.

    The devices after the first one that is not ready are not checked.
    """
    for result in results_of(claim):
        found = _condition_failure(claim, result)
        if found:
            return found
        if not _is_ready(claim, result):
            return ""
    return ""


def is_ready_to_bind(claim: ResourceClaim) -> bool:
    """Return whether every device of an allocated claim meets its binding conditions."""
    return claim.status.allocation is not None and all(_is_ready(claim, one) for one in results_of(claim))


def _is_ready(claim: ResourceClaim, result: DeviceResult) -> bool:
    if not result.binding_conditions:
        return True
    status = status_of(claim, result)
    if status is None:
        return False
    met = {one.type for one in status.conditions if one.status == "True"}
    return met.issuperset(result.binding_conditions)


def _condition_failure(claim: ResourceClaim, result: DeviceResult) -> str:
    status = status_of(claim, result) if result.binding_conditions else None
    if status is None:
        return ""
    by_type = {one.type: one for one in reversed(status.conditions)}
    for name in result.binding_failure_conditions:
        found = by_type.get(name)
        if found is not None and found.status == "True":
            why = f'claim={claim.metadata.name}, reason={found.reason}, message="{found.message}"'
            return f"device binding failed: {why}"
    return ""


def waits_for_binding(claim: ResourceClaim) -> bool:
    """Return whether any device of a claim has binding conditions."""
    return any(one.binding_conditions for one in results_of(claim))


def has_timed_out(claim: ResourceClaim, timeout: float, now: float) -> bool:
    """Return whether a claim has waited too long for its devices' binding conditions.

    Units: seconds; `now` since 1970.
    """
    allocation = claim.status.allocation
    since = None if allocation is None else seconds_of(allocation.allocation_timestamp)
    return since is not None and waits_for_binding(claim) and since + timeout < now


def hints(waited: WaitedClaims) -> Sequence[Hint]:
    """Return the queueing hints of DynamicResources.

    Any change of devices, classes and nodes can help. A change of a claim helps if the pod uses the claim, or if the
    claim releases devices.
    """
    return (
        Hint(Resource.NODE, Action.ADD | Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_ALLOCATABLE),
        Hint(Resource.RESOURCE_CLAIM, Action.ALL, partial(_claim_helps, waited), HintIndex(_keys_of, _keys_after)),
        Hint(Resource.PENDING_POD, Action.UPDATE_POD_GENERATED_RESOURCE_CLAIM, partial(_pod_helps, waited)),
        Hint(Resource.DEVICE_CLASS, Action.ADD | Action.UPDATE),
        Hint(Resource.RESOURCE_SLICE, Action.ADD | Action.UPDATE),
    )


def _claim_helps(waited: WaitedClaims, pod: Pod, change: Change, cluster: Cluster) -> bool:
    """Return whether a changed claim releases devices, or is a claim of the waiting pod that may be usable now."""
    old, new = change.old, change.new
    if waited.obstacle(pod, cluster.resource_claims) is not None:
        return False
    claims = stated_claims(pod, cluster.resource_claims)
    if isinstance(claims, Status):
        return False
    if _releases(change):
        return True
    if not isinstance(new, ResourceClaim) or all(claim.metadata.uid != new.metadata.uid for claim in claims):
        return False
    return not isinstance(old, ResourceClaim) or old.status != new.status


def _releases(change: Change) -> bool:
    """Return whether a change deallocates or deletes a claim."""
    old, new = change.old, change.new
    if not isinstance(old, ResourceClaim) or old.status.allocation is None:
        return False
    return not isinstance(new, ResourceClaim) or new.status.allocation is None


def _pod_helps(waited: WaitedClaims, pod: Pod, change: Change, cluster: Cluster) -> bool:
    """Return whether a change updates the waiting pod itself and all claims of the pod exist."""
    new = change.new
    if not isinstance(new, Pod) or not updates_itself(pod, change):
        return False
    return waited.obstacle(new, cluster.resource_claims) is None


def _keys_of(pod: Pod) -> Collection[Hashable]:
    return {f"{pod.metadata.namespace}/{name}" for _, name in claim_names(pod) if isinstance(name, str)}


def _keys_after(change: Change, _keys: Collection[Hashable]) -> Collection[Hashable] | None:
    """Return the index key of a changed claim; None, for all pods, if the change releases devices."""
    if _releases(change):
        return None
    return (change.new.key,) if isinstance(change.new, ResourceClaim) else ()
