"""A change between a pod's decision and its rejection: a pod that it helps is tried again."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import pytest

from policysched.model.objects import Pod
from tests.build import node, pod
from tests.rules.build import filtering, policy_set
from tests.schedule.stand import Stand, running
from tests.schedule.test_with_extenders import FakeExtender, extended

LABELLED = 'node.labels["k"] == "x"'
AT_NIGHT = f'{LABELLED} or clock("00:20", "06:00")'
HIGH = pod("high", requests={"cpu": 4}, priority=10)


class Slow(FakeExtender):
    """An extender that is slow in preemption and leaves no candidate."""

    async def preempt(self, _: Pod, candidates: Mapping[str, Any]) -> dict[str, Any]:
        await self._ask("preempt", tuple(sorted(candidates)))
        return {}


@asynccontextmanager
async def searching(rule: str) -> AsyncIterator[tuple[Stand, asyncio.Event]]:
    """Start a scheduler with a pod that only a policy keeps from a node, during a slow call of an extender.

    It is 00:16:40.
    """
    go = asyncio.Event()
    slow = Slow(filters=False, prioritizes=False, preempts=True, hold=go.wait)
    async with running(node("n1"), node("n2", labels={"k": "x"}), of=extended(slow)) as stand:
        rules = policy_set(p={"filters": filtering(rule)})
        stand.scheduler.use_policies(rules, frozenset({"SchedulingPolicy/p"}))
        await stand.settled(pod("low", on="n2", requests={"cpu": 4}), HIGH)
        assert slow.asked == [("preempt", ("n2",))]
        yield stand, go


async def end(stand: Stand, go: asyncio.Event) -> None:
    go.set()
    await stand.settle()
    await stand.pass_time(20.0)


async def test_a_change_that_helps_is_not_missed() -> None:
    async with searching(LABELLED) as (stand, go):
        stand.scheduler.set_node(node("n1", labels={"k": "x"}))
        await end(stand, go)
        assert stand.bound == {"high": "n1"}


async def test_nor_is_one_that_another_pod_of_its_kind_heard_of() -> None:
    async with searching(LABELLED) as (stand, go):
        await stand.settled(pod("twin", requests={"cpu": 4}, priority=10))
        stand.scheduler.set_node(node("n1", labels={"k": "x"}))
        await end(stand, go)
        assert len(stand.bound) == 1
        assert stand.attempts("high") + stand.attempts("twin") > 0


async def test_a_rule_that_holds_by_now_is_not_missed() -> None:
    async with searching(AT_NIGHT) as (stand, go):
        await stand.pass_time(300.0)
        await end(stand, go)
        assert stand.bound == {"high": "n1"}


async def test_the_pod_waits_for_the_end_of_its_backoff_though_nothing_else_is_to_be_done() -> None:
    async with searching(LABELLED) as (stand, go):
        stand.scheduler.set_node(node("n1", labels={"other": "x"}))
        go.set()
        await stand.settle()
        assert stand.attempts("high") == 1
        await stand.pass_time(3.0)
        assert stand.attempts("high") == 2


async def test_time_that_changes_nothing_brings_no_pod_back() -> None:
    async with searching(AT_NIGHT) as (stand, go):
        await stand.pass_time(100.0)
        stand.scheduler.set_pod(pod("other", on="n1", requests={"cpu": 1}))
        await end(stand, go)
        assert stand.attempts("high") == 1


@pytest.mark.parametrize("change", ["none", "another label"])
async def test_what_the_rule_does_not_read_has_the_pod_wait(change: str) -> None:
    async with searching(AT_NIGHT) as (stand, go):
        if change != "none":
            stand.scheduler.set_node(node("n1", labels={"other": "x"}))
        await end(stand, go)
        assert stand.bound == {}
        assert stand.attempts("high") == (1 if change == "none" else 2)
