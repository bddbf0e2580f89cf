"""Permit: pods that wait for plugins are allowed or rejected, and what they block in the meantime."""

from __future__ import annotations

import asyncio
import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

import pytest
from msgspec.structs import replace

from policysched.framework import (
    Action,
    AssumedPod,
    Code,
    Handle,
    Hint,
    Resource,
    Status,
    Wait,
    WaitingPod,
    unschedulable,
)
from policysched.schedule.observer import AttemptResult
from tests.build import cluster, node, pod
from tests.schedule.parts import profile
from tests.schedule.recording import POD, UNDONE, Heard, Recorder
from tests.schedule.stand import Stand, running


def waiting_in(stand: Stand) -> dict[str, WaitingPod]:
    return dict(stand.scheduler._binder.handle.waiting)


async def waited(act: Callable[[Stand, WaitingPod], Any], timeout: float = 60.0) -> tuple[Stand, list[str], Heard]:
    """Let a pod wait for two plugins, and call a function."""
    log: list[str] = []
    heard = Heard()
    plugins = [Recorder("A", log, permit=Wait(timeout)), Recorder("B", log, permit=Wait(60))]
    async with running(node("n1"), of=profile(plugins), observers=[heard]) as stand:
        await stand.settled(POD)
        [waiting] = waiting_in(stand).values()
        assert (waiting.pending, stand.bound, len(stand.scheduler.cluster.pods)) == (("A", "B"), {}, 1)
        stand.clock.at += 5
        act(stand, waiting)
        await stand.settle()
    return stand, log, heard


async def test_pod_that_waits_is_bound_once_every_plugin_allows_it() -> None:
    def act(stand: Stand, waiting: WaitingPod) -> None:
        waiting.allow("A")
        waiting.allow("A")
        assert waiting.pending == ("B",)
        waiting.allow("B")

    stand, log, heard = await waited(act)
    assert (stand.bound, waiting_in(stand)) == ({"p": "n1"}, {})
    assert "A unreserve" not in log
    assert heard.waits == [("p", None, 5.0)]
    [attempt] = heard.attempts
    assert (attempt.result, attempt.node, attempt.seconds, heard.decided) == (
        AttemptResult.SCHEDULED,
        "n1",
        5.0,
        ["n1"],
    )


async def test_pod_that_one_plugin_allows_goes_on_waiting() -> None:
    stand, _, heard = await waited(lambda _, waiting: waiting.allow("A"))
    assert (stand.bound, heard.attempts) == ({}, [])


async def test_pod_that_is_rejected_while_it_waits_is_unschedulable_by_that_plugin() -> None:
    def act(stand: Stand, waiting: WaitingPod) -> None:
        waiting.reject("B", "no gang")
        waiting.reject("A", "too late")
        waiting.allow("A")

    stand, log, heard = await waited(act)
    assert (stand.bound, stand.notes, stand.waiting) == ({}, ["0/1 nodes are available: 1 no gang."], 1)
    assert len(stand.scheduler.cluster.pods) == 0
    assert log[-2:] == UNDONE
    queued = stand.scheduler.queue.get("default.p")
    assert queued is not None
    assert queued.rejectors == {"B"}
    assert [(attempt.result, attempt.node) for attempt in heard.attempts] == [(AttemptResult.UNSCHEDULABLE, "")]
    [(_, status, _)] = heard.waits
    assert status == Status(Code.UNSCHEDULABLE, ("no gang",), "B")


@pytest.mark.parametrize(("timeout", "said"), [(0.02, "20ms"), (0.5, "500ms"), (1.5, "1.5s"), (59, "59s")])
async def test_wait_ends_after_the_shortest_timeout(timeout: float, said: str, monkeypatch: pytest.MonkeyPatch) -> None:
    loop = asyncio.get_running_loop()
    later, due = loop.call_later, []

    def kept(delay: float, ring: Callable[..., None], *rest: Any) -> Any:
        due.append((delay, partial(ring, *rest)))
        return later(delay, lambda: None)

    monkeypatch.setattr(loop, "call_later", kept)
    stand, _, _ = await waited(lambda *_: min(due)[1](), timeout=timeout)
    assert min(due)[0] == min(timeout, 60, 900)
    assert stand.notes == [f"0/1 nodes are available: 1 rejected due to timeout after waiting {said} at plugin A."]


