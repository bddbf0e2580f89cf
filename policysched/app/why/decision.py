"""`DecisionExplainer`: explains the decision about one pod."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from policysched.app.dry_run.preemption_text import why_no_preemption
from policysched.app.why.comparison import compare, runner_up
from policysched.app.why.group import GroupExplainer
from policysched.app.why.obstacles import find_conditions
from policysched.app.why.repairs import Grouped, grouped, preempting
from policysched.app.why.results import Explanation, State
from policysched.app.why.summaries import compared_nodes, fits_none, is_on, only_node, refused
from policysched.app.why.variants import VariantEvaluator
from policysched.framework import PostFilterResult
from policysched.schedule.cycle.decision import Decision, drawn
from policysched.schedule.cycle.ranking import sums_by_tier
from policysched.schedule.cycle.record import make_record


@dataclass(frozen=True, slots=True)
class _Answer:
    """A decision about the explained pod, with the decision record."""

    decision: Decision
    outcome: PostFilterResult | None
    record: Mapping[str, Any]


class DecisionExplainer:
    """Explains the decision about one pod: conditions, repairs and comparison of nodes.

    Args:
        variants: The cluster without the pod, profile and policies.
        node: Node of the pod; empty if it is pending.
        other_node: Node to compare with; empty if none is given.
        group: The group with which the pod is scheduled, so that it does not preempt pods for itself; None without.
    """

    def __init__(
        self, variants: VariantEvaluator, node: str, other_node: str, group: GroupExplainer | None = None
    ) -> None:
        self._simulation, self._node, self._other_node = variants.simulation, node, other_node
        self._variants, self._group = variants, group

    def explanation(self) -> Explanation:
        """Return the explanation."""
        answer = self._decided()
        decision, pod = answer.decision, self._simulation.pod
        begun = Explanation(
            pod.key,
            pod.spec.scheduler_name,
            State.PLACEABLE,
            "",
            node=self._node,
            nodes=decision.evaluation.node_count,
        )
        if decision.failed:
            text = f"pod {pod.key}: scheduling failed: {decision.error()}"
            return replace(begun, state=State.ERROR, summary=text)
        conditions = find_conditions(self._variants, self._simulation.raw, decision)
        if decision.row >= 0:
            return self._placeable(begun, answer, conditions)
        return self._unschedulable(begun, answer, conditions)

    def _decided(self) -> _Answer:
        made, variants = self._simulation, self._variants
        decision, outcome = self._evaluated()
        record = make_record(drawn(decision, variants.rng), made.policies.acting(made.profile), outcome)
        return _Answer(decision, outcome, record)

    def _evaluated(self) -> tuple[Decision, PostFilterResult | None]:
        variants = self._variants
        if self._group is not None:
            return self._group.decide_member(), None
        return self._simulation.decide(variants.engine, variants.rng)

    def _unschedulable(self, begun: Explanation, answer: _Answer, conditions: Sequence[Any]) -> Explanation:
        found = grouped(self._variants, self._simulation.raw, conditions, self._other_node)
        preemption = preempting(self._variants, answer.outcome)
        problem = "" if preemption is not None else why_no_preemption(answer.record.get("preemption", {}))
        notes = (problem,) if problem else ()
        if self._other_node and found.groups:
            fit = "is on {} but would not fit it if recreated" if self._other_node == begun.node else "does not fit {}"
            lacks = found.groups[0].missing(" and ")
            summary = f"pod {begun.pod} {fit.format(self._other_node)}; missing: {lacks}"
        else:
            summary = fits_none(begun, found, answer.decision)
        return replace(
            _with(begun, found), state=State.UNSCHEDULABLE, summary=summary, preemption=preemption, notes=notes
        )

    def _placeable(self, begun: Explanation, answer: _Answer, conditions: Sequence[Any]) -> Explanation:
        total = answer.record.get("total", {})
        at = self._node if self._node in total else answer.record["selected"]
        begun = replace(
            begun,
            selected=answer.record["selected"],
            best=tuple(answer.record["best"]),
            feasible=len(total),
            scores=answer.record.get("scores", {}),
            total=total,
        )
        unfit = self._other_node if self._other_node not in total else ""
        is_there = self._node in answer.decision.cluster.nodes.row_of
        if not unfit and is_there and self._node not in total:
            unfit = self._node
        found = grouped(self._variants, self._simulation.raw, conditions, unfit or "\0")
        begun = _with(begun, found)
        if unfit:
            return replace(begun, summary=refused(begun, unfit, found.groups))
        if self._node and not is_there:
            text = f"pod {begun.pod} {is_on(begun, answer.decision)} and would go to {begun.selected} if recreated"
            return replace(begun, summary=text)
        there = self._other_node if self._other_node not in {"", at} else self._other(answer.record, at)
        if not there:
            return replace(begun, summary=only_node(begun, answer.decision))
        here, other = ([*sums_by_tier(answer.record, one).values()] for one in (at, there))
        better, worse = (at, there) if here >= other else (there, at)
        compared = compare(self._variants, answer.decision, answer.record, better, worse)
        explanation = replace(begun, comparison=compared)
        return replace(explanation, summary=compared_nodes(explanation))

    def _other(self, record: Mapping[str, Any], at: str) -> str:
        """Return the node to compare with a pod's node: the second best if the pod's node is best, else the best."""
        selected: str = record["selected"]
        return runner_up(record, at) if at in record["best"] else selected


def _with(begun: Explanation, found: Grouped) -> Explanation:
    return replace(
        begun,
        conditions=found.conditions,
        groups=found.groups,
        more_groups=found.more_groups,
        more_nodes=found.more_nodes,
    )
