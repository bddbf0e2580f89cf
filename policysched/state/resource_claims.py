"""`ResourceClaims`: stored and assumed claims, and allocations in flight (kube-scheduler's claim tracker).

A claim is *in flight* while its allocation is being written: its devices are allocated, and no other pod may allocate
the claim. A written claim is *assumed* until the watch delivers that version or a newer one. Special claims, for the
extended resources of a pod, are found by their owner. `AllocatedState` is told about the devices of all claims.

Source: pkg/scheduler/util/assumecache/assume_cache.go; plugins/dynamicresources/dra_manager.go (claimTracker),
extendeddynamicresources.go (findExtendedResourceClaim), v1.36.
"""

from __future__ import annotations

from typing import Final

from policysched.devices.inventory.allocated import AllocatedState
from policysched.model.kinds import Resource
from policysched.model.objects import AllocationResult, OwnerReference, Pod, ResourceClaim
from policysched.state.cluster_events import Action, Change, change_of

EXTENDED_RESOURCE_CLAIM: Final = "resource.kubernetes.io/extended-resource-claim"
"""Annotation of the special claim that the scheduler creates for extended resources of a pod."""


class ClaimOutOfStepError(Exception):
    """Raised if a claim cannot be assumed, because it is unknown or older than the stored version."""


class UnknownClaimError(ClaimOutOfStepError):
    """Raised if a claim cannot be assumed, because the watch has not delivered it or it was deleted."""


