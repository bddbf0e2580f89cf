"""PostFilter plugins: the order of calls, the effects of answers, and the messages."""

from __future__ import annotations

import random
from collections.abc import Awaitable
from dataclasses import replace as replace_field
from typing import Any

import pytest
from msgspec.structs import replace

from policysched.framework import (
    Code,
    FailedDecision,
    Handle,
    PostFilterPlugin,
    PostFilterResult,
    Status,
    unresolvable,
    unschedulable,
)
from policysched.framework.profile import Profile
from policysched.model.objects import Pod, PodStatus
from policysched.plugins.node_resources.fit import NodeResourcesFit
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.post_filter import FailedCycle, at_once, message_of, run_post_filters
from tests.build import cluster, node, pod
from tests.schedule.parts import FakeFilter, profile
from tests.schedule.stand import running

BIG = pod("big", requests={"cpu": 9})


class Answering(PostFilterPlugin):
    """A PostFilter plugin with a constant answer."""

    def __init__(self, name: str, answer: Any) -> None:
        self.name, self.answer = name, answer
        self.asked: list[Pod] = []

    def post_filter(self, pod: Pod, failed: FailedDecision) -> PostFilterResult:
        assert failed.rows_with(Code.UNSCHEDULABLE_AND_UNRESOLVABLE).size == 1
        self.asked.append(pod)
        if isinstance(self.answer, Exception):
            raise self.answer
        result: PostFilterResult = self.answer
        return result


def asking(*plugins: Answering) -> Profile:
    return replace_field(profile([NodeResourcesFit()]), post_filters=plugins)


def run(*plugins: Answering) -> tuple[PostFilterResult, str]:
    around = cluster(node("n1"))
    decision = Engine(around, profile([NodeResourcesFit()]), random.Random(0)).decide(BIG)
    result = at_once(run_post_filters(plugins, BIG, FailedCycle(decision, random.Random(0))))
    return result, message_of(decision.fit_error(), result)


NO_FIT = "0/1 nodes are available: 1 Insufficient cpu."
REJECTED = PostFilterResult(unschedulable("no"), nominated_node="")


def test_a_plugin_whose_question_fails_is_the_one_that_is_named(caplog: pytest.LogCaptureFixture) -> None:
    async def fails() -> PostFilterResult:
        raise RuntimeError("no answer")

    result, message = run(Answering("A", PostFilterResult(ask=fails)), Answering("B", REJECTED))
    why = "running PostFilter plugin \"A\": RuntimeError('no answer')"
    assert (result.status, message) == (Status(Code.ERROR, (why,), "A"), f"{NO_FIT} {why}")
    assert 'PostFilter plugin "A" failed for pod "default/big"' in caplog.text


def test_plugins_are_asked_until_one_succeeds_and_success_says_nothing() -> None:
    last = Answering("C", REJECTED)
    result, message = run(Answering("A", REJECTED), Answering("B", PostFilterResult(nominated_node="n1")), last)
    assert (result.nominated_node, message, last.asked) == ("n1", NO_FIT, [])


def test_reasons_of_rejections_add_up_and_the_last_word_on_the_nomination_holds() -> None:
    plugins = (Answering("A", REJECTED), Answering("B", PostFilterResult(unschedulable("never"))))
    result, message = run(*plugins)
    assert (result.nominated_node, message) == ("", f"{NO_FIT} no, never")


def test_unresolvable_answer_ends_it() -> None:
    last = Answering("B", REJECTED)
    result, message = run(Answering("A", PostFilterResult(unresolvable("stop"))), last)
    assert (result.nominated_node, message, last.asked) == (None, f"{NO_FIT} stop", [])


@pytest.mark.parametrize(
    ("answer", "said"),
    [
        (PostFilterResult(Status(Code.ERROR, ("broken",)), nominated_node="n1"), "broken"),
        (ValueError("broken"), "running PostFilter plugin \"A\": ValueError('broken')"),
        (None, 'running PostFilter plugin "A": expected a PostFilterResult, got NoneType'),
    ],
)
def test_failing_plugin_leaves_the_nomination_alone(answer: Any, said: str) -> None:
    result, message = run(Answering("A", answer))
    assert (result.nominated_node, message) == (None, f"{NO_FIT} {said}")


def test_without_plugins_no_node_is_kept() -> None:
    assert run() == (PostFilterResult(unschedulable(), nominated_node=""), NO_FIT)


def test_pre_filter_rejection_is_one_of_every_node() -> None:
    around = cluster(node("n1"), node("n2"))
    filters = profile([FakeFilter("F", unschedulable("no"))])
    decision = Engine(around, filters, random.Random(0)).decide(pod())
    failed = FailedCycle(decision, random.Random(0))
    assert failed.rows_with(Code.UNSCHEDULABLE).size == 2
    assert failed.rows_with(Code.UNSCHEDULABLE_AND_UNRESOLVABLE).size == 0
    assert failed.status_of("n1") == unschedulable("no").by("F")
    assert failed.status_of("absent") is None


async def test_nomination_is_written_with_the_condition_and_held_at_once() -> None:
    async with running(node("n1"), of=asking(Answering("A", PostFilterResult(nominated_node="n1")))) as stand:
        await stand.settled(BIG)
        assert stand.client.nominated == [("default/big", "n1")]
        assert [condition["message"] for _, condition in stand.client.conditions] == [NO_FIT]
        assert [one.key for one in stand.scheduler.cluster.nominations.on_node("n1")] == ["default/big"]


async def test_nomination_that_stays_is_not_written_again() -> None:
    keeps = Answering("A", PostFilterResult(unschedulable("wait")))
    async with running(node("n1"), of=asking(keeps)) as stand:
        await stand.settled(replace(BIG, status=PodStatus(nominated_node_name="n1")))
        assert stand.client.nominated == []
        assert len(stand.scheduler.cluster.nominations) == 1


async def test_nomination_is_cleared_where_nothing_helps() -> None:
    async with running(node("n1"), of=asking(Answering("A", REJECTED))) as stand:
        await stand.settled(replace(BIG, status=PodStatus(nominated_node_name="n1")))
        assert stand.client.nominated == [("default/big", "")]
        assert not stand.scheduler.cluster.nominations


async def test_work_is_begun_before_the_pod_is_back_in_the_queue() -> None:
    seen: list[str] = []

    def act(handle: Handle) -> Awaitable[None]:
        queued = stand.scheduler.queue.get("default.big")
        assert queued is not None
        seen.append(queued.stage.value)
        return write(handle)

    async def write(handle: Handle) -> None:
        await handle.client.delete_pod(pod("victim"))

    async with running(node("n1"), of=asking(Answering("A", PostFilterResult(act=act)))) as stand:
        await stand.settled(BIG)
        assert (seen, stand.client.deleted) == (["in flight"], ["default/victim"])
