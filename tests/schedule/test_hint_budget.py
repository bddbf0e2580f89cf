from __future__ import annotations

import pytest
from msgspec.structs import replace

from policysched.framework import Action, Change, Cluster, Hint, Resource
from policysched.model.objects import Pod
from policysched.schedule.queue import hints
from policysched.schedule.queue.hints import LARGEST, MOST, SHARE
from policysched.schedule.queue.queue import Queue
from policysched.schedule.queue.unschedulable import PORTION
from tests.schedule.queue_parts import FIT, SPREAD, StandingClock, interests, pod, popped, queue

PLACED = Change(Resource.ASSIGNED_POD, Action.ADD, None, pod("placed"))
LARGE = {f"label-{number}": "v" * 60 for number in range(LARGEST // 64)}


class Slow:
    """A hint that never says yes, and takes its time."""

    def __init__(self, clock: StandingClock, seconds: float) -> None:
        self._clock, self._seconds = clock, seconds
        self.asked: list[str] = []

    def __call__(self, of: Pod, *_: Change | Cluster) -> bool:
        self.asked.append(of.metadata.name)
        self._clock.at += self._seconds
        return False


def _waiting(clock: StandingClock, hint: Slow, count: int, **labels: str) -> Queue:
    made = queue(clock, interests(Fit=(Hint(Resource.ASSIGNED_POD, Action.ADD, hint),), Spread=()))
    for number in range(count):
        made.reject(popped(made, f"p{number}", **labels), FIT | SPREAD)
    return made


def test_hints_take_no_more_than_a_share_of_the_time() -> None:
    clock = StandingClock()
    hint = Slow(clock, MOST / 10)
    tested = _waiting(clock, hint, 100)
    assert tested.move(PLACED) == pytest.approx(90, abs=1)
    before = len(hint.asked)
    assert before == pytest.approx(10, abs=1)
    assert tested.move(PLACED) == before
    assert len(hint.asked) == before


def test_hints_are_asked_again_when_time_has_passed() -> None:
    clock = StandingClock()
    hint = Slow(clock, MOST)
    tested = _waiting(clock, hint, 3)
    tested.move(PLACED)
    assert len(hint.asked) == 1
    clock.at += 2 * MOST / SHARE
    tested.move(PLACED)
    assert len(hint.asked) == 2


def test_pod_that_states_very_much_is_tried_again_without_asking() -> None:
    clock = StandingClock()
    hint = Slow(clock, 0)
    tested = _waiting(clock, hint, 1, **LARGE)
    assert tested.move(Change(Resource.NODE, Action.ADD)) == 0
    assert tested.move(PLACED) == 1
    assert hint.asked == []


def test_change_of_a_pod_that_states_very_much_helps_without_asking() -> None:
    clock = StandingClock()
    hint = Slow(clock, 0)
    tested = _waiting(clock, hint, 2)
    assert tested.move(Change(Resource.ASSIGNED_POD, Action.ADD, None, pod("placed", 0, gates=(), **LARGE))) == 2
    assert hint.asked == []


@pytest.mark.parametrize("large", [False, True])
def test_change_meanwhile_is_asked_about_only_for_pods_that_state_little(large: bool) -> None:
    clock = StandingClock()
    hint = Slow(clock, 0)
    tested = _waiting(clock, hint, 0)
    queued = popped(tested, "p", **(LARGE if large else {}))
    tested.move(PLACED)
    tested.reject(queued, FIT)
    assert tested.counts().backoff == large
    assert hint.asked == ([] if large else ["p"])


def test_pod_is_measured_anew_when_it_changes() -> None:
    clock = StandingClock()
    hint = Slow(clock, 0)
    tested = _waiting(clock, hint, 1)
    tested.move(PLACED)
    assert hint.asked == ["p0"]
    old = pod("p0")
    tested.update(replace(old, metadata=replace(old.metadata, labels=LARGE)))
    assert tested.move(PLACED) == 1
    assert hint.asked == ["p0"]


def test_change_is_measured_once_and_only_while_there_is_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Megabytes of a pod that changed, for each hundred pods that wait, or for each attempt under way."""
    clock, measured = StandingClock(), list[str]()

    def measuring(one: Pod) -> int:
        measured.append(one.metadata.name)
        return 0

    tested = _waiting(clock, Slow(clock, 0), 3 * PORTION)
    monkeypatch.setattr(hints, "_size", measuring)
    tested.move(PLACED)
    while len(tested._moves):
        tested.pop()
    assert measured.count("placed") == 1
    assert len(measured) == 1 + 3 * PORTION
    late = _waiting(clock, Slow(clock, MOST), 2)
    late.move(PLACED)
    measured.clear()
    late.move(Change(Resource.ASSIGNED_POD, Action.ADD, None, pod("next")))
    assert measured == []
