"""`Metrics`: metric values of nodes; NaN if a node has no value, or a value older than the policy allows.

Values are stored by node name, also for nodes that are added later. Each metric and maximum age in use has a column.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Collection, Mapping
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from policysched.model.kinds import Resource
from policysched.model.policy import MetricAnswer, MetricKey, Sample
from policysched.state.cluster_events import Action, Change
from policysched.state.tables.ages import ClusterTime
from policysched.state.tables.columns import Column, ColumnSet
from policysched.state.tables.journal import Aspect, Journal
from policysched.state.tables.nodes import NodeTable

NO_SAMPLES: Mapping[str, Sample] = MappingProxyType({})


class MetricColumn:
    """The value of a metric for each node; NaN if the value is too old. Units: those of the metrics server."""

    __slots__ = ("__weakref__", "_at", "_data", "_journal", "_max_age", "_values")

    def __init__(self, columns: tuple[Column, Column, Column], max_age: float, journal: Journal) -> None:
        self._values, self._at, self._data = columns
        self._max_age = max_age
        self._journal = journal

    @property
    def data(self) -> NDArray[np.float64]:
        """The value of the metric for each node, by row; NaN without a value.

        Shapes: (capacity,). Missing: NaN.
        """
        return self._data.data

    def advance(self, seconds: float) -> float:
        """Remove the values that are too old at a given time; return when the next value becomes too old."""
        at = self._at.data
        fresh = at >= seconds - self._max_age
        self._show(np.where(fresh, self._values.data, math.nan))
        return float(at.min(initial=math.inf, where=fresh)) + self._max_age

    def fill(self, row: int, sample: Sample | None) -> None:
        """Store the value of a node, or None; `data` shows it from the next `advance` on."""
        self._values.data[row], self._at.data[row] = (math.nan, -math.inf) if sample is None else sample

    def put(self, row: int, sample: Sample | None, seconds: float) -> float:
        """Set the value of a node at once; return the time at which the value becomes too old."""
        self.fill(row, sample)
        if sample is None or sample.at < seconds - self._max_age:
            self._put(row, math.nan)
            return math.inf
        self._put(row, sample.value)
        return sample.at + self._max_age

    def _put(self, row: int, value: float) -> None:
        shown = float(self._data.data[row])
        if value != shown and not (math.isnan(value) and math.isnan(shown)):
            self._data.data[row] = value
            self._journal.note(row, Aspect.METRICS)

    def _show(self, data: NDArray[np.float64]) -> None:
        shown = self._data.data
        differs = (data != shown) & ~(np.isnan(data) & np.isnan(shown))
        rows = np.flatnonzero(differs)
        shown[rows] = data[rows]
        self._journal.note_all(rows, Aspect.METRICS)


class Metrics:
    """The latest values of all metrics for all nodes, and the arrays that are in use."""

    def __init__(self, columns: ColumnSet, nodes: NodeTable, journal: Journal, time: ClusterTime) -> None:
        self._columns = columns
        self._nodes = nodes
        self._journal = journal
        self._time = time
        self._samples: dict[MetricKey, Mapping[str, Sample]] = {}
        self._held: weakref.WeakValueDictionary[tuple[MetricKey, float], MetricColumn] = weakref.WeakValueDictionary()
        self.problems: dict[MetricKey, str] = {}
        """For each metric whose latest answer reported a problem, the problem's text."""

    def column(self, key: MetricKey, max_age: float) -> MetricColumn:
        """Return the values of a metric by node, which stay up to date as long as the caller refers to the object.

        Args:
            key: The metric.
            max_age: Maximum age of a value. Units: seconds.
        """
        column = self._held.get((key, max_age))
        return column if column is not None else self._make(key, max_age)

    def take(self, answer: MetricAnswer) -> Change:
        """Store the values of a metric source's answer; return a change, with action NONE if no value changed."""
        self._say(answer.key, answer.problem)
        if answer.samples is None:
            return Change(Resource.METRICS, Action.NONE, metric=answer.key)
        self._samples[answer.key] = answer.samples
        before = self._journal.position
        for (key, _), column in list(self._held.items()):
            if key == answer.key:
                self._fill(column, answer.samples)
        action = Action.NONE if self._journal.position == before else Action.UPDATE_OTHER
        return Change(Resource.METRICS, action, metric=answer.key)

    def keep(self, keys: Collection[MetricKey]) -> None:
        """Remove the values of all metrics except the given metrics."""
        for key in self._samples.keys() - keys:
            del self._samples[key]
        for key in self.problems.keys() - keys:
            del self.problems[key]

    def store(self, row: int, name: str | None) -> None:
        """Set the name of the node in a row, whose metric values are then used; None if the row has no node."""
        if not self._held:
            return
        for (key, _), column in list(self._held.items()):
            sample = self._samples.get(key, NO_SAMPLES).get(name) if name is not None else None
            self._time.expect(column.put(row, sample, self._time.seconds))

    def _say(self, key: MetricKey, problem: str) -> None:
        if problem:
            self.problems[key] = problem
        else:
            self.problems.pop(key, None)

    def _make(self, key: MetricKey, max_age: float) -> MetricColumn:
        new = self._columns.new
        columns = new(np.float64, math.nan), new(np.float64, -math.inf), new(np.float64, math.nan)
        column = self._held[key, max_age] = MetricColumn(columns, max_age, self._journal)
        self._fill(column, self._samples.get(key, NO_SAMPLES))
        self._time.include(column)
        return column

    def _fill(self, column: MetricColumn, samples: Mapping[str, Sample]) -> None:
        for row, node in enumerate(self._nodes.nodes):
            column.fill(row, samples.get(node.metadata.name) if node is not None else None)
        self._time.expect(column.advance(self._time.seconds))
