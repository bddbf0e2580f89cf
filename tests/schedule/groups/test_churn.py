"""Random lives of pod groups on a running scheduler, with nodes that come and go and bindings that fail."""

from __future__ import annotations

import asyncio
import random

import pytest
from msgspec.structs import replace

from policysched.model.objects import Pod, PodGroup, SchedulingGate
from policysched.model.release import Release
from policysched.schedule.observer import AttemptResult, GroupAttempt, Observer
from policysched.schedule.queue.group_queue import GroupQueue
from tests.build import node, pod
from tests.groups import GATED, GATED_38, group, member
from tests.schedule.groups.parts import is_clean
from tests.schedule.parts import refused
from tests.schedule.stand import Stand, running
from tests.schedule.test_group_queue_laws import check

LIVES, STEPS = 12, 150
GROUPS = {"g0": 1, "g1": 2, "g2": 4, "g3": None}
"""The first threshold of each group; None for a basic group."""
GATES = [SchedulingGate(name="wait")]


class Whole(Observer):
    """Notes the groups that are scheduled with too few members, or not scheduled though some members are bound."""

    def __init__(self) -> None:
        self.stand: Stand | None = None
        self.seen: list[AttemptResult] = []
        self.wrong: list[GroupAttempt] = []

    def on_group_attempt(self, attempt: GroupAttempt) -> None:
        self.seen.append(attempt.result)
        groups = None if self.stand is None else self.stand.scheduler.cluster.pod_groups
        state = None if groups is None else groups.get(attempt.queued.key)
        scheduled = 0 if state is None else state.scheduled_count
        needed = attempt.queued.group.min_count if attempt.result is AttemptResult.SCHEDULED else 0
        if scheduled < needed or (attempt.scheduled and not needed):
            self.wrong.append(attempt)


class Churn:
    """The objects of an API server, whose changes a scheduler receives."""

    def __init__(self, stand: Stand, seed: int) -> None:
        self.stand, self.random = stand, random.Random(seed)
        self.pods: dict[str, Pod] = {}
        self.groups: dict[str, PodGroup] = {}
        self.confirmed = 0
        self.count = 0
        self.may_bind = asyncio.Event()
        stand.client.on_bind = self._bind

    async def _bind(self, of: Pod, _: str) -> None:
        await self.may_bind.wait()
        if of.metadata.name not in self.pods:
            raise refused(404)

    async def step(self) -> None:
        often = (self.create, self.create, self.create, self.confirm, self.confirm, self.wait, self.object)
        act = self.random.choice((*often, self.delete, self.lose, self.nodes, self.fail, self.hold, self.ungate))
        act()
        if self.random.random() < 0.8:
            await self.stand.settle()
        self.stand.clock.at += 0.01

    def create(self) -> None:
        for _ in range(self.random.choice((1, 1, 3))):
            self.count += 1
            name = f"p{self.count}"
            requests = {"cpu": self.random.choice((1, 2))}
            if self.random.random() < 0.2:
                self.take(pod(name, requests=requests))
            else:
                gates = GATES if self.random.random() < 0.1 else []
                of = self.random.choice(list(GROUPS))
                self.take(member(name, of, requests=requests, scheduling_gates=gates))

    def take(self, one: Pod) -> None:
        self.pods[one.metadata.name] = one
        self.stand.scheduler.set_pod(one)

    def confirm(self) -> None:
        """Deliver the bound versions of pods."""
        bound = self.stand.client.bound
        for key, name in bound[self.confirmed :]:
            one = self.pods.get(key.removeprefix("default/"))
            if one is not None:
                self.take(replace(one, spec=replace(one.spec, node_name=name)))
        self.confirmed = len(bound)

    def delete(self) -> None:
        for _ in range(self.random.choice((1, 4))):
            if self.pods:
                one = self.pods.pop(self.random.choice(list(self.pods)))
                self.stand.scheduler.remove_pod(one.metadata.uid)

    def ungate(self) -> None:
        for one in [one for one in self.pods.values() if one.spec.scheduling_gates]:
            self.take(replace(one, spec=replace(one.spec, scheduling_gates=[])))

    def object(self) -> None:
        name = self.random.choice(list(GROUPS))
        first = GROUPS[name]
        least = None if first is None else max(1, first + self.random.choice((-1, 0, 0, 1)))
        uid = self.groups[name].metadata.uid if name in self.groups else f"uid-{self.count}"
        self.groups[name] = made = group(name, least, uid=uid)
        self.stand.scheduler.take(made)

    def lose(self) -> None:
        name = self.random.choice(list(GROUPS))
        if name in self.groups:
            self.stand.scheduler.drop(self.groups.pop(name))

    def nodes(self) -> None:
        name = f"n{self.random.randrange(3)}"
        if self.random.random() < 0.3:
            self.stand.scheduler.remove_node(name)
        else:
            self.stand.scheduler.set_node(node(name, allocatable={"cpu": self.random.choice((2, 4))}))

    def fail(self) -> None:
        self.stand.client.errors["bind"] = [refused(409) if self.random.random() < 0.5 else None for _ in range(4)]

    def hold(self) -> None:
        """Let bindings wait, or end their wait."""
        if self.may_bind.is_set() and self.random.random() < 0.5:
            self.may_bind.clear()
        else:
            self.may_bind.set()

    def wait(self) -> None:
        self.stand.clock.at += self.random.choice((0.5, 3, 30))
        self.stand.scheduler._waiter.wake()

    async def finish(self) -> None:
        """Give every group its object and room, and end all that is under way."""
        self.stand.client.errors["bind"] = []
        self.may_bind.set()
        self.ungate()
        for name, first in GROUPS.items():
            self.groups[name] = made = group(name, 1 if first else None, uid=f"last-{name}")
            self.stand.scheduler.take(made)
        for number in range(4):
            self.stand.scheduler.set_node(node(f"n{number}", allocatable={"cpu": 1000, "pods": 1000}))
        for _ in range(8):
            await self.stand.settle()
            self.confirm()
            await self.stand.pass_time(200)


async def lived(seed: int, release: Release) -> Whole:
    """Return the attempts of a random life that ends with room for every pod."""
    whole = Whole()
    async with running(node("n0"), observers=[whole], release=release) as stand:
        whole.stand = stand
        churn = Churn(stand, seed)
        queue, cluster = stand.scheduler.queue, stand.scheduler.cluster
        assert isinstance(queue, GroupQueue)
        for _ in range(STEPS):
            await churn.step()
            check(queue, set())
        await churn.finish()
        waiting = {name for name, one in churn.pods.items() if not one.spec.node_name}
        assert (waiting, dict(queue._pods)) == (set(), {})
        assert {one.pod.metadata.name for one in cluster.pods.by_id.values()} == set(churn.pods)
        assert not any(one.assumed for one in cluster.pods.by_id.values())
        assert not cluster.nominations
        assert is_clean(cluster)
        assert (len(stand.scheduler.attempts.tasks), queue.in_flight) == (0, (0, 0))
    return whole


@pytest.mark.parametrize("release", [GATED, GATED_38], ids=lambda one: one.minor)
async def test_groups_are_placed_whole_and_nothing_is_left_behind(release: Release) -> None:
    lives = [await lived(seed, release) for seed in range(LIVES)]
    assert [life.wrong for life in lives] == [[]] * LIVES
    assert {AttemptResult.SCHEDULED, AttemptResult.UNSCHEDULABLE} <= {one for life in lives for one in life.seen}
