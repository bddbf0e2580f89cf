"""`PolicyPlacements`: the placement rules of a policy (`spec.placement`) as a plugin for pod groups.

The rules apply to a group if the policy applies to one of the pods that are tried. They are evaluated with the nodes as
they are without these pods. Without the feature gate TopologyAwareWorkloadScheduling the rules have no effect.

Source: docs/reference/language.md#placements.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from policysched.framework import Cluster, Hint, Scores, Status, unschedulable
from policysched.framework.pod_groups import (
    CandidatePlacement,
    FeasiblePlacement,
    PlacementFeasiblePlugin,
    PlacementGeneratePlugin,
    PlacementProgress,
    PlacementScorePlugin,
    PodGroupContext,
)
from policysched.rules.compile.policy import CompiledPlacement
from policysched.rules.inputs import PodInputs
from policysched.rules.plugin.active_policy import ActivePolicy
from policysched.rules.plugin.selection import Selection, holds
from policysched.rules.results.normalized import by_maximum, highest
from policysched.rules.results.rule_rows import FINE, FilterRow, ScoreRow, filter_rows, reason, score_rows
from policysched.rules.shared_values.aggregates import hold
from policysched.rules.shared_values.context import EvaluationContext, RuleFrame, number
from policysched.rules.shared_values.placement_frame import PlacementFrame
from policysched.state.pod_groups import GroupState
from policysched.state.tables.interner import MISSING

NO_RULES: Final = CompiledPlacement("", (), ())


class AppliedPlacementRules(NamedTuple):
    """The placement rules that apply to a pod group in one cycle, with the values of the group that they read."""

    context: EvaluationContext
    inputs: PodInputs
    generates: bool
    filters: tuple[FilterRow, ...]
    scores: tuple[ScoreRow, ...]
    held: tuple[object, ...]
    """The pod counters that the rules read, which exist only while they are referenced."""

    def frame(self, placement: CandidatePlacement) -> PlacementFrame:
        """Return the values that rules read for a placement, as a frame with one row for each of its nodes."""
        return PlacementFrame(self.context, self.inputs, placement.name, placement.rows)


class PolicyPlacements(PlacementGeneratePlugin, PlacementFeasiblePlugin, PlacementScorePlugin):
    """The placement rules of one policy as a plugin for pod groups.

    Args:
        policy: The policy; it has placement rules.
    """

    def __init__(self, policy: ActivePolicy) -> None:
        self.name, self.tier, self.weight = policy.name, policy.tier, policy.weight
        self._policy = policy
        self.rules = policy.policy.placement or NO_RULES
        self._selection = Selection(policy.policy, self.rules.filters)
        self._filters, self._scores = filter_rows(self.rules.filters), score_rows(self.rules.scores)
        self._last: tuple[PodGroupContext, AppliedPlacementRules | None] | None = None
        """The context of the current cycle, and the rules that apply to its pod group; None as rules if none apply."""

    def generate_placements(self, context: PodGroupContext, parent: CandidatePlacement) -> Sequence[CandidatePlacement]:
        """Divide the nodes of a placement by the topology key of the policy; return one placement for each value.

        If members are placed, only their domains remain.
        """
        attempt = self._attempt(context)
        if attempt is None or not attempt.generates:
            return (parent,)
        return divided(context, parent, self.rules.topology_key)

    def placement_feasible(
        self, context: PodGroupContext, placement: CandidatePlacement, progress: PlacementProgress
    ) -> Status | None:
        """Reject a placement that does not meet a filter, before the first member is evaluated."""
        attempt = self._attempt(context) if not progress.evaluated and placement.rows.size else None
        if attempt is None or not attempt.filters:
            return None
        waiting = self._selection.awaits(context.pods[0], attempt.context)
        if waiting is not None:
            return unschedulable(waiting.message)
        code = min(code for _, code in self.filter_codes(attempt, placement))
        return None if code == FINE else unschedulable(*self.reason(code).reasons)

    def score_placements(self, context: PodGroupContext, feasible: Sequence[FeasiblePlacement]) -> Scores:
        """Return the weighted means of the scores of feasible placements. Shapes: (P,)."""
        attempt = self._attempt(context)
        found = [] if attempt is None else self.values(attempt, [one.placement for one in feasible])
        weights = sum(row.rule.weight for row, _ in found)
        if not weights:
            return np.zeros(len(feasible), np.int64)
        total = np.sum([row.part(values) for row, values in found], axis=0)
        means: Scores = np.floor(total / weights + 0.5).astype(np.int64)
        return means

    def events(self) -> Sequence[Hint]:
        """Return the policy's queueing hints; pod groups are retried after their backoff instead of by hints."""
        return self._policy.events()

    def filter_codes(
        self, attempt: AppliedPlacementRules, placement: CandidatePlacement
    ) -> list[tuple[FilterRow, int]]:
        """Return the reason code of each filter for a placement; FINE if the filter accepts it."""
        frame = attempt.frame(placement)
        return [(row, int(row.result(frame)[0])) for row in attempt.filters]

    def values(
        self, attempt: AppliedPlacementRules, placements: Sequence[CandidatePlacement]
    ) -> list[tuple[ScoreRow, NDArray[np.float64]]]:
        """Return the values of each score rule for the given placements, after normalizing.

        Shapes: (P,) each. Missing: NaN if a rule has no value.
        """
        frames = [attempt.frame(one) for one in placements]
        found = []
        for row in attempt.scores:
            values = np.array([number(row.rule.value, frame).item() for frame in frames], np.float64)
            top = highest(values, np.ones(values.size, np.bool_))
            found.append((row, by_maximum(values, top) if row.rule.takes_maximum else values))
        return found

    def reason(self, code: int) -> Status:
        """Return the rejection status that a reason code of the filters stands for."""
        return reason(self._policy.policy.key, self._filters, code)

    def attempt(self, context: PodGroupContext) -> AppliedPlacementRules | None:
        """Return the rules that apply to a pod group; None if no rule applies or the feature gate is disabled."""
        cluster = context.cluster
        if not cluster.release.topology_aware:
            return None
        evaluation, selection = self._policy.context(cluster), self._selection
        system = all(map(selection.spares, context.pods))
        strict = (
            None
            if system
            else next((pod for pod in context.pods if selection.selects(pod, evaluation, unknown=True)), None)
        )
        sure = next((pod for pod in context.pods if selection.selects(pod, evaluation, unknown=False)), None)
        if strict is None and sure is None:
            return None
        inputs = PodInputs(strict or sure, cluster)
        frame = RuleFrame(evaluation, inputs)
        filters = tuple(one for one in self._filters if strict and holds(one.rule.when, frame, unknown=True))
        scores = tuple(one for one in self._scores if sure and holds(one.rule.when, frame, unknown=False))
        held = hold(evaluation, (*(one.root for one in filters), *(one.root for one in scores)), inputs)
        return AppliedPlacementRules(
            evaluation, inputs, strict is not None and bool(self.rules.topology_key), filters, scores, held
        )

    def _attempt(self, context: PodGroupContext) -> AppliedPlacementRules | None:
        """Return the rules that apply to a pod group, computed once in a cycle."""
        if self._last is None or self._last[0] is not context:
            self._last = (context, self.attempt(context))
        return self._last[1]


def divided(context: PodGroupContext, parent: CandidatePlacement, key: str) -> list[CandidatePlacement]:
    """Return the parts of a placement by the values of a label; if members are placed, only the parts with members."""
    cluster = context.cluster
    codes = cluster.nodes.labels(key)
    occupied = set(codes[_rows_of_members(context, cluster)].tolist()) - {MISSING}
    of_rows = codes[parent.rows]
    found = occupied or set(np.unique(of_rows).tolist()) - {MISSING}
    names = sorted((cluster.strings.value(code), code) for code in found)
    made = (CandidatePlacement(name, parent.rows[of_rows == code]) for name, code in names)
    return [one for one in made if one.rows.size]


def _rows_of_members(context: PodGroupContext, cluster: Cluster) -> NDArray[np.intp]:
    """Return the row numbers of the nodes with placed members of a pod group."""
    state: GroupState | None = None if cluster.pod_groups is None else cluster.pod_groups.get(context.group.key)
    if state is None:
        return np.zeros(0, np.intp)
    placed = (cluster.pods.by_id.get(identity) for identity in (*state.assigned, *state.assumed))
    return np.array([one.row for one in placed if one is not None], np.intp)
