"""Out-of-tree plugins that generate, reject and score placements of pod groups."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from policysched.app.configuration.profiles import configured_profiles
from policysched.errors import UsageError
from policysched.framework.profile import Profile
from policysched.plugin import (
    Code,
    CycleState,
    GroupPlacement,
    NodeInfo,
    Placement,
    PlacementProgress,
    PlacementScore,
    PluginRegistry,
    PodGroup,
    Status,
    unschedulable,
)
from tests.build import node
from tests.groups import TOPOLOGY_38, group
from tests.schedule.groups.parts import conditions, members, messages, submit
from tests.schedule.stand import ME, running

ROW = "example.com/row"
NODES = [node(f"{row}-{number}", labels={ROW: row}) for row in "ab" for number in (1, 2)]


class Rows:
    """Placements by a label, with scores by name."""

    def __init__(self, scores: dict[str, int] | None = None, normalized: Any = None, answer: Any = None) -> None:
        self._scores, self._normalized, self._answer = scores or {}, normalized, answer
        self.seen: list[Any] = []

    def generate_placements(self, state: CycleState, group: PodGroup, nodes: Sequence[NodeInfo]) -> Any:
        state.write("group", group.metadata.name)
        if self._answer is not None:
            return self._answer(nodes)
        rows = sorted({one.labels[ROW] for one in nodes})
        return [Placement(row, [one.name for one in nodes if one.labels[ROW] == row]) for row in rows]

    def score_placement(self, state: CycleState, group: PodGroup, placement: GroupPlacement) -> int:  # noqa: ARG002
        self.seen.append((state.get("group"), placement.name, sorted(placement.node_names), len(placement.assignments)))
        return self._scores.get(placement.name, 0)

    def normalize_placement_scores(
        self,
        state: CycleState,  # noqa: ARG002
        group: PodGroup,  # noqa: ARG002
        scores: list[PlacementScore],
    ) -> Status | None:
        for one in scores:
            one.score = one.score if self._normalized is None else self._normalized(one.score)
        return None


class Few:
    """Rejects a placement after so many members."""

    def __init__(self, count: int) -> None:
        self._count = count
        self.seen: list[tuple[str, int]] = []

    def placement_feasible(
        self,
        state: CycleState,  # noqa: ARG002
        group: PodGroup,  # noqa: ARG002
        placement: str,
        progress: PlacementProgress,
    ) -> Status | None:
        self.seen.append((placement, progress.evaluated))
        return unschedulable("too many") if placement == "a" and progress.evaluated == self._count else None


def profile(plugin: Any, **points: Any) -> Profile:
    """The default profile with a plugin at some points."""
    registry = PluginRegistry()
    registry.register("Mine", lambda _args, _handle: plugin)
    plugins = {point: {"enabled": [{"name": "Mine"}]} for point in points or ("placementGenerate", "placementScore")}
    config = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "profiles": [{"schedulerName": ME, "plugins": plugins}],
    }
    return configured_profiles(config, registry, release=TOPOLOGY_38)[ME]


async def test_group_is_placed_on_the_row_with_the_highest_score() -> None:
    plugin = Rows({"a": 1, "b": 9}, normalized=lambda score: score * 10)
    async with running(*NODES, of=profile(plugin), release=TOPOLOGY_38) as stand:
        await submit(stand, group(least=2), *members(2))
        assert {name[0] for name in stand.bound.values()} == {"b"}
        assert plugin.seen == [("g", row, [f"{row}-1", f"{row}-2"], 2) for row in "ab"]


async def test_rejected_placement_is_not_used() -> None:
    """PlacementFeasible is called before the first member and after each; WAIT of GangScheduling is no rejection."""
    rows, few = Rows({"a": 9}), Few(1)
    mine = type("Both", (), {"placement_feasible": few.placement_feasible})()
    of = profile(rows)
    feasible = profile(mine, placementFeasible=True).placement_feasible
    async with running(*NODES, of=replace(of, placement_feasible=feasible), release=TOPOLOGY_38) as stand:
        await submit(stand, group(least=2), *members(2))
        assert {name[0] for name in stand.bound.values()} == {"b"}
        assert few.seen == [("a", 0), ("a", 1), ("b", 0), ("b", 1), ("b", 2)]


async def test_none_is_no_constraint() -> None:
    async with running(*NODES, of=profile(Rows(answer=lambda _: None)), release=TOPOLOGY_38) as stand:
        await submit(stand, group(least=16), *members(16))
        assert len(set(stand.bound.values())) == 4


@pytest.mark.parametrize(
    ("answer", "message"),
    [
        (lambda _: [Placement("a", ["gone"])], """ValueError('node "gone" of placement "a" does not exist')"""),
        (lambda _: ["a"], "TypeError('expected a Placement, got str')"),
        (lambda _: Status(Code.ERROR, ("no map",)), "no map"),
        (lambda _: 1 / 0, "ZeroDivisionError('division by zero')"),
    ],
)
async def test_wrong_placements_fail_the_group(answer: Any, message: str) -> None:
    async with running(*NODES, of=profile(Rows(answer=answer)), release=TOPOLOGY_38) as stand:
        await submit(stand, group(least=1), *members(1))
        assert conditions(stand) == [("False", "SchedulerError", message)]


async def test_rejecting_generator_rejects_the_group() -> None:
    of = profile(Rows(answer=lambda _: unschedulable("row is closed")))
    async with running(*NODES, of=of, release=TOPOLOGY_38) as stand:
        await submit(stand, group(least=1), *members(1))
        assert messages(stand) == {"p0": "row is closed"}


async def test_scores_outside_of_the_range_fail_the_group() -> None:
    async with running(*NODES, of=profile(Rows({"a": 101})), release=TOPOLOGY_38) as stand:
        await submit(stand, group(least=1), *members(1))
        [(status, reason, message)] = conditions(stand)
        assert (status, reason) == ("False", "SchedulerError")
        assert 'plugin "Mine" returns an invalid score 101' in message


def test_misspelt_method_is_refused() -> None:
    class Misspelt:
        def generate_placement(self, state: Any, group: Any, nodes: Any) -> None:
            """Have a wrong name."""

    with pytest.raises(UsageError, match="generate_placements"):
        profile(Misspelt())
