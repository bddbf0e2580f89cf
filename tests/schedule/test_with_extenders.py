"""Decisions and bindings with extenders that run in the process."""

# ruff: noqa: ARG002 - the fake does not use all arguments of the protocol

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from time import process_time
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from policysched.app.configuration.profiles import default_profile
from policysched.framework import Code, Status
from policysched.framework.extender import ExtenderError, FilterAnswer, NamedVictims, NodeVictims
from policysched.framework.profile import Profile
from policysched.model.objects import Pod, PodStatus
from policysched.schedule import attempts
from policysched.schedule.cycle.results.plugin_results import FilterResults, GivenCodes
from policysched.schedule.cycle.results.rejections import histogram, rejected_with
from tests.build import node, pod
from tests.schedule.parts import FakeScore, profile
from tests.schedule.stand import ME, Stand, running

NODES = [node(name) for name in ("n1", "n2", "n3")]


@dataclass
class FakeExtender:
    """An extender with prepared answers, which records requests and can delay them."""

    name: str = "http://one"
    ignorable: bool = False
    passes: frozenset[str] | None = None
    failed: Mapping[str, str] = field(default_factory=dict)
    unresolvable: Mapping[str, str] = field(default_factory=dict)
    scores: Mapping[str, int] = field(default_factory=dict)
    binds: bool = False
    filters: bool = True
    prioritizes: bool = True
    preempts: bool = False
    error: str = ""
    interested: Callable[[Pod], bool] = lambda _: True
    hold: Callable[[], Awaitable[Any]] | None = None
    asked: list[tuple[str, Any]] = field(default_factory=list)

    def is_interested(self, pod: Pod) -> bool:
        return self.interested(pod)

    async def filter(self, pod: Pod, nodes: Sequence[str]) -> FilterAnswer:
        await self._ask("filter", tuple(sorted(nodes)))
        left = frozenset(nodes) if self.passes is None else self.passes & frozenset(nodes)
        return FilterAnswer(left, self.failed, self.unresolvable)

    async def prioritize(self, pod: Pod, nodes: Sequence[str]) -> Mapping[str, int]:
        await self._ask("prioritize", tuple(sorted(nodes)))
        return self.scores

    async def preempt(self, pod: Pod, candidates: Mapping[str, NodeVictims]) -> Mapping[str, NamedVictims]:
        await self._ask("preempt", tuple(sorted(candidates)))
        return {name: of.named() for name, of in candidates.items()}

    async def bind(self, pod: Pod, node: str) -> None:
        await self._ask("bind", (pod.key, node))

    async def _ask(self, verb: str, what: Any) -> None:
        self.asked.append((verb, what))
        if self.hold is not None:
            await self.hold()
        if self.error:
            raise ExtenderError(self.error)


def extended(*extenders: FakeExtender, of: Profile | None = None) -> Profile:
    return replace(of or default_profile(ME), extenders=extenders)


async def test_plugins_and_extenders_filter_one_after_another() -> None:
    one = FakeExtender(passes=frozenset({"n1", "n2"}), failed={"n3": "no"}, prioritizes=False)
    two = FakeExtender(passes=frozenset({"n2"}))
    async with running(*NODES, node("n4", unschedulable=True), of=extended(one, two)) as stand:
        await stand.settled(pod("a"))
        assert stand.bound == {"a": "n2"}
    assert one.asked == [("filter", ("n1", "n2", "n3"))]
    assert two.asked == [("filter", ("n1", "n2"))]  # with one node left, no scores are requested


async def test_pod_that_extenders_reject_says_why_and_is_tried_after_any_change() -> None:
    one = FakeExtender(passes=frozenset(), failed={"n1": "too slow", "n2": "both"}, unresolvable={"n2": "too small"})
    async with running(*NODES, of=extended(one)) as stand:
        await stand.settled(pod("a"))
        assert stand.notes[0].startswith("0/3 nodes are available: 1 too slow, 1 too small.")  # n3 has no reason
        assert stand.waiting == 1
        stand.scheduler.set_node(node("n1", labels={"any": "change"}))
        await stand.pass_time(2)
        assert stand.attempts("a") == 2


async def test_scores_are_added_to_those_of_plugins() -> None:
    of = profile(scores=[(FakeScore("plugin", {"n1": 60, "n2": 50}), 1)])
    one, two = FakeExtender(scores={"n2": 20, "n9": 100}), FakeExtender("http://two", scores={"n1": 5})
    async with running(*NODES, of=extended(one, two, of=of)) as stand:
        await stand.settled(pod("a"))
        assert stand.bound == {"a": "n2"}  # 60 + 5 and 50 + 20


