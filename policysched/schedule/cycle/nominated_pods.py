"""Pods nominated to nodes, laid over the evaluation of a pod that has to leave them their place.

A node that is kept for pods of equal or higher priority must pass every filter twice: with them on it and without
them. Only such nodes are asked about anew, in a what-if; the evaluation of the class stays as it was, and where nothing
is nominated nothing is done.

Shapes: C the capacity of the columns.
Source: pkg/scheduler/framework/runtime/framework.go (RunFilterPluginsWithNominatedPods, addGENominatedPods).
"""

from __future__ import annotations

from typing import cast

import numpy as np

from policysched.framework import NO_ROWS, ChangedRows, Codes, FilterPlugin, RowNumbers, Status
from policysched.schedule.cycle.evaluation import NARROWED, Evaluation
from policysched.schedule.cycle.per_pod_results import laid_over
from policysched.schedule.cycle.results.plugin_results import FilterResults
from policysched.schedule.cycle.what_if import verdicts_on


def with_nominated_pods(evaluation: Evaluation) -> Evaluation:
    """Return an evaluation in which nodes have room for the pods nominated to them, too.

    Args:
        evaluation: One that PreFilter did not end, with the pods that are to be left their place.

    Cost: O(nodes with such pods).
    """
    present, first = evaluation.cluster.nodes.present.data, evaluation.first
    is_narrowed = bool(evaluation.narrowing)
    rows = np.fromiter(evaluation.nominated, np.intp, len(evaluation.nominated))
    rows = rows[present[rows]]
    if is_narrowed:
        rows = rows[first[rows] != NARROWED]
    found = _rejections(evaluation, rows)
    capacity = evaluation.cluster.nodes.columns.capacity
    return laid_over(evaluation, [_WithNominatedPods(found, capacity)]) if found else evaluation


def _rejections(made: Evaluation, rows: RowNumbers) -> dict[int, Status]:
    """Find the rows where the pod does not fit beside the nominated pods, and why."""
    filters, nominated = made.plugin_filters(), made.nominated
    changed = ChangedRows(made.cluster, rows, NO_ROWS, NO_ROWS)
    together = verdicts_on(changed.with_nominated(nominated), filters, {}, made.pod_cycle)
    if together is not None:
        told = ((int(rows[place]), together.status_of(place)) for place in np.flatnonzero(~together.fits).tolist())
    else:
        told = ((row, made.trial(row).verdict_with_nominated()) for row in rows.tolist())
    return {row: status for row, status in told if status is not None}


class _NoPlugin:
    """Stands where the plugin of answers would that several plugins gave."""

    name = ""


_NO_PLUGIN = _NoPlugin()


class _WithNominatedPods(FilterResults):
    """What filters say of nodes with the pods nominated to them: it comes before what they say without."""

    __slots__ = ("_statuses",)

    def __init__(self, found: dict[int, Status], capacity: int) -> None:
        statuses = list(dict.fromkeys(found.values()))
        self._statuses = statuses
        numbers = {status: number for number, status in enumerate(statuses, 1)}
        self.place = -1
        self.plugin = cast("FilterPlugin", _NO_PLUGIN)
        self.state = None
        self.rejects_any = True
        self.codes: Codes = np.zeros(capacity, np.int32)
        for row, status in found.items():
            self.codes[row] = numbers[status]

    def recompute(self, capacity: int, size: int) -> None:
        """Leave the answers as they are: they were given for this decision alone."""

    def reason(self, code: int) -> Status:
        """Return the status of the plugin that objected."""
        return self._statuses[code - 1]
