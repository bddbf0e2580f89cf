"""The Lease object of the leader election: its record, and the requests that read and write it.

Every update requires the resourceVersion that was read last, so one of two competing candidates gets a conflict. Labels
and annotations that others added to the object stay.

Source: k8s.io/client-go/tools/leaderelection/resourcelock/{leaselock,interface}.go, v0.36.
"""

from __future__ import annotations

import asyncio
from collections.abc import Mapping
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Annotated, Any, Final, Protocol

import msgspec

from policysched.errors import ConnectionProblemError
from policysched.framework import ApiError
from policysched.kube.transport import Transport
from policysched.reading.lenient_json import UNREADABLE

LEASES: Final = "/apis/coordination.k8s.io/v1/namespaces/{}/leases"
_EVENTS: Final = "/apis/events.k8s.io/v1/namespaces/{}/events"
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
MOST: Final = (1 << 31) - 1
"""Largest number in a field of a Lease (int32)."""
_Int32 = Annotated[int, msgspec.Meta(ge=-MOST - 1, le=MOST)]


@dataclass(frozen=True, slots=True)
class LeaseRecord:
    """The holder and times of a Lease; if two records are equal, the lease was not renewed between them."""

    holder: str = ""
    """Identity of the leader; empty if the lease has no holder."""
    duration_seconds: int = 0
    acquire_time: str = ""
    """Time at which the leader acquired the lease, in the format of the API's MicroTime."""
    renew_time: str = ""
    transitions: int = 0
    """Number of changes of the holder."""


class Lock(Protocol):
    """Interface of the stored lease for which candidates compete; each call is one request, which can fail."""

    async def get(self) -> LeaseRecord:
        """Read the record of the lease; raise `ApiError` with status 404 if the Lease does not exist."""

    async def create(self, record: LeaseRecord) -> None:
        """Create the Lease; raise `ApiError` with status 409 if another candidate was faster."""

    async def update(self, record: LeaseRecord) -> None:
        """Replace the record in the Lease; `ApiError` with status 409 if it changed since the last `get` or write."""


class _Spec(msgspec.Struct, rename="camel"):
    holder_identity: str | None = None
    lease_duration_seconds: _Int32 | None = None
    acquire_time: str | None = None
    renew_time: str | None = None
    lease_transitions: _Int32 | None = None


def read_record(lease: Mapping[str, Any]) -> LeaseRecord:
    """Return the record of a Lease object.

    Raises:
        msgspec.ValidationError: the object is not a valid Lease.
    """
    spec = msgspec.convert(lease.get("spec") or {}, _Spec)
    return LeaseRecord(
        spec.holder_identity or "",
        spec.lease_duration_seconds or 0,
        spec.acquire_time or "",
        spec.renew_time or "",
        spec.lease_transitions or 0,
    )


def lease_spec(record: LeaseRecord) -> dict[str, Any]:
    """Return the spec of a Lease with exactly the fields of this record."""
    return {
        "holderIdentity": record.holder,
        "leaseDurationSeconds": record.duration_seconds,
        "acquireTime": record.acquire_time,
        "renewTime": record.renew_time,
        "leaseTransitions": record.transitions,
    }


def micro_time(at: datetime) -> str:
    """Format a time as the API's MicroTime."""
    return at.astimezone(UTC).strftime("%Y-%m-%dT%H:%M:%S.%fZ")


class LeaseLock:
    """One Lease on an API server.

    Args:
        transport: The API server.
        namespace: The namespace of the lease.
        name: Its name.
        timeout: Limit of one request. Units: seconds.
    """

    def __init__(self, transport: Transport, namespace: str, name: str, timeout: float) -> None:
        self._transport, self._timeout = transport, timeout
        self._namespace, self._name = namespace, name
        self._lease: dict[str, Any] = {}

    def __str__(self) -> str:
        """Return `namespace/name` of the lease, for messages."""
        return f"{self._namespace}/{self._name}"

    async def get(self) -> LeaseRecord:
        """Read the Lease."""
        return self._take(await self._request("GET", f"{self._path}/{self._name}"))

    async def create(self, record: LeaseRecord) -> None:
        """Create the Lease."""
        metadata = {"name": self._name, "namespace": self._namespace}
        body = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease", "metadata": metadata}
        self._take(await self._request("POST", self._path, body | {"spec": lease_spec(record)}))

    async def update(self, record: LeaseRecord) -> None:
        """Replace the Lease if its resourceVersion is still the known one."""
        body = self._lease | {"spec": lease_spec(record)}
        self._take(await self._request("PUT", f"{self._path}/{self._name}", body))

    async def record_event(self, note: str, at: datetime, controller: str) -> None:
        """Create an event about the Lease.

        Args:
            note: Text of the event.
            at: Time of the event.
            controller: Reporting controller.
        """
        suffix = f".{int((at - _EPOCH).total_seconds() * 1e6) * 1000:x}"
        metadata = self._lease["metadata"] if self._lease else {}
        body = {
            "apiVersion": "events.k8s.io/v1",
            "kind": "Event",
            "metadata": {"name": self._name[: 253 - len(suffix)] + suffix, "namespace": self._namespace},
            "eventTime": micro_time(at),
            "reportingController": controller,
            "reportingInstance": f"{controller}-{self._name}"[:128],
            "action": "LeaderElection",
            "reason": "LeaderElection",
            "regarding": {
                "apiVersion": "coordination.k8s.io/v1",
                "kind": "Lease",
                "namespace": self._namespace,
                "name": self._name,
                "uid": metadata.get("uid", ""),
                "resourceVersion": metadata.get("resourceVersion", ""),
            },
            "note": note,
            "type": "Normal",
        }
        await self._request("POST", _EVENTS.format(self._namespace), body)

    @property
    def _path(self) -> str:
        return LEASES.format(self._namespace)

    def _take(self, answer: bytes) -> LeaseRecord:
        try:
            lease = msgspec.json.decode(answer, type=dict[str, Any])
            record, metadata = read_record(lease), msgspec.convert(lease.get("metadata"), dict[str, Any])
        except UNREADABLE as error:
            raise ApiError(0, "Malformed", f"the answer for lease {self} is not a Lease: {error}") from error
        metadata.pop("managedFields", None)  # can be large and deeply nested; the server keeps it if an update omits it
        self._lease = lease | {"metadata": metadata}
        return record

    async def _request(self, method: str, path: str, body: Mapping[str, Any] | None = None) -> bytes:
        try:
            encoded = None if body is None else msgspec.json.encode(body)
            async with asyncio.timeout(self._timeout):
                return await self._transport.request(method, path, encoded)
        except TimeoutError as error:
            raise ApiError(0, "Timeout", f"no answer about lease {self} within {self._timeout:g} s") from error
        except ConnectionProblemError as error:
            raise ApiError(0, "Unauthorized", str(error)) from error
        except UNREADABLE as error:
            raise ApiError(0, "Malformed", f"lease {self} cannot be written back: {error}") from error