async def test_scores_of_extenders_of_one_name_are_added() -> None:
    one, two = FakeExtender(scores={"n1": 100, "n2": 30}), FakeExtender(scores={"n2": 80})
    async with running(node("n1"), node("n2"), of=extended(one, two, of=profile())) as stand:
        await stand.settled(pod("a"))
        assert stand.bound == {"a": "n2"}


@pytest.mark.parametrize(("score", "chosen"), [(2**62, "n1"), (-(2**62), "n2")])
async def test_scores_of_any_size_count(score: int, chosen: str) -> None:
    of = profile(scores=[(FakeScore("plugin", {"n2": 50}), 1)])
    async with running(node("n1"), node("n2"), of=extended(FakeExtender(scores={"n1": score}), of=of)) as stand:
        await stand.settled(pod("a"))
        assert stand.bound == {"a": chosen}


async def test_extender_that_fails_fails_the_attempt_unless_it_is_ignorable() -> None:
    broken = FakeExtender(error="out of order", prioritizes=False)
    async with running(*NODES, of=extended(broken)) as stand:
        await stand.settled(pod("a"))
        assert stand.notes == ["out of order"]
        broken.error = ""
        await stand.pass_time(2)
        assert set(stand.bound) == {"a"}
    ignored = FakeExtender(error="out of order", ignorable=True)
    async with running(*NODES, of=extended(ignored)) as stand:
        await stand.settled(pod("a"))
        assert set(stand.bound) == {"a"}


async def test_extender_that_fails_to_score_scores_nothing() -> None:
    broken = FakeExtender(filters=False, error="out of order")
    async with running(*NODES, of=extended(broken)) as stand:
        await stand.settled(pod("a"))
        assert set(stand.bound) == {"a"}
    assert broken.asked == [("prioritize", ("n1", "n2", "n3"))]


async def test_pod_that_no_extender_is_interested_in_waits_for_none() -> None:
    one = FakeExtender(passes=frozenset(), interested=lambda one: one.metadata.name == "b", binds=True)
    async with running(*NODES, of=extended(one)) as stand:
        await stand.settled(pod("a"), pod("b"))
        assert set(stand.bound) == {"a"}
    assert [verb for verb, _ in one.asked] == ["filter"]


def promised(name: str) -> Pod:
    return structs.replace(pod(name), status=PodStatus(nominated_node_name="n3"))


async def test_nominated_node_is_asked_about_first_and_alone() -> None:
    one = FakeExtender()
    async with running(*NODES, of=extended(one)) as stand:
        await stand.settled(promised("a"))
        assert stand.bound == {"a": "n3"}
        assert one.asked == [("filter", ("n3",))]
        one.passes, one.asked = frozenset({"n1"}), []
        await stand.settled(promised("b"))
        assert stand.bound["b"] == "n1"
    assert one.asked == [("filter", ("n3",)), ("filter", ("n1", "n2", "n3"))]


class Gate:
    """Blocks extenders until it is opened."""

    def __init__(self) -> None:
        self.opened = asyncio.Event()

    async def __call__(self) -> None:
        await self.opened.wait()


async def held(stand: Stand, gate: Gate, name: str, meanwhile: Callable[[], None]) -> None:
    """Call a function while the extender is asked about a pod."""
    await stand.settled(pod(name, requests={"cpu": 1}))
    meanwhile()
    await stand.settle()
    gate.opened.set()
    await stand.settle()


async def test_decision_holds_for_the_cluster_as_it_is_afterwards() -> None:
    gate = Gate()
    one = FakeExtender(hold=gate, scores={"n1": 1000})
    async with running(*NODES, of=extended(one)) as stand:

        def meanwhile() -> None:
            stand.scheduler.set_node(node("n1", unschedulable=True))
            stand.scheduler.remove_node("n2")
            for number in range(100):
                stand.scheduler.set_node(node(f"new-{number}"))

        await held(stand, gate, "a", meanwhile)
        assert stand.bound == {"a": "n3"}  # the new nodes are not evaluated


async def test_node_that_is_kept_for_another_pod_meanwhile_is_left_to_it() -> None:
    gate = Gate()
    async with running(node("n1"), of=extended(FakeExtender(hold=gate))) as stand:
        kept = pod("kept", requests={"cpu": 4}, priority=10, scheduler_name="another")
        kept = structs.replace(kept, status=PodStatus(nominated_node_name="n1"))
        await held(stand, gate, "small", lambda: stand.scheduler.set_pod(kept))
        assert stand.bound == {}


