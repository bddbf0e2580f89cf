"""Gangs of v1.37 wait at Permit until their minimum count has a node; v1.38 has no such wait."""

from __future__ import annotations

from dataclasses import replace

import pytest

from policysched.app.configuration.profiles import default_profile
from policysched.framework import AssumedPod, ReservePlugin, Status, unschedulable
from policysched.model.release import Release
from policysched.schedule.queue.group_queue import GroupQueue
from tests.build import node
from tests.groups import GATED, GATED_38, group, member
from tests.schedule.groups.parts import is_clean, members, messages, submit
from tests.schedule.stand import ME, running


class AcceptsOnce(ReservePlugin):
    """Accepts a pod in the first cycle of its group, and rejects it afterwards until it is opened."""

    name = "AcceptsOnce"

    def __init__(self, pod: str) -> None:
        self._pod, self._calls, self.is_open = pod, 0, False

    def reserve(self, assumed: AssumedPod) -> Status | None:
        if assumed.pod.metadata.name != self._pod or self.is_open:
            return None
        self._calls += 1
        return unschedulable("no") if self._calls > 1 else None

    def unreserve(self, assumed: AssumedPod) -> None:
        pass


@pytest.mark.parametrize(("release", "bound"), [(GATED, set()), (GATED_38, {"p0", "p1"})], ids=["1.37", "1.38"])
async def test_members_wait_for_a_member_that_is_rejected_after_the_cycle(release: Release, bound: set[str]) -> None:
    made, plugin = default_profile(ME, release=release), AcceptsOnce("p2")
    made = replace(made, reserves=(*made.reserves, plugin))
    async with running(node("n1"), of=made, release=release) as stand:
        await submit(stand, group(least=3), *members(3))
        assert set(stand.bound) == bound
        assert messages(stand)["p2"] == "0/1 nodes are available: 1 no."
        waiting = stand.scheduler._binder.handle.waiting
        assert set(waiting) == {"default.p0", "default.p1"} - {f"default.{one}" for one in bound}
        plugin.is_open = True
        await stand.pass_time(30)
        assert set(stand.bound) == {"p0", "p1", "p2"}
        assert is_clean(stand.scheduler.cluster)


async def test_later_members_of_a_scheduled_gang_do_not_wait() -> None:
    async with running(node("n1"), release=GATED) as stand:
        await submit(stand, group(least=2), *members(2))
        await stand.settled(member("late", requests={"cpu": 1}))
        assert set(stand.bound) == {"p0", "p1", "late"}


@pytest.mark.parametrize(("accepted", "nominated"), [("", []), ("p2", ["default/p0", "default/p1"])])
async def test_only_members_that_wait_for_a_member_are_nominated(accepted: str, nominated: list[str]) -> None:
    """The last member of a gang ends the waits of the others before their bindings begin: one request binds each."""
    made = default_profile(ME, release=GATED)
    made = replace(made, reserves=(*made.reserves, AcceptsOnce(accepted)))
    async with running(node("n1"), of=made, release=GATED) as stand:
        await submit(stand, group(least=3), *members(3))
        assert [key for key, _ in stand.client.nominated] == nominated
        assert len(stand.bound) == (0 if nominated else 3)


async def test_members_do_not_activate_each_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are in flight together; else the work would grow with the square of their number."""
    activated = list[str]()
    monkeypatch.setattr(GroupQueue, "activate", lambda _, identities: activated.extend(identities))
    async with running(node("n1"), release=GATED) as stand:
        await submit(stand, group(least=3), *members(3))
        assert set(stand.bound) == {"p0", "p1", "p2"}
    assert activated == []


async def test_basic_groups_do_not_wait() -> None:
    async with running(node("n1"), release=GATED) as stand:
        await submit(stand, group(), *members(2))
        assert set(stand.bound) == {"p0", "p1"}
