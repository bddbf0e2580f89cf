"""What a policy says about a pod, rule by rule and node by node: its part of the decision record."""

from __future__ import annotations

import math
from typing import Any

from policysched.framework import SKIP, Cluster, Mask, Status
from policysched.model.objects import Pod
from policysched.rules.compiled import CompiledFilter
from policysched.rules.frame import RuleFrame
from policysched.rules.plugin import PolicyPlugin
from policysched.rules.verdicts import kept


def describe(plugin: PolicyPlugin, pod: Pod, cluster: Cluster, feasible: Mask) -> dict[str, Any] | None:
    """Describe what a policy does to a pod; None where it does not apply.

    Filters are told for all nodes whatever rejected them before, scores for the feasible ones: a rule's own number
    after normalising and clipping, None where it is missing and no arm spoke.
    Shapes: feasible (N,).
    """
    filters = plugin.prepare_filter(pod, cluster)
    scores = plugin.prepare_score(pod, cluster)
    if filters is SKIP and scores is SKIP:
        return None
    said: dict[str, Any] = {"activeGeneration": plugin.policy.generation, "mode": plugin.policy.spec.mode}
    if isinstance(filters, Status):
        said["waits"] = filters.message
    elif filters is not SKIP:
        frame = plugin.shared(cluster).frame(filters.subject, slice(0, cluster.nodes.size))
        rejected = {rule.name: _not_kept(rule, frame, cluster) for _, rule in filters.rules}
        said["filters"] = {name: nodes for name, nodes in rejected.items() if nodes}
    if scores is not SKIP and feasible.any():
        plugin.score(scores, slice(0, cluster.nodes.size))
        said["scores"] = {
            rule.name: _scored(rule.missing if rule.has_missing_arm else None, values, cluster, feasible)
            for rule, values in scores.normalized(feasible)
        }
    return {key: value for key, value in said.items() if value not in ({}, None)}


def _not_kept(rule: CompiledFilter, frame: RuleFrame, cluster: Cluster) -> dict[str, str]:
    true, unknown = kept(frame, rule)
    nodes = cluster.nodes
    return {
        nodes.names[row]: "missing" if unknown[row] else "false"
        for row in range(nodes.size)
        if nodes.present.data[row] and not true[row]
    }


def _scored(missing: float | None, values: Any, cluster: Cluster, feasible: Mask) -> dict[str, float | None]:
    names = cluster.nodes.names
    return {names[row]: _number(values[row], missing) for row in range(feasible.size) if feasible[row]}


def _number(value: float, missing: float | None) -> float | None:
    if math.isnan(value):
        if missing is None:
            return None
        value = missing
    clipped = min(max(float(value), 0.0), 100.0)
    return int(clipped) if clipped.is_integer() else clipped
