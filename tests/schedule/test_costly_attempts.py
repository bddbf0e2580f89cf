"""Attempts that hold the loop for long: their pods rest, leave most of the time together, and no others wait."""

from __future__ import annotations

import random

import pytest
from msgspec.structs import replace

from policysched.app.clock import SystemClock
from policysched.app.configuration.profiles import default_profile
from policysched.schedule.queue.costly_attempts import COSTLY, LONGEST_REST, SHARE, CostlyAttempts
from policysched.schedule.queue.queue import Queue
from policysched.schedule.queue.queued_pod import QueuedPod, Stage
from policysched.schedule.scheduler import Scheduler
from tests.build import node
from tests.build import pod as full_pod
from tests.schedule.parts import FakeClient
from tests.schedule.queue_parts import FIT, NODE_ADDED, StandingClock, drain, pod, popped, queue

LONG = 10 * COSTLY


def tried(of: Queue, name: str, took: float) -> QueuedPod:
    """Try a pod in vain; it waits for a node then."""
    queued = popped(of, name)
    queued.took = took
    assert of.reject(queued, FIT)
    return queued


def attempts_within(of: Queue, clock: StandingClock, seconds: float, took: float) -> int:
    """Try pods whenever they come, for some time in which a node comes ten times a second; count the attempts."""
    counted, ends = 0, clock.at + seconds
    while clock.at < ends:
        of.move(NODE_ADDED)
        while (queued := of.pop()) is not None:
            counted += 1
            clock.at += took
            queued.took = took
            of.reject(queued, FIT)
        clock.at += 0.1
    return counted


def test_a_pod_rests_after_a_costly_attempt_also_while_nothing_else_is_ready() -> None:
    clock = StandingClock(1000.0)
    tested = queue(clock)
    queued = tried(tested, "a", 3 * SHARE)
    tested.move(NODE_ADDED)
    assert queued.stage is Stage.BACKOFF
    assert tested.pop() is None
    assert tested.next_wake() == 1004
    clock.at = 1003.9
    assert drain(tested) == []
    clock.at = 1004.0
    assert drain(tested) == ["a"]


def test_a_hint_that_skips_the_backoff_skips_no_rest() -> None:
    clock = StandingClock(1000.0)
    tested = queue(clock)
    queued = popped(tested)
    queued.took = 3 * SHARE
    assert tested.reject(queued, FIT, FIT)
    tested.move(NODE_ADDED)
    assert tested.pop() is None
    clock.at = 1004.0
    assert drain(tested) == ["a"]


@pytest.mark.parametrize("took", [0.0, 0.9 * COSTLY])
def test_usual_attempts_wait_for_their_backoff_alone(took: float) -> None:
    tested = queue(StandingClock())
    for name in ("a", "b"):
        assert tried(tested, name, took).rests_until == float("-inf")
    tested.move(NODE_ADDED)
    assert drain(tested) == ["a", "b"]  # out of backoff, because nothing else is ready


def test_one_costly_attempt_rests_no_longer_than_its_backoff() -> None:
    clock = StandingClock(1000.0)
    tested = queue(clock)
    queued = tried(tested, "a", SHARE / 2)
    assert queued.rests_until < clock.at + tested._queues.backoff.duration(1)


@pytest.mark.parametrize("pods", [1, 8, 40])
def test_pods_of_costly_attempts_take_no_more_than_their_share_together(pods: int) -> None:
    clock = StandingClock(1000.0)
    tested = queue(clock)
    for number in range(pods):
        tried(tested, f"p{number}", LONG)
    counted = attempts_within(tested, clock, 200.0, LONG)
    assert counted * LONG < 1.1 * SHARE * 200.0
    if pods > 8:
        assert counted * LONG > 0.8 * SHARE * 200.0  # which they do get


def test_a_rest_ends_after_some_minutes_whatever_others_took() -> None:
    spent = CostlyAttempts()
    rests = [spent.rests_until("a", 1.0, 0.0) for _ in range(1000)]
    assert rests[:2] == [1 / SHARE, 2 / SHARE]
    assert max(rests) == LONGEST_REST


def test_no_pod_rests_for_what_pods_of_another_namespace_took() -> None:
    spent = CostlyAttempts()
    for _ in range(1000):
        spent.rests_until("attacker", 1.0, 0.0)
    assert spent.rests_until("other", COSTLY, 0.0) == pytest.approx(2 * COSTLY / SHARE)
    assert spent.rests_until("third", COSTLY, 0.0) == pytest.approx(3 * COSTLY / SHARE)
    assert spent.rests_until("attacker", COSTLY, LONGEST_REST) == pytest.approx(LONGEST_REST + COSTLY / SHARE)


@pytest.mark.parametrize("namespaces", [1, 3])
def test_namespaces_take_no_more_than_the_share_together(namespaces: int) -> None:
    spent, ends = CostlyAttempts(), dict.fromkeys(map(str, range(namespaces)), 0.0)
    taken = now = 0.0
    while now < 200.0:
        for name, until in ends.items():
            if until <= now:
                taken += LONG
                ends[name] = spent.rests_until(name, LONG, now)
        now += 0.1
    assert taken < 1.2 * SHARE * 200.0 + namespaces * LONG


def test_other_pods_come_while_costly_ones_rest() -> None:
    clock = StandingClock(1000.0)
    tested = queue(clock)
    tried(tested, "a", LONG)
    tested.move(NODE_ADDED)
    tested.add(pod("b"))
    assert drain(tested) == ["b"]


class Running:
    """A scheduler whose cycles take a certain time of the processor."""

    def __init__(self, seconds: float) -> None:
        self.taken, self._seconds = 0.0, seconds
        made = {"default-scheduler": default_profile("default-scheduler")}
        self.scheduler = Scheduler(made, FakeClient(), StandingClock(), random.Random(0), processor=lambda: self.taken)
        engine = self.scheduler._engines["default-scheduler"]
        decide = engine.decide

        def slow(one: object) -> object:
            self.taken += self._seconds
            return decide(one)  # type: ignore[arg-type]

        engine.decide = slow  # type: ignore[assignment]

    async def tried(self, name: str, **details: object) -> QueuedPod:
        self.scheduler.take(full_pod(name, **details))  # type: ignore[arg-type]
        queued = self.scheduler.queue.pop()
        assert queued is not None
        await self.scheduler.attempts.make(queued)
        return queued


async def test_a_cycle_is_measured_by_the_processor() -> None:
    running = Running(LONG)
    running.scheduler.take(node("n1"))
    queued = await running.tried("big", requests={"cpu": 5})
    assert queued.took == pytest.approx(LONG)
    assert queued.rests_until == pytest.approx(1000.25 + LONG / SHARE)


async def test_a_pod_that_makes_room_for_itself_does_not_rest() -> None:
    running = Running(LONG)
    running.scheduler.take(node("n1"))
    running.scheduler.take(full_pod("low", on="n1", requests={"cpu": 4}))
    high = full_pod("high", requests={"cpu": 4})
    running.scheduler.take(replace(high, spec=replace(high.spec, priority=10)))
    queued = running.scheduler.queue.pop()
    assert queued is not None
    await running.scheduler.attempts.make(queued)
    assert running.scheduler.cluster.nominations
    assert queued.rests_until == float("-inf")


def test_the_clock_of_a_process_tells_what_its_thread_took() -> None:
    clock = SystemClock()
    before = clock.processor()
    sum(range(1000))
    assert clock.processor() > before
