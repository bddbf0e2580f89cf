"""Groups that fit, do not fit, and fit later, in a running scheduler."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import pytest
from msgspec import structs

from policysched.app.configuration.profiles import default_profile
from policysched.framework import AssumedPod, Handle, PermitPlugin
from policysched.model.objects import Pod, PodStatus
from policysched.model.release import Release
from tests.build import node, pod
from tests.groups import GATED, GATED_38, group, member
from tests.schedule.groups.parts import (
    CLAIMS_DONE,
    NO_VICTIMS,
    PARENT,
    RELEASES,
    below,
    conditions,
    is_clean,
    members,
    messages,
    submit,
)
from tests.schedule.stand import ME, running


@pytest.mark.parametrize("release", RELEASES, ids=lambda one: one.minor)
async def test_all_members_of_a_gang_are_bound_at_once(release: Release) -> None:
    async with running(node("n1"), release=release) as stand:
        await submit(stand, group(least=3), *members(3))
        assert stand.bound == {"p0": "n1", "p1": "n1", "p2": "n1"}
        assert conditions(stand) == [("True", "Scheduled", "")]
        assert messages(stand) == {}
        assert is_clean(stand.scheduler.cluster)


async def test_no_member_of_a_gang_that_does_not_fit_is_bound() -> None:
    async with running(node("n1"), release=GATED_38) as stand:
        await submit(stand, group(least=5), *members(5))
        assert stand.bound == {}
        assert conditions(stand) == [
            ("False", "Unschedulable", f"{below(5, 4, 1, 0)}, {CLAIMS_DONE}, {NO_VICTIMS}"),
        ]
        fit_error = "0/1 nodes are available: 1 Insufficient cpu."
        assert messages(stand) == dict.fromkeys(("p0", "p1", "p2", "p3"), PARENT) | {"p4": fit_error}
        assert sorted(stand.notes) == sorted([fit_error, *[PARENT] * 4])
        assert is_clean(stand.scheduler.cluster)
        assert not stand.scheduler.cluster.pods.by_id


async def test_messages_of_v1_37_repeat_the_reason_of_the_group() -> None:
    async with running(node("n1"), release=GATED) as stand:
        await submit(stand, group(least=5), *members(5))
        reason = f"minCount (5) cannot be satisfied: 4 scheduled, 0 remaining, {NO_VICTIMS}"
        assert conditions(stand) == [("False", "Unschedulable", reason)]
        fit_error = "0/1 nodes are available: 1 Insufficient cpu."
        told = dict.fromkeys(("p0", "p1", "p2", "p3"), f"pod group is unschedulable, {reason}")
        assert messages(stand) == told | {"p4": fit_error}


async def test_cycle_ends_at_the_member_that_makes_the_group_impossible() -> None:
    async with running(node("n1", allocatable={"cpu": "1"}), release=GATED_38) as stand:
        await submit(stand, group(least=3), *members(4))
        assert conditions(stand)[0][2].startswith(below(3, 1, 2, 1))
        fit_error = "0/1 nodes are available: 1 Insufficient cpu."
        assert messages(stand) == {"p0": PARENT, "p1": fit_error, "p2": fit_error, "p3": PARENT}


async def test_members_beyond_the_minimum_count_may_fail() -> None:
    async with running(node("n1", allocatable={"cpu": "3"}), release=GATED_38) as stand:
        await submit(stand, group(least=3), *members(4))
        assert stand.bound == {"p0": "n1", "p1": "n1", "p2": "n1"}
        assert conditions(stand) == [("True", "Scheduled", "")]
        assert messages(stand)["p3"] == "0/1 nodes are available: 1 Insufficient cpu."


async def test_members_are_decided_with_the_earlier_members_in_place() -> None:
    async with running(node("n1"), node("n2"), release=GATED_38) as stand:
        await submit(stand, group(least=2), *members(2, requests={"cpu": 3}))
        assert sorted(stand.bound.values()) == ["n1", "n2"]


async def test_basic_group_places_each_member_that_fits() -> None:
    async with running(node("n1", allocatable={"cpu": "2"}), release=GATED_38) as stand:
        await submit(stand, group(), *members(3))
        assert len(stand.bound) == 2
        assert conditions(stand) == [("True", "Scheduled", "")]


async def test_scheduled_members_count() -> None:
    async with running(node("n1", allocatable={"cpu": "3"}), release=GATED_38) as stand:
        await submit(stand, group(least=3), *members(3))
        for one in members(3):
            stand.confirm(one, "n1")
        late = member("late", requests={"cpu": 1})
        await stand.settled(late)
        assert "late" not in stand.bound
        stand.scheduler.set_node(node("n2"))
        await stand.pass_time(30)
        assert stand.bound["late"] == "n2"
        assert conditions(stand) == [("True", "Scheduled", "")]


async def test_group_without_placed_member_and_with_quorum_is_rejected() -> None:
    async with running(node("n1", allocatable={"cpu": "3"}), release=GATED_38) as stand:
        await submit(stand, group(least=1), *members(3, on="n1"))
        await stand.settled(member("late", requests={"cpu": 1}))
        [(status, reason, message)] = conditions(stand)
        assert (status, reason) == ("False", "Unschedulable")
        assert message == f"no pods were schedulable, {CLAIMS_DONE}, {NO_VICTIMS}"


async def test_no_node_is_a_rejection() -> None:
    async with running(release=GATED_38) as stand:
        await submit(stand, group(least=2), *members(2))
        assert messages(stand) == {"p0": "no nodes available to schedule pods", "p1": PARENT}


async def test_gang_that_may_not_preempt_says_so() -> None:
    async with running(node("n1"), release=GATED_38) as stand:
        await submit(stand, group(least=1), member("p", preemption_policy="Never", requests={"cpu": 9}))
        said = "pod group preemption: not eligible due to preemptionPolicy=Never."
        assert conditions(stand)[0][2].endswith(f"{CLAIMS_DONE}, {said}")


async def test_gang_that_does_not_fit_without_its_victims_says_so() -> None:
    async with running(node("n1"), release=GATED_38) as stand:
        stand.scheduler.set_pod(pod("low", on="n1", priority=-1))
        await submit(stand, group(least=1), member("p", requests={"cpu": 9}))
        said = below(1, 0, 1, 0)
        assert conditions(stand)[0][2] == f"{said}, {CLAIMS_DONE}, pod group preemption: {said}"


async def test_nomination_of_a_fitting_member_is_cleared_and_of_others_kept() -> None:
    nodes = ("n1", "gone", "gone")
    one, two, three = (
        structs.replace(one, status=PodStatus(nominated_node_name=name))
        for one, name in zip(members(3, requests={"cpu": 3}), nodes, strict=True)
    )
    async with running(node("n1"), release=GATED_38) as stand:
        await submit(stand, group(least=3), one, two, three)
        nominations = stand.scheduler.cluster.nominations
        assert stand.client.nominated == [("default/p0", "")]
        assert nominations.get("default.p0") is None
        assert nominations.get("default.p1") is not None
        assert nominations.get("default.p2") is not None


async def test_members_that_are_being_deleted_are_skipped() -> None:
    [gone, *others] = members(3)
    gone = structs.replace(gone, metadata=structs.replace(gone.metadata, deletion_timestamp="2026-01-01T00:00:00Z"))
    async with running(node("n1"), release=GATED_38) as stand:
        await submit(stand, group(least=2), gone, *others)
        assert sorted(stand.bound) == ["p1", "p2"]
        assert "skip schedule deleting pod: default/p0" in stand.notes


async def test_condition_names_the_generation() -> None:
    told = group(least=1)
    told = structs.replace(told, metadata=structs.replace(told.metadata, generation=7))
    async with running(node("n1"), release=GATED_38) as stand:
        await submit(stand, told, *members(1))
        [(key, condition)] = stand.client.group_conditions
        assert key == "default/g"
        assert condition["observedGeneration"] == 7
        assert condition["lastTransitionTime"] == "2026-01-01T00:16:40Z"


class Allows(PermitPlugin):
    """Allows every pod."""

    name = "Allows"

    def permit(self, assumed: AssumedPod, handle: Handle) -> None:
        pass


@pytest.mark.parametrize("release", RELEASES, ids=["1.37", "1.38"])
@pytest.mark.parametrize(("permits", "times"), [([], 1), ([Allows()], 2)], ids=["gangs only", "a Permit plugin"])
async def test_members_are_placed_once_unless_a_plugin_may_act_between_them(
    monkeypatch: pytest.MonkeyPatch, release: Release, permits: list[PermitPlugin], times: int
) -> None:
    made = default_profile(ME, release=release)
    async with running(node("n1"), of=replace(made, permits=(*made.permits, *permits)), release=release) as stand:
        cluster, placed = stand.scheduler.cluster, list[str]()
        assume = cluster.assume

        def counting(of: Pod, *given: Any) -> None:
            placed.append(of.metadata.name)
            assume(of, *given)

        monkeypatch.setattr(cluster, "assume", counting)
        await submit(stand, group(least=2), *members(3))
        assert placed == ["p0", "p1", "p2"] * times
        assert set(stand.bound) == {"p0", "p1", "p2"}
        assert is_clean(cluster)
