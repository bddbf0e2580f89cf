"""Events that no API server sends, and events at unusual times: no pod is lost or stuck, only own pods are tried."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from policysched.framework import PermitPlugin, Wait
from policysched.model.objects import Pod, SchedulingGate
from tests.build import node, pod
from tests.schedule.parts import FakeFilter, profile, refused
from tests.schedule.stand import BIG, Holding, Stand, running

POD = pod()
SMALL = node("n1", allocatable={"cpu": 1})
GATED = pod("big", requests={"cpu": 3}, scheduling_gates=[SchedulingGate(name="g")])


class Waiting(FakeFilter, PermitPlugin):
    """A Permit plugin that lets every pod wait."""

    def permit(self, *_: Any) -> Wait:
        return Wait(60)


def anothers(of: Pod) -> Pod:
    """Return the pod with another scheduler's name."""
    return replace(of, spec=replace(of.spec, scheduler_name="another"))


def nothing_left(stand: Stand) -> bool:
    """Return whether the scheduler holds no pod."""
    queue = stand.scheduler.queue
    held = len(queue._pods), sum(queue.counts()), *queue.in_flight, len(stand.scheduler.cluster.pods)
    return not any(held) and not stand.scheduler._binder.handle.waiting and not stand.scheduler.attempts.tasks


async def test_pod_whose_scheduler_changes_while_it_waits_for_a_node_is_left_alone() -> None:
    for first in (BIG, GATED):
        async with running(SMALL) as stand:
            await stand.settled(first)
            notes = len(stand.notes)
            await stand.settled(anothers(first))
            stand.scheduler.set_node(node("n2"))
            await stand.pass_time(400)
            assert (stand.bound, len(stand.notes)) == ({}, notes)
            assert nothing_left(stand)
            await stand.settled(BIG)
            assert stand.bound == {"big": "n2"}


async def test_pod_whose_scheduler_changes_while_it_waits_at_permit_is_not_tried_again() -> None:
    async with running(node("n1"), of=profile([Waiting("A")])) as stand:
        await stand.settled(POD)
        await stand.settled(anothers(POD))
        [waiting] = stand.scheduler._binder.handle.waiting.values()
        waiting.reject("A", "no")
        await stand.pass_time(400)
        assert (stand.bound, stand.notes) == ({}, [])
        assert nothing_left(stand)


async def test_pod_whose_scheduler_changes_while_its_binding_fails_is_not_tried_again() -> None:
    async with running(node("n1")) as stand:
        holding = Holding(stand)
        stand.client.errors["bind"] = [refused(409)]
        await stand.settled(POD)
        await stand.settled(anothers(POD))
        await holding.release(stand)
        await stand.pass_time(400)
        assert (stand.bound, stand.notes) == ({}, [])
        assert nothing_left(stand)


async def test_pod_that_comes_again_under_its_identity_while_the_first_waits_at_permit_is_its_own() -> None:
    async with running(node("n1"), of=profile([Waiting("A")])) as stand:
        await stand.settled(POD)
        [first] = stand.scheduler._binder.handle.waiting.values()
        stand.scheduler.drop(POD)
        await stand.settled(replace(POD, metadata=replace(POD.metadata, name="again")))
        [second] = stand.scheduler._binder.handle.waiting.values()
        assert second is not first
        first.allow("A")
        await stand.settle()
        assert stand.bound == {}
        second.allow("A")
        await stand.settle()
        assert stand.bound == {"again": "n1"}
        assert not stand.scheduler.attempts.tasks


@pytest.mark.parametrize("confirmed", [True, False])
async def test_node_that_goes_while_a_pod_is_bound_to_it_loses_no_pod(confirmed: bool) -> None:
    async with running(node("n1")) as stand:
        holding = Holding(stand)
        stand.client.errors["bind"] = [] if confirmed else [refused(404, 'nodes "n1" not found')]
        await stand.settled(POD)
        stand.scheduler.remove_node("n1")
        stand.scheduler.set_node(node("n2"))
        await holding.release(stand)
        await stand.pass_time(20)
        assert stand.bound == {"p": "n1" if confirmed else "n2"}
        assert stand.scheduler.queue.in_flight == (0, 0)
        stand.confirm(POD, stand.bound["p"])
        stand.scheduler.drop(POD)
        assert nothing_left(stand)


@pytest.mark.parametrize(
    "event",
    [
        lambda s: s.drop(pod("nobody")),
        lambda s: s.drop(pod("nobody", on="nowhere")),
        lambda s: s.drop(node("nowhere")),
        lambda s: s.remove_pod("no identity at all"),
        lambda s: s.queue.activate(["nobody"]),
        lambda s: s.queue.delete("nobody"),
    ],
)
async def test_event_about_what_nobody_knows_changes_nothing(event: Callable[[Any], None]) -> None:
    async with running(SMALL) as stand:
        await stand.settled(BIG)
        before = stand.attempts("big")
        event(stand.scheduler)
        await stand.settle()
        assert (stand.attempts("big"), stand.waiting) == (before, 1)
        stand.scheduler.drop(BIG)
        assert nothing_left(stand)


async def test_pod_that_others_bind_is_forgotten_wherever_it_waits() -> None:
    for waiting in (BIG, GATED):
        async with running(SMALL) as stand:
            await stand.settled(waiting)
            await stand.settled(replace(waiting, spec=replace(waiting.spec, node_name="n1")))
            stand.scheduler.set_node(node("n2"))
            await stand.pass_time(400)
            assert stand.bound == {}
            assert (len(stand.scheduler.queue._pods), len(stand.scheduler.cluster.pods)) == (0, 1)


async def test_old_version_of_a_pod_that_comes_late_does_not_schedule_it_twice() -> None:
    async with running(node("n1")) as stand:
        await stand.settled(POD)
        await stand.settled(POD, replace(POD, metadata=replace(POD.metadata, labels={"a": "b"})))
        stand.confirm(POD, "n1")
        await stand.pass_time(400)
        assert stand.client.bound == [("default/p", "n1")]
