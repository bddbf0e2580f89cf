"""Detection of other processes that schedule pods of the same scheduler names, through Leases.

A place is one of a few numbered Leases of a namespace: `policysched-presence-0` to `policysched-presence-15`. Each
process holds one place, renews it, and reads the others. A process frees its place at its end, and other processes
free a place whose holder no longer renews it. Because Leases are reused, their number is bounded, and no process needs
the permission to delete a Lease. Competing processes are only logged and counted; decisions do not depend on them.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterable, Iterator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass, replace
from http import HTTPStatus
from typing import Any, Final, Protocol

import msgspec

from policysched.errors import ConnectionProblemError
from policysched.framework import ApiError, Clock
from policysched.kube.election.lease import LEASES, micro_time
from policysched.kube.transport import Pacing, Transport
from policysched.reading.lenient_json import UNREADABLE

log = logging.getLogger(__name__)
PLACES: Final = 16
"""Number of places (numbered presence Leases) in a namespace; processes without a place cannot be detected."""
EVERY: Final = 10.0
"""Interval at which a process renews its place and reads the other places. Units: seconds."""
ENDED_AFTER: Final = 60.0
"""Time without a renewal after which the holder of a place is treated as ended. Units: seconds."""
_NAME: Final = "policysched-presence-"
_NUMBERS: Final = {f"{_NAME}{number}": number for number in range(PLACES)}
_LABEL: Final = "policysched.io/presence"
_NAMES: Final = "policysched.io/scheduler-names"
_LEASE: Final = "policysched.io/election"


@dataclass(frozen=True, slots=True)
class Place:
    """A place: one of the numbered presence Leases, with the data that its holder published."""

    number: int
    version: str = ""
    """The resourceVersion of the Lease; empty if the Lease does not exist yet."""
    holder: str = ""
    """Identity of the process that holds the place; empty if the place is free."""
    scheduler_names: frozenset[str] = frozenset()
    election: str = ""
    """Name of the lease of the process's leader election; empty without an election."""
    renewed: str = ""
    """Time of the last renewal in the format of the API's MicroTime."""

    def competes_with(self, other: Place) -> bool:
        """Return whether the holders of both places can act on the same pods without a common leader election."""
        if not self.scheduler_names & other.scheduler_names:
            return False
        return not self.election or self.election != other.election


class Places(Protocol):
    """Interface of the stored places (numbered Leases); each call is one request that can raise `ApiError`."""

    async def read(self) -> list[Place]:
        """Read all existing places."""

    async def write(self, place: Place) -> None:
        """Write one place; raise `ApiError` with status 409 if its resourceVersion has changed."""


class PresenceWatch:
    """Holds a place (a numbered Lease) for this process, and detects processes that compete for the same pods.

    Args:
        places: Storage of the places.
        own: Data to publish about this process; number and version are ignored.
        clock: This process's clock.
        pacing: Source of random numbers and pauses.
    """

    def __init__(self, places: Places, own: Place, clock: Clock, pacing: Pacing) -> None:
        self._places, self._own, self._clock, self._pacing = places, own, clock, pacing
        self._seen: dict[int, tuple[tuple[str, str], float, bool]] = {}
        """For each place: holder and renewal time, since when both are unchanged, whether a renewal was observed."""
        self._logged: set[str] = set()
        """Identities of the competing processes that were logged."""
        self._problems: set[str] = set()

    @property
    def competing(self) -> frozenset[str]:
        """Identities of processes that act on the same pods without a common leader election."""
        return frozenset(self._logged)

    @asynccontextmanager
    async def published(self, leave_within: float) -> AsyncIterator[None]:
        """Inside this context, publish this process's presence and detect other processes.

        Args:
            leave_within: Limit for freeing the place at the end. Units: seconds.
        """
        running = asyncio.ensure_future(self.run())
        running.add_done_callback(_log_failure)
        try:
            yield
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
            with suppress(TimeoutError):
                async with asyncio.timeout(leave_within):
                    await self.leave()

    async def run(self) -> None:
        """Renew the place of this process and read the other places, until cancelled."""
        while True:
            await self._log_errors(self._update())
            await self._pacing.sleep(EVERY * (1 + self._pacing.random() / 10))

    async def leave(self) -> None:
        """Free the place of this process."""
        await self._log_errors(self._leave())

    async def _leave(self) -> None:
        for place in await self._places.read():
            if place.holder == self._own.holder:
                await self._places.write(Place(place.number, place.version))

    async def _update(self) -> None:
        places = {place.number: place for place in await self._places.read()}
        now = self._clock.monotonic()
        self._seen = {number: seen for number, seen in self._seen.items() if number in places}
        for place in places.values():
            self._observe(place, now)
        self._log_changes([places[number].holder for number in sorted(self._competing(places))])
        for number in sorted(self._ended(now)):
            places[number] = await self._written(Place(number, places[number].version))
        await self._renew(places)

    def _observe(self, place: Place, now: float) -> None:
        """Record a place's holder and renewal time, and the time since which both are unchanged."""
        current = (place.holder, place.renewed)
        before, since, _ = self._seen.get(place.number, (current, now, False))
        renewed = before[0] == place.holder and before != current
        if place.number not in self._seen or before != current:
            self._seen[place.number] = current, now, renewed
        elif now - since > ENDED_AFTER:
            self._seen[place.number] = current, since, False

    def _competing(self, places: Mapping[int, Place]) -> Iterator[int]:
        """Yield the numbers of places whose holders renew them and compete with this process."""
        for number, place in places.items():
            renewed = self._seen[number][2]
            if renewed and place.holder not in {"", self._own.holder} and place.competes_with(self._own):
                yield number

    def _ended(self, now: float) -> Iterator[int]:
        """Yield the numbers of places whose holders have not renewed the place for longer than `ENDED_AFTER`."""
        for number, ((holder, _), since, _) in self._seen.items():
            if holder not in {"", self._own.holder} and now - since > ENDED_AFTER:
                yield number

    async def _renew(self, places: Mapping[int, Place]) -> None:
        """Renew the place of this process, or occupy the first free place."""
        held = [number for number, place in places.items() if place.holder == self._own.holder]
        free = [number for number in range(PLACES) if number not in places or not places[number].holder]
        for number in (*held, *free)[:1]:
            renewed = micro_time(self._clock.now())
            version = places[number].version if number in places else ""
            await self._written(replace(self._own, number=number, version=version, renewed=renewed))
            return
        self._log_once(f"all {PLACES} presence Leases are in use, so other processes cannot detect this process")

    async def _written(self, place: Place) -> Place:
        await self._places.write(place)
        return place

    def _log_changes(self, competing: Iterable[str]) -> None:
        """Log the identities of competing processes that appeared or ended since the last call."""
        found = set(competing)
        for holder in sorted(found - self._logged):
            log.warning(
                "%s schedules for the same scheduler name, and no common leader election chooses between it and this "
                "process: together they may overcommit nodes; give both the same lease, or different scheduler names",
                holder,
            )
        for holder in sorted(self._logged - found):
            log.info("%s no longer competes with this process", holder)
        self._logged = found

    async def _log_errors(self, work: Any) -> None:
        """Await a coroutine and log its API errors, because the scheduler works without this detection."""
        try:
            await work
        except ApiError as error:
            if error.status != HTTPStatus.CONFLICT:
                self._log_once(
                    f"cannot detect other processes with the same scheduler name: {error}",
                    forbidden=error.status == HTTPStatus.FORBIDDEN,
                )
        else:
            self._problems.clear()

    def _log_once(self, problem: str, *, forbidden: bool = True) -> None:
        """Log a problem once; log an unreachable server only at debug level, because other components log it."""
        if problem not in self._problems and len(self._problems) < PLACES:
            self._problems.add(problem)
            log.log(logging.WARNING if forbidden else logging.DEBUG, "%s (logged once)", problem)