class ResourceClaims:
    """The resource claims of a cluster.

    Args:
        allocated: The devices that are allocated to claims.
    """

    __slots__ = ("_allocated", "_in_flight", "_known", "_owned", "_shares", "_sharing", "_stored", "stamp")

    def __init__(self, allocated: AllocatedState) -> None:
        self._allocated = allocated
        self.stamp = 0
        """A stamp that changes if a claim changes, or an allocation in flight begins or ends."""
        self._stored: dict[str, ResourceClaim] = {}
        self._known: dict[str, ResourceClaim] = {}
        """The assumed or stored version of each claim, by `namespace/name`."""
        self._in_flight: dict[str, ResourceClaim] = {}
        self._shares: dict[str, int] = {}
        """Number of further pods that share the allocation of each claim in flight, by UID of the claim."""
        self._sharing: set[str] | None = None
        """The claims whose allocation in flight other pods may share, by UID; None if no sharing is allowed now."""
        self._owned: dict[str, dict[str, None]] = {}
        """The keys of special claims, by UID of the owning pod."""

    def get(self, key: str) -> ResourceClaim | None:
        """Return the assumed version, or else the stored version, of the claim with the key `namespace/name`."""
        return self._known.get(key)

    def special_claim_of(self, pod: Pod) -> ResourceClaim | None:
        """Return the special claim that exists for a pod's extended resources; None if no such claim exists."""
        for key in self._owned.get(pod.metadata.uid, ()):
            claim = self._known[key]
            if claim.metadata.namespace == pod.metadata.namespace and any(
                _is_owner(one, pod) for one in claim.metadata.owner_references
            ):
                return claim
        return None

    def put(self, claim: ResourceClaim) -> Change:
        """Add or replace a stored claim; a version that is not newer than the known version changes nothing."""
        known = self._known.get(claim.key)
        self._stored[claim.key] = claim
        if known is not None and _is_not_newer(claim, known):
            return Change(Resource.RESOURCE_CLAIM, Action.NONE, known, known)
        return self._replace(claim.key, claim)

    def drop(self, claim: ResourceClaim) -> Change:
        """Remove a deleted claim, in stored and assumed version."""
        self._stored.pop(claim.key, None)
        return self._replace(claim.key, None)

    def assume(self, claim: ResourceClaim) -> Change:
        """Use the version of a claim that was written, until the watch delivers this version.

        Raises:
            ClaimOutOfStepError: A newer version is known, or the claim is unknown.
        """
        known = self._known.get(claim.key)
        if known is None:
            raise UnknownClaimError(f'could not find ResourceClaim "{claim.key}"')
        if _order(claim) < _order(known):
            raise ClaimOutOfStepError(f'ResourceClaim "{claim.key}" is out of sync')
        return self._replace(claim.key, claim)

    def restore(self, key: str) -> Change:
        """Drop the assumed version of a claim, so that the stored version applies."""
        return self._replace(key, self._stored.get(key))

    def pending_allocation(self, uid: str) -> AllocationResult | None:
        """Return the allocation of a claim in flight; None if the claim is not in flight."""
        found = self._in_flight.get(uid)
        return None if found is None else found.status.allocation

    def share(self, *, begins: bool) -> None:
        """Begin or end the sharing of allocations in flight between the members of a pod group."""
        self._sharing = set() if begins else None

    def shared(self, uid: str) -> ResourceClaim | None:
        """Return the allocated version of a claim in flight that other members may share now; else None."""
        return self._in_flight.get(uid) if self._sharing is not None and uid in self._sharing else None

    def begin(self, claim: ResourceClaim) -> None:
        """Record that an allocation of a claim is in flight, or that a further pod shares it."""
        uid = claim.metadata.uid
        self.stamp += 1
        if self.shared(uid) is not None:
            self._shares[uid] = self._shares.get(uid, 0) + 1
            return
        self._in_flight[uid] = claim
        if self._sharing is not None:
            self._sharing.add(uid)
        if claim.status.allocation is not None:
            self._allocated.assume(uid, claim.status.allocation)

    def end(self, uid: str, *, for_all: bool = False) -> bool:
        """End an allocation in flight for one pod or for all; return whether no pod uses it any more."""
        shares = self._shares.pop(uid, 0)
        if shares and not for_all:
            if shares > 1:
                self._shares[uid] = shares - 1
            return False
        if self._in_flight.pop(uid, None) is None:
            return False
        self.stamp += 1
        self._allocated.forget(uid)
        return True

    def __len__(self) -> int:
        return len(self._known)

    @property
    def in_flight(self) -> int:
        """Number of claims with an allocation in flight."""
        return len(self._in_flight)

    def _replace(self, key: str, new: ResourceClaim | None) -> Change:
        old = self._known.get(key)
        self.stamp += 1
        if old is not None:
            self._own(old, come=False)
        if new is None:
            self._known.pop(key, None)
        else:
            self._known[key] = new
            self._own(new, come=True)
            self._allocated.set_claim(new)
        if old is not None and (new is None or new.metadata.uid != old.metadata.uid):
            self._allocated.remove_claim(old.metadata.uid or key)
        return change_of(Resource.RESOURCE_CLAIM, old, new)

    def _own(self, claim: ResourceClaim, *, come: bool) -> None:
        """Add a special claim to the index by owner, or remove it."""
        if claim.metadata.annotations.get(EXTENDED_RESOURCE_CLAIM) != "true":
            return
        for owner in claim.metadata.owner_references:
            if come:
                self._owned.setdefault(owner.uid, {})[claim.key] = None
            elif (keys := self._owned.get(owner.uid)) is not None:
                keys.pop(claim.key, None)
                if not keys:
                    del self._owned[owner.uid]


def _is_owner(reference: OwnerReference, pod: Pod) -> bool:
    return reference.controller and reference.name == pod.metadata.name and reference.uid == pod.metadata.uid


def is_newer(claim: ResourceClaim, known: ResourceClaim) -> bool:
    """Return whether a claim is newer than the known version, or is a different claim of the same name."""
    return claim.metadata.uid != known.metadata.uid or _order(claim) > _order(known)


def _is_not_newer(claim: ResourceClaim, known: ResourceClaim) -> bool:
    """Return whether a claim is the known version or older; a claim from a file, without version, is not."""
    if not claim.metadata.resource_version or claim.metadata.uid != known.metadata.uid:
        return False
    return _order(claim) <= _order(known)


def _order(claim: ResourceClaim) -> tuple[int, str]:
    """Return a sort key of resource versions: numbers of any length."""
    version = claim.metadata.resource_version
    digits = version.lstrip("0") if version.isdecimal() else ""
    return len(digits), digits
