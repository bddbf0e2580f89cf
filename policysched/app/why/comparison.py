"""Comparison of two feasible nodes by score: the deciding plugin and rule, and the weight that would change the order.

This module reads a decision record. A weight is reported only after the engine has confirmed it.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, Final

from policysched.app.why.results import NodeComparison, ReversingWeight, ScoreDifference
from policysched.app.why.variants import VariantEvaluator
from policysched.schedule.cycle.decision import Decision
from policysched.schedule.cycle.ranking import deciding_tier, ranked, sums_by_tier

Record = Mapping[str, Any]
POLICY: Final = "SchedulingPolicy/"
MOST_WEIGHT: Final = 100
"""Largest weight that a comparison proposes: the maximum for policies, and a usual bound for plugins."""


def runner_up(record: Record, node: str) -> str:
    """Return the best feasible node except a given node, on a tie the first by name; empty without another node."""
    return next((name for name in ranked(record) if name != node), "")


def compare(variants: VariantEvaluator, decision: Decision, record: Record, here: str, there: str) -> NodeComparison:
    """Compare two feasible nodes, of which the first is better.

    Args:
        variants: Evaluates other weights.
        decision: The decision.
        record: The record of the decision.
        here: The better node.
        there: The other node.
    """
    own = variants.engine.profile.weights
    scores = record.get("scores", {})
    plugins = list(scores.get(here, {}))
    found = [
        ScoreDifference(name, weight, scores[here][name], scores[there][name], _rules(record, name, here, there), tier)
        for name in plugins
        for weight, tier in (own.get(name, (1, 0)),)
    ]
    differences = tuple(sorted(found, key=lambda one: (-one.tier, one.lead == 0, -abs(one.lead), one.plugin)))
    tier, sums, others = deciding_tier(record, here, there), sums_by_tier(record, here), sums_by_tier(record, there)
    decisive = _decisive([one for one in differences if one.tier == tier], sums[tier] - others[tier])
    compared = NodeComparison(
        here,
        there,
        differences,
        sums=tuple((one, sums[one], others[one]) for one in sums),
        tier=tier,
        decisive=decisive.plugin if decisive else "",
        decisive_rule=_decisive_rule(variants, decisive),
    )
    return replace(compared, turns=tuple(variants.until_interrupted(_reversing_weights(variants, decision, compared))))


def _rules(record: Record, plugin: str, here: str, there: str) -> dict[str, tuple[float | None, float | None]]:
    if not plugin.startswith(POLICY):
        return {}
    scores = record.get("rules", {}).get(plugin.removeprefix(POLICY), {}).get("scores", {})
    return {rule: (values.get(here), values.get(there)) for rule, values in scores.items()}


def _decisive(differences: Sequence[ScoreDifference], margin: int) -> ScoreDifference | None:
    """Return the plugin without which the first node would not be ahead, or the plugin that adds most to its lead."""
    leading = [one for one in differences if one.lead > 0]
    if margin <= 0 or not leading:
        return None
    alone = [one for one in leading if one.lead >= margin]
    return max(alone or leading, key=lambda one: one.lead)


def _decisive_rule(variants: VariantEvaluator, decisive: ScoreDifference | None) -> str:
    if decisive is None or not decisive.rules:
        return ""
    key = decisive.plugin.removeprefix(POLICY)
    policy = next(one.policy for one in variants.simulation.policies.active if one.policy.key == key)
    weights = {rule.name: rule.weight for rule in policy.scores}

    def lead(item: tuple[str, tuple[float | None, float | None]]) -> float:
        name, (here, there) = item
        return weights.get(name, 1) * ((here or 0) - (there or 0))

    return max(decisive.rules.items(), key=lead)[0]


def _reversing_weights(
    variants: VariantEvaluator, decision: Decision, compared: NodeComparison
) -> Iterator[ReversingWeight]:
    """Yield for each plugin the nearest weight with which the other node would win, confirmed by the engine.

    Plugins of tiers below the deciding one cannot change the order.
    """
    if compared.margin < 0 or variants.engine.profile.extenders:
        return
    row = variants.cluster.nodes.row_of[compared.there]
    own = variants.engine.profile.weights
    for one in compared.differences:
        if one.tier < compared.tier:
            break
        weight = _reversing_weight(one, compared.margin if one.tier == compared.tier else 0)
        if weight is None or one.plugin not in own:
            continue
        found = variants.with_weight(one.plugin, weight).decide(decision.pod)
        if found.row >= 0 and not found.failed and row in found.best:
            names = variants.cluster.nodes.names
            yield ReversingWeight(one.plugin, weight, one.weight, tuple(sorted(names[best] for best in found.best)))


def _reversing_weight(one: ScoreDifference, margin: int) -> int | None:
    """Return the nearest weight that reverses the order of two nodes; None if no weight reverses the order."""
    if not one.weight or not one.lead:
        return None
    unit = one.lead // one.weight
    steps = margin // abs(unit) + 1
    weight = one.weight - steps if unit > 0 else one.weight + steps
    return weight if 0 <= weight <= MOST_WEIGHT else None
