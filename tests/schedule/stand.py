"""A running scheduler with a client that records writes and a fixed clock."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace

from policysched.app.configuration.profiles import default_profile
from policysched.framework import Cluster
from policysched.framework.profile import Profile
from policysched.model.objects import Pod
from policysched.model.release import DEFAULT, Release
from policysched.schedule.observer import LOG_LINES, Observers
from policysched.schedule.scheduler import Scheduler
from tests.build import pod
from tests.schedule.parts import FakeClient
from tests.schedule.queue_parts import StandingClock

ME = "default-scheduler"
BIG = pod("big", requests={"cpu": 3})


class Stand:
    """A scheduler with a client that records writes and a clock that the test advances."""

    def __init__(self, of: Profile | None = None, observers: Observers = LOG_LINES, release: Release = DEFAULT) -> None:
        self.clock = StandingClock()
        self.client = FakeClient()
        profiles = {ME: of if of is not None else default_profile(ME, release=release)}
        cluster = Cluster(release=release)
        self.scheduler = Scheduler(profiles, self.client, self.clock, random.Random(0), observers, cluster=cluster)
        self.task: asyncio.Task[None] | None = None

    async def settle(self) -> None:
        """Let the event loop run until nothing more happens."""
        for _ in range(30):
            await asyncio.sleep(0)

    async def settled(self, *pods: Pod) -> None:
        for one in pods:
            self.scheduler.set_pod(one)
        await self.settle()

    async def pass_time(self, seconds: float) -> None:
        """Advance the time, and wake what waits until then."""
        self.clock.at += seconds
        self.scheduler._waiter.wake()
        await self.settle()

    def attempts(self, name: str) -> int:
        """Return the number of attempts of a waiting pod; -1 if it is not in the queue."""
        queued = self.scheduler.queue.get(f"default.{name}")
        return queued.attempts if queued is not None else -1

    def confirm(self, of: Pod, name: str) -> None:
        self.scheduler.set_pod(replace(of, spec=replace(of.spec, node_name=name)))

    @property
    def bound(self) -> dict[str, str]:
        return {key.removeprefix("default/"): name for key, name in self.client.bound}

    @property
    def notes(self) -> list[str]:
        return [event.note for event in self.client.events if event.reason == "FailedScheduling"]

    @property
    def waiting(self) -> int:
        return self.scheduler.queue.counts().unschedulable


@asynccontextmanager
async def running(
    *nodes: Any, of: Profile | None = None, observers: Observers = LOG_LINES, release: Release = DEFAULT
) -> AsyncIterator[Stand]:
    stand = Stand(of, observers, release)
    for one in nodes:
        stand.scheduler.set_node(one)
    stand.task = asyncio.create_task(stand.scheduler.run())
    await stand.settle()
    yield stand
    stand.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stand.task


class Holding:
    """Blocks bindings until they are released."""

    def __init__(self, stand: Stand) -> None:
        self.started = 0
        self._go = asyncio.Event()
        stand.client.on_bind = self._wait

    async def _wait(self, *_: Any) -> None:
        self.started += 1
        await self._go.wait()

    async def release(self, stand: Stand) -> None:
        self._go.set()
        await stand.settle()
