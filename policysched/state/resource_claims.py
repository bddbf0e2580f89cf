"""`ResourceClaims`: claims as stored and as assumed, and allocations not yet written (kube-scheduler's claim tracker).

A claim is *in flight* while its allocation is being written: its devices are allocated, and no other pod may allocate
the claim. A written claim is *assumed* until the watch delivers that version or a newer one. Special claims, for the
extended resources of a pod, are found by their owner. `AllocatedState` gets the devices of all claims.

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
"""Annotation of the ResourceClaim that the scheduler creates for extended resources of a pod."""


class ClaimOutOfStepError(Exception):
    """Raised if an allocated claim cannot be assumed, because the claim is unknown or older than the known version."""


class UnknownClaimError(ClaimOutOfStepError):
    """Raised if a claim cannot be assumed, because the watch has not delivered the claim yet, or it was deleted."""


class ResourceClaims:
    """The ResourceClaims of a cluster, with allocations that are decided but not written yet (in flight).

    Args:
        allocated: The devices that are allocated to claims.
        of_groups: Whether pods can use the claims of their pod group.
    """

    __slots__ = ("_allocated", "_in_flight", "_known", "_owned", "_shares", "_sharing", "_stored", "of_groups", "stamp")

    def __init__(self, allocated: AllocatedState, *, of_groups: bool = False) -> None:
        self._allocated, self.of_groups = allocated, of_groups
        self.stamp = 0
        """A number that changes if a claim changes, or an allocation in flight begins or ends."""
        self._stored: dict[str, ResourceClaim] = {}
        self._known: dict[str, ResourceClaim] = {}
        """For each claim, by `namespace/name`, the assumed version, or the stored version if none is assumed."""
        self._in_flight: dict[str, ResourceClaim] = {}
        self._shares: dict[str, int] = {}
        """For each claim in flight, by UID, the number of pods besides the first that use its allocation."""
        self._sharing: set[str] | None = None
        """UIDs of the claims whose allocation in flight other pods may use too; None if no pod may share one now."""
        self._owned: dict[str, dict[str, None]] = {}
        """For each pod, by UID, the keys of the claims that the scheduler created for its extended resources."""

    def get(self, key: str) -> ResourceClaim | None:
        """Return the assumed version, or else the stored version, of the claim with the key `namespace/name`."""
        return self._known.get(key)

    def special_claim_of(self, pod: Pod) -> ResourceClaim | None:
        """Return the claim that was created for a pod's extended resources; None if no such claim exists."""
        for key in self._owned.get(pod.metadata.uid, ()):
            claim = self._known[key]
            if claim.metadata.namespace == pod.metadata.namespace and any(
                _is_owner(one, pod) for one in claim.metadata.owner_references
            ):
                return claim
        return None

    def put(self, claim: ResourceClaim) -> Change:
        """Add or replace a stored claim; nothing changes if the known version is the same or newer."""
        known = self._known.get(claim.key)
        self._stored[claim.key] = claim
        if known is not None and _is_not_newer(claim, known):
            return Change(Resource.RESOURCE_CLAIM, Action.NONE, known, known)
        return self._replace(claim.key, claim)

    def drop(self, claim: ResourceClaim) -> Change:
        """Remove a deleted claim, both as stored and as assumed."""
        self._stored.pop(claim.key, None)
        return self._replace(claim.key, None)

    def assume(self, claim: ResourceClaim) -> Change:
        """Use the version of a claim that a write returned, until the watch delivers it.

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
        """Drop the assumed version of a claim, so that the stored version is used again."""
        return self._replace(key, self._stored.get(key))

    def pending_allocation(self, uid: str) -> AllocationResult | None:
        """Return the allocation of a claim that is decided but not written yet (in flight); None if there is none."""
        found = self._in_flight.get(uid)
        return None if found is None else found.status.allocation

    def share(self, *, begins: bool) -> None:
        """Allow, or no longer allow, the members of a pod group to use one allocation in flight together."""
        self._sharing = set() if begins else None

    def shared(self, uid: str) -> ResourceClaim | None:
        """Return a claim with its allocation in flight, if other members of a pod group may use it too; else None."""
        return self._in_flight.get(uid) if self._sharing is not None and uid in self._sharing else None

    def begin(self, claim: ResourceClaim) -> None:
        """Record that an allocation of a claim is decided but not written yet, or that another pod uses it too."""
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
        """End an allocation in flight for one pod, or for all; return whether no pod uses the allocation any more."""
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
        """Number of claims whose allocation is decided but not written yet."""
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
        """Add a claim for extended resources to the index by owning pod, or remove it."""
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
    """Return whether a claim is newer than the known version, or is another claim under the same name."""
    return claim.metadata.uid != known.metadata.uid or _order(claim) > _order(known)


def _is_not_newer(claim: ResourceClaim, known: ResourceClaim) -> bool:
    """Return whether a claim is the known version or older; a claim from a file, without version, is not."""
    if not claim.metadata.resource_version or claim.metadata.uid != known.metadata.uid:
        return False
    return _order(claim) <= _order(known)


def _order(claim: ResourceClaim) -> tuple[int, str]:
    """Return a sort key for a claim's resourceVersion, which may be a number of any length."""
    version = claim.metadata.resource_version
    digits = version.lstrip("0") if version.isdecimal() else ""
    return len(digits), digits
