"""The claims of a pod that is being bound: in flight from Reserve on, written to the API server at PreBind.

What a claim gets is counted as taken at once. Then the claim is given a finalizer, so that it does not go with its
devices, and its status the allocation and the pod among those it is reserved for. Devices may have conditions that
their drivers have to meet before the pod is bound. Whatever fails, the reservation is taken back; the allocation stays,
and the next attempt uses it or has it taken back.

Source: plugins/dynamicresources/dynamicresources.go (Reserve, Unreserve, PreBind, isPodReadyForBinding),
extendeddynamicresources.go (waitForExtendedClaimInAssumeCache), v1.36.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from functools import partial
from itertools import count
from typing import Final
from uuid import NAMESPACE_URL, uuid5

from msgspec.structs import replace

from policysched.framework import (
    Action,
    ApiError,
    Change,
    Cluster,
    DeviceWait,
    DeviceWaitOutcome,
    Event,
    Handle,
    Resource,
)
from policysched.model.objects import (
    AllocationResult,
    Pod,
    PodExtendedClaimStatus,
    ResourceClaim,
)
from policysched.plugins.dynamic_resources.claim_turns import ClaimTurns
from policysched.plugins.dynamic_resources.claim_writes import (
    BindingError,
    ClaimWriter,
    Polls,
    delete_claim,
    unreserve,
    with_finalizer,
    with_status,
)
from policysched.plugins.dynamic_resources.extended_resources import IN_MEMORY, Mappings
from policysched.plugins.dynamic_resources.pod_claims import (
    binding_failure,
    has_timed_out,
    is_ready_to_bind,
    is_reserved_for,
    results_of,
    waits_for_binding,
)
from policysched.state.resource_claims import ClaimOutOfStepError, ResourceClaims, UnknownClaimError

log = logging.getLogger(__name__)
TOLD_AT_ONCE: Final = 64
"""Of how many claims that are given back it is told before the loop has its turn: each may help any waiting pod."""
LONGEST_WATCH: Final = 120.0
"""How long a written special claim is waited for on the watch. Units: seconds."""


class DeviceFailedError(BindingError):
    """A driver says that a device cannot be made ready."""

    outcome = DeviceWaitOutcome.FAILURE


class DeviceTimeoutError(BindingError):
    """A driver has not made a device ready in time."""

    outcome = DeviceWaitOutcome.TIMEOUT


class ClaimReservation:
    """What one pod takes of its claims.

    Args:
        pod: The pod.
        node: Its node's name.
        cluster: Where claims are in flight.
        timeout: How long devices may take to meet their conditions. Units: seconds.
    """

    def __init__(self, pod: Pod, node: str, cluster: Cluster, timeout: float) -> None:
        self._pod, self._node, self._cluster, self._timeout = pod, node, cluster, timeout
        self._known = cluster.resource_claims
        self._claims: list[ResourceClaim] = []
        """The claims as they were last seen."""
        self._keys: set[str] = set()
        self._allocations: dict[int, AllocationResult] = {}
        """What is written, by the claim's place."""
        self._uids: dict[int, str] = {}
        """The UIDs under which claims are in flight, by place."""
        self._special = -1
        """The place of the special claim, −1 where there is none."""
        self._mappings: Mappings = ()

    def add(self, claim: ResourceClaim, allocation: AllocationResult | None = None) -> None:
        """Take a claim along; one with an allocation that is not written yet is in flight from now on.

        A pod may name a claim several times, and was found devices for each. It gets those of the first one.
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

    def add_special(self, claim: ResourceClaim, allocation: AllocationResult, mappings: Mappings) -> None:
        """Take the special claim along, with what says which container uses which request."""
        self._special, self._mappings = len(self._claims), mappings
        self.add(claim, allocation)

    @property
    def claims(self) -> Sequence[ResourceClaim]:
        """The claims as they were last seen."""
        return self._claims

    def undo(self, turns: ClaimTurns) -> UndoClaims:
        """Give back what is in flight; return what takes back the rest.

        Args:
            turns: Who writes to which claim.
        """
        for place, uid in self._uids.items():
            known = self._known.get(self._claims[place].key)
            if self._known.end(uid) and (known is None or known.metadata.uid == uid):
                self._known.restore(self._claims[place].key)
        freed = [self._claims[place] for place in self._uids if self._claims[place].status.allocation is None]
        special = self._claims[self._special] if self._special >= 0 else None
        allocated = [claim for claim in self._claims if claim is not special and claim.status.allocation is not None]
        reserved = [claim for claim in allocated if is_reserved_for(claim, self._pod)]
        return UndoClaims(self._pod, reserved, special, freed, self._known, turns)

    async def pre_bind(self, handle: Handle, turns: ClaimTurns) -> str:
        """Write what the pod takes, and wait for its devices; return what went wrong, empty where nothing did.

        Args:
            handle: What writes.
            turns: Who writes to which claim, so that pods that share one do not write over each other's versions.
        """
        try:
            for place, claim in enumerate(self._claims):
                if not is_reserved_for(claim, self._pod):
                    await turns.write(claim.metadata.uid, partial(self._bind, place, handle))
            if any(map(waits_for_binding, self._claims)):
                await self._wait_for_devices(handle)
        except BindingError as error:
            return str(error)
        return ""

    def _latest(self, claim: ResourceClaim) -> ResourceClaim:
        """Return the version of a claim that is known now, which others may have written meanwhile."""
        known = self._known.get(claim.key)
        return known if known is not None and known.metadata.uid == claim.metadata.uid else claim

    async def _bind(self, place: int, handle: Handle) -> None:
        """Write one claim; it is not in flight any more then, whatever came of it."""
        writer, written = ClaimWriter(self._pod, self._known, handle), None
        claim = before = self._claims[place] = self._latest(self._claims[place])
        try:
            if claim.metadata.name == IN_MEMORY:
                claim = written = self._claims[place] = await writer.create(claim)
            written = claim = await writer.write(claim, self._allocations.get(place))
            if place == self._special:
                await self._tell_pod(claim, handle)
            self._claims[place] = claim
        finally:
            change = None if written is None else await self._assume(written, handle, waits=place == self._special)
            if place in self._uids:
                self._known.end(self._uids[place])
                if written is not None and (change is None or change.nothing):
                    change = _settled(before, self._latest(written))
            if change is not None and not change.nothing:
                handle.changed(change)

    async def _tell_pod(self, claim: ResourceClaim, handle: Handle) -> None:
        told = PodExtendedClaimStatus(request_mappings=self._mappings, resource_claim_name=claim.metadata.name)
        try:
            await handle.client.claims.tell_pod(self._pod, told)
        except ApiError as error:
            why = f"update pod {self._pod.key} ExtendedResourceClaimStatus: {error.message}"
            raise BindingError(why) from error

    async def _assume(self, claim: ResourceClaim, handle: Handle, *, waits: bool) -> Change | None:
        """Let what was written count before the watch brings it; a new claim has to be brought first.

        Returns:
            What changed by it; None where the watch was faster, or the claim is gone.
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
        """Wait until the drivers have met the conditions of all devices, and say how long that took."""
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
        """Look again and again until all devices are ready."""
        polls = Polls(handle, self._timeout)
        while not self._are_ready(handle.clock.now().timestamp()):
            if not await polls.another():
                raise DeviceTimeoutError("device binding timeout: context deadline exceeded")

    def _are_ready(self, now: float) -> bool:
        """Look whether conditions are met, as far as the watch has told. Units: seconds since 1970."""
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
    """Takes back outside what a pod that is not bound has of its claims.

    Args:
        pod: The pod.
        reserved: The claims that are reserved for it.
        special: Its special claim, written or not.
        freed: The claims that were in flight till now.
        known: The claims that are known.
        turns: Who writes to which claim.
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
        """Take back reservations, delete the special claim, and let pods be tried that waited for the devices."""
        for number, claim in enumerate(self._freed, 1):
            held = with_status(claim, allocation=AllocationResult())
            handle.changed(Change(Resource.RESOURCE_CLAIM, Action.UPDATE_OTHER, held, claim))
            if number % TOLD_AT_ONCE == 0:
                await handle.pause(0)
        for claim in self._reserved:
            try:
                giving_back = partial(unreserve, claim, self._pod, self._known, handle)
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
    """Return the change that lets pods go on that heard from the watch of an allocation that was still in flight."""
    return Change(Resource.RESOURCE_CLAIM, Action.UPDATE_OTHER, before, now)


def share_ids(claims: Sequence[ResourceClaim]) -> Callable[[], str]:
    """Return what makes IDs for shares of devices: UUIDs of these versions of these claims, and of no others."""
    numbers = count()
    first = uuid5(NAMESPACE_URL, str([[claim.metadata.uid, claim.metadata.resource_version] for claim in claims]))
    head, tail = str(first)[:-12], first.node

    def next_id() -> str:
        return f"{head}{(tail + next(numbers)) % (1 << 48):012x}"

    return next_id
