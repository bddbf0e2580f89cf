"""The event loop runs other tasks between two policies and between two portions of waiting pods."""

from __future__ import annotations

import asyncio
import random
from typing import cast

import pytest

from policysched.app.configuration.profiles import default_profile
from policysched.framework import Action, Change, Resource
from policysched.language import load_grammar
from policysched.schedule.queue.queue import Queue
from policysched.schedule.queue.queued_pod import QueuedPod
from policysched.schedule.queue.subqueues import QueueCounts
from policysched.schedule.queue.unschedulable import MOST_MOVES, PORTION, Moves
from policysched.schedule.reload import Reloader
from policysched.schedule.scheduler import Scheduler
from tests.build import node, pod
from tests.rules.build import filtering, policy, policy_set
from tests.schedule.parts import FakeClient
from tests.schedule.queue_parts import StandingClock
from tests.schedule.reloading import running
from tests.work import turns_of_the_loop

pytestmark = pytest.mark.usefixtures("others_apart")
load_grammar()


def stand(clock: StandingClock) -> tuple[Scheduler, Reloader]:
    client = FakeClient()
    scheduler = Scheduler({"me": default_profile("me")}, client, clock, random.Random(0))
    scheduler.set_node(node("n1"))
    return scheduler, Reloader(scheduler, client, clock, "ns/me")


def test_pods_that_a_policy_rejected_are_moved_in_portions() -> None:
    scheduler, _ = stand(StandingClock())
    queue, count = scheduler.queue, 10 * PORTION
    for number in range(count):
        queue.add(pod(f"p{number}", scheduler_name="me"))
    for _ in range(count):
        queued = queue.pop()
        assert queued is not None
        queue.reject(queued, frozenset({"SchedulingPolicy/p"}))
    assert queue.counts().unschedulable == count
    assert scheduler.use_policies(policy_set(), frozenset({"SchedulingPolicy/p"})) == count
    assert queue.counts().unschedulable == count - PORTION
    # what happens to pods meanwhile stays: one is gone, one was rejected anew by somebody else
    gone, other = f"default.p{count - 1}", f"default.p{count - 2}"
    assert queue.delete(gone)
    queue.activate([other])
    assert sorted(popped(queue)) == sorted(f"default.p{number}" for number in range(count - 1))
    assert queue.counts() == QueueCounts(0, 0, 0, 0)


def rejected(count: int, clock: StandingClock | None = None, rejector: str = "NodeResourcesFit") -> Queue:
    """A queue in which so many pods wait for a word of one plugin."""
    scheduler, _ = stand(clock or StandingClock())
    queue = scheduler.queue
    for number in range(count):
        queue.add(pod(f"p{number}", scheduler_name="me", requests={"cpu": "1"}))
    for _ in range(count):
        queued = queue.pop()
        assert queued is not None
        queue.reject(queued, frozenset({rejector}))
    assert queue.counts().unschedulable == count
    return queue


def room(name: str = "big") -> Change:
    return Change(Resource.NODE, Action.ADD, new=node(name, allocatable={"cpu": "900", "pods": "900"}))


def popped(queue: Queue) -> list[str]:
    found = []
    while (queued := queue.pop()) is not None:
        found.append(queued.identity)
        queue.done(queued)
    return found


def test_pods_that_a_change_helps_are_moved_in_portions() -> None:
    count = 10 * PORTION
    queue = rejected(count)
    assert queue.move(room()) == PORTION
    assert queue.counts().unschedulable == count - PORTION
    assert queue.next_wake() is not None
    # what happens to pods meanwhile stays
    gone, other = f"default.p{count - 1}", f"default.p{count - 2}"
    assert queue.delete(gone)
    queue.activate([other])
    first = queue.pop()
    assert first is not None
    assert queue.counts().unschedulable == count - 2 * PORTION - 2
    queue.done(first)
    assert sorted([first.identity, *popped(queue)]) == sorted(f"default.p{number}" for number in range(count - 1))
    assert queue.counts() == QueueCounts(0, 0, 0, 0)
    assert queue.next_wake() is None


def test_a_pod_that_was_tried_again_meanwhile_is_not_moved_by_an_earlier_change() -> None:
    clock = StandingClock()
    queue = rejected(3 * PORTION, clock)
    last = f"default.p{3 * PORTION - 1}"
    queue.move(room())
    queue.activate([last])
    clock.at += 0.001
    tried = queue.pop()
    while tried is not None and tried.identity != last:
        queue.done(tried)
        tried = queue.pop()
    assert tried is not None
    queue.reject(tried, frozenset({"NodeName"}))
    popped(queue)
    assert queue.counts().unschedulable == 1


def test_moves_that_pile_up_are_joined_and_no_pod_is_forgotten() -> None:
    count = 5 * MOST_MOVES
    queue = rejected(count * PORTION)
    for number in range(1, 3 * MOST_MOVES + 1):
        assert queue.move(room(f"n{number}")) == PORTION
        assert queue.counts().unschedulable == (count - number) * PORTION
        assert len(queue._moves) <= MOST_MOVES
    assert len(popped(queue)) == count * PORTION


def test_moves_are_joined_without_a_look_at_each_pod() -> None:
    """Some 100,000 pods may wait, and changes come one after the other."""
    moves, waiting = Moves(len), [cast("QueuedPod", object()) for _ in range(PORTION)]
    for _ in range(MOST_MOVES + 1):
        moves.add(waiting, len, 1.0)
    assert len(moves) == 1
    assert list(moves._moves[0].pods) == waiting


def test_pods_that_waited_too_long_are_tried_again_in_portions() -> None:
    clock = StandingClock()
    queue = rejected(10 * PORTION, clock, "NodeName")
    clock.at += 1000.0
    assert queue.pop() is not None
    assert queue.counts().unschedulable == 8 * PORTION
    popped(queue)
    assert queue.counts().unschedulable == 0


def test_pods_whose_backoff_is_over_become_ready_in_portions() -> None:
    clock = StandingClock()
    queue = rejected(10 * PORTION, clock)
    queue.move(room())
    for _ in range(10):
        queue._in_portions([], len)
        first = queue.pop()
        assert first is not None
        queue.fail(first)
    clock.at += 1000.0
    ready = queue.counts().active
    queue.flush()
    assert queue.counts().active <= ready + PORTION
    assert len(popped(queue)) == 10 * PORTION


async def test_loop_has_its_turn_between_policies_of_the_first_list() -> None:
    _, reloader = stand(StandingClock())
    async with turns_of_the_loop() as turns:
        await reloader.start([policy(f"p{number}", filters=filtering("node.ready")) for number in range(40)])
        assert turns.count >= 40
    assert len(reloader.in_force.plugins) == 40


async def test_loop_has_its_turn_between_policies_that_go_together() -> None:
    listed = [policy(f"p{number}", filters=filtering("node.ready")) for number in range(40)]
    async with running(*listed) as stand, turns_of_the_loop() as turns:
        for one in listed:
            stand.reloader.delete(one.key)
        while stand.in_force:
            await asyncio.sleep(0)
        assert turns.count >= 40
