"""Pods that share a claim: they wait for its allocation, and then write to it one after another."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from functools import partial

from policysched.framework import ApiError
from policysched.model.objects import ResourceClaim
from policysched.plugins.dynamic_resources.claim_writes import ClaimTurns
from policysched.testing.recorded_writes import RecordingClaims
from tests.build import node
from tests.plugins.dynamic_resources.objects import claim, claiming, exactly, gpu_class, resource_slice
from tests.schedule.stand import Stand, running


class SlowClaims(RecordingClaims):
    """A server that allocates when it is told to, refuses old versions, and may fail once."""

    def __init__(self) -> None:
        self.go = asyncio.Event()
        self.versions: dict[str, str] = {}
        self.wrote: list[str] = []
        self.refused = 0
        self.error: ApiError | None = None
        self.watch: Callable[[ResourceClaim], object] = lambda _: None

    async def allocate(self, claim: ResourceClaim) -> ResourceClaim:
        """Take a claim's allocation."""
        await self.go.wait()
        if self.error is not None:
            error, self.error = self.error, None
            raise error
        return await self._written("allocate", claim, await super().allocate(claim))

    async def reserve(self, claim: ResourceClaim) -> ResourceClaim:
        """Take for whom a claim is reserved."""
        return await self._written("reserve", claim, await super().reserve(claim))

    async def _written(self, what: str, before: ResourceClaim, after: ResourceClaim) -> ResourceClaim:
        await asyncio.sleep(0)
        if self.versions.get(before.key, before.metadata.resource_version) != before.metadata.resource_version:
            self.refused += 1
            raise ApiError(409, "Conflict", "the object has been modified")
        self.versions[after.key] = after.metadata.resource_version
        self.wrote.append(what)
        self.watch(after)
        await asyncio.sleep(0)
        return after


async def _sharing(stand: Stand, pods: int) -> SlowClaims:
    stand.client.claims = claims = SlowClaims()
    for one in (gpu_class(), resource_slice("n1", "d1"), claim("c", exactly())):
        stand.scheduler.take(one)
    await stand.settled(*(claiming("c", name=f"p{number}") for number in range(pods)))
    return claims


async def test_pods_are_put_off_until_the_claim_is_allocated_and_then_bound_without_conflicts() -> None:
    async with running(node("n1")) as stand:
        claims = await _sharing(stand, 5)
        assert stand.waiting == 4
        assert [stand.attempts(f"p{number}") for number in range(5)] == [1, 0, 0, 0, 0]
        claims.go.set()
        await stand.settle()
        await stand.settle()
        assert len(stand.bound) == 5
        assert claims.wrote == ["allocate", *["reserve"] * 4]
        assert claims.refused == 0
        assert stand.notes == []
        assert stand.client.conditions == []


async def test_pods_go_on_where_the_allocation_cannot_be_written() -> None:
    async with running(node("n1")) as stand:
        claims = await _sharing(stand, 3)
        claims.error = ApiError(422, "Invalid", "no")
        claims.go.set()
        await stand.settle()
        await stand.settle()
        assert set(stand.bound) == {"p1", "p2"}
        await stand.pass_time(20)
        await stand.settle()
        assert set(stand.bound) == {"p0", "p1", "p2"}
        assert claims.refused == 0


async def test_pods_go_on_where_the_watch_is_faster_than_the_answer() -> None:
    async with running(node("n1")) as stand:
        claims = await _sharing(stand, 3)
        claims.watch = stand.scheduler.take
        claims.go.set()
        for _ in range(4):
            await stand.settle()
        await stand.pass_time(2)
        await stand.settle()
        assert len(stand.bound) == 3


async def test_a_pod_that_would_be_put_off_again_is_tried_and_told_why() -> None:
    async with running(node("n1")) as stand:
        stand.scheduler.last_words = 0.01
        await _sharing(stand, 2)
        stand.scheduler.queue.activate(["default.p1"])
        stand.scheduler._waiter.wake()
        await stand.settle()
        assert stand.attempts("p1") == 1
        [note] = stand.notes
        assert "resource claim default/c is in the process of being allocated" in note


async def test_nothing_is_kept_of_claims_to_which_nobody_writes() -> None:
    turns, order = ClaimTurns(), list[str]()

    async def write(name: str) -> None:
        order.append(f"{name} begins")
        await asyncio.sleep(0)
        order.append(f"{name} ends")

    tasks = [asyncio.create_task(turns.write("one", partial(write, name))) for name in "abc"]
    await asyncio.sleep(0)
    tasks[1].cancel()
    await asyncio.gather(*tasks, turns.write("two", partial(write, "other")), return_exceptions=True)
    assert [text for text in order if "other" not in text] == ["a begins", "a ends", "c begins", "c ends"]
    assert len(turns) == 0
