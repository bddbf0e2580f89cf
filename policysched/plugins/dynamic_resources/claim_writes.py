"""`ClaimWriter`: writes of one pod's claims, and what became of those whose answers say nothing.

A write whose answer is lost, or is no verdict, may be carried out at any later moment. So it is found out what became
of it, and seen to it that it cannot be carried out any more, before anybody counts on the devices being free.

Source: plugins/dynamicresources/dynamicresources.go (bindClaim), extendeddynamicresources.go
(createExtendedResourceClaimInAPI, deleteClaim), v1.36.
"""

from __future__ import annotations

import contextlib
import logging
import math
from collections.abc import Awaitable, Callable
from functools import partial
from http import HTTPStatus
from typing import Any, Final

from msgspec.structs import replace

from policysched.devices.inventory.allocated import device_or_share
from policysched.framework import ApiError, DeviceWaitOutcome, Handle
from policysched.framework.client import LostAnswer
from policysched.model.objects import AllocationResult, ClaimMetadata, ConsumerReference, Pod, ResourceClaim
from policysched.plugins.dynamic_resources.pod_claims import is_reserved_for, results_of
from policysched.state.resource_claims import ClaimOutOfStepError, ResourceClaims, is_newer

log = logging.getLogger(__name__)
FINALIZER: Final = "resource.kubernetes.io/delete-protection"
ATTEMPTS: Final = 5
"""How often a claim is written where others write to it, too."""
PAUSE: Final = 0.01
"""The pause before the next of these attempts. Units: seconds."""
POLL: Final = 0.1
"""After how long it is looked for the first time whether the conditions of devices are met. Units: seconds."""
SLOWEST_POLL: Final = 5.0
"""How long it is between two looks at most. Units: seconds."""
LONGEST_ASKED: Final = 600.0
"""How long it is asked what became of what is given back. Units: seconds."""


class BindingError(Exception):
    """A pod's claims cannot be bound, for the reason that the text says."""

    outcome = DeviceWaitOutcome.ERROR
    """How a wait for devices ends by it."""


class Polls:
    """Looks that come more and more slowly until a time is over.

    Args:
        handle: Whose clock counts.
        seconds: How long it is from now till the last look.
    """

    def __init__(self, handle: Handle, seconds: float) -> None:
        self._handle, self._pause = handle, POLL
        self._ends = handle.clock.monotonic() + seconds

    async def another(self) -> bool:
        """Wait for the next look; return whether there is one."""
        left = self._ends - self._handle.clock.monotonic()
        if left <= 0:
            return False
        await self._handle.pause(min(self._pause, left))
        self._pause = min(self._pause * 1.25, SLOWEST_POLL)
        return True


