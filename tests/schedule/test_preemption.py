"""Preemption from the decision to the bound pod: requests, order of waiting pods, and failures."""

from __future__ import annotations

import asyncio
from dataclasses import replace as replace_field
from typing import Any

import pytest
from msgspec.structs import replace

from policysched.app.configuration.profiles import default_profile
from policysched.framework import (
    ApiError,
    AssumedPod,
    Event,
    Handle,
    PermitPlugin,
    PostFilterResult,
    PreBindPlugin,
    PreFlight,
    ReservePlugin,
    Status,
    Wait,
)
from policysched.model.objects import Pod, PodCondition, PodStatus
from policysched.plugins.default_preemption import eviction
from policysched.rules.policy_set.policy_set import PolicySet
from policysched.schedule.observer import Observer
from policysched.schedule.queue.queued_pod import QueuedPod
from tests.build import node, pod
from tests.schedule.stand import ME, Holding, Stand, running

LOW = pod("low", on="n1", requests={"cpu": 4})
HIGH = pod("high", requests={"cpu": 4}, priority=10)
NO_ROOM = "0/1 nodes are available: 1 Insufficient cpu."
FOUND = "found a potential placement for pod on node n1, preempting 1 victims"


def gone(of: Pod, stand: Stand) -> None:
    stand.scheduler.drop(of)


def leaving(of: Pod) -> Pod:
    return replace(of, metadata=replace(of.metadata, deletion_timestamp="2026-01-01T00:00:00Z"))


class Slow:
    """Blocks deletions of some pods until they are released."""

    def __init__(self, stand: Stand, *names: str) -> None:
        self._go = asyncio.Event()
        self._delete = stand.client.delete_pod
        self._names = names
        stand.client.delete_pod = self._wait  # type: ignore[method-assign]

    async def _wait(self, pod: Pod) -> None:
        await self._delete(pod)
        if pod.metadata.name in self._names:
            await self._go.wait()

    async def release(self, stand: Stand) -> None:
        self._go.set()
        await stand.settle()


async def test_victim_is_marked_and_deleted_and_the_preemptor_takes_its_place() -> None:
    async with running(node("n1")) as stand:
        await stand.settled(LOW, HIGH)
        assert stand.client.deleted == ["default/low"]
        assert stand.client.nominated == [("default/high", "n1")]
        of, condition = stand.client.conditions[0]
        assert (of, condition["type"], condition["reason"]) == (
            "default/low", "DisruptionTarget", "PreemptionByScheduler",
        )  # fmt: skip
        assert condition["message"] == f"{ME}: preempting to accommodate a higher priority pod"
        assert stand.notes == [f"{NO_ROOM} preemption: {FOUND}"]
        [event] = [one for one in stand.client.events if one.reason == "Preempted"]
        assert isinstance(event, Event)
        assert (event.pod.key, event.type, event.action) == ("default/low", "Normal", "Preempting")
        assert event.note == "Preempted by pod default.high on node n1"
        assert event.related is not None
        assert event.related.key == "default/high"
        gone(LOW, stand)
        await stand.pass_time(2)
        assert stand.bound == {"high": "n1"}
        assert not stand.scheduler.cluster.nominations


async def test_smaller_pod_of_lower_priority_does_not_take_the_place_meanwhile() -> None:
    async with running(node("n1")) as stand:
        await stand.settled(LOW, HIGH)
        gone(LOW, stand)
        stand.scheduler.set_pod(pod("quick", requests={"cpu": 1}, priority=5))
        await stand.pass_time(2)
        assert stand.bound == {"high": "n1"}


async def test_preemptor_does_not_preempt_again_while_its_victims_go() -> None:
    async with running(node("n1"), node("n2")) as stand:
        other = pod("other", on="n2", requests={"cpu": 4})
        await stand.settled(LOW, other, HIGH)
        [victim] = stand.client.deleted
        chosen = {"default/low": LOW, "default/other": other}[victim]
        marked = replace(leaving(chosen), status=PodStatus(conditions=[condition_of(stand)]))
        stand.scheduler.set_pod(marked)
        stand.scheduler.set_pod(replace(HIGH, status=PodStatus(nominated_node_name=chosen.spec.node_name)))
        stand.scheduler.set_node(node("n1", labels={"a": "b"}))
        stand.scheduler.set_node(node("n2", allocatable={"cpu": 5}))
        await stand.pass_time(5)
        assert stand.client.deleted == [victim]


