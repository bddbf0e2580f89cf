"""A random life with resource claims, which drivers publish devices for and others share, release and delete."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

from msgspec.structs import replace

from policysched.model.objects import (
    CapacityRequirements,
    DeviceCapacity,
    DeviceCondition,
    Pod,
    PodExtendedClaimStatus,
    PodResourceClaim,
    ResourceClaim,
    ResourceClaimStatus,
    ResourceSlice,
    SliceDevice,
)
from tests.app.recording.recorded import LIMIT, RecordedLife
from tests.plugins.dynamic_resources.objects import (
    changed,
    claim,
    device,
    exactly,
    first_available,
    gpu_class,
    resource_slice,
    told,
)
from tests.schedule.parts import refused
from tests.schedule.soak import Server

GPU = "example.com/gpu"
SHARED = 4
"""How many claims there are that any pod may name."""


class ClaimServer:
    """An API server's resource claims: it counts versions, fails now and then, and is heard of later."""

    def __init__(self, of: Server) -> None:
        self._of = of
        self.stored: dict[str, ResourceClaim] = {}
        self.unheard: list[tuple[bool, ResourceClaim]] = []
        """Claims as they came, and as they went, of which the watch has not told yet."""
        self.version = 0

    async def _turn(self, request: str) -> None:
        for _ in range(self._of.rng.randrange(6)):
            await asyncio.sleep(0)
        self._of._may_fail(request)

    def write(self, of: ResourceClaim) -> ResourceClaim:
        """Store a claim in a new version."""
        self.version += 1
        made = replace(of, metadata=replace(of.metadata, resource_version=str(self.version)))
        self.stored[made.key] = made
        self.unheard.append((True, made))
        return made

    def _update(self, of: ResourceClaim) -> ResourceClaim:
        known = self.stored.get(of.key)
        if known is None:
            raise refused(404)
        if known.metadata.resource_version != of.metadata.resource_version:
            raise refused(409)
        return self.write(of)

    def remove(self, key: str) -> None:
        """Let a claim be gone."""
        if key in self.stored:
            self.unheard.append((False, self.stored.pop(key)))

    async def get(self, of: ResourceClaim) -> ResourceClaim:
        await self._turn("get claim")
        return self.stored.get(of.key, of)

    async def set_finalizers(self, of: ResourceClaim) -> ResourceClaim:
        await self._turn("finalizers")
        return self._update(of)

    async def allocate(self, of: ResourceClaim) -> ResourceClaim:
        await self._turn("allocate")
        return self._update(of)

    async def reserve(self, of: ResourceClaim) -> ResourceClaim:
        await self._turn("reserve")
        return self._update(of)

    async def deallocate(self, of: ResourceClaim) -> ResourceClaim:
        await self._turn("deallocate")
        return self._update(replace(of, status=ResourceClaimStatus()))

    async def create(self, of: ResourceClaim) -> ResourceClaim:
        await self._turn("create")
        name = f"{of.metadata.generate_name}{self.version}"
        return self.write(replace(of, metadata=replace(of.metadata, name=name, uid=f"uid-{name}")))

    async def delete(self, of: ResourceClaim) -> None:
        await self._turn("delete claim")
        self.remove(of.key)

    async def write_extended_claim_status(self, pod: Pod, status: PodExtendedClaimStatus) -> None:  # noqa: ARG002 - the protocol's signature
        await self._turn("tell pod")


def without(of: ResourceClaim, gone: Callable[[str], bool]) -> ResourceClaim:
    """A claim without reservations of pods that are gone, and without devices where none is left."""
    left = tuple(one for one in of.status.reserved_for if not gone(one.uid))
    return replace(of, status=ResourceClaimStatus()) if not left else changed(of, reserved_for=left)


