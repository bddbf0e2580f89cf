"""The part of a decision record about one policy: results by rule, or why the policy does not apply."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np

from policysched.framework import Cluster, Mask, Status
from policysched.language.evaluation.columns import evaluate_columns
from policysched.model.objects import Pod
from policysched.rules.compile.policy import CompiledPolicy, CompiledScore
from policysched.rules.plugin.active_policy import ActivePolicy
from policysched.rules.plugin.guard import guard_of, possible_victims
from policysched.rules.results.normalized import NormalizedScores
from policysched.rules.results.rule_rows import FINE, FilterRow, Values
from policysched.rules.shared_values.context import EvaluationContext
from policysched.state.pod_groups import group_key

LONGEST: Final = 80
"""Maximum number of characters of an expression in a reason; the rest is cut."""
MOST_PROTECTED: Final = 1000
"""Maximum number of protected pods in a record; `preemptionMore` counts the remaining pods."""
_SYSTEM: Final = "ignore pods of priority 2000000000 and above: includeSystemPods is not set"


def describe(active: ActivePolicy, pod: Pod, cluster: Cluster, feasible: Mask) -> dict[str, Any] | None:
    """Return the results of a policy for a pod by rule and node; None if the policy does not apply.

    Filter results are listed for all nodes, also for nodes that another plugin rejected. Scores are listed for the
    feasible nodes: the value of a rule after normalising and clipping, None if the value is missing without a `missing`
    arm. If no node is feasible, the pods that the condition on victims protects are listed, each with the values that
    the condition read.

    Shapes: feasible (N,).
    """
    filters, results = active.filter_matrix(pod, cluster), active.results(cluster)
    rules = active.scores_for(pod, results.context)
    protected = {} if feasible.any() else _protected(active, pod, cluster)
    if filters is None and not rules and not protected:
        return None
    said: dict[str, Any] = {"activeGeneration": active.policy.generation, "mode": active.policy.spec.mode}
    rows, names = slice(0, cluster.nodes.size), list(cluster.nodes.names)
    there, rejected, told = cluster.nodes.present.data[rows], {}, {}
    if isinstance(filters, Status):
        said["waits"] = filters.message
    elif filters is not None:
        for rule, codes in filters.by_rule(0, rows):
            rejected[rule.rule.name] = _rejected(rule, codes, np.flatnonzero((codes != FINE) & there).tolist(), names)
    if rules and feasible.any():
        scores = NormalizedScores(results, results.context.inputs(pod), rules)
        scores.answers(rows)
        chosen = np.flatnonzero(feasible).tolist()
        for score, values in scores.by_rule(feasible):
            told[score.rule.name] = {names[row]: score_number(score.rule, values, row) for row in chosen}
    said |= {"filters": {name: nodes for name, nodes in rejected.items() if nodes}, "scores": told or None} | protected
    return {key: value for key, value in said.items() if value not in ({}, None)}


def why_not_applied(policy: CompiledPolicy, pod: Pod, cluster: Cluster) -> str:
    """Return why a policy, or each of its filters, does not apply to a pod; empty if the policy applies."""
    if policy.spec.mode == "Disabled":
        return "mode is Disabled"
    active = ActivePolicy(policy)
    if not policy.filters and not policy.scores and policy.preemption is None:
        return _why_no_placement_rules(active, pod, cluster)
    context = active.context(cluster)
    if active.filter_matrix(pod, cluster) is not None:
        return ""
    if active.scores_for(pod, context):
        return f"its filters {_SYSTEM}" if policy.filters and active.selection.spares(pod) else ""
    guard = guard_of(active)
    if guard is not None and guard.applies_to(pod, context):
        return ""
    return active.selection.unselected(pod, cluster) or _condition_not_true(active, pod, context)


def _why_no_placement_rules(active: ActivePolicy, pod: Pod, cluster: Cluster) -> str:
    """Return why a policy's placement rules do not apply to a pod, if it has no other rules; else empty."""
    if active.policy.placement is None:
        return "the policy has no filters and no scores"
    context = active.context(cluster)
    if not active.selection.selects(pod, context, unknown=True):
        return active.selection.unselected(pod, cluster) or _condition_not_true(active, pod, context)
    return "" if group_key(pod) else "the policy has rules for pod groups only"


def _protected(active: ActivePolicy, pod: Pod, cluster: Cluster) -> dict[str, Any]:
    """Return the placed pods of lower priority that a policy protects, with the values that the condition read."""
    guard, pods = guard_of(active), cluster.pods
    if guard is None:
        return {}
    lower = possible_victims(pod, cluster)
    found = guard.protected(pod, cluster, lower)
    if found is None or not found.codes.any():
        return {}
    places = np.flatnonzero(found.codes).tolist()
    kept = {one.pod.key: place for place in places if (one := pods.by_slot[int(lower[place])]) is not None}
    told = {key: found.values_of(kept[key]) or "false" for key in sorted(kept)[:MOST_PROTECTED]}
    more = len(kept) - MOST_PROTECTED
    return {"preemption": told, "preemptionMore": more} if more > 0 else {"preemption": told}


def _rejected(rule: FilterRow, codes: Any, rows: Sequence[int], names: Sequence[str]) -> dict[str, str]:
    return {names[row]: "missing" if rule.is_unknown(int(codes[row])) else "false" for row in rows}


def score_number(rule: CompiledScore, values: Values, row: int) -> float | None:
    """Return a value of a score rule as a number; None if it is missing and the rule has no `missing` case."""
    value = float(values[row])
    if math.isnan(value):
        if not rule.has_missing_arm:
            return None
        value = rule.missing
    clipped = min(max(value, 0.0), 100.0)
    return int(clipped) if clipped.is_integer() else clipped


def _condition_not_true(active: ActivePolicy, pod: Pod, context: EvaluationContext) -> str:
    """Return the condition (`when` or `appliesTo`) due to which a policy does not apply to a pod that it selects."""
    policy = active.policy
    if policy.applies_to is not None:
        true, lacking = evaluate_columns(policy.applies_to.root, context.plain(context.inputs(pod)))
        if not true:
            text = " ".join((policy.spec.applies_to or "").split())
            shown = text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
            return f"appliesTo {'is unknown' if lacking else 'is false'}: {shown}"
    if active.selection.spares(pod) and not policy.scores:
        return f"its filters {_SYSTEM}"
    return "no rule's `when` is true"
