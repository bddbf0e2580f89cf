from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace

from policysched.app.profiles import default_profile
from policysched.framework import Cluster, Codes, Rows
from policysched.framework.profile import Profile
from policysched.model.objects import (
    DeviceClass,
    DeviceClassSpec,
    Metadata,
    Namespace,
    Pod,
    PodStatus,
    Taint,
)
from policysched.rules.policyset import PolicySet
from policysched.schedule.scheduler import Scheduler
from tests.build import node, pod
from tests.rules.build import filtering, policy_set
from tests.schedule.parts import FakeClient, FakeFilter, profile, refused
from tests.schedule.queue_parts import StandingClock

ME = "default-scheduler"
POLICY = "SchedulingPolicy/p"


class Stand:
    """A scheduler with a client that remembers and a clock that only moves when it is told to."""

    def __init__(self, of: Profile | None = None) -> None:
        self.clock = StandingClock()
        self.client = FakeClient()
        profiles = {ME: of if of is not None else default_profile(ME)}
        self.scheduler = Scheduler(profiles, self.client, self.clock, random.Random(0))
        self.task: asyncio.Task[None] | None = None

    async def settle(self) -> None:
        """Let everything happen that can happen now."""
        for _ in range(30):
            await asyncio.sleep(0)

    async def settled(self, *pods: Pod) -> None:
        for one in pods:
            self.scheduler.set_pod(one)
        await self.settle()

    def confirm(self, of: Pod, name: str) -> None:
        self.scheduler.set_pod(replace(of, spec=replace(of.spec, node_name=name)))

    @property
    def bound(self) -> dict[str, str]:
        return {key.removeprefix("default/"): name for key, name in self.client.bound}

    @property
    def notes(self) -> list[str]:
        return [event.note for event in self.client.events if event.reason == "FailedScheduling"]

    @property
    def waiting(self) -> int:
        return self.scheduler.queue.counts().unschedulable


@asynccontextmanager
async def running(*nodes: Any, of: Profile | None = None) -> AsyncIterator[Stand]:
    stand = Stand(of)
    for one in nodes:
        stand.scheduler.set_node(one)
    stand.task = asyncio.create_task(stand.scheduler.run())
    await stand.settle()
    yield stand
    stand.task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await stand.task


async def test_a_pending_pod_is_bound_and_counts_at_once() -> None:
    async with running(node("n1", allocatable={"cpu": 1})) as stand:
        await stand.settled(pod("a", requests={"cpu": 1}), pod("b", requests={"cpu": 1}))
        assert stand.bound == {"a": "n1"}
        assert stand.notes[0].startswith("0/1 nodes are available: 1 Insufficient cpu.")


@pytest.mark.parametrize(
    "of",
    [
        pod(scheduler_name="another"),
        replace(pod(), status=PodStatus(phase="Succeeded")),
        pod(on="n1"),
    ],
)
async def test_only_its_own_pending_pods_are_scheduled(of: Pod) -> None:
    async with running(node("n1")) as stand:
        await stand.settled(of)
        assert (stand.bound, stand.notes, stand.scheduler.queue.counts().active) == ({}, [], 0)


async def test_a_pod_that_is_being_deleted_is_skipped_with_an_event() -> None:
    async with running(node("n1")) as stand:
        of = replace(pod(), metadata=replace(pod().metadata, deletion_timestamp="2026-01-01T00:00:00Z"))
        await stand.settled(of)
        assert (stand.bound, stand.notes) == ({}, ["skip schedule deleting pod: default/p"])
        assert stand.scheduler.queue.in_flight == (0, 0)


async def test_without_nodes_a_pod_is_tried_again_after_a_backoff() -> None:
    async with running() as stand:
        await stand.settled(pod())
        assert stand.notes == ["no nodes available to schedule pods"]
        assert stand.scheduler.queue.counts().backoff == 1


# What wakes a pod


BIG = pod("big", requests={"cpu": 3})


