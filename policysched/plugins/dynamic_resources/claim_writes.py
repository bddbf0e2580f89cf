"""`ClaimWriter`: writes a pod's resource claims; after a lost answer, it finds out whether the write took effect.

The API server may execute a write whose answer is lost at any later time. Its devices stay taken until its result is
known, or another write has made sure that it can no longer be executed.

Source: plugins/dynamicresources/dynamicresources.go (bindClaim), extendeddynamicresources.go
(createExtendedResourceClaimInAPI, deleteClaim), v1.36.
"""

from __future__ import annotations

import asyncio
import logging
import math
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from contextlib import asynccontextmanager, suppress
from functools import partial
from http import HTTPStatus
from typing import Any, Final

from msgspec.structs import replace

from policysched.devices.inventory.allocated import device_or_share
from policysched.framework import ApiError, DeviceWaitOutcome, Handle
from policysched.framework.client import LostAnswer
from policysched.model.objects import AllocationResult, ClaimMetadata, ConsumerReference, Pod, ResourceClaim
from policysched.plugins.dynamic_resources.pod_claims import is_reserved, results_of
from policysched.state.placed.pods import pod_id
from policysched.state.resource_claims import ClaimOutOfStepError, ResourceClaims, is_newer

log = logging.getLogger(__name__)
FINALIZER: Final = "resource.kubernetes.io/delete-protection"
ATTEMPTS: Final = 5
"""Maximum number of attempts to write a claim, if other clients write to the claim too."""
PAUSE: Final = 0.01
"""Pause between attempts to write a claim after a conflict. Units: seconds."""
POLL: Final = 0.1
"""Pause before the second poll; each further pause is longer. Units: seconds."""
SLOWEST_POLL: Final = 5.0
"""Longest pause between two polls. Units: seconds."""
AFTER_REFUSAL: Final = 1.0
"""Pause before a pod's next attempt after the API server rejected the release of a claim. Units: seconds."""
LONGEST_ASKED: Final = 600.0
"""Longest time for finding out whether the release of a claim took effect. Units: seconds."""


class BindingError(Exception):
    """Raised if a pod's claims cannot be written, or if a driver reports that their devices failed."""

    outcome = DeviceWaitOutcome.ERROR
    """The outcome, in metrics, of a wait for devices that ends with this error."""


class Polls:
    """Increasing pauses between polls, up to a total time.

    Args:
        handle: The clock.
        seconds: Time until the last poll.
    """

    def __init__(self, handle: Handle, seconds: float) -> None:
        self._handle, self._pause = handle, POLL
        self._ends = handle.clock.monotonic() + seconds

    async def another(self) -> bool:
        """Pause until the next poll; if the total time is over, return False."""
        left = self._ends - self._handle.clock.monotonic()
        if left <= 0:
            return False
        await self._handle.pause(min(self._pause, left))
        self._pause = min(self._pause * 1.25, SLOWEST_POLL)
        return True