class ClaimWriter:
    """Writes what one pod gets of its claims.

    Args:
        pod: The pod.
        known: The claims that are known, to which what the server tells is added.
        handle: What writes.
    """

    def __init__(self, pod: Pod, known: ResourceClaims, handle: Handle) -> None:
        self._pod, self._known, self._handle = pod, known, handle

    async def create(self, claim: ResourceClaim) -> ResourceClaim:
        """Create the special claim.

        Raises:
            BindingError: the server refused.
        """
        try:
            created = await self._handle.client.claims.create(claim)
        except ApiError as error:
            self._handle.claim_requested(False)
            why = f"create claim for extended resources {claim.metadata.namespace}/: {error.message}"
            raise BindingError(why) from error
        self._handle.claim_requested(True)
        return created

    async def write(self, claim: ResourceClaim, allocation: AllocationResult | None) -> ResourceClaim:
        """Write a claim's finalizer, allocation and reservation, again where others wrote to it meanwhile.

        Args:
            claim: The claim as it is known.
            allocation: What it gets, absent where it is allocated already.

        Raises:
            BindingError: it was not written, and this write is not carried out any more.
        """
        uid = claim.metadata.uid
        for attempt in range(1, ATTEMPTS + 1):
            try:
                return await self._write_once(claim, allocation)
            except BindingError as error:
                cause = error.__cause__
                if not isinstance(cause, ApiError) or cause.status != HTTPStatus.CONFLICT or attempt == ATTEMPTS:
                    raise
            await self._handle.pause(PAUSE)
            try:
                claim = await self._handle.client.claims.get(claim)
            except ApiError as error:
                raise BindingError(f"get updated claim {claim.key} after conflict: {error.message}") from error
            if claim.metadata.uid != uid:
                raise BindingError(f"claim {claim.key} was deleted and recreated in the meantime")
        raise AssertionError("the last attempt returns or raises")

    async def _write_once(self, claim: ResourceClaim, allocation: AllocationResult | None) -> ResourceClaim:
        if claim.metadata.deletion_timestamp is not None:
            raise BindingError(f"claim {claim.key} got deleted in the meantime")
        if allocation is not None:
            if claim.status.allocation is not None:
                raise BindingError(f"claim {claim.key} got allocated elsewhere in the meantime")
            claim = await self._protect(claim)
            now = self._handle.clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
            claim = with_status(claim, allocation=replace(allocation, allocation_timestamp=now))
        elif claim.status.allocation is None:
            raise BindingError(f"claim {claim.key} got deallocated elsewhere in the meantime")
        claim = with_status(claim, reserved_for=(*claim.status.reserved_for, _consumer(self._pod)))
        client = self._handle.client.claims
        write, what = (client.reserve, "") if allocation is None else (client.allocate, "allocation and ")
        try:
            return await write(claim)
        except ApiError as error:
            found = None
            if not error.is_verdict:
                found = await self._outcome(claim, error, allocates=allocation is not None)
            if found is not None and self._is_done(claim, found):
                return found
            raise BindingError(f"add {what}reservation to claim {claim.key}: {error.message}") from error

    async def _protect(self, claim: ResourceClaim) -> ResourceClaim:
        metadata = with_finalizer(claim.metadata)
        if metadata is claim.metadata:
            return claim
        try:
            return await self._handle.client.claims.set_finalizers(replace(claim, metadata=metadata))
        except ApiError as error:
            raise BindingError(f"add finalizer to claim {claim.key}: {error.message}") from error

    async def _outcome(self, sent: ResourceClaim, error: ApiError, *, allocates: bool) -> ResourceClaim | None:
        """Find out what became of a write whose answer is no verdict; it cannot be carried out any more then.

        What it allocates counts as taken meanwhile. If the server has a later version than the one that was sent, be it
        by the watch, that says what became of it. If not, the write may still be under way: the claim is written, so
        that it would be a conflict.

        Returns:
            The claim as it is; None where it is gone, or where the server refuses to tell for long.
        """
        if error.status != HTTPStatus.CONFLICT:  # that others write to a claim is no news
            log.warning(
                'cannot determine the result of a write to ResourceClaim "%s"; keeping its devices and checking: %s',
                sent.key,
                error,
            )
        lost, polls = LostAnswer(self._handle.clock), Polls(self._handle, math.inf)
        while True:
            known = self._known.get(sent.key)
            if known is not None and is_newer(known, sent):
                return known
            try:
                return await self._told(sent, allocates=allocates)
            except ApiError as unread:
                if unread.is_not_found:
                    return None
                if not lost.asks_again(unread):
                    log.warning(
                        'the API server refuses to read ResourceClaim "%s"; releasing its devices: %s', sent.key, unread
                    )
                    return None
            await polls.another()

    async def _told(self, sent: ResourceClaim, *, allocates: bool) -> ResourceClaim | None:
        """Ask the server for a claim, and see to it that no write of the version that was sent can be carried out.

        Raises:
            ApiError: the server has not told, or others wrote meanwhile.
        """
        found = await self._handle.client.claims.get(sent)
        if found.metadata.uid != sent.metadata.uid:
            return None
        if allocates and not is_newer(found, sent):
            found = await self._handle.client.claims.set_finalizers(_unprotected(found))
        take_over(found, self._known, self._handle)  # others may have allocated it
        return found

    def _is_done(self, sent: ResourceClaim, found: ResourceClaim) -> bool:
        """Return whether what was sent is what the server has: the pod's reservation, with these devices."""
        is_same = found.metadata.uid == sent.metadata.uid and is_reserved_for(found, self._pod)
        return is_same and [*map(device_or_share, results_of(found))] == [*map(device_or_share, results_of(sent))]


async def delete_claim(claim: ResourceClaim, handle: Handle) -> None:
    """Delete a claim that nothing protects any more.

    Raises:
        ApiError: the server refused.
    """
    for attempt in range(1, ATTEMPTS + 1):
        try:
            await handle.client.claims.set_finalizers(_unprotected(claim))
            break
        except ApiError as error:
            if error.status != HTTPStatus.CONFLICT or attempt == ATTEMPTS:
                raise
        await handle.pause(PAUSE)
        claim = await handle.client.claims.get(claim)
    await handle.client.claims.delete(claim)


