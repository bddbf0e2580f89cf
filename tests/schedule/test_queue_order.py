from __future__ import annotations

import random

import pytest

from policysched.schedule.queue.queue import SWEEP
from policysched.schedule.queue.queued_pod import QueuedPod, Stage
from policysched.schedule.queue.subqueues import Backoff, PodHeap
from tests.schedule.queue_parts import FIT, NODE_ADDED, StandingClock, drain, pod, popped, queue


def test_queue_pops_by_priority_then_by_arrival() -> None:
    clock = StandingClock()
    tested = queue(clock)
    for name, priority in (("a", 0), ("b", 5), ("c", 0), ("d", 5)):
        clock.at += 0.01
        tested.add(pod(name, priority))
    assert drain(tested) == ["b", "d", "a", "c"]
    assert tested.counts() == (0, 0, 0, 0)


def test_queue_forgets_what_is_done() -> None:
    tested = queue(StandingClock())
    queued = popped(tested)
    assert queued.attempts == 1
    assert queued.stage is Stage.IN_FLIGHT
    assert tested.get("uid-a") is queued
    tested.done(queued)
    tested.done(queued)
    assert tested.get("uid-a") is None
    assert tested.in_flight == (0, 0)


@pytest.mark.parametrize(("count", "seconds"), [(0, 0), (1, 1), (2, 2), (3, 4), (4, 8), (5, 10), (6, 10), (5000, 10)])
def test_backoff_doubles_up_to_its_maximum(count: int, seconds: float) -> None:
    assert Backoff().duration(count) == seconds


def test_backoff_counts_consecutive_errors_before_rejections() -> None:
    queued = QueuedPod(pod("a"), "a", 100.5, unschedulable_count=4, consecutive_errors=1)
    assert Backoff().last_window(queued) == 101
    assert Backoff(maximum=0).last_window(queued) == float("-inf")


def test_queue_holds_failed_pods_until_their_window_has_passed() -> None:
    clock = StandingClock(1000.25)
    tested = queue(clock)
    queued = popped(tested)
    assert tested.fail(queued)
    assert tested.counts() == (0, 1, 0, 0)
    assert tested.pop() is None
    # 1000.25 + 1 is in the window of second 1001, which ends at 1002
    assert tested.next_wake() == 1002
    clock.at = 1001.99
    assert tested.pop() is None
    clock.at = 1002.0
    assert drain(tested) == ["a"]


def test_queue_lets_errors_wait_longer_each_time_and_a_rejection_ends_the_series() -> None:
    clock = StandingClock(0)
    tested = queue(clock)
    tested.add(pod("a"))
    waits = []
    for _ in range(5):
        popped = tested.pop()
        assert popped is not None
        tested.fail(popped)
        wake = tested.next_wake()
        assert wake is not None
        waits.append(wake - clock.at - 1)
        clock.at = wake
    assert waits == [1, 2, 4, 8, 10]
    popped = tested.pop()
    assert popped is not None
    tested.reject(popped, FIT)
    assert (popped.consecutive_errors, popped.unschedulable_count) == (0, 1)


def test_queue_takes_rejected_pods_from_backoff_when_nothing_is_active() -> None:
    tested = queue(StandingClock())
    entered: list[tuple[str, str, str]] = []
    tested.report_to(lambda queued, into, event: entered.append((queued.pod.metadata.name, into, event)))
    queued = popped(tested)
    tested.reject(queued, FIT)
    assert tested.counts() == (0, 0, 1, 0)
    assert tested.pop() is None
    assert tested.move(NODE_ADDED) == 1
    assert tested.counts() == (0, 1, 0, 0)
    tested.add(pod("b"))
    assert drain(tested) == ["b", "a"]
    assert entered == [
        ("a", "active", "UnschedulablePodAdd"),
        ("a", "unschedulable", "ScheduleAttemptFailure"),
        ("a", "backoff", "NodeAdd"),
        ("b", "active", "UnschedulablePodAdd"),
        ("a", "active", "PopFromBackoffQ"),
    ]