class ClaimWriter:
    """Writes a resource claim at PreBind.

    Args:
        consumer: The pod, or its pod group, for which the claim is reserved.
        known: All claims; versions that are read from the server are added.
        handle: The client and clock.
    """

    def __init__(self, consumer: ConsumerReference, known: ResourceClaims, handle: Handle) -> None:
        self._consumer, self._known, self._handle = consumer, known, handle

    async def create(self, claim: ResourceClaim) -> ResourceClaim:
        """Create the pod's special claim, for extended resources that devices provide.

        Raises:
            BindingError: The server refused.
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
        """Write a claim's finalizer, allocation and reservedFor; repeat the write after conflicts.

        Args:
            claim: The latest known version of the claim.
            allocation: The allocation to write, None if the claim is allocated.

        Raises:
            BindingError: The claim was not written, and the server will not execute the write later.
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
        claim = with_status(claim, reserved_for=(*claim.status.reserved_for, self._consumer))
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
        """Return the current claim after a lost answer to a write, once the write can no longer take effect later.

        Its devices stay taken meanwhile. A later version than the one that was sent, read or from the watch, shows the
        result. Without a later version the write may still be under way: then the claim is written, which turns the
        write into a conflict.

        Returns:
            The current claim, None if it is deleted or the server refuses to answer for long.
        """
        if error.status != HTTPStatus.CONFLICT:  # conflicts are expected
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
                return await self._current(sent, allocates=allocates)
            except ApiError as unread:
                if unread.is_not_found:
                    return None
                if not lost.asks_again(unread):
                    log.warning(
                        'the API server refuses to read ResourceClaim "%s"; releasing its devices: %s', sent.key, unread
                    )
                    return None
            await polls.another()

    async def _current(self, sent: ResourceClaim, *, allocates: bool) -> ResourceClaim | None:
        """Return the server's claim, after making sure that a write to the version `sent` can no longer succeed.

        Raises:
            ApiError: The server did not answer, or another client wrote the claim.
        """
        found = await self._handle.client.claims.get(sent)
        if found.metadata.uid != sent.metadata.uid:
            return None
        if allocates and not is_newer(found, sent):
            found = await self._handle.client.claims.set_finalizers(_unprotected(found))
        take_over(found, self._known, self._handle)  # another client may have allocated it
        return found

    def _is_done(self, sent: ResourceClaim, found: ResourceClaim) -> bool:
        """Return whether the server's claim is reserved for the consumer and has the same devices as the write."""
        is_same = found.metadata.uid == sent.metadata.uid and is_reserved(found, self._consumer.uid)
        return is_same and [*map(device_or_share, results_of(found))] == [*map(device_or_share, results_of(sent))]


async def delete_claim(claim: ResourceClaim, handle: Handle) -> None:
    """Remove a claim's finalizer and delete the claim.

    Raises:
        ApiError: The server refused.
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
    """Deallocate a claim on the server, and assume the server's version; do nothing if the claim is not allocated.

    Raises:
        ApiError: The server refused, or another client wrote the claim.
    """
    stored = known.get(claim.key)
    if stored is not None and stored.status.allocation is None:
        return
    try:
        found = await _until_known(partial(handle.client.claims.deallocate, claim), claim, handle)
    except ApiError as error:
        if error.status == HTTPStatus.CONFLICT:
            reading = partial(handle.client.claims.get, claim)
            take_over(await _until_known(reading, claim, handle, is_open=True), known, handle)
        raise
    take_over(found, known, handle)


async def unreserve(claim: ResourceClaim, consumer: str, known: ResourceClaims, handle: Handle) -> None:
    """Remove a pod or pod group from a claim's reservedFor, and assume the server's version of the claim.

    Args:
        claim: The claim.
        consumer: The UID of the pod or pod group.
        known: All claims.
        handle: The client and clock.

    Raises:
        ApiError: The server refused, or other clients keep writing the claim.
    """
    uid, client = claim.metadata.uid, handle.client.claims
    latest = known.get(claim.key)
    found = claim if latest is None or latest.metadata.uid != uid else latest
    for attempt in range(1, ATTEMPTS + 1):
        if found.metadata.uid != uid or not is_reserved(found, consumer):
            break
        others = tuple(one for one in found.status.reserved_for if one.uid != consumer)
        write = partial(client.reserve, with_status(found, reserved_for=others))
        try:
            found = await _until_known(write, claim, handle)
            break
        except ApiError as error:
            if error.status != HTTPStatus.CONFLICT or attempt == ATTEMPTS:
                raise
        await handle.pause(PAUSE)
        found = await _until_known(partial(client.get, claim), claim, handle, is_open=True)
    take_over(found, known, handle)


async def _until_known(
    request: Callable[[], Awaitable[ResourceClaim]], claim: ResourceClaim, handle: Handle, *, is_open: bool = False
) -> ResourceClaim:
    """Send a request that releases a claim, again until an answer shows whether it took effect.

    All attempts write the same version, so the server executes at most one of them.

    Args:
        request: The write, or the read after a conflict.
        claim: The claim.
        handle: The clock.
        is_open: Whether the result of an earlier write is unknown, so that a refusal is no result.

    Raises:
        ApiError: The server refused, another client wrote the claim, or there is no result within LONGEST_ASKED.
    """
    lost, polls = LostAnswer(handle.clock), Polls(handle, LONGEST_ASKED)
    while True:
        try:
            return await request()
        except ApiError as error:
            is_known = error.status == HTTPStatus.CONFLICT or error.is_not_found or (error.is_verdict and not is_open)
            if is_known or not lost.asks_again(error):
                raise
            if not is_open:
                log.warning(
                    'cannot determine whether ResourceClaim "%s" was released; checking again: %s', claim.key, error
                )
            is_open = True
            if not await polls.another():
                raise


def take_over(found: ResourceClaim, known: ResourceClaims, handle: Handle) -> None:
    """Assume the server's version of a claim, before the watch delivers this version."""
    with suppress(ClaimOutOfStepError):
        change = known.assume(found)
        if not change.nothing:
            handle.changed(change)


