from __future__ import annotations

import asyncio

import pytest

from policysched.framework import Action, Change, Cluster, CustomResource, Hint, Resource
from policysched.model.objects import Pod
from policysched.schedule.queue.hints import Interests, label
from policysched.schedule.queue.queue import SWEEP
from tests.schedule.queue_parts import (
    FIT,
    NODE_ADDED,
    POD_REMOVED,
    SPREAD,
    Gates,
    StandingClock,
    drain,
    interests,
    pod,
    popped,
    queue,
)
from tests.work import calls


@pytest.mark.parametrize(
    ("rejectors", "change", "moves"),
    [
        (FIT, NODE_ADDED, True),
        (SPREAD, NODE_ADDED, False),
        (FIT | SPREAD, NODE_ADDED, True),
        (FIT, POD_REMOVED, True),
        (FIT, Change(Resource.ASSIGNED_POD, Action.ADD), False),
        (FIT, Change(Resource.NODE, Action.UPDATE_NODE_LABEL), False),
        (FIT, Change(Resource.NODE, Action.NONE), False),
        (frozenset(("Unknown",)), NODE_ADDED, False),
    ],
)
@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_change_moves_pods_whose_rejector_says_so(
    rejectors: frozenset[str], change: Change, moves: bool, when: str
) -> None:
    tested = queue(StandingClock())
    queued = popped(tested)
    if when == "meanwhile":
        tested.move(change)
    tested.reject(queued, rejectors)
    if when == "before":
        assert tested.move(change) == moves
    assert tested.counts() == (0, int(moves), int(not moves), 0)


def test_change_that_nobody_waits_for_asks_no_profile() -> None:
    tested = queue(StandingClock())
    idle = calls(lambda: tested.move(NODE_ADDED))
    queued = popped(tested)
    assert calls(lambda: tested.move(NODE_ADDED)) > 2 * idle
    tested.reject(queued, FIT)
    assert tested.counts() == (0, 1, 0, 0)


def test_hint_decides_for_one_pod_and_change() -> None:
    seen = []

    def helps(of: Pod, change: Change, cluster: Cluster) -> bool:
        seen.append((of.metadata.name, change, isinstance(cluster, Cluster)))
        return of.metadata.name == "b"

    tested = queue(StandingClock(), interests(Fit=(Hint(Resource.NODE, Action.ADD, helps),)))
    first, second = popped(tested, "a"), popped(tested, "b")
    tested.reject(first, FIT)
    tested.reject(second, FIT)
    assert tested.move(NODE_ADDED) == 1
    assert seen == [("a", NODE_ADDED, True), ("b", NODE_ADDED, True)]
    assert drain(tested) == ["b"]


@pytest.mark.parametrize("error", [RuntimeError("a bug"), SystemExit(3), asyncio.CancelledError()])
def test_hint_that_raises_counts_as_help(error: BaseException, caplog: pytest.LogCaptureFixture) -> None:
    def helps(*_: object) -> bool:
        raise error

    tested = queue(StandingClock(), interests(Fit=(Hint(Resource.NODE, Action.ADD, helps),)))
    tested.reject(popped(tested), FIT)
    assert tested.move(NODE_ADDED) == 1
    assert 'queueing hint of plugin "Fit" failed for pod "d/a"' in caplog.text


def test_hint_about_a_custom_resource_is_about_its_objects_alone() -> None:
    foos, bars = CustomResource("foos.v1.example.com"), CustomResource("bars.v1.example.com")
    tested = queue(StandingClock(), interests(Fit=(Hint(foos, Action.ADD),)))
    tested.reject(popped(tested), FIT)
    assert [tested.move(Change(one, Action.ADD)) for one in (bars, CustomResource(foos.value))] == [0, 1]


