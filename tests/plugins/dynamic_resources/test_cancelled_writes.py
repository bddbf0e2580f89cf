"""A binding that is cancelled while its claim is written: the write ends, and what it takes is given to nobody else."""

from __future__ import annotations

import asyncio
from collections.abc import Callable

import pytest
from msgspec.structs import replace

from policysched.framework import ApiError, Cluster
from policysched.model.objects import Pod, PodExtendedClaimStatus, ResourceClaim
from tests.build import pod
from tests.plugins.dynamic_resources.binding import Binding, Server
from tests.plugins.dynamic_resources.objects import claim, claiming, devices_of, gpu_class, two_nodes

GPU = "example.com/gpu"
WRITES = ("finalizers", "allocate", "tell")


class Slow(Server):
    """An API server that takes one write in and answers it later, whether its client waits or not."""

    def __init__(self, around: Cluster, slow: str) -> None:
        super().__init__(around)
        self._slow = slow
        self.began, self.goes_on = asyncio.Event(), asyncio.Event()

    async def _later(self, write: str, work: Callable[[], object]) -> None:
        if write == self._slow:
            self.began.set()
            waiting = asyncio.create_task(self.goes_on.wait())
            try:
                await asyncio.shield(waiting)
            except asyncio.CancelledError:
                waiting.add_done_callback(lambda _: work())
                raise

    async def set_finalizers(self, of: ResourceClaim) -> ResourceClaim:
        await self._later("finalizers", lambda: self._store(of))
        return await super().set_finalizers(of)

    async def allocate(self, of: ResourceClaim) -> ResourceClaim:
        await self._later("allocate", lambda: self._store(of))
        return await super().allocate(of)

    async def write_extended_claim_status(self, pod: Pod, status: PodExtendedClaimStatus) -> None:
        await self._later("tell", lambda: None)
        await super().write_extended_claim_status(pod, status)


def binding(slow: str, *, special: bool) -> tuple[Binding, Slow]:
    around = two_nodes() if special else two_nodes(claim())
    if special:
        around.take(gpu_class(extended_resource_name=GPU))
    one = Binding(around, pod(requests={GPU: "2"}) if special else claiming("c"), "n1")
    server = Slow(around, slow)
    one.server, one.client.claims = server, server  # type: ignore[assignment]
    return one, server


async def cancelled(one: Binding, server: Slow, *, times: int = 1) -> None:
    """Cancel PreBind in the middle of a write, then let that end."""
    assert one.reserve() is None
    task = asyncio.create_task(one.pre_bind())
    await server.began.wait()
    for _ in range(times):
        task.cancel()
        await asyncio.sleep(0)
        await asyncio.sleep(0)
    assert not task.done()
    assert one.around.resource_claims.in_flight == 1
    server.goes_on.set()
    await asyncio.gather(task, return_exceptions=True)
    assert task.cancelled()
    assert one.around.resource_claims.in_flight == 0


@pytest.mark.parametrize("times", [1, 3])
@pytest.mark.parametrize("slow", ["finalizers", "allocate"])
async def test_a_write_that_has_begun_ends_before_its_binding_does(slow: str, times: int) -> None:
    one, server = binding(slow, special=False)
    await cancelled(one, server, times=times)
    stored = server.stored["default/c"]
    assert one.taken() == list(devices_of(stored.status.allocation)) != []
    assert [user.uid for user in stored.status.reserved_for] == [one.assumed.pod.metadata.uid]
    await one.give_up()
    assert server.stored["default/c"].status.reserved_for == ()
    assert one.taken() == list(devices_of(server.stored["default/c"].status.allocation)) != []


@pytest.mark.parametrize("slow", WRITES)
async def test_a_special_claim_that_is_written_meanwhile_is_deleted(slow: str) -> None:
    one, server = binding(slow, special=True)
    await cancelled(one, server)
    assert one.around.devices.allocated.results_of("made")
    await one.give_up()
    assert server.stored == {}
    assert not one.around.devices.allocated.results_of("made")


async def test_a_write_that_fails_after_its_binding_was_cancelled_gives_its_devices_back() -> None:
    one, server = binding("allocate", special=False)
    server.errors["allocate"] = [ApiError(403, "Forbidden", "no")]
    await cancelled(one, server)
    await one.give_up()
    assert one.taken() == []


async def test_of_the_claims_after_a_cancelled_write_none_is_written() -> None:
    around = two_nodes(claim("a"), claim("b"))
    one = Binding(around, claiming("a", "b"), "n1")
    server = Slow(around, "allocate")
    one.server, one.client.claims = server, server  # type: ignore[assignment]
    assert one.reserve() is None
    task = asyncio.create_task(one.pre_bind())
    await server.began.wait()
    task.cancel()
    server.goes_on.set()
    await asyncio.gather(task, return_exceptions=True)
    await one.give_up()
    assert (len(one.taken("a")), one.taken("b")) == (1, [])
    assert "default/b" not in server.stored
    assert around.resource_claims.in_flight == 0


async def test_who_waits_for_a_turn_to_write_ends_at_once() -> None:
    around = two_nodes(claim())
    first, second = Binding(around, claiming("c"), "n1"), Binding(around, replace_name(claiming("c")), "n1")
    server = Slow(around, "allocate")
    for one in (first, second):
        one.server, one.client.claims = server, server  # type: ignore[assignment]
    second.plugin = first.plugin
    assert first.reserve() is None
    writes = asyncio.create_task(first.pre_bind())
    await server.began.wait()
    second.assumed.state = first.assumed.state
    waits = asyncio.create_task(second.pre_bind())
    await asyncio.sleep(0)
    waits.cancel()
    await asyncio.gather(waits, return_exceptions=True)
    assert waits.cancelled()
    assert not writes.done()
    server.goes_on.set()
    assert await writes == ""


def replace_name(of: Pod) -> Pod:
    return replace(of, metadata=replace(of.metadata, name="other", uid="other"))
