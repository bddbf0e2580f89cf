"""The outcomes that the decisions of tests cause in the expressions of one policy.

After a decision the parts of the policy's expressions are evaluated again in the policy's own context, by the same
kernels. A part counts only if the rule applies to the pod, an arm only if no earlier guard held, a score only on
feasible nodes or placements.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np

from policysched.app.policy_tests.instrumented import ObservedPart, ObservedText, Side
from policysched.framework import Cluster, RowNumbers
from policysched.framework.pod_groups import CandidatePlacement, PodGroupContext
from policysched.language.evaluation.columns import evaluate_columns, missing_rows
from policysched.language.evaluation.frames import Frame
from policysched.language.ir.graph import Typed, per_graph, steps
from policysched.language.ir.tree import Keyword
from policysched.language.ir.types import Kind
from policysched.model.objects import Pod
from policysched.rules.plugin.active_policy import ActivePolicy
from policysched.rules.plugin.guard import guard_of, possible_victims
from policysched.rules.plugin.placements import AppliedPlacementRules, PolicyPlacements
from policysched.rules.shared_values.context import RuleFrame
from policysched.rules.shared_values.pod_aggregates import PeerFrame, VictimFrame
from policysched.schedule.cycle.decision import Decision
from policysched.schedule.cycle.record import feasible_nodes
from policysched.schedule.groups.cycle import TriedPlacement

MakeFrame = Callable[[RowNumbers], RuleFrame]
"""Function that returns the context in which expressions are evaluated (frame) for nodes, given by index."""


class _Observation:
    """Evaluates the parts of one policy's expressions for a pod.

    Args:
        texts: The texts of the policy.
        seen: The outcomes that occurred, each with the field of its expression; outcomes are added.
        active: The policy in force.
        cluster: The cluster.
        pod: The pod.
    """

    def __init__(
        self,
        texts: Sequence[ObservedText],
        seen: set[tuple[str, ObservedPart]],
        active: ActivePolicy,
        cluster: Cluster,
        pod: Pod,
    ) -> None:
        self._texts, self._seen, self._active = texts, seen, active
        self._by_field = {text.field: text for text in texts}
        self._cluster, self._pod = cluster, pod
        self._context = active.context(cluster)
        self._inputs = self._context.inputs(pod)

    def applies(self) -> bool:
        """Record the outcomes of `appliesTo`; return whether the policy may apply to the pod."""
        if self._active.selection.unselected(self._pod, self._cluster):
            return False
        alone = self._context.plain(self._inputs)
        self._text("spec.appliesTo", alone)
        return _may_hold(self._active, alone)

    def _cases(self, field: str, rows: RowNumbers, root: Typed, make: MakeFrame) -> None:
        """Record a score's cases: guards on nodes that no earlier case took, values where the guard is true."""
        left = rows
        cases = [text for text in self._texts if text.field.startswith(f"{field}[")]
        if cases:
            self._lets(root, make(rows))
        for text in cases:
            guard = text.guard
            if guard is Keyword.MISSING:
                value = np.broadcast_to(evaluate_columns(root, make(rows)), rows.shape)
                self._taken(text, rows[np.isnan(value)], make)
            elif guard is Keyword.ELSE:
                self._taken(text, left, make)
            elif left.size and guard is not None:
                frame = make(left)
                true, unknown = (np.broadcast_to(one, left.shape) for one in evaluate_columns(guard, frame))
                self._parts(text, frame, guards=True)
                self._taken(text, left[true], make)
                left = left[~true & ~unknown]

    def _taken(self, text: ObservedText, rows: RowNumbers, make: MakeFrame) -> None:
        if rows.size:
            self._parts(text, make(rows), guards=False)

    def _frame(self, rows: RowNumbers) -> RuleFrame:
        return RuleFrame(self._context, self._inputs, rows)

    def _text(self, field: str, frame: Frame, root: Typed | None = None) -> None:
        """Record the outcomes of an expression and of the `let` expressions that it uses, for the nodes of a frame."""
        text = self._by_field.get(field)
        if text is not None:
            self._parts(text, frame)
            self._lets(text.root if root is None else root, frame)

    def _lets(self, root: Typed | None, frame: Frame) -> None:
        graphs: frozenset[Typed] = frozenset() if root is None else _all_nodes(root)
        for text in self._texts:
            if text.field.startswith("spec.let[") and text.root in graphs:
                self._parts(text, frame)

    def _parts(self, text: ObservedText, frame: Frame, *, guards: bool | None = None) -> None:
        for part in text.parts:
            if (text.field, part) in self._seen or (guards is not None and part.in_guard is not guards):
                continue
            if _comes_about(part, self._frame_for(part, frame)):
                self._seen.add((text.field, part))

    def _frame_for(self, part: ObservedPart, frame: Frame) -> Frame:
        """Return the frame in which a part is evaluated: for the current nodes, all nodes, or all placed pods."""
        if part.over == "nodes":
            return self._frame(self._all_rows())
        if part.over == "pods":
            return PeerFrame(np.flatnonzero(self._cluster.pods.rows >= 0), self._inputs, self._context)
        return frame

    def _all_rows(self) -> RowNumbers:
        nodes = self._cluster.nodes
        return np.flatnonzero(nodes.present.data[: nodes.size])


