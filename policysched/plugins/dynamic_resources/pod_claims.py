"""The resource claims of a pod: found, checked, and read where they are allocated.

Texts are kube-scheduler's. A claim made from a template has to belong to the pod; one that is named need not. Claims
may be shared, so that another pod uses one is no reason to turn a pod away.

Source: plugins/dynamicresources/dynamicresources.go (foreachPodResourceClaim, PreFilter, validateDeviceClass,
isClaimReadyForBinding, isClaimTimeout), k8s.io/dynamic-resource-allocation/resourceclaim, v1.36.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import chain
from typing import TYPE_CHECKING, Final

from cachetools import LRUCache

from policysched.framework import Cluster, Code, Status, unresolvable
from policysched.model.objects import (
    AllocatedDeviceStatus,
    DeviceRequest,
    DeviceResult,
    Pod,
    PodResourceClaim,
    ResourceClaim,
)
from policysched.model.objects.meta import seconds_of
from policysched.plugins.dynamic_resources.extended_resources import ExtendedRequests
from policysched.state.placed.pods import pod_id

if TYPE_CHECKING:
    from policysched.devices import Allocator, DeviceTables
    from policysched.state.resource_claims import ResourceClaims

MOST_WAITING: Final = 1 << 14
"""Of how many pods it is known which claim they wait for."""
NOT_AVAILABLE: Final = unresolvable("resourceclaim not available on the node")
NO_DEVICES: Final = unresolvable("cannot allocate all claims")
NO_ALLOCATION: Final = Status(Code.ERROR, ("claim allocation not found for node",))
INVALID_POOLS: Final = unresolvable("invalid resource pools were encountered")


class PodClaims:
    """The claims of a pod, in its order; the special one for its extended resources comes last.

    Args:
        user: Those that the pod states.
        extended: What it asks for of extended resources, and the claim for these.

    Attributes:
        to_allocate: The claims without an allocation, but for the special one.
    """

    __slots__ = ("_allocator", "extended", "to_allocate", "user")

    def __init__(self, user: Sequence[ResourceClaim], extended: ExtendedRequests | None = None) -> None:
        self.user, self.extended = user, extended
        self.to_allocate = [claim for claim in user if claim.status.allocation is None]
        self._allocator: Allocator | None = None

    def allocator(self, tables: DeviceTables) -> Allocator:
        """Return what allocates those of the pod's claims that have no allocation, without the special one."""
        if self._allocator is None:
            from policysched.devices import Allocator  # noqa: PLC0415 - a start needs none

            self._allocator = Allocator(tables, self.to_allocate)
        return self._allocator

    @property
    def all(self) -> list[ResourceClaim]:
        """Every claim."""
        return [*self.user, self.extended.claim] if self.extended is not None else [*self.user]

    @property
    def is_any_allocated(self) -> bool:
        """Whether a claim has an allocation."""
        return len(self.to_allocate) < len(self.user)


def stated_claims(pod: Pod, known: ResourceClaims) -> list[ResourceClaim] | Status:
    """Find the claims that a pod states, or say which of them it waits for."""
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
    """Find the claim of an entry, None where it needs none, or say why it cannot be used."""
    name = _claim_name(pod, stated, made)
    if name is None or isinstance(name, Status):
        return name
    return _usable(pod, f"{pod.metadata.namespace}/{name}", known, is_named=stated.resource_claim_name is not None)


class WaitedClaims:
    """Which of its claims each pod waits for: while that one is not there the others need no look."""

    __slots__ = ("_places",)

    def __init__(self) -> None:
        self._places: LRUCache[str, int] = LRUCache(MOST_WAITING)

    def obstacle(self, pod: Pod, known: ResourceClaims) -> Status | None:
        """Say which claim a pod waits for, None where it waits for none.

        Cost: O(1) where that is the one that it waited for when this was asked last.
        """
        identity = pod_id(pod)
        found = first_obstacle(pod, known, self._places.get(identity, 0))
        if found is None:
            self._places.pop(identity, None)
            return None
        self._places[identity], why = found
        return why


def first_obstacle(pod: Pod, known: ResourceClaims, begin: int) -> tuple[int, Status] | None:
    """Find a claim that a pod waits for, with its place; None where it waits for none.

    Args:
        pod: The pod.
        known: The claims there are.
        begin: The place of the claim that is looked at first; those before it come last.
    """
    entries, made = pod.spec.resource_claims, _made(pod)
    for place in chain(range(begin, len(entries)), range(min(begin, len(entries)))):
        claim = _stated_claim(pod, entries[place], made, known)
        if isinstance(claim, Status):
            return place, claim
    return None