@pytest.mark.parametrize(
    ("of", "before", "change"),
    [
        (BIG, [node("n1", allocatable={"cpu": 1})], lambda s: s.set_node(node("n2"))),
        (BIG, [node("n1", allocatable={"cpu": 1})], lambda s: s.set_node(node("n1"))),
        (pod(node_selector={"a": "b"}), [node("n1")], lambda s: s.set_node(node("n1", labels={"a": "b"}))),
        (pod(), [node("n1", taints=[Taint(key="k", effect="NoSchedule")])], lambda s: s.set_node(node("n1"))),
        (pod(), [node("n1", unschedulable=True)], lambda s: s.set_node(node("n1"))),
        (BIG, [node("n1"), pod("other", on="n1", requests={"cpu": 3})], lambda s: s.remove_pod("default.other")),
        (
            BIG,
            [node("n1"), pod("other", on="n1", requests={"cpu": 3})],
            lambda s: s.set_pod(pod("other", on="n1", requests={"cpu": 1})),
        ),
        (
            BIG,
            [node("n1"), pod("other", on="n1", requests={"cpu": 3})],
            lambda s: s.set_pod(
                replace(pod("other", on="n1", requests={"cpu": 3}), status=PodStatus(phase="Succeeded"))
            ),
        ),
        (
            BIG,
            [node("n1"), node("n2", allocatable={"cpu": 1}), pod("other", on="n1", requests={"cpu": 3})],
            lambda s: s.set_pod(pod("other", on="n2", requests={"cpu": 3})),
        ),
    ],
)
async def test_a_change_that_helps_wakes_a_waiting_pod(of: Pod, before: list[Any], change: Any) -> None:
    async with running() as stand:
        for one in before:
            stand.scheduler.set_pod(one) if isinstance(one, Pod) else stand.scheduler.set_node(one)
        await stand.settled(of)
        assert (stand.bound, stand.waiting) == ({}, 1)
        change(stand.scheduler)
        await stand.settle()
        assert set(stand.bound) == {of.metadata.name}


@pytest.mark.parametrize(
    "change",
    [
        lambda s: s.set_node(node("n2", allocatable={"cpu": 2})),
        lambda s: s.set_node(node("n1", allocatable={"cpu": 1}, labels={"a": "b"})),
        lambda s: s.set_pod(pod("other", on="n1")),
        lambda s: s.set_namespace(Namespace(metadata=Metadata(name="other"))),
        lambda s: s.remove_node("n1"),
    ],
)
async def test_a_change_that_cannot_help_wakes_nobody(change: Any) -> None:
    async with running(node("n1", allocatable={"cpu": 1})) as stand:
        await stand.settled(BIG)
        notes = len(stand.notes)
        change(stand.scheduler)
        await stand.settle()
        assert (len(stand.notes), stand.waiting) == (notes, 1)


async def test_a_device_class_that_goes_wakes_the_pods_it_had_stopped() -> None:
    async with running(node("n1", allocatable={"x.io/y": 1})) as stand:
        spec = DeviceClassSpec(extended_resource_name="x.io/y")
        stand.scheduler.set_device_class(DeviceClass(metadata=Metadata(name="c"), spec=spec))
        await stand.settled(pod(requests={"x.io/y": 1}))
        assert (stand.bound, stand.waiting) == ({}, 1)
        stand.scheduler.remove_device_class("c")
        await stand.settle()
        assert stand.bound == {"p": "n1"}


# Policies


def ready(**specs: Any) -> PolicySet:
    return policy_set(**specs)


IS_X = filtering('node.labels["k"] == "x"')


async def test_a_changed_policy_requeues_the_pods_it_had_rejected_and_no_others() -> None:
    async with running(node("n1")) as stand:
        assert stand.scheduler.use_policies(ready(p={"filters": IS_X}), frozenset()) == 0
        await stand.settled(pod("rejected"), BIG, pod("huge", requests={"cpu": 9}))
        assert (stand.bound, stand.waiting) == ({}, 3)
        assert stand.scheduler.use_policies(ready(p={"filters": filtering("node.cordoned")}), frozenset({POLICY})) == 2
        await stand.settle()
        assert (stand.bound, stand.waiting) == ({}, 3)
        assert stand.scheduler.use_policies(PolicySet(), frozenset({POLICY})) == 2
        await stand.settle()
        assert stand.bound in ({"rejected": "n1", "big": "n1"}, {"rejected": "n1"})
        assert [note for note in stand.notes if "huge" in note] == []


async def test_a_policy_s_own_inputs_wake_the_pods_it_rejected() -> None:
    async with running(node("n1")) as stand:
        stand.scheduler.use_policies(ready(p={"filters": IS_X}), frozenset())
        await stand.settled(pod())
        assert stand.waiting == 1
        assert stand.notes[0].startswith(
            '0/1 nodes are available: 1 policy p/r: node.labels["k"] == "x".'
        )  # fmt: skip
        stand.scheduler.set_node(node("n1", labels={"k": "y"}))
        await stand.settle()
        assert (stand.bound, len(stand.notes)) == ({}, 1)
        stand.scheduler.set_node(node("n1", labels={"k": "x"}))
        await stand.settle()
        assert stand.bound == {"p": "n1"}


async def test_a_namespace_that_is_labelled_wakes_and_is_seen() -> None:
    async with running(node("n1")) as stand:
        gold = filtering('pod.namespace_labels["tier"] == "gold"')
        stand.scheduler.use_policies(ready(p={"filters": gold}), frozenset())
        await stand.settled(pod())
        assert stand.waiting == 1
        stand.scheduler.set_namespace(Namespace(metadata=Metadata(name="default", labels={"tier": "gold"})))
        await stand.settle()
        assert stand.bound == {"p": "n1"}


