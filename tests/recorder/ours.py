"""Our side of a script: the scheduler with recorders as plugins, over a cluster in memory, in virtual time."""

from __future__ import annotations

import asyncio
import contextlib
import math
import random
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import replace
from functools import partial
from typing import Any, Final

from policysched.app.configuration.profiles import configured_profiles
from policysched.cli.flags.feature_gates import CLAIMS, TOPOLOGY
from policysched.framework.registry import PluginRegistry
from policysched.model.release import DEFAULT, Release
from policysched.schedule.queue.queued_pod import QueuedPod
from policysched.schedule.queue.subqueues import Backoff
from policysched.schedule.scheduler import Scheduler
from policysched.state.cluster import Cluster
from tests.recorder.cluster import FakeCluster
from tests.recorder.plugin import Record, Recorder, make
from tests.recorder.virtual_time import VirtualClock, VirtualLoop

Script = dict[str, Any]
Outcome = dict[str, Any]
CYCLE_SECONDS: Final = 0.001
"""What passes between a pod's turn and its cycle: in it everything settles that came of the cycle before."""


def slow(scheduler: Scheduler) -> Scheduler:
    """Have a scheduler pause before each cycle."""
    makers: tuple[Any, ...] = (scheduler.attempts, scheduler.group_attempts)
    for attempts in filter(None, makers):
        attempts.make = _later(attempts.make)
    return scheduler


def _later(make: Callable[[Any], Awaitable[None]]) -> Callable[[Any], Awaitable[None]]:
    async def later(queued: Any) -> None:
        await asyncio.sleep(CYCLE_SECONDS)
        await make(queued)

    return later


class BackoffAlone(Backoff):
    """A backoff in which pods that have waited for five minutes let no others go first, as in kube-scheduler."""

    def last_window(self, queued: QueuedPod) -> float:
        queued.yields_until = -math.inf
        return super().last_window(queued)


def play(script: Script, release: Release = DEFAULT) -> Outcome:
    """Play a script by the rules of a release."""
    loop = VirtualLoop()
    try:
        return loop.run_until_complete(_play(script, loop, release))
    finally:
        loop.close()


async def _play(script: Script, loop: VirtualLoop, release: Release) -> Outcome:
    cluster = FakeCluster(loop.time)
    record = Record(loop.time, cluster.decoded_pod)
    plugins: list[Any] = []

    def registered(one: Mapping[str, Any], _args: Any, given: Any) -> Any:
        plugin = make(one, record, given, release)
        plugins.append(plugin)
        return plugin

    registry = PluginRegistry()
    for one in script["plugins"]:
        registry.register(one["name"], partial(registered, one))
    gates = script.get("gates", {})
    if gates.get("GenericWorkload"):
        aware, shares = (gates.get(name, False) for name in (TOPOLOGY, CLAIMS))
        release = replace(release, generic_workload=True, topology_aware=aware, workload_claims=shares)
    profiles = configured_profiles(script["config"], registry, release=release)
    columns = Cluster(release=release)
    scheduler = slow(Scheduler(profiles, cluster, VirtualClock(loop), random.Random(0), cluster=columns))
    scheduler.queue.use_backoff(BackoffAlone())
    cluster.take, cluster.drop = scheduler.take, scheduler.drop
    running = asyncio.create_task(scheduler.run())
    for step in script["steps"]:
        await asyncio.sleep(step["at"] - loop.time())
        _happen(step, cluster, plugins)
    await asyncio.sleep(script["until"] - loop.time())
    outcome = {
        "calls": record.calls, "events": cluster.events, "writes": cluster.writes, "pods": cluster.lines(),
        "groups": cluster.group_lines(), "claims": cluster.claim_lines(),
    }  # fmt: skip
    running.cancel()
    with contextlib.suppress(asyncio.CancelledError):
        await running
    return outcome


def _happen(step: Mapping[str, Any], cluster: FakeCluster, plugins: list[Any]) -> None:
    if "set" in step:
        cluster.set(step["set"])
    elif "remove" in step:
        cluster.remove(step["remove"]["kind"], step["remove"]["name"])
    else:
        next(one for one in plugins if isinstance(one, Recorder)).do(step["do"])
