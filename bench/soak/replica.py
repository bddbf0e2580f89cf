"""A scheduler process of the soak: everything of `policysched run` except HTTP, ports and the election."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any, Final, TypeVar, cast
from unittest import mock

from prometheus_client import CollectorRegistry

from bench.soak.clock import SimulatedClock
from bench.soak.figures import Meter
from bench.soak.objects import ME
from bench.soak.server import Link, LocalTransport, SoakServer
from policysched.app.running import process
from policysched.app.running.metric_clients import make_source
from policysched.app.running.metric_options import NO_METRICS
from policysched.app.running.run_options import RunOptions
from policysched.metric_sources.counters import SourceCounters
from policysched.model.release import DEFAULT, Release, with_pod_groups
from policysched.schedule.queue.queued_pod import QueuedPod
from policysched.schedule.queue.queued_pod_group import QueuedPodGroup

T = TypeVar("T")
READY_WITHIN: Final = 600.0
"""Longest simulated time until a replica has listed all objects. Units: seconds."""


def release() -> Release:
    """Return the default release with pod groups and their topology constraints.

    Raises:
        RuntimeError: the release has no pod groups.
    """
    found = with_pod_groups(DEFAULT, by_topology=True)
    if found is None:
        raise RuntimeError("the default release has no pod groups")
    return found


class Turn:
    """Replaces leader election: a replica leads from `lead` to its end."""

    identity, is_lost = "soak", False

    def __init__(self) -> None:
        self._leads = asyncio.Event()

    def lead(self) -> None:
        """Make the replica the leader."""
        self._leads.set()

    def may_act(self) -> bool:
        """Return whether the replica leads."""
        return self._leads.is_set()

    async def acquire(self) -> None:
        """Wait until the replica leads."""
        await self._leads.wait()

    def problem(self) -> str:
        """Return no problem."""
        return ""

    async def stop(self) -> None:
        """End the lead."""
        self._leads.clear()


class Replica:
    """A scheduler process with its own connection.

    Args:
        server: The API server.
        clock: The simulated clock.
        meter: Receives the attempts.
        seed: Draws among equal nodes.
    """

    def __init__(self, server: SoakServer, clock: SimulatedClock, meter: Meter, seed: int) -> None:
        self.link, self.turn, self._meter = Link(server), Turn(), meter
        registry = CollectorRegistry()
        source = make_source(NO_METRICS, clock, SourceCounters(registry))
        options = RunOptions(scheduler_names=(ME,), seed=seed)
        with mock.patch.multiple(process, Transport=LocalTransport, SystemClock=lambda: clock):
            self.process = process.Process(options, cast("Any", self.link), source, registry, None, release())
        self.process.leadership = cast("Any", self.turn)
        self._measure()
        self._task: asyncio.Task[None] | None = None

    async def start(self) -> float:
        """List everything; return the processor time until then.

        Raises:
            TimeoutError: the replica is not ready in time.
        """
        began = time.process_time()
        self._task = asyncio.create_task(self.process.run())
        async with asyncio.timeout(READY_WITHIN):
            while self.process.not_ready():
                self.check()
                await asyncio.sleep(0.01)
        self.link.server.forget_lists()
        return time.process_time() - began

    def check(self) -> None:
        """Raise the error that ended the process, if there is one."""
        if self._task is not None and self._task.done():
            self._task.result()
            raise RuntimeError("the scheduler ended")

    async def stop(self) -> None:
        """Stop in an orderly way: bindings end first."""
        if self._task is not None:
            self._task.cancel()
            with suppress(asyncio.CancelledError):
                await self._task

    async def crash(self) -> None:
        """End without a further answer from the API server."""
        self.link.is_cut = True
        self.process.scheduler.last_words = 0.0
        await self.stop()

    @property
    def is_calm(self) -> bool:
        """Whether no pod is active and no request is under way."""
        scheduler = self.process.scheduler
        return not (scheduler.is_busy or scheduler.queue.in_flight[0])

    def _measure(self) -> None:
        """Measure the attempts of the scheduler."""
        scheduler = self.process.scheduler
        vars(scheduler.attempts)["make"] = _timed(scheduler.attempts.make, self._tried)
        groups = scheduler.group_attempts
        if groups is not None:
            vars(groups)["make"] = _timed(groups.make, self._group_tried)

    def _tried(self, queued: QueuedPod, seconds: float) -> None:
        self._meter.tried(queued.pod.metadata.name, seconds, is_first=queued.attempts <= 1)

    def _group_tried(self, queued: QueuedPodGroup, seconds: float) -> None:
        del queued
        self._meter.hour.counts["group attempts"] += 1
        self._meter.hour.group_attempts.append(1000 * seconds)


def _timed(make: Callable[[T], Awaitable[None]], note: Callable[[T, float], None]) -> Callable[[T], Awaitable[None]]:
    async def timed(queued: T) -> None:
        began = time.thread_time()
        await make(queued)
        note(queued, time.thread_time() - began)

    return timed
