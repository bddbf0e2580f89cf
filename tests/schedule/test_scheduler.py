from __future__ import annotations

import asyncio
import gc
from typing import Any

import pytest
from msgspec.structs import replace

from policysched.framework import Cluster, Code, Codes, Rows, Status, unresolvable
from policysched.klog import V2
from policysched.model.objects import Pod, PodCondition, PodStatus
from policysched.schedule import attempts, observer, scheduler
from tests.build import node, pod
from tests.schedule.parts import FakeFilter, profile, refused
from tests.schedule.stand import BIG, Holding, Stand, running


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


async def test_pods_that_go_while_they_are_bound_leave_nothing_with_what_writes_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(V2)
    lines = observer.LogLines()
    async with running(node("n1"), observers=(lines,)) as stand:
        holding = Holding(stand)
        for number in range(10):
            await stand.settled(pod(f"p{number}"))
            stand.scheduler.drop(pod(f"p{number}"))
        assert holding.started == 10
        await holding.release(stand)
        await stand.settle()
    gc.collect()
    assert len(lines._counts) == 0


@pytest.mark.parametrize("reason", ["short", "long" * 2000], ids=["short", "long"])
async def test_a_reason_that_the_pods_condition_tells_already_is_not_logged_again(
    reason: str, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level(V2)
    of = profile(filters=[FakeFilter("F", unresolvable(reason))])
    async with running(node("n1"), of=of) as stand:
        await stand.settled(pod())
        [(_, told)] = stand.client.conditions
        assert "Unable to schedule pod; no fit; waiting" in caplog.text
        caplog.clear()
        condition = PodCondition(type=told["type"], status="False", reason=told["reason"], message=told["message"])
        stand.scheduler.set_pod(replace(pod(), status=PodStatus(conditions=[condition])))
        stand.scheduler.set_node(node("n1", labels={"a": "b"}))
        await stand.pass_time(20)
        assert stand.attempts("p") == 2
        assert len(stand.client.conditions) == 1
        assert "Unable to schedule" not in caplog.text


async def test_failures_that_belong_to_no_plugin_end_neither_the_scheduler_nor_lose_the_pod(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(scheduler, "AFTER_FAILURE", 0)
    async with running(node("n1")) as stand:
        tested, failed = stand.scheduler, []

        def failing(of: object, name: str) -> None:
            before = getattr(of, name)

            def once(*given: Any) -> Any:
                if name in failed:
                    return before(*given)
                failed.append(name)
                raise RuntimeError(name)

            monkeypatch.setattr(of, name, once)

        failing(tested.queue, "pop")
        failing(tested.attempts, "skips")
        failing(tested._binder, "will_wait")
        await stand.settled(pod())
        for _ in range(3):
            await stand.pass_time(20)
        assert (failed, stand.bound) == (["pop", "skips", "will_wait"], {"p": "n1"})
        assert (tested.queue.in_flight, len(tested.cluster.pods)) == ((0, 0), 1)


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


async def cancelled_while_it_binds() -> tuple[Stand, Holding, asyncio.Task[None]]:
    stand = Stand()
    stand.scheduler.set_node(node("n1"))
    holding = Holding(stand)
    task = asyncio.create_task(stand.scheduler.run())
    await stand.settled(pod())
    task.cancel()
    return stand, holding, task


async def test_work_for_a_pod_that_fails_is_named(caplog: pytest.LogCaptureFixture) -> None:
    async with running(node("n1", allocatable={"cpu": 1})) as stand:
        stand.client.errors["condition"] = [ValueError("a bug")]
        await stand.settled(pod("a", requests={"cpu": 2}))
    assert 'the binding, preemption or status update of pod "default/a" failed' in caplog.text
    assert "ValueError: a bug" in caplog.text


async def test_bindings_under_way_end_after_the_last_cycle() -> None:
    stand, holding, task = await cancelled_while_it_binds()
    await stand.settle()
    assert (task.done(), holding.started) == (False, 1)
    await holding.release(stand)
    with pytest.raises(asyncio.CancelledError):
        await task
    assert stand.bound == {"p": "n1"}


async def test_what_takes_too_long_at_the_end_is_dropped(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(scheduler.Scheduler, "last_words", 0.01)
    stand, holding, task = await cancelled_while_it_binds()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert (holding.started, stand.bound) == (1, {})


async def test_no_more_bindings_are_under_way_than_there_is_room_for(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(attempts, "MAX_BINDINGS", 2)
    async with running(node("n1")) as stand:
        holding = Holding(stand)
        await stand.settled(*(pod(f"p{number}") for number in range(4)))
        assert holding.started == 2
        await holding.release(stand)
        assert len(stand.bound) == 4


async def test_a_plugin_that_answers_an_error_fails_the_pod() -> None:
    failing = FakeFilter("F", Status(Code.ERROR, ("broken",)))
    async with running(node("n1"), of=profile([failing])) as stand:
        await stand.settled(pod())
        assert stand.notes == ['running PreFilter plugin "F": broken']
        assert [condition["reason"] for _, condition in stand.client.conditions] == ["SchedulerError"]
        assert stand.scheduler.queue.counts().backoff == 1


async def test_a_placed_pod_that_loses_its_node_is_pending_again() -> None:
    async with running() as stand:
        await stand.settled(pod(on="n1"), pod())
        assert (stand.scheduler.queue.counts().backoff, len(stand.scheduler.cluster.pods)) == (1, 0)


async def test_a_pod_that_becomes_anothers_is_no_longer_tried() -> None:
    async with running() as stand:
        await stand.settled(pod(), pod(scheduler_name="another"))
        assert sum(stand.scheduler.queue.counts()) == 0


async def test_an_assumption_that_fails_fails_the_pod_and_nothing_else(monkeypatch: pytest.MonkeyPatch) -> None:
    assume = Cluster.assume

    def failing(cluster: Cluster, of: Pod, *rest: Any) -> None:
        if of.metadata.name == "bad":
            raise MemoryError
        assume(cluster, of, *rest)

    monkeypatch.setattr(Cluster, "assume", failing)
    async with running(node("n1")) as stand:
        await stand.settled(pod("bad"), pod("good"))
        assert stand.bound == {"good": "n1"}
        assert stand.notes == ["the scheduling cycle failed: MemoryError()"]
        assert stand.scheduler.queue.counts().backoff == 1
