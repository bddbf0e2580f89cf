"""`OutOfTreePlacements`: adapts an out-of-tree plugin at the extension points for placements of pod groups.

Source: pkg/scheduler/framework/runtime/framework.go (RunPlacementGeneratePlugins, RunPlacementFeasiblePlugins,
RunPlacementScorePlugins), v1.37 and v1.38.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from policysched.framework.out_of_tree.adapter import OutOfTreePlugin
from policysched.framework.out_of_tree.answers import AnsweredError, failing, whole_scores
from policysched.framework.out_of_tree.methods import GroupPlacement, Placement, PlacementScore
from policysched.framework.out_of_tree.node_info import NodeInfos
from policysched.framework.plugin import Hint, Scores
from policysched.framework.pod_groups import (
    CandidatePlacement,
    FeasiblePlacement,
    PlacementFeasiblePlugin,
    PlacementGeneratePlugin,
    PlacementProgress,
    PlacementScorePlugin,
    PodGroupContext,
)
from policysched.framework.status import Status
from policysched.state.cluster import Cluster


class OutOfTreePlacements(PlacementGeneratePlugin, PlacementFeasiblePlugin, PlacementScorePlugin):
    """An out-of-tree plugin, adapted to the base classes of in-tree plugins for placements of pod groups.

    Args:
        of: The plugin as a plugin of the other extension points.
    """

    def __init__(self, of: OutOfTreePlugin) -> None:
        self.name, self._of = of.name, of

    def events(self) -> Sequence[Hint]:
        """Return the events that can help pods whose pod group the plugin rejected."""
        return self._of.events()

    def generate_placements(
        self, context: PodGroupContext, parent: CandidatePlacement
    ) -> Sequence[CandidatePlacement] | Status:
        """Run PlacementGenerate of the out-of-tree plugin."""

        def ask() -> Any:
            nodes = NodeInfos(context.cluster, parent.rows)
            answer = self._of.plugin.generate_placements(context.state, context.group, nodes)
            if answer is None or isinstance(answer, Status):
                return self._of.status_of("PlacementGenerate", answer)
            return [_candidate(one, context.cluster) for one in answer]

        found = self._of.call("PlacementGenerate", ask)
        return (parent,) if found is None else found

    def placement_feasible(
        self, context: PodGroupContext, placement: CandidatePlacement, progress: PlacementProgress
    ) -> Status | None:
        """Run PlacementFeasible of the out-of-tree plugin."""
        plugin = self._of.plugin
        answer = self._of.call(
            "PlacementFeasible",
            lambda: plugin.placement_feasible(context.state, context.group, placement.name, progress),
        )
        return self._of.status_of("PlacementFeasible", answer)

    def score_placements(self, context: PodGroupContext, feasible: Sequence[FeasiblePlacement]) -> Scores | Status:
        """Run PlacementScore of the out-of-tree plugin for each placement."""
        names = context.cluster.nodes.names

        def score(one: FeasiblePlacement) -> Any:
            nodes = tuple(names[row] for row in one.placement.rows.tolist())
            given = GroupPlacement(one.placement.name, nodes, tuple(zip(one.pods, one.nodes, strict=True)))
            answer = self._of.plugin.score_placement(context.state, context.group, given)
            value, status = answer if isinstance(answer, tuple) else (answer, None)
            if (failure := self._of.status_of("PlacementScore", status)) is not None:
                raise AnsweredError(failing(failure))
            return value

        return self._scores("PlacementScore", lambda: map(score, feasible), len(feasible))

    def normalize_placements(
        self, context: PodGroupContext, feasible: Sequence[FeasiblePlacement], scores: Scores
    ) -> Scores | Status:
        """Run NormalizePlacementScore of the out-of-tree plugin."""
        normalize = self._of.method("normalize_placement_scores")
        if normalize is None:
            return scores
        values = zip(feasible, scores.tolist(), strict=True)
        listed = [PlacementScore(one.placement.name, value) for one, value in values]

        def ask() -> Iterable[int]:
            status = self._of.status_of("NormalizePlacementScore", normalize(context.state, context.group, listed))
            if status is not None:
                raise AnsweredError(failing(status))
            return (one.score for one in listed)

        return self._scores("NormalizePlacementScore", ask, len(listed))

    def _scores(self, point: str, ask: Callable[[], Iterable[Any]], count: int) -> Scores | Status:
        answer: Scores | Status = self._of.call(point, lambda: whole_scores(list(ask()), count))
        return answer


def _candidate(given: Placement, cluster: Cluster) -> CandidatePlacement:
    """Return a placement that an out-of-tree plugin generated in the scheduler's form, with the rows of its nodes.

    Raises:
        TypeError: it is no Placement.
        ValueError: it has a node that does not exist.
    """
    if not isinstance(given, Placement):
        raise TypeError(f"expected a Placement, got {type(given).__name__}")
    row_of, present = cluster.nodes.row_of, cluster.nodes.present.data
    rows: set[int] = set()
    for name in given.node_names:
        row = row_of.get(name)
        if row is None or not present[row]:
            raise ValueError(f'node "{name}" of placement "{given.name}" does not exist')
        rows.add(row)
    return CandidatePlacement(given.name, np.array(sorted(rows), np.intp))