class DeviceLife(RecordedLife):
    """A scheduler whose pods ask for devices in every way there is."""

    def __init__(self, seed: int, folder: Path, limit: int = LIMIT) -> None:
        super().__init__(seed, folder, limit, edits=False)
        self.server.claims = self.claims = ClaimServer(self.server)  # type: ignore[assignment]
        self._acts |= {self.hear: 60, self.release: 20, self.condition: 4, self.publish: 6}
        self.scheduler.take(gpu_class(extended_resource_name=GPU))
        for number in range(SHARED):
            self.claims.write(claim(f"shared-{number}"))

    def make(self, name: str) -> Pod:
        """Make a pod that asks for devices mostly: by claims of its own or others' or as an extended resource."""
        made = super().make(name)
        spec = replace(made.spec, affinity=None)
        wanted = self.rng.choice(("none", "own", "own", "two", "shared", "shared", "extended", "extended"))
        if wanted == "extended":
            container = spec.containers[0]
            requests = {**container.resources.requests, GPU: self.rng.choice("12")}
            container = replace(container, resources=replace(container.resources, requests=requests))
            return replace(made, spec=replace(spec, containers=[container]))
        names = {
            "none": [],
            "shared": [f"shared-{self.rng.randrange(SHARED)}"],
            "own": [f"{name}-a"],
            "two": [f"{name}-a", f"{name}-b"],
        }[wanted]
        for one in names:
            if f"default/{one}" not in self.claims.stored:
                self.claims.write(claim(one, *self._requests(self.rng)))
        stated = [PodResourceClaim(name=one, resource_claim_name=one) for one in names]
        return replace(made, spec=replace(spec, resource_claims=stated))

    @staticmethod
    def _requests(rng: random.Random) -> list[Any]:
        match rng.randrange(5):
            case 0:
                return [exactly(count=2)]
            case 1:
                return [first_available("r", "b", "a")]
            case 2:
                return [exactly(capacity=CapacityRequirements(requests={"memory": rng.choice(("4Gi", "10Gi"))}))]
        return [exactly()]

    def change_node(self) -> None:
        """A node changes, and what devices it has, perhaps."""
        before = len(self.nodes)
        super().change_node()
        if len(self.nodes) > before:
            self.publish()

    def publish(self) -> None:
        """The driver of a node publishes its devices, or no longer."""
        name = self._some_node()
        self.scheduler.take(self._slice(name)) if self.rng.random() < 0.9 else self.scheduler.drop(self._slice(name))

    def _slice(self, name: str) -> ResourceSlice:
        rng = self.rng
        devices: list[SliceDevice] = []
        for number in range(rng.randrange(2, 8)):
            fields: dict[str, Any] = {"capacity": {"memory": DeviceCapacity(value="16Gi")}}
            fields |= {"allow_multiple_allocations": True} if rng.random() < 0.3 else {}
            if rng.random() < 0.15:
                fields |= {"binding_conditions": ("Ready",), "binding_failure_conditions": ("Broken",)}
            devices.append(device(f"d{number}", rng.choice("ab"), **fields))
        return resource_slice(name, *devices)

    def hear(self) -> None:
        """The watch tells of what became of claims."""
        for _ in range(self.rng.randrange(1, 6)):
            if self.claims.unheard:
                came, of = self.claims.unheard.pop(0)
                self.scheduler.take(of) if came else self.scheduler.drop(of)

    def release(self) -> None:
        """Claims give back the devices of pods that are gone; those that were made for these go."""
        there = {one.metadata.uid for one in self.pods.values()}
        for key, of in list(self.claims.stored.items()):
            if any(one.uid not in there for one in of.status.reserved_for):
                self.claims.write(without(of, lambda uid: uid not in there))
            elif not of.status.reserved_for and "shared" not in key and self.rng.random() < 0.02:
                self.claims.remove(key)

    def condition(self) -> None:
        """A driver says of a claim's devices that they are ready, or broken."""
        waiting = [one for one in self.claims.stored.values() if one.status.allocation is not None]
        if waiting:
            type_ = self.rng.choice(("Ready", "Ready", "Broken"))
            said = DeviceCondition(type=type_, status="True", reason="Said", message="")
            self.claims.write(told(self.rng.choice(waiting), said))


async def devices_recorded(
    folder: Path,
    decisions: int,
    seed: int = 1,
    limit: int = LIMIT,
    goes_on: Callable[[DeviceLife], bool] = lambda _: False,
) -> DeviceLife:
    """Record so many decisions at least, and more while something is so."""
    life = DeviceLife(seed, folder, limit)
    while life.recorder.decisions < decisions or goes_on(life):
        await life.run(50)
    await life.end()
    await asyncio.to_thread(life.recorder.close)
    return life
