"""Pods that become schedulable at a certain time, each at its own."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import UTC, datetime

import pytest

from policysched.framework import Action, Change, Cluster, Hint, Resource, RetryControl
from policysched.model.objects import Pod
from policysched.schedule.queue.hints import Interests
from policysched.schedule.queue.moves import CHUNK
from policysched.schedule.queue.queue import Queue
from policysched.schedule.queue.timers import LONGEST, MARGIN
from tests.schedule.queue_parts import FIT, StandingClock, pod, popped, queue

EPOCH = datetime(2026, 1, 1, tzinfo=UTC).timestamp()
START = 1000.25


class Timed(RetryControl):
    """A filter that accepts each pod from its own time on."""

    def __init__(self, clock: StandingClock, moments: Mapping[str, float], seconds: float = 0.0) -> None:
        self._clock, self._moments, self._seconds = clock, moments, seconds
        self.asked: list[str] = []

    def retry_at(self, of: Pod, cluster: Cluster) -> float | None:  # noqa: ARG002 - the protocol's signature
        moment = self._moments.get(of.metadata.name)
        return None if moment is None or moment <= self._clock.at else EPOCH + moment

    def helps(self, of: Pod, _: Change, cluster: Cluster) -> bool:
        self.asked.append(of.metadata.name)
        self._clock.at += self._seconds
        return cluster.time.seconds >= EPOCH + self._moments[of.metadata.name]


def waiting(clock: StandingClock, timed: Timed, *names: str) -> Queue:
    hints = (
        Hint(Resource.TIME, Action.UPDATE_OTHER, timed.helps),
        Hint(Resource.PENDING_POD, Action.UPDATE_POD_LABEL, lambda *_: False),
    )
    made = queue(clock, {"p": Interests((), {"Fit": hints}, {"Fit": timed})})
    made._cluster.time.move(EPOCH + clock.at)
    for name in names:
        made.reject(popped(made, name), FIT)
    return made


def advance(tested: Queue, clock: StandingClock, to: float) -> None:
    clock.at = max(clock.at, START + to)
    tested.flush()


def placed(tested: Queue, name: str) -> str:
    found = tested.get(f"uid-{name}")
    assert found is not None
    return found.stage.value


def test_pod_whose_moment_cannot_be_told_is_looked_at_after_a_while(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = StandingClock(START)
    timed = Timed(clock, {"a": START + 20})

    def failing(*_: object) -> float:
        raise RuntimeError("a bug")

    monkeypatch.setattr(timed, "retry_at", failing)
    tested = waiting(clock, timed, "a")
    assert tested.next_wake() == pytest.approx(min(START + LONGEST, tested._next_sweep))
    advance(tested, clock, LONGEST + 1)
    assert (timed.asked, placed(tested, "a")) == (["a"], "active")


def test_decision_is_noted_whatever_a_plugin_raises(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = StandingClock(START)
    timed = Timed(clock, {"a": START + 20})
    tested = waiting(clock, timed)
    taken = popped(tested, "a")

    def failing(*_: object) -> float:
        raise RuntimeError("a bug")

    monkeypatch.setattr(timed, "retry_at", failing)
    tested.note_decision(taken, FIT)
    tested.reject(taken, FIT)
    assert placed(tested, "a") == "unschedulable"


def test_each_pod_is_judged_at_its_own_moment_and_no_other() -> None:
    clock = StandingClock(START)
    timed = Timed(clock, {"a": START + 20, "b": START + 30})
    tested = waiting(clock, timed, "a", "b", "never")
    assert tested.next_wake() == pytest.approx(START + 20 + MARGIN)
    advance(tested, clock, 20)
    assert timed.asked == []
    advance(tested, clock, 20 + 2 * MARGIN)
    assert (timed.asked, placed(tested, "a"), placed(tested, "b")) == (["a"], "active", "unschedulable")
    advance(tested, clock, 30 + 2 * MARGIN)
    assert (timed.asked, placed(tested, "b"), placed(tested, "never")) == (["a", "b"], "active", "unschedulable")


def test_far_moments_are_looked_at_every_minute() -> None:
    clock = StandingClock(START)
    timed = Timed(clock, {"a": START + 100})
    tested = waiting(clock, timed, "a")
    for minute in (1, 2):
        advance(tested, clock, minute * (LONGEST + 2 * MARGIN))
        assert timed.asked == ["a"] * minute
    assert placed(tested, "a") == "active"


def test_a_moment_that_comes_while_a_pod_is_tried_is_not_forgotten() -> None:
    clock = StandingClock(START)
    timed = Timed(clock, {"a": START + 40, "b": START + 20})
    tested = waiting(clock, timed, "a", "b")
    tested.activate(["uid-b", "uid-a"])
    first, second = tested.pop(), tested.pop()
    assert first is not None
    assert second is not None
    advance(tested, clock, 10)
    tested.reject(first, FIT)
    tested.reject(second, FIT)
    advance(tested, clock, 40 + 2 * MARGIN)
    assert sorted(timed.asked) == ["a", "b"]
    assert {placed(tested, "a"), placed(tested, "b")} == {"active"}


def test_pods_of_one_moment_are_judged_in_chunks() -> None:
    clock = StandingClock(START)
    names = [f"p{number}" for number in range(5)]
    timed = Timed(clock, dict.fromkeys(names, START + 20), CHUNK)
    tested = waiting(clock, timed, *names)
    advance(tested, clock, 20 + 2 * MARGIN)
    assert len(timed.asked) == 1
    while tested.pop() is not None:
        pass
    assert sorted(timed.asked) == names


def test_updates_of_a_pod_that_waits_make_no_more_timers() -> None:
    clock = StandingClock(START)
    timed = Timed(clock, {"a": START + 20})
    tested = waiting(clock, timed, "a")
    for number in range(100):
        tested.update(pod("a", number=str(number)))
    assert len(tested._timers._heap) == 1
    assert tested.delete("uid-a")
    assert tested._timers.due == float("inf")
    assert tested._timers._heap == []
