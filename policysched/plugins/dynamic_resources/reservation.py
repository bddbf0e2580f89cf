"""`ClaimReservation`: a pod's resource claims from Reserve on, allocated on its node and written at PreBind.

From Reserve on, the devices of an allocation are taken. PreBind adds a finalizer to the claim, so that the claim cannot
be deleted while it has devices, and then writes the allocation and the pod into the claim's status. Then it waits until
drivers meet the binding conditions of the devices. If anything fails, the reservation is removed. The allocation stays
for the next attempt, which uses it or deallocates the claim.

Source: plugins/dynamicresources/dynamicresources.go (Reserve, Unreserve, PreBind, isPodReadyForBinding),
extendeddynamicresources.go (waitForExtendedClaimInAssumeCache), v1.36.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from typing import Final, NamedTuple
from uuid import NAMESPACE_URL, uuid5

from msgspec.structs import replace

from policysched.devices import AllocationError, AllocationTimeoutError, Allocator, Refusals
from policysched.framework import (
    Action,
    ApiError,
    Change,
    Cluster,
    Code,
    DeviceWait,
    DeviceWaitOutcome,
    Event,
    Handle,
    Resource,
    Status,
)
from policysched.model.objects import (
    AllocationResult,
    Pod,
    PodExtendedClaimStatus,
    ResourceClaim,
)
from policysched.plugins.dynamic_resources.claim_writes import (
    BindingError,
    ClaimTurns,
    ClaimWriter,
    Polls,
    consumer_of,
    delete_claim,
    unreserve,
    with_finalizer,
    with_status,
)
from policysched.plugins.dynamic_resources.extended_resources import IN_MEMORY, ExtendedRows, Mappings
from policysched.plugins.dynamic_resources.group_claims import consumers
from policysched.plugins.dynamic_resources.pod_claims import (
    NO_ALLOCATION,
    PodClaims,
    binding_failure,
    has_timed_out,
    is_ready_to_bind,
    is_reserved,
    is_reserved_for,
    results_of,
    waits_for_binding,
)
from policysched.state.resource_claims import ClaimOutOfStepError, ResourceClaims, UnknownClaimError

log = logging.getLogger(__name__)
TOO_LONG: Final = Status(
    Code.ERROR,
    ("the mapping of containers to devices is larger than 3 MiB and does not fit into the pod's status",),
)
TOLD_AT_ONCE: Final = 64
"""Number of released claims that are reported to the queue before the event loop runs other tasks."""
LONGEST_WATCH: Final = 120.0
"""Longest wait until the watch delivers a special claim that was created. Units: seconds."""


class DeviceFailedError(BindingError):
    """Raised if a driver reports that the preparation of a device failed."""

    outcome = DeviceWaitOutcome.FAILURE


class DeviceTimeoutError(BindingError):
    """Raised if a driver does not prepare a device in time."""

    outcome = DeviceWaitOutcome.TIMEOUT


class ClaimReservation:
    """The resource claims of a pod on its node, from Reserve to PreBind.

    Args:
        pod: The pod.
        node: The node's name.
        cluster: The cluster with the claims in flight.
        timeout: Time for devices to meet their binding conditions. Units: seconds.
    """

    def __init__(self, pod: Pod, node: str, cluster: Cluster, timeout: float) -> None:
        self._pod, self._node, self._cluster, self._timeout = pod, node, cluster, timeout
        self._known = cluster.resource_claims
        self._consumers = consumers(pod, cluster)
        """The pod group for which a claim is reserved instead of for the pod, by key of the claim."""
        self._claims: list[ResourceClaim] = []
        """The latest known version of each claim."""
        self._keys: set[str] = set()
        self._allocations: dict[int, AllocationResult] = {}
        """The allocations that PreBind has to write, by index of the claim."""
        self._uids: dict[int, str] = {}
        """The UIDs of the claims that are in flight for the pod, by index of the claim."""
        self._ended: set[int] = set()
        """The indices of claims that are no longer in flight for the pod."""
        self._special = -1
        """The index of the special claim; -1 without special claim."""
        self._mappings: Mappings = ()

    def add(self, claim: ResourceClaim, allocation: AllocationResult | None = None) -> None:
        """Add a claim to the reservation; if an allocation has to be written, the claim is in flight from now on.

        If a pod names a claim several times, each entry was allocated. The claim gets the first allocation.
        """
        if claim.key in self._keys:
            return
        self._keys.add(claim.key)
        place = len(self._claims)
        self._claims.append(claim)
        if allocation is None:
            return
        self._allocations[place] = allocation
        self._uids[place] = claim.metadata.uid
        status = replace(claim.status, allocation=allocation)
        self._known.begin(replace(claim, metadata=with_finalizer(claim.metadata), status=status))

    def share(self, claim: ResourceClaim) -> None:
        """Add to the reservation a claim that another pod of the group has allocated and that is in flight.

        Args:
            claim: The allocated version.
        """
        stored = self._known.get(claim.key)
        if stored is not None:
            self.add(stored, claim.status.allocation)

    def add_special(self, claim: ResourceClaim, allocation: AllocationResult, mappings: Mappings) -> None:
        """Add the special claim to the reservation, with the list of containers that use its requests."""
        self._special, self._mappings = len(self._claims), mappings
        self.add(claim, allocation)

    @property
    def claims(self) -> Sequence[ResourceClaim]:
        """The latest known version of each claim."""
        return self._claims

    def undo(self, turns: ClaimTurns) -> UndoClaims:
        """End the in-flight state of all claims; return the requests that undo what PreBind wrote.

        Args:
            turns: Serializes the writes to each claim.
        """
        shared = set[int]()
        for place, uid in self._uids.items():
            if place in self._ended:
                continue
            known = self._known.get(self._claims[place].key)
            if not self._known.end(uid):
                shared.add(place)
            elif known is None or known.metadata.uid == uid:
                self._known.restore(self._claims[place].key)
        freed = [
            self._claims[place]
            for place in self._uids
            if place not in shared and self._claims[place].status.allocation is None
        ]
        special = self._claims[self._special] if self._special >= 0 else None
        allocated = [claim for claim in self._claims if claim is not special and claim.status.allocation is not None]
        reserved = [claim for claim in allocated if is_reserved(claim, self._pod.metadata.uid)]
        return UndoClaims(self._pod, reserved, special, freed, self._known, turns)

    async def pre_bind(self, handle: Handle, turns: ClaimTurns) -> str:
        """Write the claims and wait for their devices; return an error message, or an empty string for success.

        Args:
            handle: The client and clock.
            turns: Serializes the writes to each claim, because pods can share claims.
        """
        try:
            for place, claim in enumerate(self._claims):
                if not is_reserved_for(claim, self._pod, or_group=self._known.of_groups):
                    await turns.write(claim.metadata.uid, partial(self._bind, place, handle))
            if any(map(waits_for_binding, self._claims)):
                await self._wait_for_devices(handle)
        except BindingError as error:
            return str(error)
        return ""

    def _latest(self, claim: ResourceClaim) -> ResourceClaim:
        """Return the latest known version of a claim, which another client may have changed."""
        known = self._known.get(claim.key)
        return known if known is not None and known.metadata.uid == claim.metadata.uid else claim

    async def _bind(self, place: int, handle: Handle) -> None:
        """Write a claim; afterwards it is no longer in flight, even if the write failed."""
        claim = before = self._claims[place] = self._latest(self._claims[place])
        consumer, written = self._consumers.get(claim.key) or consumer_of(self._pod), None
        writer = ClaimWriter(consumer, self._known, handle)
        try:
            if claim.metadata.name == IN_MEMORY:
                claim = written = self._claims[place] = await writer.create(claim)
            allocation = self._unwritten(place, claim)
            if allocation is not None or not is_reserved(claim, consumer.uid):
                claim = await writer.write(claim, allocation)
            written = claim
            if place == self._special:
                await self._write_pod_status(claim, handle)
            self._claims[place] = claim
        finally:
            change = None if written is None else await self._assume(written, handle, waits=place == self._special)
            if place in self._uids:
                self._ended.add(place)
                self._known.end(self._uids[place], for_all=written is not None)
                if written is not None and (change is None or change.nothing):
                    change = _settled(before, self._latest(written))
            if change is not None and not change.nothing:
                handle.changed(change)

    def _unwritten(self, place: int, claim: ResourceClaim) -> AllocationResult | None:
        """Return the allocation that has to be written to a claim; None if there is none, or another pod wrote it."""
        allocation, written = self._allocations.get(place), claim.status.allocation
        if allocation is None or written is None:
            return allocation
        is_written = allocation.devices == written.devices and allocation.node_selector == written.node_selector
        return None if is_written else allocation

    async def _write_pod_status(self, claim: ResourceClaim, handle: Handle) -> None:
        status = PodExtendedClaimStatus(request_mappings=self._mappings, resource_claim_name=claim.metadata.name)
        try:
            await handle.client.claims.write_extended_claim_status(self._pod, status)
        except ApiError as error:
            why = f"update pod {self._pod.key} ExtendedResourceClaimStatus: {error.message}"
            raise BindingError(why) from error

    async def _assume(self, claim: ResourceClaim, handle: Handle, *, waits: bool) -> Change | None:
        """Assume the server's version of a written claim; for a created claim, first wait until the watch delivers it.

        Returns:
            The change, None if the watch was faster or the claim was deleted.
        """
        polls = Polls(handle, LONGEST_WATCH)
        while True:
            try:
                return self._known.assume(claim)
            except UnknownClaimError:
                if waits and await polls.another():
                    continue
            except ClaimOutOfStepError:
                pass
            return None

    async def _wait_for_devices(self, handle: Handle) -> None:
        """Wait until all devices meet their binding conditions, and report how long the wait took."""
        note = f"waiting for binding conditions for device on node {self._node}"
        event = Event(self._pod, "Normal", "BindingConditionsPending", "Scheduling", note, handle.clock.now())
        handle.client.record(event)
        began, outcome = handle.clock.monotonic(), DeviceWaitOutcome.ERROR
        try:
            await self._poll_devices(handle)
            outcome = DeviceWaitOutcome.SUCCESS
        except BindingError as error:
            outcome = error.outcome
            raise
        finally:
            handle.devices_awaited(self._wait_of(outcome, handle.clock.monotonic() - began))

    def _wait_of(self, outcome: DeviceWaitOutcome, seconds: float) -> DeviceWait:
        results = [one for claim in self._claims for one in results_of(claim)]
        conditional = [one.driver for one in results if one.binding_conditions]
        return DeviceWait(self._pod.spec.scheduler_name, [one.driver for one in results], conditional, outcome, seconds)

    async def _poll_devices(self, handle: Handle) -> None:
        """Poll until all devices meet their binding conditions."""
        polls = Polls(handle, self._timeout)
        while not self._are_ready(handle.clock.now().timestamp()):
            if not await polls.another():
                raise DeviceTimeoutError("device binding timeout: context deadline exceeded")

    def _are_ready(self, now: float) -> bool:
        """Return whether all devices meet their binding conditions at a time. Units: seconds since 1970."""
        for place, claim in enumerate(self._claims):
            latest = self._known.get(claim.key)
            if latest is None:
                raise BindingError(f'could not find ResourceClaim "{claim.key}"')
            self._claims[place] = latest
            failure = binding_failure(latest)
            if failure:
                raise DeviceFailedError(failure)
            if not is_ready_to_bind(latest):
                if has_timed_out(latest, self._timeout, now):
                    raise DeviceTimeoutError(f"device binding timeout: claim={latest.metadata.name}")
                return False
        return True


class UndoClaims:
    """Undoes what PreBind wrote to the resource claims of a pod that is not bound.

    Args:
        pod: The pod.
        reserved: The claims that are reserved for it.
        special: Its special claim, created or not.
        freed: The claims that were in flight until now.
        known: All claims.
        turns: Serializes the writes to each claim.
    """

    def __init__(
        self,
        pod: Pod,
        reserved: Sequence[ResourceClaim],
        special: ResourceClaim | None,
        freed: Sequence[ResourceClaim],
        known: ResourceClaims,
        turns: ClaimTurns,
    ) -> None:
        self._pod, self._reserved, self._special, self._freed = pod, reserved, special, freed
        self._known, self._turns = known, turns

    async def __call__(self, handle: Handle) -> None:
        """Report released devices to the queue, remove the pod from reservedFor, and delete the special claim."""
        for number, claim in enumerate(self._freed, 1):
            held = with_status(claim, allocation=AllocationResult())
            handle.changed(Change(Resource.RESOURCE_CLAIM, Action.UPDATE_OTHER, held, claim))
            if number % TOLD_AT_ONCE == 0:
                await handle.pause(0)
        for claim in self._reserved:
            try:
                giving_back = partial(unreserve, claim, self._pod.metadata.uid, self._known, handle)
                await self._turns.write(claim.metadata.uid, giving_back)
            except ApiError as error:
                log.warning(
                    'could not unreserve ResourceClaim "%s" of pod "%s": %s', claim.key, self._pod.key, error.message
                )
        if self._special is not None and self._special.metadata.name != IN_MEMORY:
            try:
                await delete_claim(self._special, handle)
            except ApiError as error:
                log.warning(
                    'could not delete ResourceClaim "%s" of pod "%s": %s',
                    self._special.key,
                    self._pod.key,
                    error.message,
                )


def _settled(before: ResourceClaim, now: ResourceClaim) -> Change:
    """Return the change of a claim that ends being in flight, because the watch delivered its new version before."""
    return Change(Resource.RESOURCE_CLAIM, Action.UPDATE_OTHER, before, now)


def share_ids(claims: Sequence[ResourceClaim]) -> Callable[[], str]:
    """Return a function that creates UUIDs for device shares; they depend only on the versions of the claims."""
    numbers = count()
    first = uuid5(NAMESPACE_URL, str([[claim.metadata.uid, claim.metadata.resource_version] for claim in claims]))
    head, tail = str(first)[:-12], first.node

    def next_id() -> str:
        return f"{head}{(tail + next(numbers)) % (1 << 48):012x}"

    return next_id


def reservation(
    found: PodClaims, pod: Pod, node: str, cluster: Cluster, binding_timeout: float
) -> ClaimReservation | Status:
    """Allocate a pod's claims on a node; return the reservation of all its claims, or the status of an error."""
    taken = _allocated(found, node, cluster)
    if isinstance(taken, Status):
        return taken
    made = ClaimReservation(pod, node, cluster, binding_timeout)
    results = iter(taken.results)
    for claim in found.user:
        if cluster.resource_claims.shared(claim.metadata.uid) is claim:
            made.share(claim)
        else:
            made.add(claim, next(results) if claim.status.allocation is None else None)
    if taken.special is not None:
        made.add_special(taken.special, next(results), taken.mappings)
    return made


