"""Policies that read pod groups, in a running scheduler: spread, keep together, wait for the group."""

from __future__ import annotations

from collections import Counter

import pytest
from msgspec.structs import replace

from policysched.model.objects import Node
from policysched.model.release import Release
from tests.build import node, pod
from tests.groups import GATED_38, group, member
from tests.rules.build import Spec, filtering, policy_set, scoring
from tests.schedule.groups.parts import RELEASES, members, submit
from tests.schedule.stand import Stand, running

AT_MOST_4 = {"filters": filtering("node.group_members < 4", name="at-most-4")}
ONE_BLOCK = {
    "filters": filtering('(sum(node.group_members) by node.labels["block"]) == group.placed', name="one-block")
}
TOGETHER = {"scores": scoring("if(node.group_members > 0, 100, 0)"), "weight": 10}
PER_NODE = {"pods": "8", "cpu": "8"}


def blocks() -> list[Node]:
    """Two blocks of three nodes."""
    return [
        node(f"{block}{place}", labels={"block": block}, allocatable=PER_NODE) for block in "ab" for place in range(3)
    ]


async def decided(stand: Stand, spec: Spec, count: int, least: int) -> Counter[str]:
    """How many members of a gang each node gets with a policy."""
    stand.scheduler.use_policies(policy_set(p=spec), frozenset())
    await submit(stand, group(least=least), *members(count))
    return Counter(stand.bound.values())


@pytest.mark.parametrize("release", RELEASES, ids=lambda one: one.minor)
async def test_gang_of_eight_has_at_most_four_members_on_a_node(release: Release) -> None:
    async with running(*blocks()[:2], release=release) as stand:
        assert await decided(stand, AT_MOST_4, 8, 8) == {"a0": 4, "a1": 4}


async def test_gang_that_exceeds_the_limit_of_all_nodes_is_not_placed() -> None:
    async with running(*blocks()[:2], release=GATED_38) as stand:
        assert await decided(stand, AT_MOST_4, 9, 9) == {}
        reasons = {one["message"] for _, one in stand.client.conditions}
        assert any("2 policy p/at-most-4: node.group_members < 4" in one for one in reasons)


@pytest.mark.parametrize("release", RELEASES, ids=lambda one: one.minor)
async def test_gang_stays_within_the_block_of_its_first_member(release: Release) -> None:
    async with running(*blocks(), release=release) as stand:
        found = await decided(stand, ONE_BLOCK, 24, 24)
        assert (sum(found.values()), len({name[0] for name in found})) == (24, 1)


async def test_gang_that_exceeds_its_block_is_not_placed_elsewhere() -> None:
    async with running(*blocks(), release=GATED_38) as stand:
        assert await decided(stand, ONE_BLOCK, 25, 25) == {}


async def test_members_that_come_later_join_the_placed_ones() -> None:
    async with running(*blocks(), release=GATED_38) as stand:
        found = await decided(stand, ONE_BLOCK, 2, 2)
        await stand.settled(*[member(f"late{number}", requests={"cpu": 1}) for number in range(10)])
        assert {name[0] for name in stand.bound.values()} == {next(iter(found))[0]}
        assert len(stand.bound) == 12


async def test_score_of_members_on_the_node_fills_one_node() -> None:
    async with running(*blocks(), release=GATED_38) as stand:
        assert len(await decided(stand, TOGETHER, 8, 8)) == 1


async def test_pods_of_other_groups_and_without_a_group_are_not_members() -> None:
    async with running(node("n1", allocatable={"cpu": 64}), release=GATED_38) as stand:
        stand.scheduler.use_policies(policy_set(p=AT_MOST_4), frozenset())
        await submit(stand, group("other", least=4), *[member(f"o{number}", "other") for number in range(4)])
        await submit(stand, group(least=4), *members(4))
        await stand.settled(*[pod(f"alone{number}") for number in range(6)])
        assert len(stand.bound) == 14


async def test_minimum_count_selects_groups() -> None:
    spec = {"appliesTo": "(group.min_count > 2) ?? false", "filters": filtering('node.name == "a1"')}
    async with running(*blocks(), release=GATED_38) as stand:
        stand.scheduler.use_policies(policy_set(p=spec), frozenset())
        await submit(stand, group(least=3), *members(3))
        assert set(stand.bound.values()) == {"a1"}
        await submit(stand, group("small", least=2), *[member(f"s{number}", "small") for number in range(2)])
        await stand.settled(pod("alone"))
        assert len(stand.bound) == 6


async def test_group_is_tried_again_after_its_labels_changed() -> None:
    spec = {"filters": filtering('node.labels["block"] == group.labels["block"]')}
    async with running(*blocks(), release=GATED_38) as stand:
        stand.scheduler.use_policies(policy_set(p=spec), frozenset())
        made = group(least=2)
        await submit(stand, made, *members(2))
        assert not stand.bound
        labelled = type(made)(metadata=replace(made.metadata, labels={"block": "b"}), spec=made.spec)
        stand.scheduler.take(labelled)
        await stand.pass_time(15)
        assert {name[0] for name in stand.bound.values()} == {"b"}


async def test_without_the_gate_no_pod_has_a_group() -> None:
    spec = {
        "filters": filtering(
            "node.group_members == 0 and group.size == 0 and group.placed == 0 and not has(group.name)"
        )
    }
    async with running(*blocks()) as stand:
        stand.scheduler.use_policies(policy_set(p=spec), frozenset())
        await stand.settled(*members(6))
        assert len(stand.bound) == 6