def condition_of(stand: Stand) -> Any:
    told = stand.client.conditions[0][1]
    return PodCondition(**{key: told[key] for key in ("type", "status", "reason", "message")})


VICTIMS = [pod(f"v{number}", on="n1", requests={"cpu": 2}, priority=number) for number in range(2)]


async def test_last_victim_goes_last_and_until_then_the_preemptor_is_held_back() -> None:
    async with running(node("n1")) as stand:
        slow = Slow(stand, "v1")
        await stand.settled(*VICTIMS, HIGH)
        assert stand.client.deleted == ["default/v1"]
        gone(VICTIMS[1], stand)
        await stand.pass_time(2)
        assert stand.scheduler.queue.counts().gated == 1
        await slow.release(stand)
        assert stand.client.deleted == ["default/v1", "default/v0"]
        gone(VICTIMS[0], stand)
        await stand.pass_time(2)
        assert stand.bound == {"high": "n1"}


async def test_preemption_under_way_outlasts_its_profile() -> None:
    async with running(node("n1"), node("n2")) as stand:
        slow = Slow(stand, "v1", "w1")
        others = [pod(f"w{number}", on="n2", requests={"cpu": 2}, priority=number) for number in range(2)]
        await stand.settled(*VICTIMS, *others, HIGH)
        [first] = stand.client.deleted
        stand.scheduler.use_profiles({ME: default_profile(ME)}, PolicySet.of(()), frozenset())
        gone(next(one for one in (*VICTIMS, *others) if one.key == first), stand)
        await stand.pass_time(2)
        assert (stand.scheduler.queue.counts().gated, stand.client.deleted) == (1, [first])
        await slow.release(stand)
        assert stand.client.deleted == [first, first.replace("1", "0")]


async def test_preemptor_is_tried_again_where_the_last_victim_went_by_itself() -> None:
    async with running(node("n1")) as stand:
        slow = Slow(stand, "v1")
        await stand.settled(*VICTIMS, HIGH)
        stand.client.errors["deletion"] = [ApiError(404, "NotFound", "gone")]
        gone(VICTIMS[1], stand)
        gone(VICTIMS[0], stand)
        await stand.pass_time(2)
        assert stand.scheduler.queue.counts().gated == 1
        await slow.release(stand)
        assert stand.bound == {"high": "n1"}


async def test_event_of_the_last_victim_that_comes_before_the_answer_lets_the_preemptor_in() -> None:
    async with running(node("n1")) as stand:
        slow = Slow(stand, "low")
        await stand.settled(LOW, HIGH)
        gone(LOW, stand)
        await stand.pass_time(2)
        assert stand.bound == {"high": "n1"}
        await slow.release(stand)


@pytest.mark.parametrize("status", [404, 409, 422])
async def test_victim_that_is_gone_already_counts_as_deleted(status: int) -> None:
    async with running(node("n1")) as stand:
        stand.client.errors["deletion"] = [ApiError(status, "Reason", "gone")]
        await stand.settled(LOW, HIGH)
        assert stand.attempts("high") == 1
        assert [one for one in stand.client.events if one.reason == "Preempted"] == []


@pytest.fixture
def without_pause(monkeypatch: pytest.MonkeyPatch) -> None:
    """Remove the pause before a retry for preemptors whose victims could not be evicted."""
    monkeypatch.setattr(eviction, "FIRST_PAUSE", 0.0)
    monkeypatch.setattr(eviction, "PAUSE_EACH", 0.0)


@pytest.mark.usefixtures("without_pause")
async def test_refused_deletion_lets_the_preemptor_try_again_and_no_other_victim_goes() -> None:
    async with running(node("n1")) as stand:
        stand.client.errors["deletion"] = [ApiError(403, "Forbidden", "no")]
        await stand.settled(*VICTIMS, HIGH)
        await stand.pass_time(2)
        assert stand.client.deleted == ["default/v1", "default/v0"]
        assert stand.attempts("high") == 2


