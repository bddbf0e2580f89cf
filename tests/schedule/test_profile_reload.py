"""Profiles that are replaced while the scheduler runs, and a changed backoff."""

from __future__ import annotations

from policysched.app.configuration.profiles import default_profile
from policysched.framework import Cluster
from policysched.model.objects import Pod, Taint
from policysched.schedule.queue.queue import Queue
from policysched.schedule.queue.subqueues import Backoff
from tests.build import node, pod
from tests.rules.build import policy
from tests.schedule.queue_parts import FIT, ByPriority, StandingClock, interests
from tests.schedule.queue_parts import pod as queued_pod
from tests.schedule.reloading import GOOD, OPEN, Stand, running

TAINT = Taint(key="dedicated", value="a", effect="NoSchedule")
TOLERATION = frozenset({"TaintToleration"})


def tainted(stand: Stand) -> Pod:
    """Taint the only node, and return a pod that does not tolerate the taint."""
    stand.scheduler.set_node(node("n1", taints=[TAINT]))
    return pod("a", scheduler_name="me")


async def attempt(stand: Stand) -> None:
    """Try the next pod."""
    queued = stand.scheduler.queue.pop()
    assert queued is not None
    await stand.scheduler.attempts.make(queued)
    await stand.settled()


async def test_pods_that_a_removed_plugin_rejected_are_tried_again() -> None:
    async with running() as stand:
        stand.scheduler.set_pod(tainted(stand))
        await attempt(stand)
        assert stand.scheduler.queue.counts().unschedulable == 1
        without = {"me": default_profile("me", off=["TaintToleration"])}
        events: list[str] = []
        stand.scheduler.queue.report_to(lambda _queued, _queue, event: events.append(event))
        assert stand.reloader.use_profiles(without, TOLERATION, policies=False) == 1
        assert events == ["ConfigurationUpdate"]
        assert stand.scheduler.queue.counts().unschedulable == 0
        assert not stand.rejected


async def test_pods_that_others_rejected_stay_where_they_are() -> None:
    async with running() as stand:
        stand.scheduler.set_pod(tainted(stand))
        await attempt(stand)
        without = {"me": default_profile("me", off=["NodePorts"])}
        assert stand.reloader.use_profiles(without, frozenset({"NodePorts"}), policies=False) == 0
        assert stand.scheduler.queue.counts().unschedulable == 1


async def test_policies_stay_in_force_with_other_profiles() -> None:
    async with running(policy(**GOOD)) as stand:
        stand.reloader.use_profiles({"me": default_profile("me", off=["NodePorts"])}, frozenset(), policies=False)
        rejected = [stand.rejected]
        await stand.settled(policy(generation=2, **OPEN))
        rejected.append(stand.rejected)
        assert rejected == [True, False]
        assert "NodePorts" not in stand.scheduler._engines["me"].profile.plugin_names


async def test_pods_that_policies_rejected_are_tried_again_where_policies_act_no_more() -> None:
    async with running(policy(**GOOD)) as stand:
        stand.scheduler.set_pod(pod("a", scheduler_name="me"))
        await attempt(stand)
        assert stand.scheduler.queue.counts().unschedulable == 1
        without = {"me": default_profile("me", off=["SchedulingPolicy"])}
        assert stand.reloader.use_profiles(without, frozenset(), policies=False) == 0
        assert stand.reloader.use_profiles(without, frozenset(), policies=True) == 1
        assert not stand.rejected


async def test_profiles_and_policies_take_force_one_after_another() -> None:
    async with running(policy(**OPEN)) as stand:
        profiles = {"me": default_profile("me", off=["NodePorts"])}
        for number in range(2, 6):
            stand.reloader.upsert(policy(generation=number, **(GOOD if number % 2 else OPEN)))
            stand.reloader.use_profiles(profiles, frozenset(), policies=False)
            await stand.settled()
        await stand.settled()
        assert (stand.in_force, stand.rejected) == ({"p": 5}, True)
        assert "NodePorts" not in stand.scheduler._engines["me"].profile.plugin_names


def test_another_backoff_holds_for_pods_that_wait_already() -> None:
    clock = StandingClock()
    queue = Queue(clock, ByPriority(), Cluster(), profiles=interests())
    for name in ("a", "b"):
        queue.add(queued_pod(name))
        queued = queue.pop()
        assert queued is not None
        queue.reject(queued, FIT)
    assert queue.move_rejected_by(FIT) == 2
    assert queue.counts().backoff == 2
    queue.use_backoff(Backoff(initial=60.0, maximum=600.0))
    clock.at += 30.0
    queue.flush()
    assert queue.counts().backoff == 2
    queue.use_backoff(Backoff())
    queue.flush()
    assert (queue.counts().backoff, queue.counts().active) == (0, 2)