@pytest.mark.parametrize(
    ("timeout", "said"),
    [
        (0, "0s"),
        (90, "1m30s"),
        (840, "14m0s"),
        (901, "15m0s"),
        (10_000, "15m0s"),
        (900.5, "15m0s"),
        (math.nan, "15m0s"),
    ],
)
async def test_waits_are_bounded_and_written_as_go_does(timeout: float, said: str) -> None:
    waiting = WaitingPod(AssumedPod(POD, "n1", cluster()), {"A": Wait(timeout)})
    waiting._time_out("A", Wait(timeout))
    status = await waiting.outcome()
    assert status is not None
    assert status.message == f"rejected due to timeout after waiting {said} at plugin A"


async def test_changes_that_come_while_a_pod_waits_are_not_missed_when_it_is_rejected() -> None:
    def act(stand: Stand, waiting: WaitingPod) -> None:
        stand.scheduler.set_node(node("n2"))
        waiting.reject("A", "not here")

    stand, _, _ = await waited(act)
    assert (stand.waiting, stand.scheduler.queue.in_flight) == (0, (1, 0))


async def test_going_of_a_rejected_pod_helps_others_but_not_itself() -> None:
    class Freed(Recorder):
        def events(self) -> Sequence[Hint]:
            return (Hint(Resource.ASSIGNED_POD, Action.DELETE),)

        def permit(self, assumed: AssumedPod, handle: Handle) -> Any:
            return Wait(60) if assumed.pod.metadata.name == "p" else super().permit(assumed, handle)

    plugin = Freed("A", [], permit=unschedulable("full"))
    async with running(node("n1"), of=profile([plugin])) as stand:
        await stand.settled(POD)
        await stand.settled(pod("other"))
        assert stand.waiting == 1
        waiting_in(stand)["default.p"].reject("A", "no")
        await stand.settle()
        assert (stand.attempts("p"), stand.attempts("other")) == (1, 2)


@pytest.mark.parametrize("gone", [True, False])
async def test_pod_that_is_deleted_while_it_waits_leaves_nothing_behind(gone: bool) -> None:
    def act(stand: Stand, _: WaitingPod) -> None:
        if gone:
            stand.scheduler.drop(POD)
        else:
            going = replace(POD.metadata, deletion_timestamp="2026-01-01T00:00:00Z")
            stand.scheduler.set_pod(replace(POD, metadata=going))

    stand, log, _ = await waited(act)
    assert (stand.bound, len(stand.scheduler.cluster.pods), waiting_in(stand)) == ({}, 0, {})
    assert log[-2:] == UNDONE
    assert (stand.scheduler.queue.get("default.p") is None) is gone


async def test_pod_that_another_client_binds_waits_no_longer() -> None:
    def act(stand: Stand, _: WaitingPod) -> None:
        stand.scheduler.set_pod(replace(POD, spec=replace(POD.spec, node_name="n1")))

    stand, log, _ = await waited(act)
    assert (stand.bound, len(stand.scheduler.cluster.pods), waiting_in(stand)) == ({}, 1, {})
    assert (log[-2:], stand.scheduler.queue.get("default.p")) == (UNDONE, None)


async def test_end_of_the_process_does_not_wait_for_pods_that_wait() -> None:
    stand, log, heard = await waited(lambda *_: None)
    assert (stand.bound, heard.attempts, log[-1]) == ({}, [], "B permit")


async def test_pods_that_wait_do_not_hold_others_up() -> None:
    class Gang(Recorder):
        def permit(self, assumed: AssumedPod, handle: Handle) -> Any:
            """Wait for a pod named `last`, which allows all waiting pods."""
            if assumed.pod.metadata.name != "last":
                return Wait(60)
            for waiting in handle.waiting.values():
                waiting.allow(self.name)
            return None

    async with running(node("n1", allocatable={"pods": "1000", "cpu": 1000}), of=profile([Gang("A", [])])) as stand:
        await stand.settled(*(pod(f"p{number}") for number in range(600)))
        assert (stand.bound, len(waiting_in(stand))) == ({}, 600)
        await stand.settled(pod("last"))
        await stand.settle()
        assert (len(stand.bound), waiting_in(stand)) == (601, {})
