"""The event loop runs other tasks between two policies, and between two chunks of waiting pods."""

from __future__ import annotations

import asyncio
import random

import pytest

from policysched.app.configuration.profiles import default_profile
from policysched.framework import Action, Change, Resource
from policysched.language import load_grammar
from policysched.schedule.queue.moves import CHUNK, MOST_MOVES
from policysched.schedule.queue.queue import Queue, Waiter
from policysched.schedule.queue.subqueues import QueueCounts
from policysched.schedule.reload import Reloader
from policysched.schedule.scheduler import Scheduler
from tests.build import node, pod
from tests.rules.build import filtering, policy, policy_set
from tests.schedule.parts import FakeClient
from tests.schedule.queue_parts import StandingClock, TickingClock
from tests.schedule.reloading import running
from tests.turns import turns_of_the_loop

pytestmark = pytest.mark.usefixtures("others_apart")
load_grammar()
TICK = CHUNK / 100
MANY = 1000
"""Number of pods, enough for several chunks."""


def stand(clock: StandingClock) -> tuple[Scheduler, Reloader]:
    client = FakeClient()
    scheduler = Scheduler({"me": default_profile("me")}, client, clock, random.Random(0))
    scheduler.set_node(node("n1"))
    return scheduler, Reloader(scheduler, client, clock, "ns/me")


def test_pods_that_a_policy_rejected_are_moved_in_chunks() -> None:
    clock = TickingClock()
    scheduler, _ = stand(clock)
    queue = scheduler.queue
    for number in range(MANY):
        queue.add(pod(f"p{number}", scheduler_name="me"))
    for _ in range(MANY):
        queued = queue.pop()
        assert queued is not None
        queue.reject(queued, frozenset({"SchedulingPolicy/p"}))
    assert queue.counts().unschedulable == MANY
    clock.tick = TICK
    assert scheduler.use_policies(policy_set(), frozenset({"SchedulingPolicy/p"})) == MANY
    assert MANY // 2 < queue.counts().unschedulable < MANY
    # changes between chunks persist: one pod is deleted, one was rejected again
    gone, other = f"default.p{MANY - 1}", f"default.p{MANY - 2}"
    assert queue.delete(gone)
    queue.activate([other])
    assert sorted(popped(queue)) == sorted(f"default.p{number}" for number in range(MANY - 1))
    assert queue.counts() == QueueCounts(0, 0, 0, 0)


def rejected(count: int, clock: TickingClock | None = None, rejector: str = "NodeResourcesFit") -> Queue:
    """Return a queue in which this number of pods wait for one plugin, and whose clock advances when read."""
    clock = clock or TickingClock()
    scheduler, _ = stand(clock)
    queue = scheduler.queue
    for number in range(count):
        queue.add(pod(f"p{number}", scheduler_name="me", requests={"cpu": "1"}))
    for _ in range(count):
        queued = queue.pop()
        assert queued is not None
        queue.reject(queued, frozenset({rejector}))
    assert queue.counts().unschedulable == count
    clock.tick = TICK
    return queue


def room(name: str = "big") -> Change:
    return Change(Resource.NODE, Action.ADD, new=node(name, allocatable={"cpu": "900", "pods": "900"}))


def popped(queue: Queue) -> list[str]:
    found = []
    while (queued := queue.pop()) is not None:
        found.append(queued.identity)
        queue.done(queued)
    return found


def test_pods_that_a_change_helps_are_moved_in_chunks() -> None:
    queue = rejected(MANY)
    moved = queue.move(room())
    assert 0 < moved < MANY // 2
    assert queue.counts().unschedulable == MANY - moved
    assert queue.next_wake() is not None
    # changes between chunks persist
    gone, other = f"default.p{MANY - 1}", f"default.p{MANY - 2}"
    assert queue.delete(gone)
    queue.activate([other])
    first = queue.pop()
    assert first is not None
    assert MANY // 2 < queue.counts().unschedulable < MANY - moved - 2
    queue.done(first)
    assert sorted([first.identity, *popped(queue)]) == sorted(f"default.p{number}" for number in range(MANY - 1))
    assert queue.counts() == QueueCounts(0, 0, 0, 0)
    assert queue.next_wake() is None


def test_a_pod_that_was_tried_again_meanwhile_is_not_moved_by_an_earlier_change() -> None:
    queue = rejected(MANY)
    last = f"default.p{MANY - 1}"
    queue.move(room())
    queue.activate([last])
    tried = queue.pop()
    while tried is not None and tried.identity != last:
        queue.done(tried)
        tried = queue.pop()
    assert tried is not None
    queue.reject(tried, frozenset({"NodeName"}))
    popped(queue)
    assert queue.counts().unschedulable == 1


def test_moves_that_pile_up_are_joined_and_no_pod_is_forgotten() -> None:
    queue, before = rejected(3 * MANY), 3 * MANY
    for number in range(3 * MOST_MOVES):
        moved = queue.move(room(f"n{number}"))
        assert 0 < moved < MANY // 2
        before -= moved
        assert queue.counts().unschedulable == before
        assert len(queue._moves) <= MOST_MOVES
    assert len(popped(queue)) == 3 * MANY


def test_pods_that_waited_too_long_are_tried_again_in_chunks() -> None:
    clock = TickingClock()
    queue = rejected(MANY, clock, "NodeName")
    clock.at += 1000.0
    assert queue.pop() is not None
    assert MANY // 2 < queue.counts().unschedulable < MANY
    popped(queue)
    assert queue.counts().unschedulable == 0


def test_pods_whose_backoff_is_over_become_ready_in_chunks() -> None:
    clock = TickingClock()
    queue = rejected(MANY, clock)
    clock.tick = 0.0
    queue.move(room())
    for _ in range(MANY):
        queued = queue.pop()
        assert queued is not None
        queue.fail(queued)
    assert queue.counts().backoff == MANY
    clock.at += 1000.0
    clock.tick = TICK
    queue.flush()
    assert 0 < queue.counts().active < MANY // 2
    assert len(popped(queue)) == MANY


async def test_the_loop_has_its_turn_between_chunks_while_no_pod_is_ready() -> None:
    clock = TickingClock()
    queue = rejected(MANY, clock)
    waiter = Waiter(queue, clock)
    queue._moves.run(list(queue._queues.waiting), lambda _: False)
    async with turns_of_the_loop() as turns:
        chunks = 0
        while queue.pop() is None and len(queue._moves):
            await waiter.wait()
            chunks += 1
        assert turns.count >= chunks > 1


async def test_loop_has_its_turn_between_policies_of_the_first_list() -> None:
    _, reloader = stand(StandingClock())
    async with turns_of_the_loop() as turns:
        await reloader.start([policy(f"p{number}", filters=filtering("node.ready")) for number in range(40)])
        assert turns.count >= 40
    assert len(reloader.in_force.active) == 40


async def test_loop_has_its_turn_between_policies_that_go_together() -> None:
    listed = [policy(f"p{number}", filters=filtering("node.ready")) for number in range(40)]
    async with running(*listed) as stand, turns_of_the_loop() as turns:
        for one in listed:
            stand.reloader.delete(one.key)
        while stand.in_force:
            await asyncio.sleep(0)
        assert turns.count >= 40