async def test_more_nodes_wake_the_pods_of_a_policy_that_counts_them() -> None:
    async with running(node("n1", labels={"k": "x"})) as stand:
        counting = filtering('cluster.nodes > 1 and node.labels["k"] == "x"')
        stand.scheduler.use_policies(ready(p={"filters": counting}), frozenset())
        await stand.settled(pod())
        assert stand.waiting == 1
        stand.scheduler.set_node(node("n2"))
        await stand.settle()
        assert stand.bound == {"p": "n1"}


# Attempts that meet something


class Holding:
    """Keeps bindings from ending until it is told to let go."""

    def __init__(self, stand: Stand) -> None:
        self.started = 0
        self._go = asyncio.Event()
        stand.client.on_bind = self._wait

    async def _wait(self, *_: Any) -> None:
        self.started += 1
        await self._go.wait()

    async def release(self, stand: Stand) -> None:
        self._go.set()
        await stand.settle()


async def test_an_assumed_pod_is_not_tried_twice() -> None:
    async with running(node("n1")) as stand:
        holding = Holding(stand)
        await stand.settled(pod())
        await stand.settled(pod(labels={"a": "b"}), pod(labels={"a": "c"}))
        assert holding.started == 1
        await holding.release(stand)
        assert stand.client.bound == [("default/p", "n1")]


async def test_a_pod_deleted_while_it_is_bound_frees_its_node_at_once() -> None:
    async with running(node("n1", allocatable={"cpu": 3})) as stand:
        holding = Holding(stand)
        await stand.settled(pod("first", requests={"cpu": 3}), BIG)
        assert stand.waiting == 1
        stand.scheduler.remove_pod("default.first")
        await stand.settle()
        assert holding.started == 2
        await holding.release(stand)
        assert stand.scheduler.queue.in_flight == (0, 0)


async def test_a_pod_that_is_to_be_deleted_while_it_is_bound_frees_its_node_at_once() -> None:
    async with running(node("n1", allocatable={"cpu": 3})) as stand:
        holding = Holding(stand)
        first = pod("first", requests={"cpu": 3})
        await stand.settled(first, BIG)
        going = replace(first, metadata=replace(first.metadata, deletion_timestamp="2026-01-01T00:00:00Z"))
        await stand.settled(going)
        assert holding.started == 2
        stand.client.errors["bind"] = [refused(409, "is being deleted")]
        await holding.release(stand)


async def test_a_binding_that_failed_is_tried_with_the_newest_version_of_the_pod() -> None:
    async with running(node("n1", labels={"a": "b"})) as stand:
        holding = Holding(stand)
        stand.client.errors["bind"] = [refused(500)]
        await stand.settled(pod())
        await stand.settled(pod(node_selector={"no": "such"}))
        await holding.release(stand)
        stand.clock.at += 3
        await stand.settled(pod("other"))
        assert stand.bound == {"other": "n1"}
        assert any("node affinity/selector" in note for note in stand.notes)


async def test_a_pod_bound_elsewhere_by_another_client_frees_the_assumed_node_for_others() -> None:
    async with running(node("n1", allocatable={"cpu": 3})) as stand:
        holding = Holding(stand)
        first = pod("first", requests={"cpu": 3})
        await stand.settled(first, BIG)
        assert stand.waiting == 1
        stand.client.errors["bind"] = [refused(409, "already assigned")]
        stand.confirm(first, "elsewhere")
        await stand.settle()
        assert holding.started == 2
        await holding.release(stand)
        assert stand.bound == {"big": "n1"}


async def test_a_confirmed_pod_counts_once() -> None:
    async with running(node("n1")) as stand:
        await stand.settled(pod(requests={"cpu": 3}))
        stand.confirm(pod(requests={"cpu": 3}), "n1")
        assert stand.scheduler.cluster.nodes.requested("cpu")[0] == 3000
        stand.scheduler.remove_pod("default.p")
        assert stand.scheduler.cluster.nodes.requested("cpu")[0] == 0


class Raising(FakeFilter):
    def filter(self, state: Cluster, rows: Rows) -> Codes:  # noqa: ARG002 - it fails whatever it is asked
        raise RuntimeError("a bug")


async def test_a_plugin_that_raises_fails_its_pod_and_nothing_else() -> None:
    async with running(node("n1"), of=profile([Raising("R")])) as stand:
        await stand.settled(pod())
        [(_, condition)] = stand.client.conditions
        assert condition["reason"] == "SchedulerError"
        assert "a bug" in condition["message"]
        assert stand.scheduler.queue.counts().backoff == 1
        assert stand.task is not None
        assert not stand.task.done()


async def test_bindings_under_way_end_after_the_last_cycle() -> None:
    stand = Stand()
    stand.scheduler.set_node(node("n1"))
    holding = Holding(stand)
    task = asyncio.create_task(stand.scheduler.run())
    await stand.settled(pod())
    task.cancel()
    await stand.settle()
    assert (task.done(), holding.started) == (False, 1)
    await holding.release(stand)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert stand.bound == {"p": "n1"}
