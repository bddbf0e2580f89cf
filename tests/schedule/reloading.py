"""A reloader and a scheduler whose cycles the test runs."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from policysched.app.configuration.profiles import default_profile
from policysched.model.policy import Policy, PolicyKey
from policysched.schedule.reload import Reloader
from policysched.schedule.scheduler import Scheduler
from tests.build import node, pod
from tests.rules.build import filtering, policy
from tests.schedule.parts import FakeClient
from tests.schedule.queue_parts import StandingClock

GOOD: dict[str, Any] = {"filters": filtering("node.ready")}


OPEN: dict[str, Any] = {"filters": filtering("not node.ready")}


BAD: dict[str, Any] = {"filters": filtering("nod.ready")}


class Stand:
    """A reloader and a scheduler whose cycles the test runs."""

    def __init__(self) -> None:
        self.client = FakeClient()
        self.clock = clock = StandingClock()
        self.scheduler = Scheduler({"me": default_profile("me")}, self.client, clock, random.Random(0))
        self.scheduler.set_node(node("n1"))
        self.reloader = Reloader(self.scheduler, self.client, clock, "ns/me")

    async def settled(self, *work: Policy | str) -> None:
        for one in work:
            self.reloader.delete(PolicyKey(one)) if isinstance(one, str) else self.reloader.upsert(one)
        for _ in range(60):
            await asyncio.sleep(0)

    async def until(self, so: Callable[[], bool]) -> None:
        """Wait in real time until a condition is true."""
        async with asyncio.timeout(60):
            while not so():
                await asyncio.sleep(0.001)
        await self.settled()

    @property
    def in_force(self) -> dict[str, int]:
        plugins = self.reloader.store.policy_set().active
        return {one.policy.key: one.policy.generation for one in plugins}

    @property
    def rejected(self) -> bool:
        """Whether the policies in force reject a pod."""
        engine = self.scheduler._engines["me"]
        return engine.decide(pod(scheduler_name="me")).row < 0

    @property
    def written(self) -> list[tuple[str, int, int]]:
        """Name, observed generation and active generation of each written status."""
        return [
            (name, status["observedGeneration"], status.get("activeGeneration", 0))
            for name, _, status in self.client.statuses
        ]


@asynccontextmanager
async def running(*listed: Policy) -> AsyncIterator[Stand]:
    stand = Stand()
    await stand.reloader.start(listed)
    task = asyncio.create_task(stand.reloader.run())
    await stand.settled()
    yield stand
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task


def written_back(stand: Stand, spec: dict[str, Any], generation: int = 1) -> Policy:
    return policy(generation=generation, status=stand.client.statuses[-1][2], **spec)
