"""Nominated pods: a pod must leave room for pods of equal or higher priority that are nominated to a node.

A node with such nominated pods must pass every filter twice: with and without these pods. Only these nodes are
evaluated again, by a what-if. Without nominated pods nothing is evaluated.

Source: pkg/scheduler/framework/runtime/framework.go (RunFilterPluginsWithNominatedPods, addGENominatedPods) and
pkg/scheduler/schedule_one.go (evaluateNominatedNode).
"""

from __future__ import annotations

import numpy as np

from policysched.framework import NO_ROWS, ChangedRows, Codes, RowNumbers, Status
from policysched.schedule.cycle.evaluation import Evaluation, NominatedNode
from policysched.schedule.cycle.results.plugin_results import (
    NARROWED,
    WITH_NOMINATED_PODS,
    FilterResults,
    GivenCodes,
)
from policysched.schedule.cycle.results.rejections import ABSENT
from policysched.schedule.cycle.what_if import verdicts_on


def with_nominations(evaluation: Evaluation) -> Evaluation:
    """Return the evaluation with the effects of the pods nominated to each node, and of the pod's own nominated node.

    Args:
        evaluation: An evaluation that PreFilter does not reject.
    """
    pod, cluster = evaluation.pod, evaluation.cluster
    if cluster.nominations and (nominated := cluster.nominations.yielded_to(pod, cluster.nodes.row_of)):
        evaluation = evaluation._replace(nominated_pods=nominated)
    row = cluster.nodes.row_of.get(pod.status.nominated_node_name or "")
    if row is None or evaluation.first[row] == ABSENT:
        return evaluation
    return evaluation._replace(nominated_node=NominatedNode(row, evaluation.trial(row).verdict()))


def with_nominated_pods(evaluation: Evaluation) -> Evaluation:
    """Return the evaluation in which a node is only feasible if it also has room for the pods nominated to it.

    Cost: O(nodes with such pods).
    """
    if not evaluation.nominated_pods:
        return evaluation
    nodes, first = evaluation.cluster.nodes, evaluation.first
    rows = np.fromiter(evaluation.nominated_pods, np.intp, len(evaluation.nominated_pods))
    rows = rows[first[rows] != ABSENT]
    if evaluation.narrowing:
        rows = rows[first[rows] != NARROWED]
    rejections = _rejections(evaluation, rows)
    if not rejections:
        return evaluation
    code_of = {status: code for code, status in enumerate(dict.fromkeys(rejections.values()), 1)}
    codes: Codes = np.zeros(nodes.size, np.int32)
    codes[list(rejections)] = [code_of[status] for status in rejections.values()]
    results = FilterResults(GivenCodes("", list(code_of)), codes, WITH_NOMINATED_PODS)
    results.recompute(nodes.columns.capacity, nodes.size)
    return evaluation.extended([results])


def _rejections(evaluation: Evaluation, rows: RowNumbers) -> dict[int, Status]:
    """Return for each node's row the status that rejects the pod beside the pods nominated to the node."""
    changed = ChangedRows(evaluation.cluster, rows, NO_ROWS, NO_ROWS).with_nominated(evaluation.nominated_pods)
    verdicts = verdicts_on(changed, evaluation.plugin_filters(), {}, evaluation.cycle)
    if verdicts is not None:
        statuses = ((int(rows[place]), verdicts.status_of(place)) for place in np.flatnonzero(~verdicts.fits).tolist())
    else:
        statuses = ((row, evaluation.trial(row).verdict_with_nominated()) for row in rows.tolist())
    return {row: status for row, status in statuses if status is not None}