def devices_on(found: PodClaims, node: str, cluster: Cluster) -> list[tuple[ResourceClaim, AllocationResult]]:
    """Return the claims of a pod that fits a node, each with its existing or possible allocation on the node."""
    taken = _allocated(found, node, cluster)
    if isinstance(taken, Status):
        return []
    results = iter(taken.results)
    allocations = [(claim, claim.status.allocation or next(results)) for claim in found.user]
    return [*allocations, (taken.special, next(results))] if taken.special is not None else allocations


def refusals_on(found: PodClaims, node: str, cluster: Cluster) -> list[tuple[ResourceClaim, Refusals]]:
    """Return for each request of a pod's claims why the devices of a node do not fit."""
    row = cluster.nodes.row_of[node]
    asked, _ = _asked_on(found, row, cluster)
    try:
        refusals = Allocator(cluster.devices.tables, asked).refusals(row) if asked else []
    except AllocationTimeoutError:
        return []
    return [(asked[one.claim], one) for one in refusals]


class PodTaking(NamedTuple):
    """The allocations that a pod's claims get on one node.

    Attributes:
        results: The new allocations in the order of the claims without an allocation, that of the special claim last.
        special: The special claim for the node, None if the node provides all extended resources itself.
        mappings: Which container uses which request of the special claim.
    """

    results: Sequence[AllocationResult]
    special: ResourceClaim | None
    mappings: Mappings