async def test_preemptor_whose_victims_are_not_evicted_pauses(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(eviction, "FIRST_PAUSE", 3600.0)
    monkeypatch.setattr(eviction, "LONGEST_PAUSE", 3600.0)
    async with running(node("n1")) as stand:
        stand.scheduler.last_words = 0.01
        stand.client.errors["deletion"] = [ApiError(403, "Forbidden", "no")] * 100
        await stand.settled(LOW, HIGH)
        await stand.pass_time(60)
        assert (stand.attempts("high"), len(stand.client.errors["deletion"])) == (1, 99)


@pytest.mark.parametrize(("preemptors", "longest"), [(1, 1.0), (50, 5.0), (1000, 10.0)])
async def test_preemptors_pause_longer_the_more_they_are(preemptors: int, longest: float) -> None:
    pauses, evictions = list[float](), eviction.Evictions("Preemption")

    async def pause(seconds: float) -> None:
        pauses.append(seconds)
        await asyncio.sleep(0)

    async with running(node("n1")) as stand:
        handle = replace_field(stand.scheduler._binder.handle, pause=pause)
        await asyncio.gather(*(evictions._pause(handle) for _ in range(preemptors)))
    assert (pauses[0], pauses[-1]) == (1.0, longest)


@pytest.mark.usefixtures("without_pause")
async def test_refused_mark_is_a_refused_eviction() -> None:
    async with running(node("n1")) as stand:
        stand.client.errors["condition"] = [ApiError(403, "Forbidden", "no")]
        await stand.settled(LOW, HIGH)
        await stand.pass_time(2)
        assert stand.client.deleted == ["default/low"]
        assert stand.attempts("high") == 2


async def test_nomination_of_a_lower_pod_is_cleared_on_the_server() -> None:
    async with running(node("n1")) as stand:
        lower = replace(pod("lower", requests={"cpu": 2}, priority=5), status=PodStatus(nominated_node_name="n1"))
        await stand.settled(LOW, lower, HIGH)
        assert ("default/lower", "") in stand.client.nominated
        assert ("default/high", "n1") in stand.client.nominated


async def test_nominated_node_that_goes_leaves_the_pod_free_for_another() -> None:
    async with running(node("n1")) as stand:
        await stand.settled(LOW, HIGH)
        stand.scheduler.set_pod(replace(HIGH, status=PodStatus(nominated_node_name="n1")))
        stand.scheduler.remove_node("n1")
        stand.scheduler.set_node(node("n2"))
        await stand.pass_time(2)
        assert stand.bound == {"high": "n2"}
        assert not stand.scheduler.cluster.nominations


async def test_preemptor_that_is_deleted_gives_its_place_back() -> None:
    async with running(node("n1")) as stand:
        await stand.settled(LOW, HIGH, pod("mid", requests={"cpu": 4}, priority=5))
        gone(LOW, stand)
        gone(HIGH, stand)
        await stand.pass_time(2)
        assert stand.bound == {"mid": "n1"}


class Waiting(PermitPlugin):
    """A Permit plugin that lets the pod `low` wait."""

    name = "Waiting"

    def permit(self, assumed: AssumedPod, handle: Handle) -> Status | Wait | None:  # noqa: ARG002 - the protocol's
        return Wait(600) if assumed.pod.metadata.name == "low" else None


async def test_victim_that_waits_at_permit_is_turned_away_and_not_deleted() -> None:
    of = replace_field(default_profile(ME), permits=(Waiting(),))
    async with running(node("n1"), of=of) as stand:
        await stand.settled(replace(LOW, spec=replace(LOW.spec, node_name="")))
        await stand.settled(HIGH)
        await stand.pass_time(2)
        assert stand.client.deleted == []
        assert stand.bound == {"high": "n1"}
        [event] = [one for one in stand.client.events if one.reason == "Preempted"]
        assert event.note == "Preempted by pod default.high on node n1 (in kube-scheduler memory)."
        assert "waiting on permit for pod: preempted" in stand.notes


class Attaching(ReservePlugin, PreBindPlugin):
    """A plugin with PreBind work for some pods until it is released; it can ignore cancellation."""

    name = "Attaching"

    def __init__(self, *, stubborn: bool = False, runs_to_its_end: bool = False) -> None:
        self.stubborn, self._runs_to_its_end = stubborn, runs_to_its_end
        self.go = asyncio.Event()
        self.heard: list[str] = []

    @property
    def runs_to_its_end(self) -> bool:
        return self._runs_to_its_end

    def pre_bind_pre_flight(self, assumed: AssumedPod) -> PreFlight:
        return PreFlight(works=assumed.pod.metadata.name == "low")

    async def pre_bind(self, assumed: AssumedPod, handle: Handle) -> Status | None:  # noqa: ARG002 - the protocol's
        try:
            await self.go.wait()
        except asyncio.CancelledError:
            self.heard.append("cancelled")
            if not self.stubborn:
                raise
        return None

    def reserve(self, assumed: AssumedPod) -> None:
        pass

    def unreserve(self, assumed: AssumedPod) -> None:
        self.heard.append(f"unreserved {assumed.pod.metadata.name}")


def attaching(plugin: Attaching) -> Any:
    return replace_field(default_profile(ME), pre_binds=(plugin,), reserves=(plugin,))


FREE = replace(LOW, spec=replace(LOW.spec, node_name=""))


@pytest.mark.parametrize("stubborn", [False, True])
async def test_victim_in_pre_bind_is_cancelled_and_not_deleted(stubborn: bool) -> None:
    plugin = Attaching(stubborn=stubborn)
    async with running(node("n1"), of=attaching(plugin)) as stand:
        await stand.settled(FREE)
        await stand.settled(HIGH)
        await stand.pass_time(2)
        assert stand.client.deleted == []
        assert stand.bound == {"high": "n1"}
        [event] = [one for one in stand.client.events if one.reason == "Preempted"]
        assert event.note == "Preempted by pod default.high on node n1 (in kube-scheduler memory)."
        assert plugin.heard == ["cancelled", "unreserved low"]
        where = "" if stubborn else 'running PreBind plugin "Attaching": '
        assert f"{where}preempted by DefaultPreemption" in stand.notes
        assert stand.attempts("low") >= 1
        assert stand.scheduler._binder.handle.in_pre_bind == {}


async def test_victim_whose_pre_bind_cannot_be_cancelled_goes_back_when_it_has_ended() -> None:
    plugin = Attaching(runs_to_its_end=True)
    async with running(node("n1"), of=attaching(plugin)) as stand:
        await stand.settled(FREE)
        await stand.settled(HIGH)
        assert (plugin.heard, stand.bound, stand.client.deleted) == ([], {}, [])
        plugin.go.set()
        await stand.pass_time(2)
        assert plugin.heard == ["unreserved low"]
        assert stand.bound == {"high": "n1"}
        assert "preempted by DefaultPreemption" in stand.notes


async def test_victim_whose_binding_is_being_written_is_deleted() -> None:
    plugin = Attaching()
    plugin.go.set()
    async with running(node("n1"), of=attaching(plugin)) as stand:
        holding = Holding(stand)
        await stand.settled(FREE)
        await stand.settled(HIGH)
        assert (holding.started, stand.client.deleted) == (1, ["default/low"])
        await holding.release(stand)


class Counting(Observer):
    """An observer that counts victims."""

    def __init__(self) -> None:
        self.seen: list[tuple[str, int]] = []

    def on_preemption(self, queued: QueuedPod, result: PostFilterResult) -> None:
        self.seen.append((queued.pod.metadata.name, len(result.victims)))


async def test_observers_hear_of_a_preemption() -> None:
    counting = Counting()
    async with running(node("n1"), observers=(counting,)) as stand:
        await stand.settled(*VICTIMS, HIGH)
        assert counting.seen == [("high", 2)]


async def test_pods_of_several_priorities_each_make_room_for_the_next() -> None:
    async with running(node("n1")) as stand:
        placed = LOW
        for priority in range(1, 5):
            of = pod(f"p{priority}", requests={"cpu": 4}, priority=priority)
            await stand.settled(placed, of)
            gone(placed, stand)
            await stand.pass_time(12)
            assert stand.bound[of.metadata.name] == "n1"
            placed = replace(of, spec=replace(of.spec, node_name="n1"))


async def test_nothing_is_left_behind_when_all_is_over() -> None:
    async with running(node("n1")) as stand:
        await stand.settled(LOW, HIGH)
        gone(LOW, stand)
        await stand.pass_time(2)
        [plugin] = [one for one in stand.scheduler._profiles[ME].post_filters if one.name == "DefaultPreemption"]
        assert plugin._evictions._running == {}  # type: ignore[attr-defined]
        assert stand.scheduler.queue.in_flight == (0, 0)
        assert sum(stand.scheduler.queue.counts()) == 0
