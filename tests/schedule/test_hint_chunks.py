"""Slow queueing hints delay other pods by at most one chunk."""

from __future__ import annotations

from policysched.framework import Action, Change, Cluster, Hint, Resource
from policysched.model.objects import Pod
from policysched.schedule.queue.moves import CHUNK
from policysched.schedule.queue.queue import Queue
from tests.schedule.queue_parts import FIT, SPREAD, StandingClock, interests, pod, popped, queue

PLACED = Change(Resource.ASSIGNED_POD, Action.ADD, None, pod("placed"))


class Slow:
    """A hint that takes time and rejects every change."""

    def __init__(self, clock: StandingClock, seconds: float) -> None:
        self._clock, self._seconds = clock, seconds
        self.asked: list[str] = []

    def __call__(self, of: Pod, *_: Change | Cluster) -> bool:
        self.asked.append(of.metadata.name)
        self._clock.at += self._seconds
        return False


def _waiting(clock: StandingClock, hint: Slow, count: int) -> Queue:
    made = queue(clock, interests(Fit=(Hint(Resource.ASSIGNED_POD, Action.ADD, hint),), Spread=()))
    for number in range(count):
        made.reject(popped(made, f"p{number}"), FIT | SPREAD)
    return made


def test_hints_run_for_one_chunk_before_each_attempt() -> None:
    clock = StandingClock()
    hint = Slow(clock, CHUNK / 4)
    tested = _waiting(clock, hint, 100)
    tested.move(PLACED)
    for attempts in range(1, 5):
        assert len(hint.asked) <= 5 * attempts
        popped(tested, f"other-{attempts}")
    while len(tested._moves):
        tested.pop()
    assert sorted(hint.asked) == sorted(f"p{number}" for number in range(100))


def test_a_hint_that_takes_longer_than_a_chunk_delays_each_attempt_once() -> None:
    clock = StandingClock()
    hint = Slow(clock, 10 * CHUNK)
    tested = _waiting(clock, hint, 3)
    tested.move(PLACED)
    assert len(hint.asked) == 1
    popped(tested, "other")
    assert len(hint.asked) == 2


def test_changes_meanwhile_are_judged_for_one_chunk() -> None:
    clock = StandingClock()
    hint = Slow(clock, CHUNK)
    tested = _waiting(clock, hint, 0)
    queued = popped(tested, "p")
    for _ in range(10):
        tested.move(PLACED)
    tested.reject(queued, FIT)
    assert len(hint.asked) == 1
    assert tested.counts().backoff == 1
