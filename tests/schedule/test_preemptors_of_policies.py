"""Preemption that a policy prevents: the pod is tried again when data that the policy read changes."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from msgspec.structs import replace

from policysched.model.objects import Node
from policysched.schedule.scheduler import Scheduler
from tests.build import node, pod
from tests.rules.build import filtering, policy_set
from tests.schedule.stand import Stand, running

FLUSHED = 300


def annotated() -> Node:
    made = node("n1", labels={"k": "0"})
    return replace(made, metadata=replace(made.metadata, annotations={"k": "1"}))


def put(made: Node) -> Callable[[Scheduler], object]:
    return lambda scheduler: scheduler.set_node(made)


CHANGES: dict[str, Callable[[Scheduler], object]] = {
    'node.labels["k"] == "1"': put(node("n1", labels={"k": "1"})),
    'node.annotations["k"] == "1"': put(annotated()),
    "cluster.nodes > 1": put(node("n2", allocatable={"cpu": 1})),
    'not node.pods.any(peer.labels["a"] == "y")': lambda scheduler: scheduler.set_pod(
        pod("small", on="n1", labels={"a": "z"}, priority=100)
    ),
}


async def waiting(stand: Stand, rule: str) -> None:
    """Let a pod wait that could preempt on a full node without a rule."""
    policies = policy_set(p={"filters": filtering(rule), "podSelector": {"matchLabels": {"w": "1"}}})
    stand.scheduler.use_policies(policies, frozenset({"SchedulingPolicy/p"}))
    await stand.settled(pod("low", on="n1", requests={"cpu": 4}, priority=0))
    await stand.settled(pod("small", on="n1", labels={"a": "y"}, priority=100))
    await stand.settled(pod("w", labels={"w": "1"}, requests={"cpu": 3}, priority=10))
    assert "Insufficient cpu" in stand.notes[-1]
    assert f"preemption: 0/1 nodes are available: 1 policy p/r: {rule}." in stand.notes[-1]
    for _ in range(4):
        await stand.pass_time(5)
    assert stand.attempts("w") == 1


@pytest.mark.parametrize("rule", [*CHANGES])
async def test_a_preemptor_is_tried_again_when_what_a_rule_reads_changes(rule: str) -> None:
    async with running(node("n1", labels={"k": "0"})) as stand:
        await waiting(stand, rule)
        CHANGES[rule](stand.scheduler)
        await stand.settle()
        assert stand.attempts("w") == 2
        assert stand.client.deleted == ["default/low"] or rule == "cluster.nodes > 1"


async def test_a_preemptor_is_tried_again_when_the_time_comes() -> None:
    async with running(node("n1")) as stand:
        await waiting(stand, 'clock("00:31", "06:00")')  # the fixed clock is at 00:17
        for _ in range(41):
            await stand.pass_time(20)
        assert stand.attempts("w") <= 1 + 860 // FLUSHED
        before = stand.attempts("w")
        await stand.pass_time(20)
        await stand.settle()
        assert stand.attempts("w") == before + 1


async def test_a_preemptor_is_not_tried_again_by_a_change_that_no_rule_reads() -> None:
    async with running(node("n1", labels={"k": "0"})) as stand:
        await waiting(stand, 'node.labels["k"] == "1"')
        stand.scheduler.set_node(node("n1", labels={"k": "0", "other": "1"}))
        await stand.settle()
        assert stand.attempts("w") == 1
