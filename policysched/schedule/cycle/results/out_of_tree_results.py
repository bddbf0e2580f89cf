"""Results of out-of-tree plugins for one pod; the plugins are called for nodes that passed earlier filters.

Answers are cached with the pod's class only if the plugin declares what it reads.

Shapes: N rows in use, R rows of a call.
Source: pkg/scheduler/framework/runtime/framework.go (RunFilterPlugins, RunPreScorePlugins, RunScorePlugins).
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policysched.framework import SKIP, Aspect, Code, Codes, RowNumbers, Rows, RowScore, Scores, Status
from policysched.framework.out_of_tree.adapter import OutOfTreePlugin, PodCycle
from policysched.schedule.cycle.results.plugin_results import PRESENCE, FilterResults, GivenCodes, ScoreResults
from policysched.schedule.timing import NORMALIZE, PRE_SCORE, SCORE, CycleTimes, timed
from policysched.state.cluster import Cluster

ScoreWeights = tuple[tuple[OutOfTreePlugin, int | None], ...]
"""Score plugins with their weights; the weight is None for a plugin that is enabled at PreScore only."""


class KnownAnswers:
    """An out-of-tree plugin's cached results for equal pods, by node; a change of a node drops the node's result.

    Args:
        cluster: The cluster.
        reads: The aspects of a row that the plugin reads.
    """

    __slots__ = ("_cluster", "_position", "_reads", "codes_of", "known", "statuses", "values")

    def __init__(self, cluster: Cluster, reads: Aspect) -> None:
        self._cluster, self._reads = cluster, int(reads) | PRESENCE
        self._position = cluster.journal.position
        capacity = cluster.nodes.columns.capacity
        self.known = np.zeros(capacity, np.bool_)
        self.values: NDArray[np.int64] = np.zeros(capacity, np.int64)
        self.statuses: list[Status] = []
        self.codes_of: dict[Status, int] = {}

    def recall(self, rows: RowNumbers, call: Callable[[RowNumbers], Any]) -> Any:
        """Return a plugin's results for nodes, calling the plugin only for nodes without a cached result.

        Returns:
            An array of answers (R,), or the status of a failure, which is not cached.
        """
        self._refresh()
        unknown = rows[~self.known[rows]]
        if unknown.size:
            answers = call(unknown)
            if isinstance(answers, Status):
                return answers
            self.values[unknown], self.known[unknown] = answers, True
        return self.values[rows]

    @property
    def nbytes(self) -> int:
        """The memory of the cached results. Units: bytes."""
        return self.known.nbytes + self.values.nbytes

    def _refresh(self) -> None:
        changed = self._cluster.journal.since(self._position)
        self._position = self._cluster.journal.position
        if changed is None or len(self.statuses) > 2 * self.known.size:
            self.known[:] = False
            self.statuses.clear()
            self.codes_of.clear()
            return
        rows, aspects = changed
        self.known[rows[(aspects & self._reads) != 0]] = False


class OutOfTreeResults(FilterResults):
    """The reason codes (0 accepts) of an out-of-tree filter for one pod; empty until `called` calls the filter."""

    __slots__ = ("_codes_of", "_known", "_statuses", "out_of_tree")

    def __init__(self, plugin: OutOfTreePlugin, place: int, known: KnownAnswers | None) -> None:
        self._statuses: list[Status] = [] if known is None else known.statuses
        super().__init__(GivenCodes(plugin.name, self._statuses, plugin.filter_reads), None, place)
        self.out_of_tree = plugin
        self._known = known
        self._codes_of: dict[Status, int] = {} if known is None else known.codes_of

    def called(self, cycle: PodCycle, rows: RowNumbers) -> OutOfTreeResults | Status:
        """Call the out-of-tree filter for nodes; return the results, or the status of a failure.

        Shapes: rows (R,).
        """
        made = OutOfTreeResults(self.out_of_tree, self.place, self._known)

        def call(some: RowNumbers) -> Codes | Status:
            return made.out_of_tree.filter_rows(cycle, some, made._code_of)

        answers = call(rows) if self._known is None else self._known.recall(rows, call)
        if isinstance(answers, Status):
            return answers
        made.codes = np.zeros(cycle.cluster.nodes.columns.capacity, np.int32)
        made.codes[rows] = answers
        made.rejects_any = bool(np.count_nonzero(answers))
        return made

    def recompute(self, capacity: int, size: int) -> None:
        """Do nothing: out-of-tree filters are called only in the cycle of a pod."""

    def reason(self, code: int) -> Status:
        """Return the status that a reason code of the plugin stands for."""
        return self._statuses[code - 1]

    def _code_of(self, status: Status) -> int:
        code = self._codes_of.get(status)
        if code is None:
            self._statuses.append(status)
            code = self._codes_of[status] = len(self._statuses)
        return code


class GivenScores(RowScore[None]):
    """A score plugin that returns scores computed beforehand.

    Shapes: scores (N,), 0 for a row without a score.
    """

    def __init__(self, name: str, scores: Scores) -> None:
        self.name = name
        self._scores = scores

    def score(self, state: None, rows: Rows) -> Scores:  # noqa: ARG002 - nothing is prepared
        """Return the previously computed scores of nodes."""
        return self._scores[rows]


def call_scores(
    cycle: PodCycle,
    plugins: ScoreWeights,
    rows: RowNumbers,
    known: dict[str, KnownAnswers],
    times: CycleTimes | None = None,
) -> list[ScoreResults] | Status:
    """Run PreScore, Score and NormalizeScore of out-of-tree plugins for the feasible nodes.

    Args:
        cycle: The cycle of the pod.
        plugins: The plugins.
        rows: The feasible rows.
        known: The cached answers of plugins that declare what they read, by name.
        times: Measures the plugins.

    Returns:
        The results of the plugins that do not skip the pod, or the status of a failure, in kube-scheduler's words.
    """
    scoring = []
    for plugin, weight in plugins:
        measuring = _times_for(times, plugin, "pre_score")
        answer = timed(measuring, plugin.name, PRE_SCORE, plugin.pre_score, cycle, rows)
        if isinstance(answer, Status):
            return _failure('running PreScore plugin "{}": {}', plugin, answer)
        if answer is not SKIP and weight is not None:
            scoring.append((plugin, weight))
    given = []
    for plugin, weight in scoring:
        scores = timed(times, plugin.name, SCORE, _scored, cycle, plugin, rows, known)
        if isinstance(scores, Status):
            return _failure('running Score plugins: plugin "{}" failed with: {}', plugin, scores)
        given.append((plugin, weight, scores))
    results = []
    for plugin, weight, raw in given:
        measuring = _times_for(times, plugin, "normalize_score")
        final = timed(measuring, plugin.name, NORMALIZE, plugin.normalize_rows, cycle, rows, raw)
        if isinstance(final, Status):
            return _failure('running Normalize on Score plugins: plugin "{}" failed with: {}', plugin, final)
        results.append(_results(cycle.cluster, plugin, weight, rows, final))
    return results


def _times_for(times: CycleTimes | None, plugin: OutOfTreePlugin, method: str) -> CycleTimes | None:
    """Return the stopwatch `times` if calls of the plugin's method are to be measured, else None."""
    return times if times is not None and times.by_plugin and plugin.has(method) else None


def _scored(
    cycle: PodCycle, plugin: OutOfTreePlugin, rows: RowNumbers, known: dict[str, KnownAnswers]
) -> Scores | Status:
    if plugin.reads is None:
        return plugin.score_rows(cycle, rows)
    answers = known.get(plugin.name)
    if answers is None:
        answers = known[plugin.name] = KnownAnswers(cycle.cluster, plugin.reads)
    scores: Scores | Status = answers.recall(rows, lambda some: plugin.score_rows(cycle, some))
    return scores


def _results(cluster: Cluster, plugin: OutOfTreePlugin, weight: int, rows: RowNumbers, final: Scores) -> ScoreResults:
    nodes = cluster.nodes
    scores = np.zeros(nodes.size, np.int64)
    scores[rows] = final
    made = ScoreResults(GivenScores(plugin.name, scores), weight, None)
    made.recompute(nodes.columns.capacity, nodes.size)
    return made


def _failure(text: str, plugin: OutOfTreePlugin, status: Status) -> Status:
    return Status(Code.ERROR, (text.format(plugin.name, status.message),), plugin.name)
