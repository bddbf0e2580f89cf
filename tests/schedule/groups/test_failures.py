"""Failures of plugins, bindings, extenders and members during the attempt of a pod group."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from policysched.app.configuration.profiles import default_profile
from policysched.framework import AssumedPod, Code, ReservePlugin, Status, unschedulable
from policysched.framework.pod_groups import (
    CandidatePlacement,
    PlacementFeasiblePlugin,
    PlacementProgress,
    PodGroupContext,
)
from policysched.framework.profile import Profile
from policysched.schedule.groups.cycle import CHANGED
from tests.build import node
from tests.groups import GATED, GATED_38, group, member
from tests.plugins.dynamic_resources.objects import allocated, gpu_class, resource_slice
from tests.plugins.dynamic_resources.objects import claim as device_claim
from tests.plugins.dynamic_resources.objects import claiming as using_devices
from tests.plugins.stored import claim, claiming, storage_class, volume
from tests.schedule.groups.parts import PARENT, conditions, is_clean, members, messages, of_group, submit
from tests.schedule.parts import refused
from tests.schedule.stand import ME, Stand, running
from tests.schedule.test_with_extenders import FakeExtender

ERROR = 'parent pod group "g" encountered an error'


class Reserving(ReservePlugin):
    """A Reserve plugin that logs its calls and fails for one pod."""

    name = "Reserving"

    def __init__(self, at: str = "", status: Status | None = None, failing_from: int = 1) -> None:
        self.log: list[str] = []
        self._at, self._status, self._from = at, status, failing_from
        self._calls = 0

    def reserve(self, assumed: AssumedPod) -> Status | None:
        self.log.append(f"+{assumed.pod.metadata.name}")
        if assumed.pod.metadata.name != self._at:
            return None
        self._calls += 1
        return self._status if self._calls >= self._from else None

    def unreserve(self, assumed: AssumedPod) -> None:
        self.log.append(f"-{assumed.pod.metadata.name}")


class Feasible(PlacementFeasiblePlugin):
    """A PlacementFeasible plugin with a prepared answer after the first call."""

    name = "Feasible"

    def __init__(self, answer: Status | Exception) -> None:
        self._answer, self.seen = answer, list[PlacementProgress]()

    def placement_feasible(
        self,
        context: PodGroupContext,  # noqa: ARG002 - the base's signature
        placement: CandidatePlacement,  # noqa: ARG002 - the base's signature
        progress: PlacementProgress,
    ) -> Status | None:
        self.seen.append(progress)
        if progress.remaining == 2:
            return None
        if isinstance(self._answer, Exception):
            raise self._answer
        return self._answer


def profile_with(*reserves: ReservePlugin, **changes: Any) -> Profile:
    made = default_profile(ME, release=GATED_38)
    return replace(made, reserves=(*made.reserves, *reserves), **changes)


async def test_members_are_reserved_in_order_and_undone_in_reverse_order() -> None:
    plugin = Reserving()
    async with running(node("n1"), of=profile_with(plugin), release=GATED_38) as stand:
        await submit(stand, group(least=2), *members(2))
        assert plugin.log == ["+p0", "+p1", "-p1", "-p0", "+p0", "+p1"]
        assert sorted(stand.bound) == ["p0", "p1"]


async def test_rejection_by_reserve_fails_the_member() -> None:
    plugin = Reserving("p1", unschedulable("no"))
    async with running(node("n1"), of=profile_with(plugin), release=GATED_38) as stand:
        await submit(stand, group(least=3), *members(3))
        assert stand.bound == {}
        assert plugin.log == ["+p0", "+p1", "-p1", "-p0"]
        assert messages(stand) == {"p0": PARENT, "p1": "0/1 nodes are available: 1 no.", "p2": PARENT}
        assert is_clean(stand.scheduler.cluster)


async def test_error_of_reserve_ends_the_attempt_of_all_members() -> None:
    plugin = Reserving("p1", Status(Code.ERROR, ("broken",)))
    async with running(node("n1"), of=profile_with(plugin), release=GATED_38) as stand:
        await submit(stand, group(least=2), *members(3))
        assert stand.bound == {}
        own = 'running Reserve plugin "Reserving": broken'
        assert messages(stand) == {"p0": ERROR, "p1": own, "p2": ERROR}
        assert conditions(stand) == [
            ("False", "SchedulerError", f"failed to schedule other pod from a pod group: {own}")
        ]
        assert {one["reason"] for _, one in stand.client.conditions} == {"SchedulerError"}


async def test_error_is_the_message_of_all_members_in_v1_37() -> None:
    plugin = Reserving("p1", Status(Code.ERROR, ("broken",)))
    made = default_profile(ME, release=GATED)
    async with running(node("n1"), of=replace(made, reserves=(plugin,)), release=GATED) as stand:
        await submit(stand, group(least=2), *members(3))
        own = 'running Reserve plugin "Reserving": broken'
        every = f"failed to schedule other pod from a pod group: {own}"
        assert messages(stand) == {"p0": every, "p1": own, "p2": every}


async def test_reserve_that_fails_after_the_cycle_rejects_only_its_member() -> None:
    plugin = Reserving("p1", unschedulable("no"), failing_from=2)
    async with running(node("n1"), of=profile_with(plugin), release=GATED_38) as stand:
        await submit(stand, group(least=3), *members(3))
        assert sorted(stand.bound) == ["p0", "p2"]
        assert messages(stand)["p1"] == "0/1 nodes are available: 1 no."
        assert conditions(stand)[0] == ("True", "Scheduled", "")
        assert is_clean(stand.scheduler.cluster)


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (RuntimeError("x"), "running PlacementFeasible plugin: RuntimeError('x')"),
        (Status(Code.SKIP), "unexpected status code (Skip) from PlacementFeasible plugin: "),
    ],
)
async def test_failing_placement_feasible_is_an_error(answer: Any, message: str) -> None:
    of = profile_with(placement_feasible=(Feasible(answer),))
    async with running(node("n1"), of=of, release=GATED_38) as stand:
        await submit(stand, group(least=1), *members(2))
        assert stand.bound == {}
        assert conditions(stand) == [
            ("False", "SchedulerError", f"failed to evaluate placement feasibility: {message}")
        ]
        assert is_clean(stand.scheduler.cluster)


async def test_wait_after_the_last_member_is_a_rejection() -> None:
    plugin = Feasible(Status(Code.WAIT, ("not yet",)))
    async with running(node("n1"), of=profile_with(placement_feasible=(plugin,)), release=GATED_38) as stand:
        await submit(stand, group(least=1), *members(2))
        assert plugin.seen[:3] == [(0, 0, 2, 0), (1, 0, 1, 1), (2, 0, 0, 2)]
        assert conditions(stand)[0][2].startswith("not yet, ")
        assert stand.bound == {}


async def test_exception_in_a_cycle_retries_the_group(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(node("n1"), release=GATED_38) as stand:
        engine = stand.scheduler._engines[ME]
        decide, calls = engine.decide, list[str]()

        def failing(pod: Any, *given: Any) -> Any:
            calls.append(pod.metadata.name)
            if len(calls) == 2:
                raise RuntimeError("once")
            return decide(pod, *given)

        monkeypatch.setattr(engine, "decide", failing)
        await submit(stand, group(least=2), *members(2))
        assert stand.bound == {}
        assert is_clean(stand.scheduler.cluster)
        assert not stand.scheduler.cluster.pods.by_id
        assert conditions(stand) == [("False", "SchedulerError", "the scheduling cycle failed: RuntimeError('once')")]
        await stand.pass_time(30)
        assert sorted(stand.bound) == ["p0", "p1"]


async def test_failed_binding_of_a_member_leaves_the_others() -> None:
    async with running(node("n1"), release=GATED_38) as stand:
        stand.client.errors["bind"] = [None, refused(500), None]
        await submit(stand, group(least=3), *members(3))
        await stand.pass_time(30)
        assert sorted(stand.bound) == ["p0", "p1", "p2"]
        assert conditions(stand) == [("True", "Scheduled", "")]


async def test_members_of_one_group_agree_about_the_scheduler() -> None:
    async with running(node("n1"), release=GATED_38) as stand:
        one, two = members(2)
        two = structs.replace(two, spec=structs.replace(two.spec, node_name="n1", scheduler_name="other"))
        await submit(stand, group(least=2), one, two)
        message = (
            "all pods in a pod group hierarchy should have the same .spec.schedulerName set, "
            f'got: "other" ("p1") and "{ME}" ("p0")'
        )
        assert conditions(stand) == [("False", "PodGroupError", message)]
        assert messages(stand) == {"p0": message}
        assert stand.client.conditions[0][1]["reason"] == "SchedulerError"


async def test_members_of_one_group_agree_about_priority_and_policy() -> None:
    async with running(node("n1"), release=GATED_38) as stand:
        await submit(stand, group(least=1, priority=5), member("p0", priority=4))
        told = "all pods in a pod group hierarchy should have the same"
        assert conditions(stand)[0][2] == (
            f'{told} priority as the root pod group\'s priority, got 4 ("p0") and 5 ("podgroup/default/g")'
        )
        await submit(stand, group("h", least=1), member("p1", "h"))
        await submit(stand, group("i", least=1, preemption_policy="Never"), member("p2", "i"))
        assert conditions(stand)[-1][2] == (f'{told} preemption policy, got PreemptLowerPriority ("p2") and Never')


async def test_texts_about_members_that_disagree_in_v1_37() -> None:
    async with running(node("n1"), release=GATED) as stand:
        await submit(stand, group(least=1, priority=5), member("p0", priority=4))
        assert conditions(stand) == [
            (
                "False",
                "SchedulerError",
                "all pods in a single pod group should have the same priority as the pod group's priority, got 4 and 5",
            )
        ]


def with_extender(extender: FakeExtender) -> Profile:
    return replace(default_profile(ME, release=GATED_38), extenders=(extender,))


async def test_extenders_are_called_for_each_member() -> None:
    extender = FakeExtender(passes=frozenset({"n2"}))
    async with running(node("n1"), node("n2"), of=with_extender(extender), release=GATED_38) as stand:
        await submit(stand, group(least=2), *members(2))
        assert stand.bound == {"p0": "n2", "p1": "n2"}
        assert [verb for verb, _ in extender.asked] == ["filter", "filter"]


async def test_failing_extender_fails_the_group() -> None:
    extender = FakeExtender(error="gone")
    async with running(node("n1"), of=with_extender(extender), release=GATED_38) as stand:
        await submit(stand, group(least=2), *members(2))
        assert conditions(stand) == [("False", "SchedulerError", "failed to schedule other pod from a pod group: gone")]


async def held(stand: Stand, extender: FakeExtender, calls: int) -> asyncio.Event:
    """Let the extender wait at its last call; return what ends the wait."""
    go, arrived = asyncio.Event(), asyncio.Event()

    async def hold() -> None:
        if len(extender.asked) == calls:
            arrived.set()
            await go.wait()

    extender.hold = hold
    await submit(stand, group(least=2), *members(2))
    await asyncio.wait_for(arrived.wait(), 5)
    return go


@pytest.mark.parametrize("number", [0, 1])
async def test_member_that_is_deleted_while_extenders_are_called_rejects_a_gang_below_its_minimum(number: int) -> None:
    extender = FakeExtender()
    async with running(node("n1"), of=with_extender(extender), release=GATED_38) as stand:
        go = await held(stand, extender, 2)
        stand.scheduler.remove_pod(f"default.p{number}")
        go.set()
        await stand.settle()
        assert stand.bound == {}
        assert is_clean(stand.scheduler.cluster)
        assert not stand.scheduler.cluster.pods.by_id


async def test_node_that_is_deleted_while_extenders_are_called_fails_the_attempt() -> None:
    extender = FakeExtender(passes=frozenset({"n1"}))
    async with running(node("n1"), node("n2"), of=with_extender(extender), release=GATED_38) as stand:
        go = await held(stand, extender, 2)
        extender.passes = frozenset({"n2"})
        stand.scheduler.remove_node("n1")
        go.set()
        await stand.settle()
        assert stand.bound == {}
        assert is_clean(stand.scheduler.cluster)
        await stand.pass_time(30)
        assert stand.bound == {"p0": "n2", "p1": "n2"}


async def test_scheduled_member_that_is_deleted_while_extenders_are_called_fails_the_attempt() -> None:
    extender = FakeExtender()
    async with running(node("n1"), node("n2"), of=with_extender(extender), release=GATED_38) as stand:
        stand.scheduler.set_pod(member("before", on="n2"))
        go, arrived = asyncio.Event(), asyncio.Event()

        async def hold() -> None:
            arrived.set()
            await go.wait()

        extender.hold = hold
        await submit(stand, group(least=3), *members(2))
        await asyncio.wait_for(arrived.wait(), 5)
        stand.scheduler.remove_pod("default.before")
        go.set()
        await stand.settle()
        assert stand.bound == {}
        assert conditions(stand)[-1] == ("False", "SchedulerError", CHANGED)
        assert is_clean(stand.scheduler.cluster)


async def test_volumes_of_members_are_given_back() -> None:
    local = volume("v", nodes={"kubernetes.io/hostname": ["n1"]}, of="wait")
    async with running(node("n1", labels={"kubernetes.io/hostname": "n1"}), release=GATED_38) as stand:
        stored = (storage_class(provisioner="kubernetes.io/no-provisioner"), local, claim("c0"), claim("c1"))
        for one in stored:
            stand.scheduler.take(one)
        await submit(stand, group(least=2), *(of_group(claiming(f"p{one}", f"c{one}")) for one in range(2)))
        assert stand.bound == {}
        assert messages(stand)["p0"] == PARENT
        assert "didn't find available persistent volumes to bind" in messages(stand)["p1"]
        found = stand.scheduler.cluster.storage.volumes.get("v")
        assert found is not None
        assert found.spec.claim_ref is None
        assert is_clean(stand.scheduler.cluster)


async def test_devices_of_members_are_given_back() -> None:
    async with running(node("n1"), release=GATED_38) as stand:
        for one in (gpu_class(), resource_slice("n1", "d1"), device_claim("c0"), device_claim("c1")):
            stand.scheduler.take(one)
        pods = [of_group(using_devices(f"c{one}", name=f"p{one}")) for one in range(2)]
        await submit(stand, group(least=2), *pods)
        assert stand.bound == {}
        assert messages(stand)["p0"] == PARENT
        assert "cannot allocate all claims" in messages(stand)["p1"]
        assert is_clean(stand.scheduler.cluster)
        stand.scheduler.take(resource_slice("n2", "d1"))
        stand.scheduler.set_node(node("n2"))
        await stand.pass_time(30)
        assert sorted(stand.bound.values()) == ["n1", "n2"]


async def test_members_share_a_claim_that_the_first_of_them_allocates() -> None:
    async with running(node("n1"), node("n2"), release=GATED_38) as stand:
        for one in (gpu_class(), resource_slice("n1", "d1"), resource_slice("n2", "d1"), device_claim("c")):
            stand.scheduler.take(one)
        pods = [of_group(using_devices("c", name=f"p{one}", requests={"cpu": 2})) for one in range(2)]
        await submit(stand, group(least=2), *pods)
        assert len(stand.bound) == 2
        assert len(set(stand.bound.values())) == 1
        claims = stand.scheduler.cluster.resource_claims
        written = claims.get("default/c")
        assert written is not None
        assert [one.name for one in written.status.reserved_for] == ["p0", "p1"]
        assert is_clean(stand.scheduler.cluster)


async def test_claim_of_members_that_do_not_fit_is_given_back() -> None:
    async with running(node("n1"), node("n2"), release=GATED_38) as stand:
        for one in (gpu_class(), resource_slice("n1", "d1"), resource_slice("n2", "d1"), device_claim("c")):
            stand.scheduler.take(one)
        pods = [of_group(using_devices("c", name=f"p{one}", requests={"cpu": 3})) for one in range(2)]
        await submit(stand, group(least=2), *pods)
        assert stand.bound == {}
        assert "resourceclaim not available on the node" in messages(stand)["p1"]
        written = stand.scheduler.cluster.resource_claims.get("default/c")
        assert written is not None
        assert written.status.allocation is None
        assert is_clean(stand.scheduler.cluster)


async def test_failed_write_of_a_shared_claim_leaves_it_to_the_other_members(monkeypatch: pytest.MonkeyPatch) -> None:
    async with running(node("n1"), release=GATED_38) as stand:
        for one in (gpu_class(), resource_slice("n1", "d1"), device_claim("c")):
            stand.scheduler.take(one)
        refuse, client = [refused(500)], stand.client.claims
        allocate = client.allocate

        async def once(of: Any) -> Any:
            if refuse:
                raise refuse.pop()
            return await allocate(of)

        monkeypatch.setattr(client, "allocate", once)
        pods = [of_group(using_devices("c", name=f"p{one}")) for one in range(2)]
        await submit(stand, group(least=2), *pods)
        await stand.pass_time(30)
        assert sorted(stand.bound) == ["p0", "p1"]
        assert is_clean(stand.scheduler.cluster)


async def test_claim_that_a_member_cannot_use_is_deallocated_if_the_group_is_rejected() -> None:
    async with running(node("n1", allocatable={"cpu": "1"}), node("n2"), release=GATED_38) as stand:
        for one in (gpu_class(), resource_slice("n1", "d1"), resource_slice("n2", "d1")):
            stand.scheduler.take(one)
        stand.scheduler.take(allocated(device_claim("c"), "n1", "d1"))
        pods = [member("p0"), of_group(using_devices("c", name="p1", requests={"cpu": 2}))]
        await submit(stand, group(least=2), *pods)
        assert stand.bound == {}
        written = stand.scheduler.cluster.resource_claims.get("default/c")
        assert written is not None
        assert written.status.allocation is None
        await stand.pass_time(30)
        assert stand.bound["p1"] == "n2"
        assert is_clean(stand.scheduler.cluster)
