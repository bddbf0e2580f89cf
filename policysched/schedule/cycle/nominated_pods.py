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
from numpy.typing import NDArray

from policysched.framework import (
    NO_ROWS,
    ChangedRow,
    ChangedRows,
    Codes,
    FilterOfChangedRow,
    FilterPlugin,
    RowNumbers,
    Status,
)
from policysched.schedule.cycle.evaluation import NARROWED, Evaluation
from policysched.schedule.cycle.per_pod_results import laid_over
from policysched.schedule.cycle.results.plugin_results import FilterResults
from policysched.schedule.cycle.what_if import codes_on, verdicts_on


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
    changed = ChangedRows(made.cluster, rows, NO_ROWS, NO_ROWS).with_nominated(nominated)
    if made.pod_cycle is None:
        asked = _Asked(made, changed)
        for one in filters:
            asked.ask(one)
        return asked.found
    together = verdicts_on(changed, filters, {}, made.pod_cycle)
    if together is not None:
        told = ((int(rows[place]), together.status_of(place)) for place in np.flatnonzero(~together.fits).tolist())
    else:
        told = ((row, made.trial(row).verdict_with_nominated()) for row in rows.tolist())
    return {row: status for row, status in told if status is not None}


class _Asked:
    """What filters say of rows with the pods nominated to them, each filter about the rows that are left.

    One that cannot answer for many rows is asked row by row, the others are not for its sake.
    """

    __slots__ = ("_changed", "_left", "_made", "_rows", "found")

    def __init__(self, made: Evaluation, changed: ChangedRows) -> None:
        self._made, self._changed = made, changed
        self._left: NDArray[np.bool_] = np.ones(changed.rows.size, np.bool_)
        self._rows: dict[int, ChangedRow] = {}
        """By row, the row with the pods nominated to it."""
        self.found: dict[int, Status] = {}

    def ask(self, one: FilterResults) -> None:
        """Ask a filter."""
        rows = self._changed.rows
        codes = codes_on(one, self._changed)
        if codes is None:
            for place in np.flatnonzero(self._left).tolist():
                self._ask_alone(one, place)
            return
        rejected = self._left & (codes != 0)
        for place in np.flatnonzero(rejected).tolist():
            self.found[int(rows[place])] = one.reason(int(codes[place]))
        self._left &= ~rejected

    def _ask_alone(self, one: FilterResults, place: int) -> None:
        row = int(self._changed.rows[place])
        changed = self._rows.get(row)
        if changed is None:
            changed = self._rows[row] = ChangedRow(self._made.cluster, row)
            for pod in self._made.nominated[row]:
                changed.add(pod)
        status = cast("FilterOfChangedRow", one.plugin).filter_changed(one.state, changed)
        if status is not None:
            self.found[row] = status.by(one.plugin.name)
            self._left[place] = False


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