async def deallocate(claim: ResourceClaim, known: ResourceClaims, handle: Handle) -> None:
    """Take a claim's devices back; what the server has in the end counts at once.

    Raises:
        ApiError: the server refused, or others have written to the claim.
    """
    try:
        found = await _until_told(partial(handle.client.claims.deallocate, claim), claim, handle)
    except ApiError as error:
        if error.status == HTTPStatus.CONFLICT:
            reading = partial(handle.client.claims.get, claim)
            take_over(await _until_told(reading, claim, handle, is_open=True), known, handle)
        raise
    take_over(found, known, handle)


async def unreserve(claim: ResourceClaim, pod: Pod, known: ResourceClaims, handle: Handle) -> None:
    """Take a pod out of those for whom a claim is reserved; what the server has in the end counts at once.

    Raises:
        ApiError: the server refused, or others write to the claim again and again.
    """
    uid, client = claim.metadata.uid, handle.client.claims
    latest = known.get(claim.key)
    found = claim if latest is None or latest.metadata.uid != uid else latest
    for attempt in range(1, ATTEMPTS + 1):
        if found.metadata.uid != uid or not is_reserved_for(found, pod):
            break
        others = tuple(one for one in found.status.reserved_for if one.uid != pod.metadata.uid)
        write = partial(client.reserve, with_status(found, reserved_for=others))
        try:
            found = await _until_told(write, claim, handle)
            break
        except ApiError as error:
            if error.status != HTTPStatus.CONFLICT or attempt == ATTEMPTS:
                raise
        await handle.pause(PAUSE)
        found = await _until_told(partial(client.get, claim), claim, handle, is_open=True)
    take_over(found, known, handle)


async def _until_told(
    request: Callable[[], Awaitable[ResourceClaim]], claim: ResourceClaim, handle: Handle, *, is_open: bool = False
) -> ResourceClaim:
    """Give something of a claim back; as long as no answer says what became of that, it is asked again.

    A write is one of one version: of those that were sent only one can be carried out.

    Args:
        request: The write, or what reads the claim after a conflict.
        claim: The claim.
        handle: Whose clock counts.
        is_open: Whether a refusal says nothing of what became of an earlier write.

    Raises:
        ApiError: the server refused, or others have written to the claim, or it says nothing for LONGEST_ASKED.
    """
    lost, polls = LostAnswer(handle.clock), Polls(handle, LONGEST_ASKED)
    while True:
        try:
            return await request()
        except ApiError as error:
            is_told = error.status == HTTPStatus.CONFLICT or error.is_not_found or (error.is_verdict and not is_open)
            if is_told or not lost.asks_again(error):
                raise
            if not is_open:
                log.warning(
                    'cannot determine whether ResourceClaim "%s" was released; checking again: %s', claim.key, error
                )
            is_open = True
            if not await polls.another():
                raise


def take_over(found: ResourceClaim, known: ResourceClaims, handle: Handle) -> None:
    """Let a claim as the server has it count before the watch brings it."""
    with contextlib.suppress(ClaimOutOfStepError):
        change = known.assume(found)
        if not change.nothing:
            handle.changed(change)


def with_status(claim: ResourceClaim, **fields: Any) -> ResourceClaim:
    """Return a claim with other values in its status."""
    return replace(claim, status=replace(claim.status, **fields))


def with_finalizer(metadata: ClaimMetadata) -> ClaimMetadata:
    """Return a claim's metadata with the finalizer that keeps it as long as it is allocated."""
    if FINALIZER in metadata.finalizers:
        return metadata
    return replace(metadata, finalizers=(*metadata.finalizers, FINALIZER))


def _unprotected(claim: ResourceClaim) -> ResourceClaim:
    """Return a claim without that finalizer."""
    kept = tuple(one for one in claim.metadata.finalizers if one != FINALIZER)
    return replace(claim, metadata=replace(claim.metadata, finalizers=kept))


def _consumer(pod: Pod) -> ConsumerReference:
    return ConsumerReference(resource="pods", name=pod.metadata.name, uid=pod.metadata.uid)