def _allocated(found: PodClaims, node: str, cluster: Cluster) -> PodTaking | Status:
    """Allocate a pod's unallocated claims on a node."""
    extended, row = found.extended, cluster.nodes.row_of.get(node, -1)
    if (row < 0 or cluster.nodes.nodes[row] is None) and (found.to_allocate or extended is not None):
        return NO_ALLOCATION
    asked, resources = _asked_on(found, row, cluster)
    if not asked:
        return PodTaking((), None, ())
    allocator = Allocator(cluster.devices.tables, asked) if resources else found.allocator(cluster.devices.tables)
    try:
        got = allocator.allocate(row, share_ids(asked))
    except AllocationError as error:
        return Status(Code.ERROR, (str(error),))
    if got is None:
        return NO_ALLOCATION
    if extended is None or not resources:
        return PodTaking(got, None, ())
    mappings = extended.mappings_on(resources)
    return TOO_LONG if mappings is None else PodTaking(got, asked[-1], mappings)


def _asked_on(found: PodClaims, row: int, cluster: Cluster) -> tuple[list[ResourceClaim], Sequence[str]]:
    """Return the claims to allocate on a node, the special claim last, and the extended resources that it provides."""
    extended = found.extended
    if extended is not None and extended.claim.status.allocation is None:
        resources = ExtendedRows(extended, cluster).on_row(row)
        if resources:
            return [*found.to_allocate, extended.on(resources)], resources
    return found.to_allocate, ()