async def test_pod_that_goes_meanwhile_is_forgotten() -> None:
    gate = Gate()
    async with running(*NODES, of=extended(FakeExtender(hold=gate))) as stand:
        await held(stand, gate, "a", lambda: stand.scheduler.remove_pod("default.a"))
        assert stand.bound == {}
        assert stand.scheduler.queue.in_flight == (0, 0)
        await stand.settled(pod("b"))
        assert set(stand.bound) == {"b"}


async def test_pod_that_is_placed_meanwhile_stays_there() -> None:
    gate = Gate()
    async with running(*NODES, of=extended(FakeExtender(hold=gate))) as stand:
        await held(stand, gate, "a", lambda: stand.confirm(pod("a"), "n2"))
        assert stand.bound == {}
        assert stand.scheduler.queue.in_flight == (0, 0)


async def test_extender_binds_in_place_of_plugins() -> None:
    one = FakeExtender(binds=True, prioritizes=False)
    async with running(node("n1"), of=extended(one)) as stand:
        await stand.settled(pod("a"))
        assert stand.client.bound == []
        assert [event.note for event in stand.client.events] == ["Successfully assigned default/a to n1"]
    assert one.asked == [("filter", ("n1",)), ("bind", ("default/a", "n1"))]


async def test_pods_do_not_wait_for_those_that_an_extender_binds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "MAX_BINDINGS", 2)
    gate = Gate()
    one = FakeExtender(
        binds=True,
        filters=False,
        prioritizes=False,
        interested=lambda of: of.metadata.name.startswith("slow"),
        hold=gate,
    )
    async with running(node("n1"), of=extended(one)) as stand:
        await stand.settled(*(pod(f"slow-{number}") for number in range(5)))
        assert len(one.asked) == 5
        await stand.settled(pod("a"))
        assert stand.bound == {"a": "n1"}
        gate.opened.set()
        await stand.settled()
        assert stand.scheduler.queue.in_flight == (0, 0)


async def test_extender_that_fails_to_bind_fails_the_attempt_unless_it_is_ignorable() -> None:
    one = FakeExtender(filters=False, prioritizes=False, binds=True, error="no room")
    async with running(node("n1"), of=extended(one)) as stand:
        await stand.settled(pod("a"))
        assert stand.notes == ["no room"]
        assert len(stand.scheduler.cluster.pods) == 0
    one.ignorable = True
    async with running(node("n1"), of=extended(one)) as stand:
        await stand.settled(pod("a"))
        assert stand.bound == {"a": "n1"}


async def test_plugin_that_fails_while_scoring_fails_before_extenders_score() -> None:
    of = profile(scores=[(FakeScore("plugin", {"n1": 101}), 1)])
    one = FakeExtender(scores={"n1": 1})
    async with running(*NODES, of=extended(one, of=of)) as stand:
        await stand.settled(pod("a"))
        assert "plugin" in stand.notes[0]
        assert stand.bound == {}


@pytest.mark.parametrize("stays", [True, False])
async def test_nobody_makes_room_for_a_pod_that_goes_while_extenders_are_asked(stays: bool) -> None:
    gate = Gate()
    one = FakeExtender(filters=False, prioritizes=False, preempts=True, hold=gate)
    async with running(node("n1"), of=extended(one)) as stand:
        stand.scheduler.set_pod(pod("low", on="n1", requests={"cpu": 4}))
        high = pod("high", requests={"cpu": 4}, priority=10)
        await stand.settled(high)
        assert one.asked == [("preempt", ("n1",))]
        if not stays:
            stand.scheduler.remove_pod("default.high")
        gate.opened.set()
        await stand.settle()
        assert stand.client.deleted == (["default/low"] if stays else [])
        assert stand.scheduler.queue.in_flight == (0, 0)


def test_reason_for_each_node_is_looked_at_once() -> None:
    """Reasons of extenders differ by node; a pass over all nodes for each reason would take ten times as long."""
    count = 40_000
    statuses = [Status((Code.UNSCHEDULABLE, Code.ERROR)[number % 2], (str(number),)) for number in range(count)]
    results = FilterResults(GivenCodes("", statuses), np.arange(1, count + 1, dtype=np.int32), 1)
    results.recompute(count, count)
    found = np.ones(count, np.int16), [results]

    def seconds(action: Callable[[], object]) -> float:
        began = process_time()
        action()
        return process_time() - began

    once = min(seconds(lambda: histogram(*found)) for _ in range(3))
    assert min(seconds(lambda: rejected_with(Code.ERROR, *found)) for _ in range(3)) < 3 * once
    assert rejected_with(Code.ERROR, *found).nonzero()[0].tolist() == list(range(1, count, 2))
    status = Status(Code.UNSCHEDULABLE, ("no",), "Extender")
    assert status.by("Extender") is status
