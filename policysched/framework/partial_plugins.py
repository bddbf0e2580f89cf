"""Replacements of plugins for which a configuration enables Filter or Score, but not PreFilter or PreScore.

Some plugins work without the first point (`filters_alone`, `scores_alone`). The others fail for every pod, as in
kube-scheduler, where Filter or Score looks for the state of the first point and finds none.

Shapes: R rows selected.
Source: pkg/scheduler/framework/plugins, v1.36 (getPreFilterState, getPreScoreState and their callers).
"""

from __future__ import annotations

from collections.abc import Sequence
from copy import copy
from dataclasses import dataclass
from typing import Any

import numpy as np

from policysched.framework.optional_interfaces import PerPod
from policysched.framework.out_of_tree.adapter import OutOfTreePlugin
from policysched.framework.plugin import Codes, FilterPlugin, Hint, RowFilter, RowScore, ScorePlugin, Scores
from policysched.framework.status import Code, Status
from policysched.model.objects import Pod
from policysched.state.cluster import Cluster
from policysched.state.tables.columns import Rows
from policysched.state.tables.nodes import NodeTable


@dataclass(frozen=True, slots=True)
class Everywhere:
    """The prepared data of a filter that rejects every node with the same status."""

    status: Status


class EverywhereFilter(RowFilter[Everywhere]):
    """A filter that rejects every node with the same status, used where a configuration disables PreFilter."""

    def __init__(self, name: str) -> None:
        self.name = name

    def filter(self, state: Everywhere, rows: Rows) -> Codes:  # noqa: ARG002 - it rejects all rows
        """Return for each node a reason code that rejects the node."""
        return np.ones(rows.stop - (rows.start or 0) if isinstance(rows, slice) else rows.size, np.int32)

    def reason(self, state: Everywhere, code: int) -> Status:  # noqa: ARG002 - there is one reason
        """Return the status with which the filter rejects every node."""
        return state.status


class FailingFilter(EverywhereFilter, FilterPlugin[Everywhere]):
    """A filter that fails on every node, because its PreFilter is disabled."""

    pre_filters = False

    def __init__(self, plugin: FilterPlugin[Any]) -> None:
        super().__init__(plugin.name)
        self._hints = plugin.events()

    def prepare_filter(self, pod: Pod, cluster: Cluster) -> Everywhere:  # noqa: ARG002 - it fails for every pod
        """Return the error status with which the filter fails on every node."""
        why = f"{self.name} cannot filter while its preFilter is disabled"
        return Everywhere(Status(Code.ERROR, (why,)))

    def events(self) -> Sequence[Hint]:
        """Return the queueing hints of the replaced plugin."""
        return self._hints


class ZeroScore(RowScore[NodeTable]):
    """A score plugin that gives every node the score 0."""

    def __init__(self, name: str) -> None:
        self.name = name

    def score(self, state: NodeTable, rows: Rows) -> Scores:
        """Return the score 0 for each node."""
        return np.zeros(len(state.present.data[rows]), np.int64)


class AlwaysZeroScore(ZeroScore, ScorePlugin[NodeTable]):
    """A score plugin that gives every node the score 0 for every pod."""

    pre_scores = False

    def prepare_score(self, pod: Pod, cluster: Cluster) -> NodeTable:  # noqa: ARG002 - it scores all pods alike
        """Return the table of nodes, from which `score` reads the number of scores."""
        return cluster.nodes


class FailingScore(ZeroScore, ScorePlugin[NodeTable]):
    """A score plugin that fails for every pod, because an extension point that its Score needs is disabled."""

    pre_scores = False

    def __init__(self, name: str, point: str) -> None:
        super().__init__(name)
        self._failure = Status(Code.ERROR, (f"{name} cannot score while its {point} is disabled",))

    def prepare_score(self, pod: Pod, cluster: Cluster) -> Status:  # noqa: ARG002 - it fails for every pod
        """Return the error status that names the disabled extension point."""
        return self._failure


def filter_only(plugin: FilterPlugin[Any] | OutOfTreePlugin) -> FilterPlugin[Any] | OutOfTreePlugin:
    """Return the plugin that replaces a filter plugin if a configuration does not enable its PreFilter."""
    if isinstance(plugin, OutOfTreePlugin):
        return plugin.without_point("preFilter")
    if not plugin.filters_alone:
        return FailingFilter(plugin)
    made = copy(plugin)
    made.pre_filters = False
    return made


def score_only(plugin: ScorePlugin[Any] | OutOfTreePlugin) -> ScorePlugin[Any] | OutOfTreePlugin:
    """Return the plugin that replaces a score plugin if a configuration does not enable its PreScore."""
    if isinstance(plugin, OutOfTreePlugin):
        return plugin.without_point("preScore")
    if not plugin.scores_alone:
        return FailingScore(plugin.name, "preScore")
    if isinstance(plugin, PerPod):
        return AlwaysZeroScore(plugin.name) if plugin.class_score is None else plugin
    made = copy(plugin)
    made.pre_scores = False
    return made
