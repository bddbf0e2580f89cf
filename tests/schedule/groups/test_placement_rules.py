"""Policies with placement rules in a running scheduler: which placements are tried, which one is chosen, and why."""

from __future__ import annotations

import pytest

from policysched.model.objects import Node
from policysched.model.release import Release
from tests.build import node, pod
from tests.groups import GATED_38, TOPOLOGY, TOPOLOGY_38, group, member
from tests.rules.build import Spec, filtering, policy_set, scoring
from tests.schedule.groups.parts import conditions, members, submit
from tests.schedule.stand import Stand, running

FREE = "placement.nodes.sum(node.free.cpu)"
FULLEST = {"topologyKey": "rack", "scores": scoring(f"100 - scale({FREE}, 0, 16)", name="fullest")}
HOLDS_ALL = filtering(f"{FREE} >= group.requests.cpu", name="holds-all")


def racks(*sizes: int) -> list[Node]:
    """Racks r0, r1, … of this many nodes, each with 4 cores."""
    return [
        node(f"r{rack}-{place}", labels={"rack": f"r{rack}"})
        for rack, size in enumerate(sizes)
        for place in range(size)
    ]


def used(stand: Stand) -> set[str]:
    """The racks of the bound pods."""
    return {name.partition("-")[0] for name in stand.bound.values()}


async def place(stand: Stand, placement: Spec, count: int, *, least: int = 0, **spec: object) -> set[str]:
    """The racks that a gang uses with a policy."""
    stand.scheduler.use_policies(policy_set(p={"placement": placement, **spec}), frozenset())
    await submit(stand, group(least=least or count), *members(count))
    return used(stand)


@pytest.mark.parametrize("release", [TOPOLOGY, TOPOLOGY_38], ids=lambda one: one.minor)
async def test_gang_uses_the_fullest_rack_that_holds_it(release: Release) -> None:
    async with running(*racks(4, 1, 2), release=release) as stand:
        assert await place(stand, FULLEST, 7) == {"r2"}


async def test_scores_of_a_policy_compete_by_weight_and_tier() -> None:
    emptiest = {"topologyKey": "rack", "scores": scoring(f"scale({FREE}, 0, 16)", name="emptiest")}
    for weights, rack in (((1, 2), "r0"), ((2, 1), "r1")):
        async with running(*racks(3, 2), release=TOPOLOGY_38) as stand:
            both = policy_set(
                p={"placement": FULLEST, "weight": weights[0]},
                q={"placement": {**emptiest, "topologyKey": ""}, "weight": weights[1]},
            )
            stand.scheduler.use_policies(both, frozenset())
            await submit(stand, group(least=4), *members(4))
            assert used(stand) == {rack}
    async with running(*racks(3, 2), release=TOPOLOGY_38) as stand:
        tiers = policy_set(
            p={"placement": FULLEST, "weight": 9}, q={"placement": {**emptiest, "topologyKey": ""}, "tier": 1}
        )
        stand.scheduler.use_policies(tiers, frozenset())
        await submit(stand, group(least=4), *members(4))
        assert used(stand) == {"r0"}


async def test_filter_rejects_placements_with_its_message() -> None:
    rule = filtering("placement.size >= 3", name="large", message="rack is too small")
    async with running(*racks(2, 3), release=TOPOLOGY_38) as stand:
        assert await place(stand, {"topologyKey": "rack", "filters": rule}, 2) == {"r1"}
    async with running(*racks(2), release=TOPOLOGY_38) as stand:
        assert await place(stand, {"topologyKey": "rack", "filters": rule}, 2) == set()
        ((_, _, message),) = conditions(stand)
        assert message.startswith(
            "0/1 placements are available, first placement status: policy p/large: rack is too small"
        )


async def test_unknown_condition_rejects_and_names_what_is_missing() -> None:
    rule = filtering('placement.nodes.min(number(node.labels["gen"])) >= 2', name="new")
    async with running(*racks(2), release=TOPOLOGY_38) as stand:
        assert await place(stand, {"topologyKey": "rack", "filters": rule}, 2) == set()
        ((_, _, message),) = conditions(stand)
        assert 'policy p/new: node.labels["gen"] is missing' in message


async def test_nodes_without_the_label_are_not_used() -> None:
    async with running(node("bare"), *racks(1), release=TOPOLOGY_38) as stand:
        assert await place(stand, {"topologyKey": "rack"}, 4) == {"r0"}
    async with running(node("bare"), release=TOPOLOGY_38) as stand:
        assert await place(stand, {"topologyKey": "rack"}, 1) == set()


