"""Events that requeue waiting pods: changes of the cluster and of policies."""

from __future__ import annotations

from typing import Any

import pytest
from msgspec.structs import replace

from policysched.model.objects import (
    Metadata,
    Namespace,
    Pod,
    PodStatus,
    SchedulingGate,
    Taint,
)
from policysched.rules.policy_set.policy_set import PolicySet
from tests.build import node, pod
from tests.plugins.dynamic_resources.objects import claim, claiming, gpu_class, resource_slice
from tests.rules.build import filtering, policy_set
from tests.schedule.stand import BIG, running

POLICY = "SchedulingPolicy/p"


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
        lambda s: s.take(Namespace(metadata=Metadata(name="other"))),
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


async def test_devices_that_are_published_wake_the_pods_that_lack_them() -> None:
    async with running(node("n1")) as stand:
        for one in (gpu_class(), claim("c")):
            stand.scheduler.take(one)
        await stand.settled(claiming("c"))
        assert (stand.bound, stand.waiting) == ({}, 1)
        stand.scheduler.take(resource_slice("n1", "d1"))
        await stand.settle()
        assert stand.bound == {"p": "n1"}


# Policies


IS_X = filtering('node.labels["k"] == "x"')


async def test_a_changed_policy_requeues_the_pods_it_had_rejected_and_no_others() -> None:
    async with running(node("n1")) as stand:
        assert stand.scheduler.use_policies(policy_set(p={"filters": IS_X}), frozenset()) == 0
        await stand.settled(pod("rejected"), BIG, pod("huge", requests={"cpu": 9}))
        assert (stand.bound, stand.waiting) == ({}, 3)
        assert (
            stand.scheduler.use_policies(policy_set(p={"filters": filtering("node.cordoned")}), frozenset({POLICY}))
            == 2
        )
        await stand.settle()
        assert (stand.bound, stand.waiting) == ({}, 3)
        assert stand.scheduler.use_policies(PolicySet(), frozenset({POLICY})) == 2
        await stand.settle()
        assert (stand.bound, stand.waiting) == ({"rejected": "n1", "big": "n1"}, 1)


async def test_a_policy_s_own_inputs_wake_the_pods_it_rejected() -> None:
    async with running(node("n1")) as stand:
        stand.scheduler.use_policies(policy_set(p={"filters": IS_X}), frozenset())
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
        stand.scheduler.use_policies(policy_set(p={"filters": gold}), frozenset())
        await stand.settled(pod())
        assert stand.waiting == 1
        stand.scheduler.take(Namespace(metadata=Metadata(name="default", labels={"tier": "gold"})))
        await stand.settle()
        assert stand.bound == {"p": "n1"}


async def test_more_nodes_wake_the_pods_of_a_policy_that_counts_them() -> None:
    async with running(node("n1", labels={"k": "x"})) as stand:
        counting = filtering('cluster.nodes > 1 and node.labels["k"] == "x"')
        stand.scheduler.use_policies(policy_set(p={"filters": counting}), frozenset())
        await stand.settled(pod())
        assert stand.waiting == 1
        stand.scheduler.set_node(node("n2"))
        await stand.settle()
        assert stand.bound == {"p": "n1"}


async def test_the_labels_of_a_namespace_that_is_gone_are_forgotten() -> None:
    async with running(node("n1")) as stand:
        gold = filtering('pod.namespace_labels["tier"] == "gold"')
        stand.scheduler.use_policies(policy_set(p={"filters": gold}), frozenset())
        stand.scheduler.take(Namespace(metadata=Metadata(name="default", labels={"tier": "gold"})))
        await stand.settled(pod("a"))
        stand.scheduler.drop(Namespace(metadata=Metadata(name="default")))
        await stand.settled(pod("b"))
        assert stand.bound == {"a": "n1"}


# Nominated pods


@pytest.mark.parametrize(
    "end",
    [
        lambda s, keeper: s.take(replace(keeper, status=PodStatus())),
        lambda s, keeper: s.take(replace(keeper, status=PodStatus(nominated_node_name="elsewhere"))),
        lambda s, keeper: s.drop(keeper),
    ],
)
async def test_end_of_a_nomination_wakes_those_of_its_priority_and_below(end: Any) -> None:
    async with running(node("n1")) as stand:
        keeper = pod("keeper", requests={"cpu": 3}, priority=9, scheduling_gates=[SchedulingGate(name="g")])
        keeper = replace(keeper, status=PodStatus(nominated_node_name="n1"))
        low, equal = (pod(name, requests={"cpu": 2}, priority=at) for name, at in (("low", 0), ("equal", 9)))
        await stand.settled(keeper, low, equal, pod("high", requests={"cpu": 5}, priority=20))
        assert {name: stand.attempts(name) for name in ("low", "equal", "high")} == {"low": 1, "equal": 1, "high": 1}
        end(stand.scheduler, keeper)
        await stand.settle()
        assert (set(stand.bound), stand.attempts("high")) == ({"low", "equal"}, 1)


async def test_nomination_of_another_scheduler_s_pod_is_kept_and_its_end_wakes() -> None:
    async with running(node("n1")) as stand:
        keeper = pod("keeper", requests={"cpu": 3}, priority=9, scheduler_name="another")
        keeper = replace(keeper, status=PodStatus(nominated_node_name="n1"))
        await stand.settled(keeper, pod("low", requests={"cpu": 2}))
        assert (stand.bound, stand.waiting) == ({}, 1)
        stand.scheduler.drop(keeper)
        await stand.settle()
        assert set(stand.bound) == {"low"}
