"""Pod groups preempt while evictions, bindings and waits at Permit of other pods are under way.

Source: TestPodGroupAsyncPreemption, TestPodGroupPreemptionStatus, TestPodGroupPreemption_NominatedNodeNameRespected and
TestPodGroupPreemptionRespectsWaitingPod in test/integration/scheduler/preemption/podgroup, v1.37 and v1.38.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from policysched.app.configuration.profiles import configured_profiles
from policysched.framework import ApiError, Code, Handle, PodStatusChange, Status, unschedulable
from policysched.framework.profile import Profile
from policysched.framework.registry import PluginRegistry
from policysched.model.objects import Pod
from policysched.model.release import Release
from policysched.schedule.queue.group_queue import GroupQueue
from policysched.schedule.queue.queued_pod import Stage
from tests.build import node, pod
from tests.groups import group, member
from tests.schedule.groups.parts import RELEASES, conditions, submit
from tests.schedule.stand import ME, Stand, running

pytestmark = pytest.mark.parametrize("release", RELEASES, ids=["1.37", "1.38"])
IN_BINDING, HOLDING = "in-binding", "holding"
NODE = node("n1")
WAIT = (Status(Code.WAIT), 60.0)


class Room:
    """Holds the evictions of each preemptor until `complete`, and then deletes victims as an API server does.

    Args:
        stand: The scheduler.
        graceful: Whether victims only get a deletion timestamp.
        last: What the deletion of the pod in binding waits for.
    """

    def __init__(self, stand: Stand, *, graceful: bool = False, last: asyncio.Event | None = None) -> None:
        self.stand, self.graceful, self.last = stand, graceful, last
        self.gone = set[str]()
        self._gates = dict[str, asyncio.Event]()
        make_room = stand.scheduler.attempts.make_room

        def held(key: str, kind: str, act: Callable[[Handle], Awaitable[bool | None]]) -> None:
            gate = self._gates[key] = asyncio.Event()
            make_room(key, kind, lambda handle: act(replace(handle, client=_Held(self, gate))))

        stand.scheduler.attempts.make_room = held  # type: ignore[method-assign]

    def is_held(self, of: str) -> bool:
        """Whether a group is gated until its evictions have ended, which are held."""
        queue = self.stand.scheduler.queue
        assert isinstance(queue, GroupQueue)
        queued = queue.get_group(f"default/{of}")
        gate = self._gates.get(f"default/{of}")
        is_gated = queued is not None and (queued.stage, queued.gated_by) == (Stage.UNSCHEDULABLE, "DefaultPreemption")
        return is_gated and gate is not None and not gate.is_set()

    async def complete(self, of: str) -> None:
        """Let the evictions for a group go, and pass its backoff."""
        self._gates[f"default/{of}"].set()
        await self.stand.settle()
        await self.stand.pass_time(3)

    def delete(self, victim: Pod) -> None:
        """Delete a pod."""
        if victim.metadata.name in self.gone:
            raise ApiError(404, "NotFound", f'pods "{victim.metadata.name}" not found')
        self.gone.add(victim.metadata.name)
        scheduler, loop = self.stand.scheduler, asyncio.get_running_loop()
        if self.graceful:
            metadata = structs.replace(victim.metadata, deletion_timestamp=self.stand.clock.now())
            loop.call_soon(scheduler.set_pod, structs.replace(victim, metadata=metadata))
        else:
            loop.call_soon(scheduler.drop, victim)


class _Held:
    """A client whose evictions wait."""

    def __init__(self, room: Room, gate: asyncio.Event) -> None:
        self._room, self._gate, self._client = room, gate, room.stand.client

    def __getattr__(self, name: str) -> Any:
        return getattr(self._client, name)

    async def set_pod_status(self, pod: Pod, change: PodStatusChange) -> None:
        if change.condition is not None:
            await self._gate.wait()
        await self._client.set_pod_status(pod, change)

    async def delete_pod(self, pod: Pod) -> None:
        await self._gate.wait()
        if self._room.last is not None and pod.metadata.name == IN_BINDING:
            await self._room.last.wait()
        self._room.delete(pod)


def victims(count: int, cpu: int, on: str = "n1") -> list[Pod]:
    return [pod(f"{on}-{number}", on=on, requests={"cpu": cpu}, priority=1) for number in range(count)]


async def come(stand: Stand, of: str, priority: int, *cpus: int) -> None:
    """Create a gang whose members need so much CPU each."""
    wanted = (member(f"{of}-{number}", of, requests={"cpu": cpu}, priority=priority) for number, cpu in enumerate(cpus))
    await submit(stand, group(of, len(cpus), priority=priority), *wanted)


async def test_group_waits_for_its_evictions(release: Release) -> None:
    async with running(NODE, release=release) as stand:
        room = Room(stand)
        await stand.settled(*victims(2, 2))
        await come(stand, "g", 100, 2, 2)
        assert room.is_held("g")
        await stand.pass_time(30)
        assert room.is_held("g")
        await room.complete("g")
        assert stand.bound == {"g-0": "n1", "g-1": "n1"}


async def test_group_waits_for_the_eviction_of_one_victim(release: Release) -> None:
    async with running(NODE, release=release) as stand:
        room = Room(stand)
        await stand.settled(*victims(1, 1))
        await come(stand, "g", 100, 4)
        assert room.is_held("g")
        await room.complete("g")
        assert stand.bound == {"g-0": "n1"}


async def test_group_of_lower_priority_does_not_take_the_place(release: Release) -> None:
    async with running(NODE, release=release) as stand:
        room = Room(stand)
        await stand.settled(*victims(2, 2))
        await come(stand, "high", 100, 4)
        await come(stand, "mid", 50, 4)
        assert room.is_held("high")
        assert stand.bound == {}
        await room.complete("high")
        assert stand.bound == {"high-0": "n1"}
        assert stand.attempts("mid-0") > 0


async def test_group_of_higher_priority_takes_the_place(release: Release) -> None:
    async with running(NODE, release=release) as stand:
        room = Room(stand)
        await stand.settled(*victims(4, 1))
        await come(stand, "high", 100, 4)
        await come(stand, "super", 200, 4)
        assert room.is_held("high")
        assert room.is_held("super")
        await room.complete("super")
        await room.complete("high")
        assert stand.bound == {"super-0": "n1"}
        assert stand.attempts("high-0") > 0


async def test_group_of_lower_priority_preempts_on_the_rest_of_the_node(release: Release) -> None:
    async with running(NODE, release=release) as stand:
        room = Room(stand)
        await stand.settled(*victims(4, 1))
        await come(stand, "high", 100, 2)
        await come(stand, "mid", 50, 2)
        assert room.is_held("high")
        assert room.is_held("mid")
        await room.complete("mid")
        await room.complete("high")
        assert stand.bound == {"high-0": "n1", "mid-0": "n1"}
        assert len(room.gone) == 4


class Blocked:
    """Blocks the binding of one pod; at the end it fails, because the pod is gone."""

    def __init__(self, stand: Stand) -> None:
        self._go = asyncio.Event()
        stand.client.on_bind = self._wait

    async def _wait(self, pod: Pod, _node: str) -> None:
        if pod.metadata.name == IN_BINDING:
            await self._go.wait()
            raise ApiError(404, "NotFound", "gone")

    async def end(self, stand: Stand) -> None:
        self._go.set()
        await stand.settle()
        await stand.pass_time(3)


@pytest.mark.parametrize("graceful", [False, True])
async def test_group_takes_the_place_of_a_victim_in_binding(release: Release, *, graceful: bool) -> None:
    async with running(NODE, release=release) as stand:
        room, blocked = Room(stand, graceful=graceful), Blocked(stand)
        await stand.settled(pod(IN_BINDING, requests={"cpu": 2}, priority=1))
        await come(stand, "g", 100, 4)
        assert stand.bound == {}
        await room.complete("g")
        assert stand.bound == {"g-0": "n1"}
        await blocked.end(stand)
        assert stand.bound == {"g-0": "n1"}


class Reserving:
    """Rejects all nodes while the pod in binding has reserved something."""

    name = "X"

    def __init__(self) -> None:
        self.is_reserved = False

    def filter(self, _state: Any, _pod: Pod, _node: Any) -> Status | None:
        return unschedulable("reserved") if self.is_reserved else None

    def reserve(self, _state: Any, pod: Pod, _node_name: str) -> None:
        self.is_reserved |= pod.metadata.name == IN_BINDING

    def unreserve(self, _state: Any, pod: Pod, _node_name: str) -> None:
        self.is_reserved &= pod.metadata.name != IN_BINDING


def profile_of(plugin: Any, release: Release) -> Profile:
    registry = PluginRegistry()
    registry.register("X", lambda _args, _handle: plugin)
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": ME, "plugins": {"multiPoint": {"enabled": [{"name": "X"}]}}}],
    }
    return configured_profiles(config, registry, release=release)[ME]


@pytest.mark.parametrize("graceful", [False, True])
async def test_group_waits_for_what_a_victim_in_binding_reserved(release: Release, *, graceful: bool) -> None:
    reserving = Reserving()
    async with running(NODE, of=profile_of(reserving, release), release=release) as stand:
        room, blocked = Room(stand, graceful=graceful), Blocked(stand)
        await stand.settled(pod(IN_BINDING, requests={"cpu": 2}, priority=1))
        assert reserving.is_reserved
        reserving.is_reserved = False  # else the victim helps nobody
        await come(stand, "g", 100, 4)
        reserving.is_reserved = True
        await room.complete("g")
        assert stand.bound == {}
        await blocked.end(stand)
        await stand.pass_time(30)
        assert stand.bound == {"g-0": "n1"}


class Hintless:
    """Rejects nodes with certain pods, and no event wakes the pods that it rejected."""

    name = "X"

    def events(self) -> list[Any]:
        return []

    def filter(self, _state: Any, _pod: Pod, on: Any) -> Status | None:
        held = any(one.metadata.name.startswith(HOLDING) for one in on.pods)
        return unschedulable("held") if held else None


async def test_gated_group_without_a_hint_is_tried_after_five_minutes(release: Release) -> None:
    profile = profile_of(Hintless(), release)
    async with running(NODE, of=profile, release=release) as stand:
        room = Room(stand)
        await stand.settled(*(pod(f"{HOLDING}-{one}", on="n1", priority=1) for one in range(2)))
        await come(stand, "g", 100, 1)
        assert room.is_held("g")
        await room.complete("g")
        assert stand.bound == {}
        for _ in range(2):
            await stand.pass_time(330)
        assert stand.bound == {"g-0": "n1"}


async def test_waiting_group_moves_to_another_node(release: Release) -> None:
    """A pod of higher priority takes the place that the group made."""
    last = asyncio.Event()
    async with running(NODE, release=release) as stand:
        room, blocked = Room(stand, last=last), Blocked(stand)
        await stand.settled(*victims(3, 1), pod(IN_BINDING, requests={"cpu": 1}, priority=1))
        await come(stand, "mid", 50, 4)
        await room.complete("mid")
        stand.scheduler.set_node(node("n2"))
        await stand.settled(*victims(4, 1, on="n2"))
        await come(stand, "high", 100, 2)
        assert stand.bound == {"high-0": "n1"}
        last.set()
        await blocked.end(stand)
        assert room.is_held("mid")
        await room.complete("mid")
        assert stand.bound == {"high-0": "n1", "mid-0": "n2"}


async def test_condition_states_the_preemption(release: Release) -> None:
    async with running(NODE, release=release) as stand:
        Room(stand)
        await stand.settled(*victims(1, 4))
        await come(stand, "g", 100, 4)
        [(status, reason, message)] = conditions(stand)
        assert (status, reason) == ("False", "Unschedulable")
        least = "scheduling policy's minimum threshold (1)" if release.messages_name_pod_group else "minCount (1)"
        assert f"{least} cannot be satisfied" in message
        assert "pod group preemption: found a placement for podgroup, preempting 1 victims" in message


class Preferring:
    """Prefers a node."""

    name = "X"

    def score(self, _state: Any, _pod: Pod, on: Any) -> tuple[int, None]:
        return (100 if on.name == "n1" else 0), None


async def test_nominations_stay_while_victims_are_deleted(release: Release) -> None:
    nodes = [node(f"n{number}", allocatable={"cpu": 1}) for number in (1, 2, 3)]
    async with running(*nodes, of=profile_of(Preferring(), release), release=release) as stand:
        room = Room(stand, graceful=True)
        first = pod("first", on="n1", requests={"cpu": 1}, priority=100)
        others = [pod(f"old-{number}", on=f"n{number}", requests={"cpu": 1}, priority=10) for number in (2, 3)]
        await stand.settled(first, *others)
        await come(stand, "g", 50, 1, 1)
        await room.complete("g")
        nominated = dict(stand.client.nominated)
        assert sorted(nominated.values()) == ["n2", "n3"]
        stand.scheduler.drop(first)
        await stand.pass_time(30)
        assert dict(stand.client.nominated) == nominated
        assert stand.bound == {}
        for one in others:
            stand.scheduler.drop(one)
        await stand.pass_time(30)
        assert sorted(stand.bound) == ["g-0", "g-1"]


class Waiting:
    """Has some pods wait at Permit."""

    name = "X"

    def permit(self, _state: Any, of: Pod, _node_name: str) -> tuple[Status | None, float]:
        return WAIT if of.metadata.name.startswith("victim") else (None, 0.0)


@pytest.mark.parametrize("preempts_in_group", [False, True])
@pytest.mark.parametrize("victims_in_group", [False, True])
async def test_pods_that_wait_at_permit_return(
    release: Release, *, preempts_in_group: bool, victims_in_group: bool
) -> None:
    profile, amounts = profile_of(Waiting(), release), {"cpu": 1}
    async with running(node("n1", allocatable={"cpu": 2}), of=profile, release=release) as stand:
        room = Room(stand)
        make = member if victims_in_group else pod
        given = ("old",) if victims_in_group else ()
        stand.scheduler.take(group("old", 2, priority=10))
        await stand.settled(*(make(f"victim-{one}", *given, requests=amounts, priority=10) for one in range(2)))
        assert stand.bound == {}
        if preempts_in_group:
            await come(stand, "high", 100, 2)
            key = "high"
        else:
            await stand.settled(pod("high-0", requests={"cpu": 2}, priority=100))
            key = "high-0"
        await room.complete(key)
        assert stand.bound == {"high-0": "n1"}
        assert not room.gone