def with_status(claim: ResourceClaim, **fields: Any) -> ResourceClaim:
    """Return a copy of a claim in whose status some fields are replaced."""
    return replace(claim, status=replace(claim.status, **fields))


def with_finalizer(metadata: ClaimMetadata) -> ClaimMetadata:
    """Return a claim's metadata with the finalizer that protects an allocated claim."""
    if FINALIZER in metadata.finalizers:
        return metadata
    return replace(metadata, finalizers=(*metadata.finalizers, FINALIZER))


def _unprotected(claim: ResourceClaim) -> ResourceClaim:
    """Return a copy of a claim without the finalizer that protects an allocated claim."""
    kept = tuple(one for one in claim.metadata.finalizers if one != FINALIZER)
    return replace(claim, metadata=replace(claim.metadata, finalizers=kept))


def consumer_of(pod: Pod) -> ConsumerReference:
    """Return the reference to a pod in the reservedFor of its claims."""
    return ConsumerReference(resource="pods", name=pod.metadata.name, uid=pod.metadata.uid)


def released(
    pod: Pod, claim: ResourceClaim, release: Callable[..., Awaitable[None]]
) -> Callable[[Handle], Coroutine[Any, Any, None]]:
    """Return a function that sends a claim's release, and retries the pod if the API server rejects the release."""

    async def clean_up(handle: Handle) -> None:
        try:
            await release(claim, handle=handle)
        except ApiError as error:
            log.warning('could not release ResourceClaim "%s" for pod "%s": %s', claim.key, pod.key, error.message)
            await handle.pause(AFTER_REFUSAL)
            handle.activate((pod_id(pod),))

    return clean_up


class ClaimTurns:
    """Serializes the writes to a claim: the next write starts after the previous write has ended.

    A write that has begun is always awaited, even if its binding is cancelled: the API server may execute the write
    anyway, and its devices must not be given to another pod.
    """

    def __init__(self) -> None:
        self._turns: dict[str, asyncio.Lock] = {}
        self._users: dict[str, int] = {}

    async def write(self, uid: str, work: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Write to the claim of a UID after all earlier writes to it; a cancellation takes effect after the write."""
        async with self._turn(uid):
            await _to_its_end(asyncio.create_task(work()))

    @asynccontextmanager
    async def _turn(self, uid: str) -> AsyncIterator[None]:
        """Wait until no other task writes to the claim of a UID, and prevent other writes inside this context."""
        turn = self._turns.setdefault(uid, asyncio.Lock())
        self._users[uid] = self._users.get(uid, 0) + 1
        try:
            async with turn:
                yield
        finally:
            self._users[uid] -= 1
            if not self._users[uid]:
                del self._users[uid], self._turns[uid]

    def __len__(self) -> int:
        return len(self._turns)


async def _to_its_end(task: asyncio.Task[None]) -> None:
    """Wait for the end of a task even if this coroutine is cancelled; raise the cancellation afterwards."""
    cancelled: asyncio.CancelledError | None = None
    while not task.done():
        try:
            await asyncio.wait((task,))
        except asyncio.CancelledError as error:
            cancelled = error
    if cancelled is None:
        task.result()
        return
    if not task.cancelled():
        task.exception()  # nobody reads it
    raise cancelled