@pytest.mark.parametrize(("change", "counts"), [(NODE_ADDED, (1, 0, 0, 0)), (POD_REMOVED, (0, 1, 0, 0))])
@pytest.mark.parametrize("when", ["before", "meanwhile"])
def test_pending_plugin_skips_the_backoff(change: Change, counts: tuple[int, ...], when: str) -> None:
    hints = {"Wait": (Hint(Resource.NODE, Action.ADD),), "Fit": (Hint(Resource.ASSIGNED_POD, Action.DELETE),)}
    tested = queue(StandingClock(), interests(**hints))
    queued = popped(tested)
    if when == "meanwhile":
        tested.move(change)
    tested.reject(queued, FIT, frozenset(("Wait",)))
    if when == "before":
        tested.move(change)
    assert tested.counts() == counts


def test_change_costs_only_the_pods_it_concerns() -> None:
    asked = []

    def helps(of: Pod, change: Change, cluster: Cluster) -> bool:
        asked.append(of.metadata.name)
        return False

    hints = {"Fit": (Hint(Resource.NODE, Action.ADD, helps),), "Spread": (Hint(Resource.NODE, Action.DELETE, helps),)}
    tested = queue(StandingClock(), interests(**hints))
    for index in range(10):
        tested.reject(popped(tested, f"p{index}"), FIT if index == 3 else SPREAD)
    tested.move(NODE_ADDED)
    assert asked == ["p3"]


def test_changes_are_kept_only_while_an_attempt_may_have_missed_them() -> None:
    tested = queue(StandingClock())
    tested.move(NODE_ADDED)
    assert tested.in_flight == (0, 0)
    first = popped(tested, "a")
    tested.move(NODE_ADDED)
    second = popped(tested, "b")
    tested.move(POD_REMOVED)
    tested.move(Change(Resource.NODE, Action.UPDATE_NODE_LABEL))
    assert tested.in_flight == (2, 2)
    tested.done(first)
    assert tested.in_flight == (1, 1)
    tested.release(second)
    assert tested.in_flight == (1, 0)
    assert tested.fail(second)
    assert tested.in_flight == (0, 0)


def test_changes_from_before_an_attempt_are_not_replayed_to_it() -> None:
    tested = queue(StandingClock())
    first = popped(tested, "a")
    tested.move(NODE_ADDED)
    second = popped(tested, "b")
    tested.reject(second, FIT)
    assert tested.counts() == (0, 0, 1, 0)
    tested.reject(first, FIT)
    assert tested.counts() == (0, 1, 1, 0)


def test_policy_change_moves_those_it_had_rejected() -> None:
    tested = queue(StandingClock())
    rule = frozenset(("SchedulingPolicy/pin",))
    for name in ("a", "b"):
        tested.reject(popped(tested, name), rule if name == "a" else FIT)
    flying = popped(tested, "c")
    assert tested.move_rejected_by(rule) == 1
    tested.reject(flying, rule)
    assert tested.counts() == (0, 2, 1, 0)
    assert drain(tested) == ["a", "c"]


def test_activate_skips_the_backoff_and_reaches_pods_in_flight() -> None:
    tested = queue(StandingClock())
    waiting, backing_off, flying = popped(tested, "a"), popped(tested, "b"), popped(tested, "c")
    tested.reject(waiting, FIT)
    tested.fail(backing_off)
    tested.activate(["uid-a", "uid-b", "uid-c", "uid-unknown"])
    assert tested.counts() == (2, 0, 0, 0)
    tested.reject(flying, FIT)
    assert tested.counts() == (2, 1, 0, 0)


def test_gated_pods_wait_for_their_gate_alone() -> None:
    gates = Gates()
    tested = queue(StandingClock(), interests(gates, Fit=(Hint(Resource.NODE, Action.ADD),)))
    tested.add(pod("a", gates=("g",)))
    assert tested.counts() == (0, 0, 0, 1)
    assert tested.move(NODE_ADDED) == 0
    assert gates.asked == 1
    tested.update(pod("a", gates=()))
    assert tested.counts() == (1, 0, 0, 0)
    assert gates.asked == 2


