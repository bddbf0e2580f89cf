"""Resource claims as stored and as assumed, and those whose allocation is under way (kube-scheduler's claim tracker).

A claim that was just written is *assumed* until the watch brings that version or a newer one; before it is written it
is *in flight*: its devices count as taken, and no other pod may decide about it. Special claims, which stand for the
extended resources of one pod, are found by the pod that owns them. What devices are taken is counted by
`policysched.devices`; this module tells it.

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
"""The annotation of special claims."""


class ClaimOutOfStepError(Exception):
    """An assumption about a version of a claim that is not the newest, or about a claim that is not known."""


class UnknownClaimError(ClaimOutOfStepError):
    """An assumption about a claim that the watch has not brought yet, or whose end it has brought."""


class ResourceClaims:
    """The claims of a cluster.

    Args:
        allocated: What is told which devices claims hold.
    """

    __slots__ = ("_allocated", "_in_flight", "_known", "_owned", "_stored", "revision")

    def __init__(self, allocated: AllocatedState) -> None:
        self._allocated = allocated
        self.revision = 0
        """A number that grows with each change of what is known of a claim, or in flight."""
        self._stored: dict[str, ResourceClaim] = {}
        self._known: dict[str, ResourceClaim] = {}
        """The claims by `namespace/name`, as assumed, else as stored."""
        self._in_flight: dict[str, ResourceClaim] = {}
        self._owned: dict[str, dict[str, None]] = {}
        """The keys of special claims by the UID of the pod that owns them."""

    def get(self, key: str) -> ResourceClaim | None:
        """Return a claim by `namespace/name`, as it is assumed, else as it is stored."""
        return self._known.get(key)

    def special_claim_of(self, pod: Pod) -> ResourceClaim | None:
        """Return the claim that was made earlier for a pod's extended resources."""
        for key in self._owned.get(pod.metadata.uid, ()):
            claim = self._known[key]
            if claim.metadata.namespace == pod.metadata.namespace and any(
                _is_owner(one, pod) for one in claim.metadata.owner_references
            ):
                return claim
        return None

    def put(self, claim: ResourceClaim) -> Change:
        """Take a claim as the watch brings it; a version that is not newer than the known one says nothing."""
        known = self._known.get(claim.key)
        self._stored[claim.key] = claim
        if known is not None and _is_not_newer(claim, known):
            return Change(Resource.RESOURCE_CLAIM, Action.NONE, known, known)
        return self._replace(claim.key, claim)

    def drop(self, claim: ResourceClaim) -> Change:
        """Record that a claim is gone."""
        self._stored.pop(claim.key, None)
        return self._replace(claim.key, None)

    def assume(self, claim: ResourceClaim) -> Change:
        """Let what was just written stand before what the watch has brought.

        Raises:
            ClaimOutOfStepError: a newer version is known, or the claim is not.
        """
        known = self._known.get(claim.key)
        if known is None:
            raise UnknownClaimError(f'could not find ResourceClaim "{claim.key}"')
        if _order(claim) < _order(known):
            raise ClaimOutOfStepError(f'ResourceClaim "{claim.key}" is out of sync')
        return self._replace(claim.key, claim)

    def restore(self, key: str) -> Change:
        """Go by what the watch has brought of a claim."""
        return self._replace(key, self._stored.get(key))

    def pending_allocation(self, uid: str) -> AllocationResult | None:
        """Return what a claim in flight is to get."""
        found = self._in_flight.get(uid)
        return None if found is None else found.status.allocation

    def begin(self, claim: ResourceClaim) -> None:
        """Let a claim with its allocation be in flight."""
        uid = claim.metadata.uid
        self._in_flight[uid] = claim
        self.revision += 1
        if claim.status.allocation is not None:
            self._allocated.assume(uid, claim.status.allocation)

    def end(self, uid: str) -> bool:
        """Let a claim not be in flight any more; return whether it was."""
        if self._in_flight.pop(uid, None) is None:
            return False
        self.revision += 1
        self._allocated.forget(uid)
        return True

    def __len__(self) -> int:
        return len(self._known)

    @property
    def in_flight(self) -> int:
        """How many claims are in flight."""
        return len(self._in_flight)

    def _replace(self, key: str, new: ResourceClaim | None) -> Change:
        old = self._known.get(key)
        self.revision += 1
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
        """File a special claim under its owners, or take it out there."""
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
    """Return whether a version of a claim is later than another one, or one of another claim of its name."""
    return claim.metadata.uid != known.metadata.uid or _order(claim) > _order(known)


def _is_not_newer(claim: ResourceClaim, known: ResourceClaim) -> bool:
    """Return whether a version of a claim is known already, or a later one; those of files have no versions."""
    if not claim.metadata.resource_version or claim.metadata.uid != known.metadata.uid:
        return False
    return _order(claim) <= _order(known)


def _order(claim: ResourceClaim) -> tuple[int, str]:
    """Order versions as numbers; Python refuses to read those of thousands of digits."""
    version = claim.metadata.resource_version
    digits = version.lstrip("0") if version.isdecimal() else ""
    return len(digits), digits