def claim_names(pod: Pod) -> Iterator[tuple[PodResourceClaim, str | Status | None]]:
    """Go through the entries of a pod, each with the name of the claim that it stands for, None where it needs none."""
    made = _made(pod)
    return ((stated, _claim_name(pod, stated, made)) for stated in pod.spec.resource_claims)


def _made(pod: Pod) -> Mapping[str, str | None]:
    """Return the names of the claims that were made of templates, by entry."""
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
    if not is_named and not is_made_for(claim, pod):
        return unresolvable(f"ResourceClaim {key} was not created for Pod {pod.key} (Pod is not owner)")
    return claim


def is_made_for(claim: ResourceClaim, pod: Pod) -> bool:
    """Return whether a pod controls a claim."""
    for one in claim.metadata.owner_references:
        if one.controller:
            return one.uid == pod.metadata.uid
    return False


def request_fault(claim: ResourceClaim, cluster: Cluster) -> Status | None:
    """Say what keeps a claim from being allocated anywhere: a missing class, or a request of no known kind."""
    known = cluster.devices.classes
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
    """List a request or its alternatives with the classes that they name, None for a request that is neither."""
    if request.exactly is not None:
        return [(request.name, request.exactly.device_class_name)]
    if request.first_available:
        return [(f"{request.name}/{one.name}", one.device_class_name) for one in request.first_available]
    return [(request.name, None)]


def is_reserved_for(claim: ResourceClaim, pod: Pod) -> bool:
    """Return whether a claim is reserved for a pod."""
    return any(one.uid == pod.metadata.uid for one in claim.status.reserved_for)


def results_of(claim: ResourceClaim) -> Sequence[DeviceResult]:
    """Return the devices that a claim has got."""
    return () if claim.status.allocation is None else claim.status.allocation.devices.results


def status_of(claim: ResourceClaim, result: DeviceResult) -> AllocatedDeviceStatus | None:
    """Return what a driver says of an allocated device."""
    names = (result.driver, result.pool, result.device)
    return next((one for one in claim.status.devices if (one.driver, one.pool, one.device) == names), None)


def binding_failure(claim: ResourceClaim) -> str:
    """Say which device of a claim cannot be bound, as its driver reports; empty where none says so.

    Devices behind one that is not ready are not looked at.
    """
    for result in results_of(claim):
        found = _condition_failure(claim, result)
        if found:
            return found
        if not _is_ready(claim, result):
            return ""
    return ""


def is_ready_to_bind(claim: ResourceClaim) -> bool:
    """Return whether every device of an allocated claim has the conditions that its driver wants before binding."""
    return claim.status.allocation is not None and all(_is_ready(claim, one) for one in results_of(claim))


def _is_ready(claim: ResourceClaim, result: DeviceResult) -> bool:
    if not result.binding_conditions:
        return True
    told = status_of(claim, result)
    if told is None:
        return False
    met = {one.type for one in told.conditions if one.status == "True"}
    return met.issuperset(result.binding_conditions)


def _condition_failure(claim: ResourceClaim, result: DeviceResult) -> str:
    told = status_of(claim, result) if result.binding_conditions else None
    if told is None:
        return ""
    by_type = {one.type: one for one in reversed(told.conditions)}
    for name in result.binding_failure_conditions:
        found = by_type.get(name)
        if found is not None and found.status == "True":
            why = f'claim={claim.metadata.name}, reason={found.reason}, message="{found.message}"'
            return f"device binding failed: {why}"
    return ""


def waits_for_binding(claim: ResourceClaim) -> bool:
    """Return whether a device of a claim has conditions to be met before the pod is bound."""
    return any(one.binding_conditions for one in results_of(claim))


def has_timed_out(claim: ResourceClaim, timeout: float, now: float) -> bool:
    """Return whether a claim has waited too long for the conditions of its devices.

    Units: seconds, since 1970 for the time.
    """
    allocation = claim.status.allocation
    since = None if allocation is None else seconds_of(allocation.allocation_timestamp)
    return since is not None and waits_for_binding(claim) and since + timeout < now
