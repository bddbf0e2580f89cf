"""Results of out-of-tree plugins for one pod: asked about the nodes that are left, one plugin after another.

They are laid over the evaluation of the pod's class like other results of one pod. What a plugin has said of a node is
kept with the class only where the plugin declares what it reads.

Shapes: N rows in use, R the rows that are left.
Source: pkg/scheduler/framework/runtime/framework.go (RunFilterPlugins, RunPreScorePlugins, RunScorePlugins).
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, cast

import numpy as np
from numpy.typing import NDArray

from policysched.framework import SKIP, Aspect, Code, Codes, FilterPlugin, RowNumbers, Rows, ScorePlugin, Scores, Status
from policysched.framework.out_of_tree.adapter import OutOfTreePlugin, PodCycle
from policysched.schedule.cycle.results.plugin_results import PRESENCE, FilterResults, ScoreResults
from policysched.schedule.timing import NORMALIZE, PRE_SCORE, SCORE, CycleTimes, asked
from policysched.state.cluster import Cluster

ScoreWeights = tuple[tuple[OutOfTreePlugin, int | None], ...]
"""The plugins at PreScore and Score with their weights, None for those that are at PreScore alone."""


@dataclass(slots=True)
class OutOfTreePart:
    """What out-of-tree plugins have to do with one pod's evaluation."""

    cycle: PodCycle
    scores: ScoreWeights = ()
    """The plugins that are asked once several nodes are left."""
    nominated_row: int | None = None
    """The row of the pod's nominated node where it fits; then no other node is looked at."""
    nominated_status: Status | None = None
    """Why the pod does not fit its nominated node."""
    failure: Status | None = None
    """The failure of one that was asked for scores."""


class KnownAnswers:
    """What a plugin has said of rows to the pods of a class, as long as the rows stay as they were.

    Args:
        cluster: The cluster.
        reads: The aspects that the plugin reads.
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

    def recall(self, rows: RowNumbers, ask: Callable[[RowNumbers], Any]) -> Any:
        """Return the answers for rows, asking only about those that are not known.

        Returns:
            An array of answers (R,), or the status of a failure, of which nothing is kept.
        """
        self._catch_up()
        asked = rows[~self.known[rows]]
        if asked.size:
            answers = ask(asked)
            if isinstance(answers, Status):
                return answers
            self.values[asked], self.known[asked] = answers, True
        return self.values[rows]

    @property
    def nbytes(self) -> int:
        """The memory that it takes. Units: bytes."""
        return self.known.nbytes + self.values.nbytes

    def _catch_up(self) -> None:
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
    """The reason codes of an out-of-tree filter for one pod."""

    __slots__ = ("_codes_of", "_known", "_statuses", "out_of_tree")

    def __init__(self, plugin: OutOfTreePlugin, place: int, known: KnownAnswers | None) -> None:
        super().__init__(cast("FilterPlugin", plugin), None, place)
        self.out_of_tree = plugin
        self._known = known
        self._statuses: list[Status] = [] if known is None else known.statuses
        self._codes_of: dict[Status, int] = {} if known is None else known.codes_of

    def ask(self, cycle: PodCycle, rows: RowNumbers) -> Status | None:
        """Ask about the rows that are left; return the status of a failure.

        Shapes: rows (R,).
        """

        def ask(some: RowNumbers) -> Codes | Status:
            return self.out_of_tree.filter_rows(cycle, some, self._code_of)

        answers = ask(rows) if self._known is None else self._known.recall(rows, ask)
        if isinstance(answers, Status):
            return answers
        self.codes = np.zeros(cycle.cluster.nodes.columns.capacity, np.int32)
        self.codes[rows] = answers
        self.rejects_any = bool(np.count_nonzero(answers))
        return None

    def recompute(self, capacity: int, size: int) -> None:
        """Leave the answers as they are: they were given to one pod, in its own cycle."""

    def reason(self, code: int) -> Status:
        """Return the status behind a code."""
        return self._statuses[code - 1]

    def _code_of(self, status: Status) -> int:
        code = self._codes_of.get(status)
        if code is None:
            self._statuses.append(status)
            code = self._codes_of[status] = len(self._statuses)
        return code


class GivenScores:
    """The final scores that an out-of-tree plugin gave the rows that were left, as those of a score plugin.

    Shapes: scores (N,), 0 where a row was not left.
    """

    score_reads = Aspect.NONE
    normalizes = False

    def __init__(self, name: str, scores: Scores) -> None:
        self.name = name
        self._scores = scores

    def score(self, state: Any, rows: Rows) -> Scores:  # noqa: ARG002 - nothing is prepared
        """Return the scores."""
        return self._scores[rows]


def ask_scores(
    cycle: PodCycle,
    plugins: ScoreWeights,
    rows: RowNumbers,
    known: dict[str, KnownAnswers],
    times: CycleTimes | None = None,
) -> list[ScoreResults] | Status:
    """Run PreScore, Score and NormalizeScore on the rows that are left.

    Args:
        cycle: The cycle of the pod.
        plugins: The plugins.
        rows: The rows.
        known: What is known of plugins that declare what they read, by name.
        times: What the decision's plugins take, where somebody measures.

    Returns:
        The results of those that did not skip the pod, or the failure of one, in kube-scheduler's words.
    """
    left = []
    for plugin, weight in plugins:
        measuring = _measuring(times, plugin, "pre_score")
        answer = asked(measuring, plugin.name, PRE_SCORE, plugin.pre_score, cycle, rows)
        if isinstance(answer, Status):
            return _failure('running PreScore plugin "{}": {}', plugin, answer)
        if answer is not SKIP and weight is not None:
            left.append((plugin, weight))
    given = []
    for plugin, weight in left:
        scores = asked(times, plugin.name, SCORE, _scored, cycle, plugin, rows, known)
        if isinstance(scores, Status):
            return _failure('running Score plugins: plugin "{}" failed with: {}', plugin, scores)
        given.append((plugin, weight, scores))
    results = []
    for plugin, weight, raw in given:
        measuring = _measuring(times, plugin, "normalize_score")
        final = asked(measuring, plugin.name, NORMALIZE, plugin.normalize_rows, cycle, rows, raw)
        if isinstance(final, Status):
            return _failure('running Normalize on Score plugins: plugin "{}" failed with: {}', plugin, final)
        results.append(_results(cycle.cluster, plugin, weight, rows, final))
    return results


def _measuring(times: CycleTimes | None, plugin: OutOfTreePlugin, method: str) -> CycleTimes | None:
    """Return who measures one of a plugin's methods, None for nobody and where it has none."""
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
    scores = np.zeros(cluster.nodes.size, np.int64)
    scores[rows] = final
    return ScoreResults(cast("ScorePlugin", GivenScores(plugin.name, scores)), weight, None)


def _failure(text: str, plugin: OutOfTreePlugin, status: Status) -> Status:
    return Status(Code.ERROR, (text.format(plugin.name, status.message),), plugin.name)
