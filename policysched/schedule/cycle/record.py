"""The decision record: what a scheduling cycle found out, as a plain dict for people, machines and tests.

Built from a decision on request only, so that the running scheduler never pays for it. `docs/dry-run.md` shows its
three shapes. Empty keys are left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from policysched.framework import Mask, PostFilterResult, Status
from policysched.plugins.default_preemption.guards import Guarded
from policysched.plugins.default_preemption.plugin import PreemptionDetails
from policysched.rules.plugin.policy_plugin import PolicyPlugin
from policysched.rules.plugin.record import describe
from policysched.schedule.cycle.decision import Decision
from policysched.schedule.cycle.evaluation import FEASIBLE
from policysched.schedule.cycle.per_pod_results import with_out_of_tree_scores

Record = dict[str, Any]


def make_record(
    decision: Decision, policies: Sequence[PolicyPlugin] = (), outcome: PostFilterResult | None = None
) -> Record:
    """Describe a decision; read it before the cluster changes.

    Args:
        decision: What the cycle found out.
        policies: The policies that may have something to say, Shadow ones too.
        outcome: What PostFilter came to, where no node was feasible.
    """
    pod = decision.pod
    record: Record = {"pod": pod.key, "schedulerName": pod.spec.scheduler_name, "result": _result(decision)}
    if decision.failed:
        record["error"] = decision.error()
        return record
    feasible = _feasible(decision)
    if decision.row >= 0:
        record["selected"] = decision.node
        record["best"] = sorted(decision.cluster.nodes.names[row] for row in decision.best)
    if decision.rejection is not None:
        record["preFilter"] = _status(decision.rejection)
    else:
        record["rejected"] = _rejected(decision)
        record |= _scores(decision, feasible)
    if decision.row < 0:
        record["fitError"] = decision.fit_error()
        record |= _preemption(outcome) if outcome is not None else {}
    record["rules"] = _rules(decision, policies, feasible)
    return {key: value for key, value in record.items() if value not in ({}, [])}


def _preemption(outcome: PostFilterResult) -> Record:
    """Say which pods would make room on which node and what that costs, or why none do."""
    if outcome.status is not None:
        message = outcome.status.message
        return {"preemption": {"message": message, **_details(outcome)}} if message else {}
    told = _details(outcome)
    victims = [one.key for one in outcome.victims if one.metadata.deletion_timestamp is None]
    return {
        "nominated": {"node": outcome.nominated_node, "victims": victims},
        "preemption": {key: value for key, value in told.items() if value},
    }


def _details(outcome: PostFilterResult) -> Record:
    details = outcome.details
    return details.describe() if isinstance(details, PreemptionDetails | Guarded) else {}


def _result(decision: Decision) -> str:
    if decision.failed:
        return "Error"
    return "Scheduled" if decision.row >= 0 else "Unschedulable"


def _feasible(decision: Decision) -> Mask:
    size = decision.cluster.nodes.size
    if decision.rejection is not None:
        return np.zeros(size, np.bool_)
    if decision.nominated:
        chosen: Mask = np.arange(size) == decision.row
        return chosen
    return decision.evaluation.feasible()


def _status(status: Status) -> dict[str, Any]:
    return {"plugin": status.plugin, "code": status.code.text, "reasons": list(status.reasons)}


def _rejected(decision: Decision) -> dict[str, Any]:
    if decision.nominated:
        return {}
    nodes, evaluation = decision.cluster.nodes, decision.evaluation
    rows = np.flatnonzero(evaluation.first[: nodes.size] > FEASIBLE).tolist()
    return {nodes.names[row]: _status(decision.status(row)) for row in rows}


def _scores(decision: Decision, feasible: Mask) -> Record:
    rows = np.flatnonzero(feasible).tolist()
    evaluation = decision.evaluation
    evaluation.score()
    if rows and evaluation.out_of_tree is not None and evaluation.out_of_tree.scores:
        evaluation = with_out_of_tree_scores(evaluation, evaluation.out_of_tree)
    if not rows or evaluation.failed_score() is not None:
        return {}
    names = decision.cluster.nodes.names
    shown = [one for one in evaluation.scores if not one.left_out]
    columns = {one.plugin.name: one.final(feasible) for one in shown}
    scores = {names[row]: {plugin: int(column[row]) for plugin, column in columns.items()} for row in rows}
    total = {node: sum(parts.values()) for node, parts in scores.items()}
    if not evaluation.scored:
        total = dict.fromkeys(scores, 1)
    return {"scores": scores if columns else {}, "total": total}


def _rules(decision: Decision, policies: Sequence[PolicyPlugin], feasible: Mask) -> Record:
    said = {
        policy.policy.key: describe(policy, decision.pod, decision.cluster, feasible)
        for policy in sorted(policies, key=lambda policy: policy.policy.key)
    }
    return {name: parts for name, parts in said.items() if parts is not None}
