"""The wait for the queue: ended by a pod or by time, and without missed wake-ups."""

from __future__ import annotations

import asyncio

import pytest

from policysched.schedule.queue.queue import Waiter
from tests.schedule.queue_parts import FIT, StandingClock, pod, queue


def with_a_rejected_pod() -> Waiter:
    clock = StandingClock()
    pods = queue(clock)
    pods.add(pod("a"))
    queued = pods.pop()
    assert queued is not None
    pods.reject(queued, FIT)
    return Waiter(pods, clock)


@pytest.mark.parametrize("turns", range(5))
async def test_cancellation_is_obeyed_although_the_wait_has_just_ended(turns: int) -> None:
    waiter, cancelled = with_a_rejected_pod(), asyncio.Event()

    async def work() -> None:
        try:
            while True:
                await waiter.wait()
        finally:
            cancelled.set()

    task = asyncio.create_task(work())
    for _ in range(5):
        await asyncio.sleep(0)
    waiter.wake()
    for _ in range(turns):
        await asyncio.sleep(0)
    task.cancel()
    await asyncio.wait((task,), timeout=5)
    assert task.cancelled()
    assert cancelled.is_set()


async def test_a_pod_rejected_while_somebody_waits_comes_back_by_time() -> None:
    clock = StandingClock()
    pods = queue(clock)
    waiter = Waiter(pods, clock)
    pods.add(pod("a"))
    await waiter.wait()
    queued = pods.pop()
    assert queued is not None
    waiting = asyncio.create_task(waiter.wait())
    await asyncio.sleep(0)
    assert pods.next_wake() is None
    pods.reject(queued, FIT)
    await asyncio.wait_for(waiting, timeout=5)
    assert pods.next_wake() is not None
