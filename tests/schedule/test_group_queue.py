"""Pod groups in the queue: where members wait, in which order groups are tried, and when a group is tried again."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from policysched.framework import Action, Change, Cluster, Resource
from policysched.model.objects import Pod, PodGroup, SchedulingGate
from policysched.plugins.gang_scheduling import GangScheduling
from policysched.plugins.queue_plugins import PrioritySort, SchedulingGates
from policysched.schedule.queue.group_queue import GroupQueue
from policysched.schedule.queue.hints import Interests
from policysched.schedule.queue.queued_pod import QueuedPod, Stage
from policysched.schedule.queue.queued_pod_group import GroupOutcome, QueuedPodGroup
from policysched.schedule.queue.subqueues import Backoff
from tests.build import node, pod
from tests.groups import GATED_38, group, member
from tests.schedule.queue_parts import StandingClock

GANG = frozenset(("GangScheduling",))
FIT = frozenset(("NodeResourcesFit",))
GATE = [SchedulingGate(name="wait")]
SCHEDULED, REJECTED, ERROR = GroupOutcome.SCHEDULED, GroupOutcome.REJECTED, GroupOutcome.ERROR


class Queued:
    """A queue and its cluster, which get objects as the scheduler passes them on."""

    def __init__(self, at: float = 1000.25, **backoff: float) -> None:
        self.clock = StandingClock(at)
        self.cluster = Cluster(release=GATED_38)
        self.cluster.set_node(node("n1"))
        profiles = {"default-scheduler": Interests((SchedulingGates(), GangScheduling()))}
        self.queue = GroupQueue(self.clock, PrioritySort(), self.cluster, profiles=profiles, backoff=Backoff(**backoff))

    def add(self, *objects: Pod | PodGroup) -> None:
        for one in objects:
            if isinstance(one, PodGroup):
                change = self.cluster.take(one)
                self.queue.set_group(one)
                self.queue.move(change)
            else:
                assert self.cluster.pod_groups is not None
                self.cluster.pod_groups.await_pod(one)
                is_new = self.queue.get(one.metadata.uid) is None
                self.queue.add(one)
                if is_new:
                    self.queue.move(Change(Resource.PENDING_POD, Action.ADD, None, one))
            self.clock.at += 0.001

    def remove(self, *names: str) -> None:
        for name in names:
            self.queue.delete(f"default.{name}")
            self.cluster.remove_pod(f"default.{name}")

    def drop(self, one: PodGroup) -> None:
        change = self.cluster.drop(one)
        self.queue.remove_group(one)
        self.queue.move(change)

    def pop(self, *names: str) -> QueuedPodGroup:
        """Pop a group, which has these members in this order."""
        popped = self.queue.pop()
        assert isinstance(popped, QueuedPodGroup)
        assert [one.pod.metadata.name for one in popped.members] == list(names)
        assert {one.stage for one in popped.members} == {Stage.IN_FLIGHT}
        return popped

    def end(self, popped: QueuedPodGroup, outcome: GroupOutcome, *placed: str) -> None:
        """End an attempt: some members are placed, the others are rejected, or fail with the group."""
        for one in popped.members:
            if one.pod.metadata.name in placed:
                self.cluster.assume(one.pod, 0)
                self.queue.done(one)
                self.cluster.set_pod(replace(one.pod, spec=replace(one.pod.spec, node_name="n1")))
            else:
                self.queue.reject(one, frozenset() if outcome is ERROR else FIT)
        self.queue.end_group(popped, outcome)

    def stage(self, key: str = "default/g") -> Stage | None:
        found = self.queue.get_group(key)
        return None if found is None else found.stage

    def stages(self) -> dict[str, str]:
        return {one.pod.metadata.name: one.stage.value for one in self.queue._pods.values()}

    @property
    def held(self) -> tuple[int, int]:
        return tuple(self.queue.held_counts().values())  # type: ignore[return-value]


def names(popped: QueuedPod | None) -> list[str]:
    if isinstance(popped, QueuedPodGroup):
        return [one.pod.metadata.name for one in popped.members]
    return [] if popped is None else [popped.pod.metadata.name]


def test_members_wait_for_the_object_of_their_group() -> None:
    made = Queued()
    made.add(member("a"), member("b"), pod("ordinary"))
    assert (made.held, made.queue.counts().active) == ((2, 0), 1)
    assert names(made.queue.pop()) == ["ordinary"]
    assert made.queue.pop() is None
    made.add(group("other"), group("g", 2))
    assert (made.held, made.stages()["a"]) == ((0, 0), "in group")
    made.pop("a", "b")


def test_group_without_quorum_is_gated_until_enough_pods_are_created() -> None:
    made = Queued()
    made.add(group("g", 3), member("a"), member("b"))
    assert made.stage() is Stage.UNSCHEDULABLE
    assert made.queue.counts() == (0, 0, 0, 2)
    assert made.queue.entity_counts() == {"pod": (0, 0, 0, 0), "podgroup": (0, 0, 0, 1)}
    assert made.queue.pop() is None
    made.add(member("x", "other"), pod("ordinary"))
    assert names(made.queue.pop()) == ["ordinary"]
    made.add(member("c"))
    assert made.queue.counts() == (3, 0, 0, 0)
    popped = made.pop("a", "b", "c")
    assert made.queue.counts() == (0, 0, 0, 0)
    assert (popped.attempts, [one.attempts for one in popped.members]) == (1, [1, 1, 1])
    made.end(popped, SCHEDULED, "a", "b", "c")
    assert (made.stage(), made.queue.pop(), made.stages()) == (None, None, {"x": "incomplete", "ordinary": "in flight"})


@pytest.mark.parametrize(("before", "after", "wakes"), [(3, 2, True), (3, 4, False), (2, 2, False)])
def test_gated_group_is_tried_when_it_needs_fewer_pods(before: int, after: int, wakes: bool) -> None:
    made = Queued()
    made.add(group("g", before), member("a"), *([member("b")] if before > 2 else []))
    assert made.stage() is Stage.UNSCHEDULABLE
    made.add(group("g", after))
    assert (made.stage() is Stage.ACTIVE) is wakes


def test_gated_group_is_tried_when_a_member_is_placed_by_another_client() -> None:
    made = Queued()
    made.add(group("g", 2), member("a"))
    made.queue.move(made.cluster.set_pod(member("x", "other", on="n1")))
    assert made.stage() is Stage.UNSCHEDULABLE
    made.queue.move(made.cluster.set_pod(member("b", on="n1")))
    made.pop("a")


def test_groups_are_ordered_by_their_own_priority_and_the_time_of_their_first_member() -> None:
    made = Queued()
    low, high = group("low", priority=1), group("high", priority=9)
    made.add(low, high, pod("middle", priority=5), group("late", priority=5))
    made.add(member("a", "low", priority=100), member("b", "late"), member("c", "high"), pod("last", priority=5))
    made.add(member("d", "low"))
    popped = [made.queue.pop() for _ in range(5)]
    assert [names(one) for one in popped] == [["c"], ["middle"], ["b"], ["last"], ["a", "d"]]


def test_members_are_ordered_by_priority_attempts_time_and_name() -> None:
    made = Queued()
    made.add(group("g"))
    made.add(member("z"), member("old"))
    made.end(made.pop("z", "old"), REJECTED)
    made.clock.at += 10
    made.queue.flush()
    made.add(member("new"), member("b", priority=3))
    made.clock.at -= 0.001
    made.add(member("a", priority=3))
    made.pop("a", "b", "old", "z", "new")


def test_member_that_arrives_during_the_attempt_waits_for_its_end() -> None:
    made = Queued()
    made.add(group("g"), member("a"), member("b"))
    popped = made.pop("a", "b")
    made.add(member("c"))
    assert (made.held, made.queue.pop()) == ((0, 1), None)
    made.end(popped, SCHEDULED, "a", "b")
    assert made.held == (0, 0)
    made.pop("c")


def test_several_groups_are_in_flight_at_a_time() -> None:
    made = Queued()
    made.add(group("g"), group("h"), member("a", "g"), member("b", "h"), pod("p"))
    first, second = made.pop("a"), made.pop("b")
    ordinary = made.queue.pop()
    assert ordinary is not None
    made.add(member("c", "g"), member("d", "h"))
    made.queue.fail(ordinary)
    assert made.held == (0, 2)
    made.end(second, SCHEDULED, "b")
    assert (made.held, made.stage("default/h")) == ((0, 1), Stage.ACTIVE)
    made.end(first, REJECTED)
    assert (made.held, made.stage()) == ((0, 0), Stage.BACKOFF)
    made.pop("d")


def test_rejected_group_is_tried_after_its_backoff_alone() -> None:
    made = Queued(at=1000.25)
    made.add(group("g", 2), member("a"), member("b"))
    made.end(made.pop("a", "b"), REJECTED)
    assert made.queue.counts() == (0, 2, 0, 0)
    assert made.queue.entity_counts()["podgroup"] == (0, 1, 0, 0)
    assert made.queue.pop() is None  # no pod is active, yet the backoff does not end early
    made.queue.move(made.cluster.set_node(node("n2")))
    assert made.stage() is Stage.BACKOFF
    made.clock.at = 1001.9
    assert made.queue.pop() is None
    assert made.queue.next_wake() == 1002
    made.clock.at = 1002
    made.pop("a", "b")


@pytest.mark.parametrize(("size", "outcome"), [(1, REJECTED), (4, REJECTED), (4, ERROR), (9, ERROR)])
def test_backoff_of_a_group_doubles_up_to_a_maximum_that_grows_with_its_size(size: int, outcome: GroupOutcome) -> None:
    made = Queued(at=0)
    made.add(group("g"), *(member(f"p{number}") for number in range(size)))
    waits = []
    for _ in range(8):
        made.clock.at = float(int(made.clock.at))
        popped = made.queue.pop()
        assert isinstance(popped, QueuedPodGroup)
        began = made.clock.at
        made.end(popped, outcome)
        wake = made.queue.next_wake()
        assert wake is not None
        waits.append(wake - began - 1)
        made.clock.at = wake
    longest = 10 * size**0.5
    assert waits == [min(2.0**number, longest) for number in range(8)]


def test_an_error_counts_beside_rejections_and_a_rejection_ends_the_errors() -> None:
    made = Queued(maximum=0)
    made.add(group("g"), member("a"))
    seen = []
    for outcome in (REJECTED, ERROR, ERROR, REJECTED, SCHEDULED):
        popped = made.pop("a")
        made.end(popped, outcome)
        again = made.queue.get_group("default/g")
        assert again is not None
        seen.append((again.unschedulable_count, again.consecutive_errors))
    assert seen == [(1, 0), (1, 1), (1, 2), (2, 0), (0, 0)]


def test_members_beyond_the_threshold_are_tried_at_once_in_the_place_of_their_group() -> None:
    made = Queued()
    made.add(group("g"), member("a"), member("b"), pod("later"))
    made.clock.at += 5
    made.end(made.pop("a", "b"), SCHEDULED, "a")
    assert made.queue.counts() == (2, 0, 0, 0)
    made.pop("b")  # before the pod that came later


def test_members_that_came_during_a_successful_attempt_queue_behind_the_others() -> None:
    made = Queued()
    made.add(group("g"), member("a"), pod("earlier"))
    popped = made.pop("a")
    made.add(member("b"))
    made.clock.at += 1
    made.end(popped, SCHEDULED, "a")
    assert names(made.queue.pop()) == ["earlier"]
    made.pop("b")


def test_a_member_that_is_not_bound_is_tried_again_without_a_backoff() -> None:
    made = Queued()
    made.add(group("g", 2), member("a"), member("b"))
    popped = made.pop("a", "b")
    for one in popped.members:
        made.cluster.assume(one.pod, 0)
    made.queue.end_group(popped, SCHEDULED)
    assert (made.stage(), made.queue.pop()) == (None, None)
    made.cluster.forget("default.a")
    made.queue.fail(popped.members[0])
    again = made.pop("a")
    assert again.members[0].consecutive_errors == 1
    made.cluster.forget("default.b")
    made.queue.fail(popped.members[1])
    assert made.held == (0, 1)
    made.end(again, REJECTED)
    assert made.stages() == {"a": "in group", "b": "in group"}


def test_a_gated_member_gates_its_group_until_its_gates_are_removed() -> None:
    made = Queued()
    made.add(group("g"), member("a"), member("b", scheduling_gates=GATE))
    assert made.queue.counts() == (0, 0, 0, 2)
    made.add(member("c"), pod("ordinary"))
    assert names(made.queue.pop()) == ["ordinary"]
    made.add(member("c", labels={"x": "y"}))
    assert made.stage() is Stage.UNSCHEDULABLE
    made.add(member("b"))
    made.pop("a", "b", "c")


def test_a_gated_member_gates_its_group_in_backoff_too() -> None:
    made = Queued()
    made.add(group("g"), member("a"))
    made.end(made.pop("a"), REJECTED)
    made.add(member("b", scheduling_gates=GATE))
    assert made.stage() is Stage.UNSCHEDULABLE
    made.clock.at += 10
    assert made.queue.pop() is None
    made.add(member("b"))
    made.pop("a", "b")


def test_gates_are_evaluated_until_the_first_that_holds_a_member() -> None:
    made = Queued()
    made.add(group("g", 3), member("a"), member("b", scheduling_gates=GATE))
    found = made.queue.get_group("default/g")
    assert found is not None
    assert [one.rejectors for one in found.members] == [GANG, frozenset()]
    assert made.queue.rejections() == {("GangScheduling", "default-scheduler"): 1}
    made.add(member("c"))
    assert [(one.gated_by, one.pod.metadata.name) for one in found.members] == [
        ("", "a"),
        ("SchedulingGates", "b"),
        ("", "c"),
    ]
    assert found.pod.metadata.name == "b"


def test_members_that_join_an_active_group_do_not_have_all_members_evaluated_again() -> None:
    class Counting(SchedulingGates):
        asked = 0

        def pre_enqueue(self, pod: Pod, cluster: Cluster) -> Any:
            type(self).asked += 1
            return super().pre_enqueue(pod, cluster)

    made = Queued()
    made.queue.profiles = {"default-scheduler": Interests((Counting(), GangScheduling()))}
    made.add(group("g"), *(member(f"p{number}") for number in range(50)))
    assert Counting.asked == 50
    assert made.queue.counts().active == 50


def test_deleted_members_leave_their_group_wherever_it_is() -> None:
    made = Queued()
    made.add(member("i", "later"), group("g", 2), member("a"), member("b"), member("c"))
    made.remove("i", "a")
    assert (made.held, made.stages()) == ((0, 0), {"b": "in group", "c": "in group"})
    popped = made.pop("b", "c")
    made.add(member("d"), member("e"))
    made.remove("d", "b")
    assert made.held == (0, 1)
    made.end(popped, REJECTED)
    assert (made.stage(), made.stages()) == (Stage.BACKOFF, {"c": "in group", "e": "in group"})
    made.remove("c", "e")
    assert (made.stage(), made.stages(), sum(made.queue.counts())) == (None, {}, 0)
    made.clock.at += 100
    assert made.queue.pop() is None


@pytest.mark.parametrize("rejected", [False, True])
def test_group_is_gated_when_deletions_leave_it_without_its_quorum(rejected: bool) -> None:
    """The first deletion that leaves too few members gates the group at the next one, as in kube-scheduler."""
    made = Queued()
    made.add(group("g", 3), *(member(name) for name in "abcd"))
    if rejected:
        made.end(made.pop(*"abcd"), REJECTED)
    waits = Stage.BACKOFF if rejected else Stage.ACTIVE
    made.remove("a", "b")
    assert made.stage() is waits
    made.remove("c")
    assert made.stage() is Stage.UNSCHEDULABLE
    made.clock.at += 10
    assert made.queue.pop() is None
    made.add(member("e"), member("f"))
    made.pop("d", "e", "f")


def test_group_is_queued_when_the_member_that_gates_it_is_deleted() -> None:
    made = Queued()
    made.add(group("g", 2), member("a", scheduling_gates=GATE), member("b"), member("c"))
    made.remove("a")
    made.pop("b", "c")
    made.add(group("h", 2), member("d", "h"), member("e", "h", scheduling_gates=GATE))
    made.remove("e")  # the quorum is lost after the queue was told
    made.pop("d")


def test_members_of_a_deleted_group_wait_for_a_new_one() -> None:
    made = Queued()
    first = group("g", uid="one")
    made.add(first, member("a"), member("b"))
    made.drop(first)
    assert (made.held, made.queue.pop()) == ((2, 0), None)
    made.add(group("g", uid="two"))
    popped = made.pop("a", "b")
    assert popped.group.metadata.uid == "two"
    made.add(member("c"))
    made.drop(group("g", uid="two"))
    assert made.held == (1, 0)
    made.end(popped, ERROR)
    assert (made.held, made.stage()) == ((3, 0), None)
    made.add(member("d"))
    assert made.held == (4, 0)
    made.remove("d")
    made.add(group("g", 3, uid="three"))
    made.pop("a", "b", "c")


def test_group_that_is_created_again_during_its_attempt_waits_for_the_end() -> None:
    made = Queued()
    made.add(group("g", uid="one"), member("a"), member("b"))
    popped = made.pop("a", "b")
    made.add(member("c"))
    made.drop(group("g", uid="one"))
    made.add(group("g", uid="two"))
    assert made.held == (0, 1)
    made.end(popped, SCHEDULED, "a", "b")
    assert made.pop("c").group.metadata.uid == "two"


def test_a_change_of_the_object_is_in_the_next_attempt() -> None:
    made = Queued()
    made.add(group("g", 1), member("a"))
    made.add(group("g", 2))
    assert made.pop("a").group.min_count == 2


def test_an_updated_member_has_its_new_version_in_the_next_attempt() -> None:
    made = Queued()
    made.add(member("i", "later"), group("g"), member("a"))
    for name, of in (("i", "later"), ("a", "g")):
        made.add(member(name, of, labels={"x": "y"}))
    made.add(group("later"))
    seen = [made.pop("i"), made.pop("a")]
    made.add(member("b"), member("b", labels={"x": "z"}))
    assert [one.members[0].pod.metadata.labels for one in seen] == [{"x": "y"}, {"x": "y"}]
    made.add(member("a", labels={"x": "new"}))
    made.end(seen[1], REJECTED)
    found = made.queue.get_group("default/g")
    assert found is not None
    assert [one.pod.metadata.labels for one in found.members] == [{"x": "new"}, {"x": "z"}]


def test_activating_a_member_activates_its_group() -> None:
    made = Queued()
    made.add(member("i", "later"), group("g"), member("a"), member("b"), pod("p"))
    made.end(made.pop("a", "b"), REJECTED)
    made.add(group("h", 2), member("c", "h"))
    made.queue.activate(f"default.{name}" for name in ("i", "b", "c", "p", "unknown"))
    assert (made.stage(), made.stage("default/h")) == (Stage.ACTIVE, Stage.UNSCHEDULABLE)
    made.queue.activate(["default.a"])
    assert names(made.queue.pop()) == ["p"]
    popped = made.pop("a", "b")
    made.add(member("d"))
    made.queue.activate(["default.a", "default.d"])
    made.end(popped, REJECTED)
    assert made.stage() is Stage.BACKOFF


def test_gated_groups_are_tried_again_after_the_maximum_time() -> None:
    made = Queued()
    made.add(group("g", 2), member("a"))
    made.clock.at += 200
    made.queue.flush()
    assert made.stage() is Stage.UNSCHEDULABLE
    assert made.cluster.pod_groups is not None
    made.cluster.pod_groups.await_pod(member("b"))  # nobody tells the queue
    made.clock.at += 200
    made.queue.flush()
    popped = made.pop("a")
    assert (popped.flushed, popped.members[0].flushed) == (True, True)
    made.end(popped, REJECTED)
    found = made.queue.get_group("default/g")
    assert found is not None
    assert (found.flushed, found.members[0].flushed) == (False, False)


def test_gated_groups_are_tried_when_their_gate_is_replaced() -> None:
    made = Queued()
    made.add(group("g"), member("a", scheduling_gates=GATE), pod("p", scheduling_gates=GATE))
    made.queue.profiles = {"default-scheduler": Interests((GangScheduling(),))}
    assert made.queue.move_rejected_by(frozenset(("SchedulingGates",))) == 2
    assert sorted(made.stages().values()) == ["active", "in group"]
    assert made.stage() is Stage.ACTIVE


def test_ordinary_pods_are_queued_as_without_groups() -> None:
    made = Queued()
    made.add(pod("a"), pod("b", scheduling_gates=GATE))
    popped = made.queue.pop()
    assert popped is not None
    made.queue.reject(popped, FIT)
    assert made.queue.counts() == (0, 0, 1, 1)
    assert made.queue.entity_counts() == {"pod": (0, 0, 1, 1), "podgroup": (0, 0, 0, 0)}
    made.add(pod("b"))
    made.remove("a")
    assert made.queue.counts() == (1, 0, 0, 0)


def test_entering_is_reported_for_a_group_and_for_each_member() -> None:
    made, seen = Queued(), []
    made.queue.report_to(
        lambda one, queue, event: seen.append(
            (one.key if isinstance(one, QueuedPodGroup) else one.pod.metadata.name, queue, event)
        )
    )
    made.add(member("a"), group("g", 2), member("b"))
    popped = made.pop("a", "b")
    made.end(popped, REJECTED)
    assert seen == [
        ("default/g", "gated", "UnschedulablePodAdd"),
        ("a", "gated", "UnschedulablePodAdd"),
        ("b", "gated", "UnschedulablePodAdd"),
        ("default/g", "active", "UnschedulablePodAdd"),
        ("a", "active", "UnschedulablePodAdd"),
        ("b", "active", "UnschedulablePodAdd"),
        ("default/g", "backoff", "ScheduleAttemptFailure"),
        ("a", "backoff", "ScheduleAttemptFailure"),
        ("b", "backoff", "ScheduleAttemptFailure"),
    ]