class DecisionObservation(_Observation):
    """Records the outcomes that a decision about a pod causes in the expressions of one policy.

    Args:
        texts: The texts of the policy.
        seen: The outcomes that occurred; outcomes are added.
        active: The policy in force.
        decision: The decision.
    """

    def __init__(
        self,
        texts: Sequence[ObservedText],
        seen: set[tuple[str, ObservedPart]],
        active: ActivePolicy,
        decision: Decision,
    ) -> None:
        super().__init__(texts, seen, active, decision.cluster, decision.pod)
        self._feasible = feasible_nodes(decision)

    def note(self) -> None:
        """Record the outcomes that the decision causes."""
        if not self.applies():
            return
        alone = self._context.plain(self._inputs)
        filters = self._active.filters_for(self._pod, self._context)
        rows = self._frame(self._all_rows())
        for index, one in enumerate(self._active.filter_rows):
            self._text(f"spec.filters[{index}].when", alone)
            if one in filters:
                self._text(f"spec.filters[{index}].require", rows, one.rule.written.root)
        self._scores()
        self._victims()

    def _scores(self) -> None:
        speaking = self._active.scores_for(self._pod, self._context)
        alone = self._context.plain(self._inputs)
        rows = np.flatnonzero(self._feasible)
        for index, one in enumerate(self._active.score_rows):
            self._text(f"spec.scores[{index}].when", alone)
            if one in speaking and rows.size:
                self._text(f"spec.scores[{index}].value", self._frame(rows), one.root)
                self._cases(f"spec.scores[{index}].cases", rows, one.root, self._frame)

    def _victims(self) -> None:
        guard, pod = guard_of(self._active), self._pod
        if guard is None or self._feasible.any() or not guard.applies_to(pod, self._context):
            return
        victims = possible_victims(pod, self._context.cluster)
        if victims.size:
            frame = VictimFrame(victims, self._inputs, self._context)
            self._text("spec.preemption.require", frame, guard.root)


class PlacementObservation(_Observation):
    """Records the outcomes that the placements of a pod group cause in the expressions of one policy.

    Args:
        texts: The texts of the policy.
        seen: The outcomes that occurred; outcomes are added.
        active: The policy in force.
        group: The pod group; no pod of the attempt has a node.
    """

    def __init__(
        self,
        texts: Sequence[ObservedText],
        seen: set[tuple[str, ObservedPart]],
        active: ActivePolicy,
        group: PodGroupContext,
    ) -> None:
        self._rules = PolicyPlacements(active).attempt(group)
        pod = None if self._rules is None else self._rules.inputs.given
        super().__init__(texts, seen, active, group.cluster, pod or group.pods[0])

    def note(self, tried: Sequence[TriedPlacement]) -> None:
        """Record the outcomes for the placements on which the group was tried."""
        rules, own = self._rules, self._active.policy.placement
        if not self.applies() or rules is None or own is None:
            return
        alone = self._context.plain(rules.inputs)
        frames = [rules.frame(one.placement) for one in tried if one.placement.rows.size]
        feasible = [one.placement for one in tried if one.verdict.fits]
        filters, scores = ({row.rule.name for row in rows} for rows in (rules.filters, rules.scores))
        for index, filter_rule in enumerate(own.filters):
            self._text(f"spec.placement.filters[{index}].when", alone)
            for frame in frames if filter_rule.name in filters else ():
                self._text(f"spec.placement.filters[{index}].require", frame, filter_rule.written.root)
        for index, score in enumerate(own.scores):
            self._text(f"spec.placement.scores[{index}].when", alone)
            for placement in feasible if score.name in scores else ():
                self._score(f"spec.placement.scores[{index}]", score.value.root, rules, placement)

    def _score(self, field: str, root: Typed, rules: AppliedPlacementRules, placement: CandidatePlacement) -> None:
        self._text(f"{field}.value", rules.frame(placement), root)
        self._cases(f"{field}.cases", placement.rows, root, lambda _rows: rules.frame(placement))


def _may_hold(active: ActivePolicy, alone: RuleFrame) -> bool:
    """Return whether a policy's selection of pods is true or unknown for a pod; unknown rejects all nodes."""
    program = active.policy.applies_to
    return program is None or any(map(bool, evaluate_columns(program.root, alone)))


@per_graph
def _all_nodes(root: Typed) -> frozenset[Typed]:
    return frozenset(steps(root, inner=True))


def _comes_about(part: ObservedPart, frame: Frame) -> bool:
    """Return whether an outcome occurs: a part of an expression has the required value for at least one node or pod."""
    if part.graph is None or part.side is Side.EVALUATED:
        return part.graph is None or frame.rows > 0
    if part.over != "rows" and not frame.rows:
        return False
    value = evaluate_columns(part.graph, frame)
    if part.graph.type.kind is Kind.BOOL:
        true, unknown = np.asarray(value[0]), np.asarray(value[1])
        return bool((true if part.side is Side.TRUE else ~(true | unknown)).any())
    missing = np.asarray(missing_rows(part.graph, frame))
    return bool((missing if part.side is Side.MISSING else ~missing).any())
