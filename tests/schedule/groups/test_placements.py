"""Groups with a topology constraint in a running scheduler."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest
from msgspec import structs

from policysched.app.configuration.profiles import default_profile
from policysched.framework import Code, Scores, Status
from policysched.framework.cycle_state import CycleState
from policysched.framework.pod_groups import (
    CandidatePlacement,
    FeasiblePlacement,
    PlacementGeneratePlugin,
    PlacementScorePlugin,
    PodGroupContext,
)
from policysched.framework.profile import Profile
from policysched.model.objects import LabelSelector, Node, Pod, PodStatus, TopologySpreadConstraint
from policysched.model.release import Release
from policysched.schedule.groups.placement_points import best_of, generate
from policysched.schedule.observer import Observer, PlacementSearch
from policysched.state.cluster import Cluster
from tests.build import node, pod
from tests.groups import TOPOLOGY, TOPOLOGY_38, group, member
from tests.schedule.groups.parts import (
    NO_VICTIMS,
    PARENT,
    below,
    conditions,
    is_clean,
    members,
    messages,
    submit,
)
from tests.schedule.stand import ME, running

RACK = "example.com/rack"
BOTH = pytest.mark.parametrize("release", [TOPOLOGY, TOPOLOGY_38], ids=lambda one: one.minor)


def racks(**sizes: int) -> list[Node]:
    """Nodes with 4 CPUs: so many of each rack."""
    return [
        node(f"{rack}-{number}", labels={RACK: rack}) for rack, size in sizes.items() for number in range(1, size + 1)
    ]


def nominated(pods: Sequence[Pod], to: str) -> list[Pod]:
    return [structs.replace(one, status=PodStatus(nominated_node_name=to)) for one in pods]


class Searches(Observer):
    """Counts the placements of each search."""

    def __init__(self) -> None:
        self.seen: list[tuple[int, list[bool]]] = []

    def on_placement_search(self, search: PlacementSearch) -> None:
        self.seen.append((search.generated, [fits for fits, _ in search.evaluated]))


class Thirds(PlacementGeneratePlugin, PlacementScorePlugin):
    """A plugin with prepared answers: placements by name, scores by name."""

    name = "Thirds"

    def __init__(self, answer: Any, scores: Any = (), tier: int = 0) -> None:
        self._answer, self._scores, self.tier = answer, scores, tier

    def generate_placements(self, context: PodGroupContext, parent: CandidatePlacement) -> Any:  # noqa: ARG002
        if isinstance(self._answer, Exception):
            raise self._answer
        if not isinstance(self._answer, dict):
            return self._answer
        return [CandidatePlacement(name, np.array(rows, np.intp)) for name, rows in self._answer.items()]

    def score_placements(self, context: PodGroupContext, feasible: Sequence[FeasiblePlacement]) -> Any:  # noqa: ARG002
        if not isinstance(self._scores, dict):
            return self._scores
        return np.array([self._scores[one.placement.name] for one in feasible], np.int64)


def profile_with(release: Release = TOPOLOGY_38, **changes: Any) -> Profile:
    return replace(default_profile(ME, release=release), **changes)


@BOTH
async def test_all_members_are_on_one_rack(release: Release) -> None:
    async with running(*racks(a=1, b=2, c=1), release=release) as stand:
        await submit(stand, group(least=6, key=RACK), *members(6))
        assert set(stand.bound.values()) == {"b-1", "b-2"}
        assert conditions(stand) == [("True", "Scheduled", "")]
        assert is_clean(stand.scheduler.cluster)


@BOTH
async def test_fullest_rack_that_holds_all_is_chosen(release: Release) -> None:
    async with running(*racks(a=3, b=2, c=1), release=release) as stand:
        await submit(stand, group(least=6, key=RACK), *members(6))
        assert {name[0] for name in stand.bound.values()} == {"b"}


async def test_rack_with_more_members_is_chosen() -> None:
    async with running(*racks(a=1, b=3), release=TOPOLOGY_38) as stand:
        await submit(stand, group(least=2, key=RACK), *members(8))
        assert {name[0] for name in stand.bound.values()} == {"b"}


async def test_group_without_a_constraint_uses_all_nodes() -> None:
    async with running(*racks(a=1, b=1), release=TOPOLOGY_38) as stand:
        await submit(stand, group(least=6), *members(6))
        assert set(stand.bound.values()) == {"a-1", "b-1"}


async def test_without_the_gate_the_constraint_is_overlooked() -> None:
    release = replace(TOPOLOGY_38, topology_aware=False)
    async with running(*racks(a=1, b=1), release=release) as stand:
        await submit(stand, group(least=6, key=RACK), *members(6))
        assert set(stand.bound.values()) == {"a-1", "b-1"}


async def test_group_that_fits_no_rack_reports_the_first() -> None:
    async with running(*racks(a=1, b=2), release=TOPOLOGY_38) as stand:
        await submit(stand, group(least=9, key=RACK), *members(9))
        said = f"0/2 placements are available, first placement status: {below(9, 4, 1, 4)}"
        simulated = f"pod group preemption: {NO_VICTIMS.partition(': ')[2]}"
        assert conditions(stand) == [("False", "Unschedulable", f"{said}, {simulated}")]
        told = messages(stand)
        assert told["p4"] == "0/1 nodes are available: 1 Insufficient cpu."
        assert {told[f"p{number}"] for number in (0, 1, 2, 3, 5, 6, 7, 8)} == {PARENT}
        assert not stand.scheduler.cluster.pods.by_id


async def test_texts_of_v1_37() -> None:
    async with running(*racks(a=1, b=2), release=TOPOLOGY) as stand:
        await submit(stand, group(least=9, key=RACK), *members(9))
        few = "minCount (9) cannot be satisfied: 4 scheduled, 4 remaining"
        said = f"pod group is unschedulable, 0/2 placements are available, first placement status: {few}"
        assert conditions(stand) == [("False", "Unschedulable", f"{said}, {NO_VICTIMS}")]
        told = messages(stand)
        assert told["p0"] == f"pod group is unschedulable, {said}, {NO_VICTIMS}"
        assert told["p8"] == said


@BOTH
async def test_group_without_a_domain_is_rejected(release: Release) -> None:
    async with running(*racks(a=1), release=release) as stand:
        await submit(stand, group(least=1, key="example.com/none"), *members(2))
        assert messages(stand) == dict.fromkeys(("p0", "p1"), "no feasible placements found")
        [(status, reason, message)] = conditions(stand)
        assert (status, reason) == ("False", "Unschedulable")
        assert message.startswith("no feasible placements found, ")


@BOTH
async def test_placed_members_pin_the_rack(release: Release) -> None:
    async with running(*racks(a=1, b=2), release=release) as stand:
        await submit(stand, group(least=1, key=RACK), *members(2, on="b-1"))
        await stand.settled(*[member(f"late{number}", requests={"cpu": 2}) for number in range(4)])
        assert {name[0] for name in stand.bound.values()} == {"b"}
        assert len(stand.bound) == 3


async def test_members_in_two_racks_are_an_error() -> None:
    async with running(*racks(a=1, b=1), release=TOPOLOGY_38) as stand:
        placed = [*members(1, on="a-1"), member("p1", on="b-1", requests={"cpu": 1})]
        await submit(stand, group(least=1, key=RACK), *placed)
        await stand.settled(member("late", requests={"cpu": 1}))
        [(status, reason, message)] = conditions(stand)
        assert (status, reason) == ("False", "SchedulerError")
        assert message == (
            'cannot determine domain for already scheduled pods: more than 1 domain found for pod group: "a", "b"'
        )
        assert messages(stand) == {"late": 'parent pod group "g" encountered an error'}


async def test_nominated_placement_is_tried_first_and_alone() -> None:
    seen = Searches()
    async with running(*racks(a=1, b=2), release=TOPOLOGY_38, observers=(seen,)) as stand:
        await submit(stand, group(least=2, key=RACK), *nominated(members(2), "b-2"))
        assert {name[0] for name in stand.bound.values()} == {"b"}
        assert seen.seen == [(2, [True])]


async def test_v1_37_evaluates_all_placements() -> None:
    seen = Searches()
    async with running(*racks(a=1, b=2), release=TOPOLOGY, observers=(seen,)) as stand:
        await submit(stand, group(least=2, key=RACK), *nominated(members(2), "b-2"))
        assert {name[0] for name in stand.bound.values()} == {"a"}
        assert seen.seen == [(2, [True, True])]


async def test_nomination_outside_of_the_placement_is_no_obstacle() -> None:
    async with running(*racks(a=1, b=2), release=TOPOLOGY_38) as stand:
        await submit(stand, group(least=8, key=RACK), *nominated(members(8), "a-1"))
        assert {name[0] for name in stand.bound.values()} == {"b"}


async def test_nominated_placement_that_fits_no_pending_member_says_so() -> None:
    async with running(*racks(a=1), release=TOPOLOGY_38) as stand:
        await submit(stand, group(least=1, key=RACK), *members(4, on="a-1"))
        await stand.settled(*nominated([member("late", requests={"cpu": 1})], "a-1"))
        said = "0/1 placements are available, first placement status: "
        said += "nominated placement is feasible but no pending pod was scheduled"
        assert conditions(stand)[0][2].startswith(said)
        assert messages(stand) == {"late": "0/1 nodes are available: 1 Insufficient cpu."}


@pytest.mark.parametrize(("percentage", "evaluated"), [(1, 1), (30, 3), (100, 10), (0, 10)])
async def test_search_ends_when_enough_placements_are_feasible(percentage: int, evaluated: int) -> None:
    seen = Searches()
    of = profile_with(placements_percentage=percentage)
    nodes = racks(**{f"r{number}": 1 for number in range(10)})
    async with running(*nodes, of=of, release=TOPOLOGY_38, observers=(seen,)) as stand:
        await submit(stand, group(least=1, key=RACK), *members(1))
        assert seen.seen == [(10, [True] * evaluated)]


async def test_without_scores_the_first_feasible_placement_is_taken() -> None:
    seen = Searches()
    of = profile_with(placement_scores=())
    async with running(*racks(a=1, b=1, c=1), of=of, release=TOPOLOGY_38, observers=(seen,)) as stand:
        await submit(stand, group(least=1, key=RACK), *members(1))
        assert seen.seen == [(3, [True])]


async def test_equal_placements_are_drawn() -> None:
    taken = set()
    for number in range(12):
        async with running(*racks(a=1, b=1), release=TOPOLOGY_38) as stand:
            stand.scheduler.attempts.rng.seed(number)
            await submit(stand, group(least=1, key=RACK), *members(1))
            taken |= set(stand.bound.values())
    assert taken == {"a-1", "b-1"}


async def test_spreading_counts_pods_of_other_placements() -> None:
    """A placement has the nodes that members may use; filters count pods on all nodes."""
    spread = TopologySpreadConstraint(
        max_skew=1,
        topology_key=RACK,
        when_unsatisfiable="DoNotSchedule",
        label_selector=LabelSelector(match_labels={"app": "x"}),
    )
    spreading = members(2, labels={"app": "x"}, topology_spread_constraints=[spread])
    async with running(*racks(a=1, b=1), release=TOPOLOGY_38) as stand:
        stand.scheduler.set_pod(pod("old", on="b-1", labels={"app": "x"}, requests={"cpu": 1}))
        await submit(stand, group(least=1, key=RACK), *spreading)
        assert stand.bound == {"p0": "a-1", "p1": "a-1"}


async def test_group_preempts_on_the_rack_with_the_highest_score() -> None:
    async with running(*racks(a=2, b=1), release=TOPOLOGY_38) as stand:
        for number, one in enumerate(("a-1", "a-2", "b-1")):
            stand.scheduler.set_pod(pod(f"low{number}", on=one, priority=-1, requests={"cpu": 4}))
        await submit(stand, group(least=2, key=RACK), *members(2, requests={"cpu": 2}))
        assert stand.client.deleted == ["default/low2"]


async def test_failing_generator_fails_the_group() -> None:
    of = profile_with(placement_generate=(Thirds(ValueError("no map")),))
    async with running(*racks(a=1), of=of, release=TOPOLOGY_38) as stand:
        await submit(stand, group(least=1, key=RACK), *members(1))
        assert conditions(stand) == [("False", "SchedulerError", "ValueError('no map')")]


@pytest.mark.parametrize(
    ("scores", "message"),
    [
        (
            Status(Code.ERROR, ("no scale",)),
            'running PlacementScore plugins: plugin "Thirds" failed with: no scale',
        ),
        (
            {"a": 5, "b": 101},
            'applying score defaultWeights on PlacementScore plugins: plugin "Thirds" returns an invalid score 101, '
            "it should in the range of [0, 100] after normalizing",
        ),
    ],
)
async def test_failing_score_fails_the_group(scores: Any, message: str) -> None:
    of = profile_with(placement_scores=((Thirds({}, scores), 1),))
    async with running(*racks(a=1, b=1), of=of, release=TOPOLOGY_38) as stand:
        await submit(stand, group(least=1, key=RACK), *members(1))
        assert conditions(stand) == [("False", "SchedulerError", message)]
        assert not stand.scheduler.cluster.pods.by_id


def context(nodes: int) -> PodGroupContext:
    cluster = Cluster(release=TOPOLOGY_38)
    for number in range(nodes):
        cluster.set_node(node(f"n{number}"))
    return PodGroupContext(group(), [member()], cluster, CycleState())


def test_placements_of_two_generators_are_combined() -> None:
    some, others = Thirds({"a": [0, 1], "b": [2, 3]}), Thirds({"x": [1, 2], "y": [3]})
    found = generate((some, others), context(4))
    assert not isinstance(found, Status)
    assert {one.name: one.rows.tolist() for one in found} == {"a/x": [1], "b/x": [2], "b/y": [3]}


def test_generators_without_common_nodes_reject_the_group() -> None:
    found = generate((Thirds({"a": [0]}), Thirds({"x": [1]})), context(2))
    assert found == Status(Code.UNSCHEDULABLE, ("no feasible merged placements found",))


def test_generators_without_constraints_leave_all_nodes() -> None:
    found = generate((), context(3))
    assert not isinstance(found, Status)
    assert [(one.name, one.rows.tolist()) for one in found] == [("", [0, 1, 2])]


def test_names_of_placements_are_checked() -> None:
    found = generate((Thirds({"a/b": [0]}),), context(1))
    assert found == Status(Code.ERROR, ('placement name "a/b" must not contain "/"',), "Thirds")
    twice = [CandidatePlacement("a", np.array([0]))] * 2
    found = generate((Thirds(twice),), context(1))
    assert found == Status(Code.ERROR, ('plugin returned duplicate placement name "a"',), "Thirds")


def test_scores_of_a_higher_tier_decide_first() -> None:
    def scored(plugin: Thirds, *values: int) -> tuple[Thirds, Scores]:
        return plugin, np.array(values, np.int64)

    low, high = Thirds({}), Thirds({}, tier=1)
    assert best_of([scored(low, 0, 9, 9), scored(high, 5, 5, 1)]) == [1]
    assert best_of([scored(low, 9, 9, 0)]) == [0, 1]


@BOTH
async def test_members_need_no_room_for_nominated_members_of_their_group(release: Release) -> None:
    """The cycle places all members, so that nominations of others would count them twice."""
    async with running(*racks(a=1), release=release) as stand:
        await submit(stand, group(least=2, priority=1), *nominated(members(2, priority=1, requests={"cpu": 2}), "a-1"))
        assert stand.bound == {"p0": "a-1", "p1": "a-1"}


async def test_nominations_of_a_rejected_group_stay() -> None:
    async with running(*racks(a=1), release=TOPOLOGY_38) as stand:
        pods = nominated(members(2, priority=1, requests={"cpu": 9}), "a-1")
        await submit(stand, group(least=2, priority=1), *pods)
        kept = [stand.scheduler.cluster.nominations.get(f"default.p{number}") for number in range(2)]
        assert [one.node for one in kept if one is not None] == ["a-1", "a-1"]
