"""Pods with expensive attempts complete their backoff, which leaves time for other pods and bindings."""

from __future__ import annotations

import random
from typing import Any

import pytest
from msgspec.structs import replace

from policysched.app.configuration.profiles import default_profile
from policysched.schedule.attempts import COSTLY
from policysched.schedule.queue.queue import Queue
from policysched.schedule.queue.queued_pod import QueuedPod, Stage
from policysched.schedule.scheduler import Scheduler
from tests.build import node
from tests.build import pod as full_pod
from tests.schedule.parts import FakeClient
from tests.schedule.queue_parts import FIT, NODE_ADDED, StandingClock, drain, pod, popped, queue


def tried(of: Queue, name: str, *, pending: bool = False) -> QueuedPod:
    """Make an expensive attempt fail; if `pending`, the pod waits for a node."""
    queued = popped(of, name)
    queued.completes_backoff = True
    assert of.reject(queued, FIT, FIT if pending else frozenset())
    return queued


@pytest.mark.parametrize("pending", [False, True])
def test_a_pod_stays_in_backoff_also_while_nothing_else_is_ready(pending: bool) -> None:
    clock = StandingClock(1000.0)
    tested = queue(clock)
    queued = tried(tested, "a", pending=pending)
    tested.move(NODE_ADDED)
    assert queued.stage is Stage.BACKOFF
    assert tested.pop() is None
    assert tested.next_wake() == 1002
    clock.at = 1001.9
    assert drain(tested) == []
    clock.at = 1002.0
    assert drain(tested) == ["a"]


def test_other_pods_come_while_costly_ones_wait() -> None:
    tested = queue(StandingClock(1000.0))
    tried(tested, "a")
    tested.move(NODE_ADDED)
    tested.add(pod("b"))
    assert drain(tested) == ["b"]


async def made(seconds: float) -> QueuedPod:
    """Make a failed attempt whose cycle takes some time."""
    clock = StandingClock()
    profiles = {"default-scheduler": default_profile("default-scheduler")}
    scheduler = Scheduler(profiles, FakeClient(), clock, random.Random(0))
    engine = scheduler._engines["default-scheduler"]
    decide = engine.decide

    def slow(*given: Any) -> object:
        clock.at += seconds
        return decide(*given)

    engine.decide = slow  # type: ignore[assignment]
    scheduler.take(node("n1"))
    big = full_pod("big", requests={"cpu": 5})
    scheduler.take(replace(big, spec=replace(big.spec, priority=10)))
    queued = scheduler.queue.pop()
    assert queued is not None
    await scheduler.attempts.make(queued)
    return queued


@pytest.mark.parametrize("seconds", [0.0, 0.9 * COSTLY, 1.1 * COSTLY])
async def test_the_time_of_a_cycle_decides(seconds: float) -> None:
    assert (await made(seconds)).completes_backoff == (seconds >= COSTLY)
