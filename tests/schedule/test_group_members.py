"""The members of pod groups that the scheduler knows, from its pods' lives."""

from __future__ import annotations

from msgspec.structs import replace

from policysched.model.objects import Pod
from tests.build import node
from tests.groups import GATED, group, member
from tests.schedule.stand import Stand, running


def members(stand: Stand) -> tuple[list[str], list[str], list[str]]:
    """The names of the unscheduled, assumed and assigned members of group g."""
    groups = stand.scheduler.cluster.pod_groups
    assert groups is not None
    state = groups.get("default/g")
    kinds = ({}, {}, {}) if state is None else (state.unscheduled, state.assumed, state.assigned)
    unscheduled, assumed, assigned = ([one.metadata.name for one in kind.values()] for kind in kinds)
    return unscheduled, assumed, assigned


def deleting(one: Pod) -> Pod:
    return replace(one, metadata=replace(one.metadata, deletion_timestamp="2026-01-01T00:00:00Z"))


BIG = {"cpu": "100"}


async def test_pending_pods_of_our_profiles_are_members_until_they_are_deleted() -> None:
    async with running(node("n1"), release=GATED) as stand:
        await stand.settled(member("a", requests=BIG), member("b", requests=BIG, scheduler_name="other"))
        assert members(stand) == (["a"], [], [])
        await stand.settled(member("a", requests=BIG, labels={"x": "y"}))
        assert members(stand) == (["a"], [], [])
        stand.scheduler.remove_pod("default.a")
        assert members(stand) == ([], [], [])


async def test_assumed_member_that_is_being_deleted_leaves_its_group() -> None:
    async with running(node("n1"), release=GATED) as stand:
        stand.scheduler.take(group("g"))
        await stand.settled(member("a"), member("b"))
        assert members(stand) == ([], ["a", "b"], [])
        stand.confirm(member("b"), "n1")
        await stand.settled(deleting(member("a")))
        assert members(stand) == ([], [], ["b"])


async def test_pods_that_name_a_group_are_ordinary_pods_without_the_gate() -> None:
    async with running(node("n1")) as stand:
        await stand.settled(member("a"), member("b", "other"))
        assert stand.bound == {"a": "n1", "b": "n1"}
        assert stand.scheduler.cluster.pod_groups is None