async def test_members_that_come_later_use_the_rack_of_the_placed_ones() -> None:
    async with running(*racks(2, 2), release=TOPOLOGY_38) as stand:
        [first] = await place(stand, {"topologyKey": "rack"}, 2)
        await stand.settled(*[member(f"late{number}", requests={"cpu": 1}) for number in range(6)])
        assert (used(stand), len(stand.bound)) == ({first}, 8)
        await stand.settled(member("more", requests={"cpu": 1}))
        assert len(stand.bound) == 8


async def test_rules_without_a_key_apply_to_the_constraint_of_the_group() -> None:
    async with running(*racks(4, 2), release=TOPOLOGY_38) as stand:
        spec = policy_set(p={"placement": {"scores": FULLEST["scores"]}})
        stand.scheduler.use_policies(spec, frozenset())
        await submit(stand, group(least=2, key="rack"), *members(2))
        assert used(stand) == {"r1"}


async def test_key_of_the_policy_and_of_the_group_are_combined() -> None:
    nodes = [node(f"r{at % 2}-{at}", labels={"rack": f"r{at % 2}", "row": f"w{at // 2}"}) for at in range(4)]
    async with running(*nodes, release=TOPOLOGY_38) as stand:
        stand.scheduler.use_policies(policy_set(p={"placement": {"topologyKey": "rack"}}), frozenset())
        await submit(stand, group(least=4, key="row"), *members(4))
        assert len(set(stand.bound.values())) == 1


async def test_placement_without_room_is_left_for_the_next_one() -> None:
    async with running(*racks(1, 3), release=TOPOLOGY_38) as stand:
        assert await place(stand, {**FULLEST, "filters": HOLDS_ALL}, 10) == {"r1"}


async def test_members_on_nodes_and_rules_about_nodes_work_together() -> None:
    spec: Spec = {"filters": filtering("node.group_members < 2", name="at-most-2")}
    async with running(*racks(3, 4), release=TOPOLOGY_38) as stand:
        assert await place(stand, FULLEST, 6, **spec) == {"r0"}
        assert sorted(map(list(stand.bound.values()).count, set(stand.bound.values()))) == [2, 2, 2]


@pytest.mark.parametrize(
    "spec",
    [
        {"podSelector": {"matchLabels": {"team": "x"}}},
        {"schedulerNames": ["other"]},
        {"appliesTo": 'pod.name == "x"'},
        {"mode": "Shadow"},
        {"mode": "Disabled"},
    ],
    ids=str,
)
async def test_policy_that_does_not_apply_has_no_effect(spec: Spec) -> None:
    async with running(*racks(1, 1), release=TOPOLOGY_38) as stand:
        rule = {"topologyKey": "rack", "filters": filtering("placement.size > 9")}
        assert await place(stand, rule, 8, **spec) == {"r0", "r1"}


async def test_when_reads_the_group() -> None:
    rule = [*filtering("placement.size > 9", when="group.size > 4")]
    for count, racks_used in ((4, 1), (5, 0)):
        async with running(*racks(2, 2), release=TOPOLOGY_38) as stand:
            assert len(await place(stand, {"topologyKey": "rack", "filters": rule}, count)) == racks_used


async def test_normalized_scores_and_cases() -> None:
    scores = [
        {"name": "many", "normalize": "Max", "value": "placement.size"},
        {"name": "named", "weight": 3, "cases": ['placement.name == "r1" → 100', "else → 0"]},
    ]
    async with running(*racks(4, 2, 3), release=TOPOLOGY_38) as stand:
        assert await place(stand, {"topologyKey": "rack", "scores": scores}, 4) == {"r1"}


async def test_counters_of_placed_pods_are_read() -> None:
    rule = filtering('placement.nodes.sum(node.pods.count(peer.labels["app"] == "db")) == 0', name="no-db")
    async with running(*racks(2, 2), release=TOPOLOGY_38) as stand:
        await stand.settled(pod("db", on="r0-1", labels={"app": "db"}))
        assert await place(stand, {"topologyKey": "rack", "filters": rule}, 4) == {"r1"}


async def test_without_the_gate_the_rules_have_no_effect() -> None:
    async with running(*racks(1, 1), release=GATED_38) as stand:
        rule = {"topologyKey": "rack", "filters": filtering("placement.size > 9")}
        assert await place(stand, rule, 8) == {"r0", "r1"}


async def test_pods_without_a_group_are_not_concerned() -> None:
    async with running(*racks(1), release=TOPOLOGY_38) as stand:
        rule = {"topologyKey": "rack", "filters": filtering("placement.size > 9")}
        stand.scheduler.use_policies(policy_set(p={"placement": rule}), frozenset())
        await stand.settled(pod("alone"))
        assert len(stand.bound) == 1
