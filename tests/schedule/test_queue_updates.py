from __future__ import annotations

import asyncio

import pytest
from msgspec.structs import replace

from policysched.framework import Action, Hint, Resource
from policysched.framework.plugin import ANY_CHANGE
from policysched.model.objects import Pod
from policysched.schedule.queue.queue import Queue, Waiter
from tests.schedule.queue_parts import (
    FIT,
    NODE_ADDED,
    SPREAD,
    Gates,
    StandingClock,
    drain,
    interests,
    pod,
    popped,
    queue,
)

LABEL = Action.UPDATE_POD_LABEL
PLACES = ["active", "backoff", "errors", "waiting", "gated", "in flight"]


def placed(tested: Queue, place: str) -> None:
    """Bring pod `a` into a state of the queue."""
    tested.add(pod("a", gates=("g",) if place == "gated" else ()))
    if place in ("active", "gated"):
        return
    queued = tested.pop()
    assert queued is not None
    if place == "in flight":
        return
    tested.reject(queued, frozenset() if place == "errors" else FIT)
    if place == "backoff":
        tested.move(NODE_ADDED)


@pytest.mark.parametrize("place", PLACES)
def test_deletion_takes_a_pod_from_everywhere(place: str) -> None:
    tested = queue(StandingClock(), interests(Gates()))
    placed(tested, place)
    queued = tested.get("uid-a")
    assert queued is not None
    assert tested.delete("uid-a")
    assert not tested.delete("uid-a")
    if place == "in flight":
        assert not tested.reject(queued, FIT)
    assert tested.get("uid-a") is None
    assert tested.counts() == (0, 0, 0, 0)
    assert tested.in_flight == (0, 0)
    assert tested.pop() is None


@pytest.mark.parametrize("change", ["update", "renew"])
def test_a_pod_that_came_while_one_of_its_uid_is_in_flight_is_the_one_that_changes(change: str) -> None:
    tested = queue(StandingClock())
    tested.add(pod("a"))
    gone = tested.pop()
    assert gone is not None
    tested.delete(gone.identity)
    tested.add(pod("a"))
    labelled = pod("a")
    labelled = replace(labelled, metadata=replace(labelled.metadata, labels={"new": "1"}))
    getattr(tested, change)(labelled)
    come = tested.get("uid-a")
    assert come is not None
    assert come is not gone
    assert tested.latest(gone).metadata.labels == {}
    assert not tested.reject(gone, FIT)
    assert tested.get("uid-a") is come
    assert come.pod.metadata.labels == ({"new": "1"} if change == "update" else {})


@pytest.mark.parametrize("place", PLACES)
def test_update_that_changes_nothing_keeps_the_place(place: str) -> None:
    clock = StandingClock()
    tested = queue(clock, interests(Gates()))
    placed(tested, place)
    before = tested.counts()
    clock.at += 0.1
    newer = pod("a", gates=("g",) if place == "gated" else ())
    tested.update(newer)
    assert tested.counts() == before
    queued = tested.get("uid-a")
    assert queued is not None
    if place == "in flight":
        assert queued.pod is not newer
        tested.reject(queued, SPREAD)
    assert queued.pod is newer


def test_update_moves_an_active_pod_only_when_its_key_changes() -> None:
    clock = StandingClock()
    tested = queue(clock)
    for name in ("a", "b", "c"):
        tested.add(pod(name))
    tested.update(pod("a", labelled="yes"))
    tested.update(pod("c", priority=3))
    assert drain(tested) == ["c", "a", "b"]


@pytest.mark.parametrize(("rejectors", "moves"), [(SPREAD, True), (FIT, False)])
@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_update_of_a_rejected_pod_asks_the_hints_of_its_rejectors(
    rejectors: frozenset[str], moves: bool, when: str
) -> None:
    tested = queue(StandingClock())
    queued = popped(tested)
    if when == "meanwhile":
        tested.update(pod("a", labelled="yes"))
    tested.reject(queued, rejectors)
    if when == "before":
        tested.update(pod("a", labelled="yes"))
    assert tested.counts() == (0, int(moves), int(not moves), 0)
    assert queued.pod.metadata.labels == {"labelled": "yes"}


def test_update_in_flight_concerns_its_own_pod_only() -> None:
    tested = queue(StandingClock())
    first, second = popped(tested, "a"), popped(tested, "b")
    tested.update(pod("a", labelled="yes"))
    tested.reject(second, SPREAD)
    assert tested.counts() == (0, 0, 1, 0)
    tested.reject(first, SPREAD)
    assert tested.counts() == (0, 1, 1, 0)


def test_update_of_an_unknown_pod_adds_it_and_adding_a_known_one_updates_it() -> None:
    tested = queue(StandingClock())
    tested.update(pod("a"))
    tested.add(pod("a", labelled="yes"))
    assert tested.counts() == (1, 0, 0, 0)
    queued = tested.pop()
    assert queued is not None
    assert queued.pod.metadata.labels == {"labelled": "yes"}


def test_rejecting_a_pod_that_is_not_in_flight_is_an_error() -> None:
    tested = queue(StandingClock())
    queued = popped(tested)
    tested.done(queued)
    with pytest.raises(ValueError, match="pod d/a is not in flight"):
        tested.fail(queued)


def test_pod_of_the_same_identity_replaces_one_in_flight() -> None:
    tested = queue(StandingClock())
    bare = Pod()
    tested.add(bare)
    old = tested.pop()
    assert old is not None
    tested.delete("/")
    tested.add(bare)
    new = tested.pop()
    assert new is not None
    assert new is not old
    assert not tested.fail(old)
    assert tested.fail(new)
    assert tested.counts() == (0, 1, 0, 0)


async def test_waiter_returns_when_a_pod_arrives() -> None:
    clock = StandingClock()
    tested = queue(clock)
    waiter = Waiter(tested, clock)
    waiting = asyncio.create_task(waiter.wait())
    await asyncio.sleep(0)
    assert not waiting.done()
    tested.add(pod("a"))
    await asyncio.wait_for(waiting, 60)
    await asyncio.wait_for(waiter.wait(), 60)
    assert drain(tested) == ["a"]


async def test_waiter_returns_when_time_has_come_or_someone_wakes_it() -> None:
    clock = StandingClock(1001.99)
    tested = queue(clock)
    waiter = Waiter(tested, clock)
    tested.add(pod("a"))
    await waiter.wait()
    queued = tested.pop()
    assert queued is not None
    clock.at = 1000.995
    tested.fail(queued)
    clock.at = 1001.995
    await asyncio.wait_for(waiter.wait(), 60)
    clock.at = 1500.0
    assert drain(tested) == ["a"]
    waiter.wake()
    await asyncio.wait_for(waiter.wait(), 60)


@pytest.mark.parametrize(("hints", "woken"), [(ANY_CHANGE, ["a"]), ((Hint(Resource.PENDING_POD, LABEL),), [])])
def test_update_in_which_nothing_matters_wakes_who_waits_for_any(hints: tuple[Hint, ...], woken: list[str]) -> None:
    tested = queue(StandingClock(), interests(Fit=hints))
    placed(tested, "waiting")
    tested.update(pod("a"))
    assert drain(tested) == woken
