"""A pod with claims on its way to a node, and an API server that keeps what is written of them."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any

from msgspec.structs import replace

from policysched.framework import (
    ApiError,
    AssumedPod,
    Change,
    Cluster,
    DeviceWait,
    Handle,
    Status,
)
from policysched.model.objects import Pod, PodExtendedClaimStatus, ResourceClaim
from policysched.plugins.dynamic_resources.plugin import DynamicResources
from tests.plugins.dynamic_resources.objects import (
    changed,
    names_of,
)
from tests.schedule.parts import FakeClient


class Server:
    """An API server with claims: it counts versions, keeps what is written, and fails where a test says so."""

    def __init__(self, around: Cluster, *, watched: bool = True) -> None:
        self.around, self.watched = around, watched
        self.stored: dict[str, ResourceClaim] = {}
        self.version = 100
        self.wrote: list[str] = []
        self.told: PodExtendedClaimStatus | None = None
        self.errors: dict[str, list[ApiError]] = {}
        self.meanwhile: Callable[[ResourceClaim], ResourceClaim] | None = None

    def _check(self, request: str, of: ResourceClaim | None = None) -> None:
        if self.errors.get(request):
            raise self.errors[request].pop(0)
        self.wrote.append(request)
        if of is not None and of.key in self.stored:
            known = self.stored[of.key].metadata.resource_version
            if known != of.metadata.resource_version:
                raise ApiError(409, "Conflict", "the object has been modified")

    def _store(self, of: ResourceClaim) -> ResourceClaim:
        self.version += 1
        made = replace(of, metadata=replace(of.metadata, resource_version=str(self.version)))
        self.stored[made.key] = made
        if self.watched:
            self.around.take(made)
        return made

    async def get(self, of: ResourceClaim) -> ResourceClaim:
        self._check("get")
        return self.stored[of.key]

    async def set_finalizers(self, of: ResourceClaim) -> ResourceClaim:
        self._check("finalizers", of)
        known = self.stored.get(of.key, of)
        return self._store(replace(known, metadata=replace(known.metadata, finalizers=of.metadata.finalizers)))

    async def allocate(self, of: ResourceClaim) -> ResourceClaim:
        if self.meanwhile is not None:
            self.stored[of.key] = self.meanwhile(self.stored.get(of.key, of))
            self.meanwhile = None
        self._check("allocate", of)
        return self._store(of)

    async def reserve(self, of: ResourceClaim) -> ResourceClaim:
        self._check("reserve", of)
        return self._store(of)

    async def deallocate(self, of: ResourceClaim) -> ResourceClaim:
        self._check("deallocate", of)
        return self._store(changed(of, allocation=None, reserved_for=(), devices=()))

    async def create(self, of: ResourceClaim) -> ResourceClaim:
        self._check("create")
        assert of.status.allocation is None
        return self._store(replace(of, metadata=replace(of.metadata, name=f"{of.metadata.generate_name}x", uid="made")))

    async def delete(self, of: ResourceClaim) -> None:
        self._check("delete")
        self.around.drop(self.stored.pop(of.key))

    async def write_extended_claim_status(self, pod: Pod, status: PodExtendedClaimStatus) -> None:  # noqa: ARG002 - the protocol's signature
        self._check("tell")
        self.told = status


class Clock:
    """A clock that moves while plugins pause."""

    def __init__(self) -> None:
        self.seconds = 0.0
        self.on_pause: Callable[[], Any] = lambda: None

    def monotonic(self) -> float:
        return self.seconds

    def now(self) -> Any:
        return datetime(2026, 1, 1, tzinfo=UTC) + timedelta(seconds=self.seconds)

    async def pause(self, seconds: float) -> None:
        self.seconds += seconds
        self.on_pause()
        await asyncio.sleep(0)


class Binding:
    """A pod on its way to a node."""

    def __init__(self, around: Cluster, of: Pod, on: str, *, watched: bool = True, timeout: float = 600) -> None:
        self.around, self.plugin = around, DynamicResources(timeout)
        self.assumed = AssumedPod(of, on, around)
        self.server, self.client, self.clock = Server(around, watched=watched), FakeClient(), Clock()
        self.client.claims = self.server  # type: ignore[assignment]
        self.changes: list[Change] = []
        pause: Callable[[float], Awaitable[None]] = self.clock.pause
        self.requested: list[bool] = []
        self.waits: list[DeviceWait] = []
        self.handle = Handle(
            self.client,
            self.clock,
            pause,
            {},
            self._activate,
            changed=self.changes.append,
            claim_requested=self.requested.append,
            devices_awaited=self.waits.append,
        )
        self.activated: list[str] = []

    def _activate(self, identities: Any) -> None:
        self.activated += identities

    def reserve(self) -> Status | None:
        return self.plugin.reserve(self.assumed)

    async def pre_bind(self) -> str:
        """Run PreBind; return what went wrong."""
        assert self.plugin.pre_bind_pre_flight(self.assumed).works
        status = await self.plugin.pre_bind(self.assumed, self.handle)
        return "" if status is None else status.message

    async def give_up(self) -> None:
        undo = self.plugin.unreserve(self.assumed)
        if undo is not None:
            await undo(self.handle)

    def held(self, name: str = "c") -> ResourceClaim:
        found = self.around.resource_claims.get(f"default/{name}")
        assert found is not None
        return found

    def taken(self, name: str = "c") -> list[str]:
        """The devices that count as taken by a claim."""
        return names_of(self.around.devices.allocated.results_of(f"uid-{name}"))