def _log_failure(running: asyncio.Future[None]) -> None:
    """Log the exception that ended the detection; log nothing without an exception."""
    if not running.cancelled() and (error := running.exception()) is not None:
        log.error("detecting other processes with the same scheduler name failed and is stopped", exc_info=error)


class _Metadata(msgspec.Struct, rename="camel"):
    name: str = ""
    resource_version: str = ""
    annotations: dict[str, str] | None = None


class _Spec(msgspec.Struct, rename="camel"):
    holder_identity: str | None = None
    renew_time: str | None = None


class _Lease(msgspec.Struct):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)
    spec: _Spec = msgspec.field(default_factory=_Spec)


class _Leases(msgspec.Struct):
    items: list[_Lease]


_LEASES = msgspec.json.Decoder(_Leases)
_TEXTS = msgspec.json.Decoder(frozenset[str])


class LeasePlaces:
    """The places of one namespace: its numbered presence Leases on an API server."""

    def __init__(self, transport: Transport, namespace: str) -> None:
        self._transport, self._namespace = transport, namespace
        self._path = LEASES.format(namespace)

    async def read(self) -> list[Place]:
        """List the places of the namespace."""
        answer = await self._request("GET", f"{self._path}?labelSelector={_LABEL}%3Dtrue&limit={2 * PLACES}")
        try:
            items = _LEASES.decode(answer).items
        except UNREADABLE as error:
            raise ApiError(
                0, "Malformed", f'the answer for Leases in namespace "{self._namespace}" is not a list: {error}'
            ) from error
        return [place for place in map(_place, items) if place is not None]

    async def write(self, place: Place) -> None:
        """Create or replace the Lease of a place."""
        name = f"{_NAME}{place.number}"
        metadata: dict[str, Any] = {"name": name, "namespace": self._namespace, "labels": {_LABEL: "true"}}
        if place.holder:
            names = msgspec.json.encode(sorted(place.scheduler_names)).decode()
            metadata["annotations"] = {_NAMES: names, _LEASE: place.election}
        if place.version:
            metadata["resourceVersion"] = place.version
        body = {
            "apiVersion": "coordination.k8s.io/v1",
            "kind": "Lease",
            "metadata": metadata,
            "spec": {"holderIdentity": place.holder, "leaseDurationSeconds": int(ENDED_AFTER)}
            | ({"renewTime": place.renewed} if place.renewed else {}),
        }
        method, path = ("PUT", f"{self._path}/{name}") if place.version else ("POST", self._path)
        await self._request(method, path, msgspec.json.encode(body))

    async def _request(self, method: str, path: str, body: bytes | None = None) -> bytes:
        try:
            return await self._transport.request(method, path, body)
        except ConnectionProblemError as error:
            raise ApiError(0, "Unauthorized", str(error)) from error


def _place(lease: _Lease) -> Place | None:
    """Return the place of a Lease; None if the Lease's name is not the name of a place."""
    number = _NUMBERS.get(lease.metadata.name)
    if number is None:
        return None
    annotations = lease.metadata.annotations or {}
    try:
        names = _TEXTS.decode(annotations.get(_NAMES, "[]"))
    except UNREADABLE:
        names = frozenset()
    spec = lease.spec
    return Place(
        number,
        lease.metadata.resource_version,
        spec.holder_identity or "",
        names,
        annotations.get(_LEASE, ""),
        spec.renew_time or "",
    )
