"""What holds in any life of pod groups: gangs are placed as a whole or not at all, and nothing is kept for ever."""

from __future__ import annotations

import asyncio
import random
from dataclasses import replace as replace_field
from typing import Any

import pytest
from msgspec.structs import replace

from policysched.app.configuration.profiles import default_profile
from policysched.framework import Cluster
from policysched.model.objects import Pod
from policysched.model.release import Release
from policysched.schedule.observer import AttemptResult, GroupAttempt, Observer
from policysched.state.placed.pods import pod_id
from tests.build import node, pod
from tests.groups import GATED, GATED_38, group, member
from tests.schedule.groups.parts import is_clean
from tests.schedule.parts import refused
from tests.schedule.stand import ME, Stand, running
from tests.schedule.test_with_extenders import FakeExtender

STEPS = 60
NODES, GROUPS = 5, 4


class Wholeness(Observer):
    """Checks after each attempt of a group that enough members have a node, or none of the attempt."""

    def __init__(self) -> None:
        self.cluster: Cluster | None = None
        self.results: set[AttemptResult] = set()
        self.faults: list[GroupAttempt] = []

    def on_group_attempt(self, attempt: GroupAttempt) -> None:
        self.results.add(attempt.result)
        if not self._is_whole(attempt):
            self.faults.append(attempt)

    def _is_whole(self, attempt: GroupAttempt) -> bool:
        cluster = self.cluster
        assert cluster is not None
        if attempt.result is not AttemptResult.SCHEDULED:
            return not any(one.identity in cluster.pods.by_id for one in attempt.queued.members)
        state = None if cluster.pod_groups is None else cluster.pod_groups.get(attempt.queued.key)
        assert state is not None
        return attempt.scheduled > 0 and state.scheduled_count >= attempt.queued.group.min_count


class Life:
    """Random events of groups, members, other pods and nodes; the API server refuses some bindings."""

    def __init__(self, stand: Stand, seed: int) -> None:
        self.stand, self.scheduler, self.rng = stand, stand.scheduler, random.Random(seed)
        self.pods: dict[str, Pod] = {}
        self.groups: dict[str, Any] = {}
        self._serial = 0
        stand.client.on_bind = self._bind

    async def _bind(self, of: Pod, name: str) -> None:
        if self.rng.random() < 0.1:
            raise refused(500)
        if of.metadata.name in self.pods:
            bound = replace(of, spec=replace(of.spec, node_name=name))
            self.pods[of.metadata.name] = bound
            self.scheduler.set_pod(bound)

    async def step(self) -> None:
        """Let something happen."""
        happens = self.rng.choice(
            (self.add_pod, self.add_pod, self.add_pod, self.remove_pod, self.set_group, self.remove_group,
             self.set_node, self.remove_node, self.pass_time)
        )  # fmt: skip
        for _ in range(self.rng.choice((1, 1, 3))):
            await happens()
        if self.rng.random() < 0.7:
            await self.stand.settle()

    async def add_pod(self) -> None:
        self._serial += 1
        name, requests = f"p{self._serial}", {"cpu": self.rng.choice((0.5, 1, 2))}
        of = f"g{self.rng.randrange(GROUPS)}"
        made = pod(name, requests=requests) if self.rng.random() < 0.2 else member(name, of, requests=requests)
        self.pods[name] = made
        self.scheduler.take(made)

    async def remove_pod(self) -> None:
        if self.pods:
            self.scheduler.drop(self.pods.pop(self.rng.choice(sorted(self.pods))))

    async def set_group(self) -> None:
        name = f"g{self.rng.randrange(GROUPS)}"
        uid = self.groups[name].metadata.uid if name in self.groups else f"{name}-{self.rng.random()}"
        self.groups[name] = group(name, self.rng.choice((None, 1, 2, 3, 5)), uid=uid)
        self.scheduler.take(self.groups[name])

    async def remove_group(self) -> None:
        if self.groups and self.rng.random() < 0.1:
            self.scheduler.drop(self.groups.pop(self.rng.choice(sorted(self.groups))))

    async def set_node(self) -> None:
        self.scheduler.take(node(f"n{self.rng.randrange(NODES)}", allocatable={"cpu": self.rng.choice((1, 3, 4))}))

    async def remove_node(self) -> None:
        name = f"n{self.rng.randrange(NODES)}"
        if self.rng.random() < 0.3 and name in self.scheduler.cluster.nodes.row_of:
            self.scheduler.remove_node(name)

    async def pass_time(self) -> None:
        await self.stand.pass_time(self.rng.choice((1, 5, 20)))

    async def end(self) -> None:
        """Delete all pods."""
        for one in self.pods.values():
            self.scheduler.drop(one)
        self.pods.clear()
        for _ in range(10):
            await self.stand.settle()


def slow_extender(seed: int) -> FakeExtender:
    """An extender that takes a few turns of the event loop, in which events are applied."""
    rng = random.Random(seed)

    async def hold() -> None:
        for _ in range(rng.randrange(12)):
            await asyncio.sleep(0)

    return FakeExtender(hold=hold)


@pytest.mark.parametrize("extended", [False, True], ids=["alone", "with an extender"])
@pytest.mark.parametrize("release", [GATED, GATED_38], ids=["1.37", "1.38"])
@pytest.mark.parametrize("seed", range(8))
async def test_groups_are_placed_as_a_whole_and_leave_nothing(release: Release, seed: int, *, extended: bool) -> None:
    wholeness, of = Wholeness(), default_profile(ME, release=release)
    if extended:
        of = replace_field(of, extenders=(slow_extender(seed),))
    async with running(node("n0"), node("n1"), of=of, release=release, observers=[wholeness]) as stand:
        wholeness.cluster = cluster = stand.scheduler.cluster
        life = Life(stand, seed)
        for _ in range(GROUPS):
            await life.set_group()
        for _ in range(STEPS):
            await life.step()
            assert is_clean(cluster)
        await stand.pass_time(100)
        assert not wholeness.faults
        held = {one.identity for one in stand.scheduler.queue._pods.values()} | set(cluster.pods.by_id)
        assert {pod_id(one) for one in life.pods.values()} <= held
        await life.end()
        assert not cluster.pods.by_id
        assert is_clean(cluster)
        assert not len(cluster.nominations)
        assert sum(stand.scheduler.queue.counts()) == 0
        assert stand.scheduler.queue.in_flight == (0, 0)
        assert {AttemptResult.SCHEDULED, AttemptResult.UNSCHEDULABLE} <= wholeness.results