def test_queue_orders_backoff_by_window_then_by_priority() -> None:
    clock = StandingClock(1000.1)
    tested = queue(clock)
    for name, priority in (("low", 0), ("high", 9)):
        tested.add(pod(name, priority))
    for _ in range(2):
        popped = tested.pop()
        assert popped is not None
        clock.at += 0.2
        tested.reject(popped, FIT)
    tested.move(NODE_ADDED)
    assert drain(tested) == ["high", "low"]


def test_queue_makes_pods_ready_once_their_backoff_is_over() -> None:
    clock = StandingClock(1000)
    tested = queue(clock)
    queued = popped(tested)
    tested.reject(queued, FIT)
    clock.at = 1010
    assert tested.move(NODE_ADDED) == 1
    assert tested.counts() == (1, 0, 0, 0)


def test_queue_tries_again_what_has_waited_too_long() -> None:
    clock = StandingClock(0)
    tested = queue(clock)
    queued = popped(tested)
    tested.reject(queued, FIT)
    assert tested.next_wake() == 30
    clock.at = 300
    assert tested.pop() is None
    clock.at = 330
    again = tested.pop()
    assert again is queued
    assert again.flushed
    tested.reject(again, FIT)
    assert not again.flushed


def test_what_has_waited_too_long_is_tried_while_nothing_else_is_ready() -> None:
    clock = StandingClock(0)
    tested = queue(clock)
    for number in range(5):
        tested.reject(popped(tested, f"old-{number}"), FIT)
    clock.at = 330
    tested.flush()
    tested.add(pod("new"))
    assert drain(tested) == ["new", *(f"old-{number}" for number in range(5))]


def test_what_has_waited_too_long_is_ready_like_others_after_another_half_minute() -> None:
    clock = StandingClock(0)
    tested = queue(clock)
    tested.reject(popped(tested, "old"), FIT)
    clock.at = 330
    tested.flush()
    clock.at = 330 + SWEEP + 1
    tested.add(pod("new"))
    assert drain(tested) == ["old", "new"]


def test_pod_in_flight_comes_back_where_others_had_waited_too_long_meanwhile() -> None:
    clock = StandingClock(0)
    tested = queue(clock)
    tested.reject(popped(tested, "waiting"), FIT)
    queued = popped(tested, "in flight")
    clock.at = 330
    tested.flush()
    tested.reject(queued, FIT)
    assert queued.stage is Stage.BACKOFF
    assert tested.counts().unschedulable == 0
    later = popped(tested, "later")
    clock.at += SWEEP
    tested.flush()
    tested.reject(later, FIT)
    assert later.stage is Stage.UNSCHEDULABLE


def test_queue_without_backoff_makes_failed_pods_ready_at_once() -> None:
    tested = queue(StandingClock(), maximum=0.0)
    queued = popped(tested)
    tested.fail(queued)
    assert tested.counts() == (1, 0, 0, 0)


def test_heap_gives_the_smallest_whatever_was_dropped_or_moved() -> None:
    draw = random.Random(7)
    heap = PodHeap()
    model: dict[str, tuple[int, int]] = {}
    for step in range(4000):
        name = f"p{draw.randrange(300)}"
        if draw.random() < 0.55:
            key = (draw.randrange(50), step if name not in model else model[name][1])
            heap.push(key, QueuedPod(pod(name), name, 0.0))
            model[name] = key
        elif draw.random() < 0.5:
            heap.discard(name)
            model.pop(name, None)
        elif model:
            taken = heap.pop()
            assert taken is not None
            assert model.pop(taken.identity) <= min(model.values(), default=(99, 0))
        assert len(heap) == len(model)
    assert {queued.identity for queued in heap} == set(model)
    assert heap.head() is not None
