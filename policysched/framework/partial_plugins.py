"""Partial plugins: a configuration enables Filter or Score without the PreFilter or PreScore that belongs to it.

Knows which plugins can do without what their first point prepares, by their protocols. The others fail, as
kube-scheduler's do, which looks for what was prepared and finds nothing.

Source: pkg/scheduler/framework/plugins, v1.36 (getPreFilterState, getPreScoreState and their callers).
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass
from typing import Any, cast

import numpy as np

from policysched.framework.optional_interfaces import (
    FilterAffecting,
    FilterAlone,
    FilterOfChangedRow,
    ScoreAlone,
    per_pod,
)
from policysched.framework.out_of_tree.adapter import OutOfTreePlugin
from policysched.framework.plugin import SKIP, Codes, Everywhere, FilterPlugin, Hint, Mask, ScorePlugin, Scores
from policysched.framework.status import Code, Status
from policysched.model.objects import Pod
from policysched.state.cluster import Cluster
from policysched.state.tables.columns import RowNumbers, Rows
from policysched.state.tables.journal import Aspect
from policysched.state.tables.nodes import NodeTable
from policysched.state.what_if import ChangedRow


class FilterOnly:
    """A filter without its PreFilter."""

    def __init__(self, plugin: FilterPlugin) -> None:
        self.plugin = plugin
        self.name = plugin.name
        self.filter_reads: Aspect = plugin.filter_reads
        self.per_pod = per_pod(plugin) if isinstance(plugin, FilterAlone) else None

    def prepare_filter(self, pod: Pod, cluster: Cluster) -> Any:
        """Return the plugin's own state, or the failure of one that cannot do without PreFilter."""
        if not isinstance(self.plugin, FilterAlone):
            why = f"{self.name} cannot filter while its preFilter is disabled"
            return Everywhere(Status(Code.ERROR, (why,)))
        state = self.plugin.filter_alone(pod, cluster)
        return Everywhere(state) if isinstance(state, Status) else state

    def filter(self, state: Any, rows: Rows) -> Codes:
        """Ask the plugin, unless it says the same everywhere."""
        if isinstance(state, Everywhere):
            return np.ones(rows.stop - (rows.start or 0) if isinstance(rows, slice) else rows.size, np.int32)
        return self.plugin.filter(state, rows)

    def filter_affected(self, state: Any, rows: RowNumbers) -> Rows:
        """Ask the plugin, if it looks at other rows."""
        if isinstance(self.plugin, FilterAffecting) and not isinstance(state, Everywhere):
            return self.plugin.filter_affected(state, rows)
        return rows

    def filter_changed(self, state: Any, changed: ChangedRow) -> Status | None:
        """Ask the plugin, unless it says the same everywhere; only one that reads pods is asked."""
        if isinstance(state, Everywhere):
            return state.status
        return cast("FilterOfChangedRow", self.plugin).filter_changed(state, changed)

    def reason(self, state: Any, code: int) -> Status:
        """Ask the plugin, unless it says the same everywhere."""
        if isinstance(state, Everywhere):
            return state.status
        return self.plugin.reason(state, code)

    def events(self) -> Sequence[Hint]:
        """Ask the plugin."""
        return self.plugin.events()

    def generation(self, cluster: Cluster) -> Hashable:
        """Ask the plugin."""
        return self.plugin.generation(cluster)


@dataclass(frozen=True, slots=True)
class Zeros:
    """The state of a plugin that scores every node 0."""

    nodes: NodeTable


class ScoreOnly:
    """A score plugin without its PreScore, which therefore never skips a pod."""

    def __init__(self, plugin: ScorePlugin) -> None:
        self.plugin = plugin
        self.name = plugin.name
        self.score_reads: Aspect = plugin.score_reads
        self.normalizes: bool = plugin.normalizes

    def prepare_score(self, pod: Pod, cluster: Cluster) -> Any:
        """Return the plugin's own state, or the failure of one that cannot do without PreScore."""
        if not isinstance(self.plugin, ScoreAlone):
            return Status(Code.ERROR, (f"{self.name} cannot score while its preScore is disabled",))
        state = self.plugin.score_alone(pod, cluster)
        return Zeros(cluster.nodes) if state is SKIP else state

    def score(self, state: Any, rows: Rows) -> Scores:
        """Ask the plugin, unless every node scores 0."""
        if isinstance(state, Zeros):
            return np.zeros(len(state.nodes.present.data[rows]), np.int64)
        return self.plugin.score(state, rows)

    def normalize(self, state: Any, scores: Scores, feasible: Mask) -> Scores | None:
        """Ask the plugin, unless every node scores 0."""
        return scores if isinstance(state, Zeros) else self.plugin.normalize(state, scores, feasible)

    def generation(self, cluster: Cluster) -> Hashable:
        """Ask the plugin."""
        return self.plugin.generation(cluster)


class ScoreWithoutPreFilter(ScoreOnly):
    """A score plugin that needs what PreFilter would have prepared, and fails without it."""

    def prepare_score(self, pod: Pod, cluster: Cluster) -> Any:  # noqa: ARG002 - the protocol's signature
        """Fail."""
        return Status(Code.ERROR, (f"{self.name} cannot score while its preFilter is disabled",))


def filter_only(plugin: Any) -> Any:
    """Return a filter where its PreFilter is not enabled."""
    return plugin.but("preFilter") if isinstance(plugin, OutOfTreePlugin) else FilterOnly(plugin)


def score_only(plugin: Any) -> Any:
    """Return a score plugin where its PreScore is not enabled."""
    return plugin.but("preScore") if isinstance(plugin, OutOfTreePlugin) else ScoreOnly(plugin)