def test_gates_are_asked_again_each_time_that_a_pod_has_waited_too_long() -> None:
    gates, clock = Gates(), StandingClock(0)
    tested = queue(clock, interests(gates))
    entered: list[tuple[str, str]] = []
    tested.report_to(lambda _, into, event: entered.append((into, event)))
    tested.add(pod("a", gates=("g",)))
    queued = tested.get("uid-a")
    assert queued is not None
    assert tested.next_wake() == SWEEP
    asked = []
    for clock.at in (300, 330, 360, 600, 660):
        tested.flush()
        asked.append(gates.asked)
    assert asked == [1, 2, 2, 2, 3]
    assert entered == [("gated", "UnschedulablePodAdd"), *[("gated", "UnschedulableTimeout")] * 2]
    assert tested.counts() == (0, 0, 0, 1)
    assert not queued.flushed
    gates.blocks, clock.at = False, 990
    assert tested.pop() is queued
    assert queued.flushed


def test_change_of_taints_wakes_all_that_wait_for_nodes_where_a_release_says_so() -> None:
    taints = Change(Resource.NODE, Action.UPDATE_NODE_TAINT)
    hints = {
        "Fit": (Hint(Resource.NODE, Action.ADD, lambda *_: False),),
        "Taints": (Hint(Resource.NODE, Action.ADD | Action.UPDATE_NODE_TAINT, lambda *_: False),),
        "Spread": (Hint(Resource.ASSIGNED_POD, Action.ADD),),
    }
    for wakes_all, woken in ((False, {}), (True, {"Fit": 1})):
        profiles = {"p": Interests((), hints, taint_updates_wake_all=wakes_all)}
        for plugin in hints:
            tested = queue(StandingClock(), profiles)
            tested.reject(popped(tested), frozenset((plugin,)))
            assert tested.move(taints) == woken.get(plugin, 0)


def test_gate_that_closes_later_keeps_a_rejected_pod_out() -> None:
    gates = Gates()
    tested = queue(StandingClock(), interests(gates, Fit=(Hint(Resource.NODE, Action.ADD),)))
    queued = popped(tested)
    tested.update(pod("a", gates=("g",)))
    tested.reject(queued, FIT)
    assert tested.counts() == (0, 0, 1, 0)
    assert tested.move(NODE_ADDED) == 0
    assert tested.counts() == (0, 0, 0, 1)
    assert queued.gated_by == "SchedulingGates"
    assert queued.rejectors == FIT | {"SchedulingGates"}


def test_gate_that_raises_keeps_the_pod_out(caplog: pytest.LogCaptureFixture) -> None:
    class Broken(Gates):
        def pre_enqueue(self, pod: Pod, cluster: Cluster) -> None:  # noqa: ARG002 - as above
            raise RuntimeError(pod.key)

    tested = queue(StandingClock(), interests(Broken()))
    tested.add(pod("a"))
    assert tested.counts() == (0, 0, 0, 1)
    assert "the pod stays gated" in caplog.text


def test_last_gate_is_asked_first() -> None:
    first, second = Gates(), Gates()
    first.name, first.blocks = "Other", False
    tested = queue(StandingClock(), interests(first, second, Fit=()))
    tested.add(pod("a", gates=("g",)))
    queued = tested.get("uid-a")
    assert queued is not None
    assert queued.gated_by == "SchedulingGates"
    tested.activate(["uid-a"])
    assert (first.asked, second.asked) == (1, 2)
    tested.update(pod("a"))
    assert (first.asked, second.asked) == (2, 3)
    assert tested.counts() == (1, 0, 0, 0)


@pytest.mark.parametrize(
    ("change", "name"),
    [
        (NODE_ADDED, "NodeAdd"),
        (POD_REMOVED, "AssignedPodDelete"),
        (Change(Resource.NODE, Action.UPDATE_NODE_LABEL), "NodeUpdateNodeLabel"),
        (Change(Resource.NODE, Action.UPDATE_NODE_LABEL | Action.UPDATE_NODE_TAINT), "NodeUpdate"),
        (Change(Resource.PENDING_POD, Action.UPDATE_OTHER), "UnschedulablePodUpdate"),
    ],
)
def test_label_names_the_change(change: Change, name: str) -> None:
    assert label(change) == name
