"""Bases that several default plugins share: filters with one reason, scores that stay in range, scores of 0.

Shapes: R rows selected.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, TypeVar

import numpy as np

from policysched.framework import (
    SKIP,
    Cluster,
    Codes,
    FilterPlugin,
    Mask,
    Nothing,
    Rows,
    ScorePlugin,
    Scores,
    Status,
)
from policysched.model.objects import Pod
from policysched.plugins.columns import codes_where, row_count
from policysched.state.tables.nodes import NodeTable


class RejectedRows(Protocol):
    """The state of a filter that has one reason."""

    def rejects(self, rows: Rows) -> Mask:
        """Return which rows are rejected. Shapes: (R,)."""


RejectedT = TypeVar("RejectedT", bound=RejectedRows)


@dataclass(frozen=True, slots=True)
class RowTest:
    """A state that consists of a function."""

    rejects: Callable[[Rows], Mask]


class OneReasonFilter(FilterPlugin[RejectedT]):
    """A filter with one reason; the state of `prepare_filter` returns the rejected rows."""

    rejection: Status
    """The status of rejected rows."""

    def filter(self, state: RejectedT, rows: Rows) -> Codes:
        """Return code 1 for rejected rows."""
        return codes_where(state.rejects(rows))

    def reason(self, state: RejectedT, code: int) -> Status:  # noqa: ARG002 - there is one reason
        """Return the only reason."""
        return self.rejection


class ScoresInRange:
    """A score plugin whose final scores are 0 to 100 for all possible objects."""

    def stays_in_range(self, state: object) -> bool:  # noqa: ARG002 - the base's signature
        """Return True."""
        return True


class ScoreOfOthers(ScoresInRange, ScorePlugin[NodeTable]):
    """Scores 0 for the pods that have no results of their own in a `PerPod` plugin.

    Args:
        name: The name of the plugin.
        is_own: Returns whether a pod has results of its own.
    """

    def __init__(self, name: str, is_own: Callable[[Pod, Cluster], bool]) -> None:
        self.name, self._is_own = name, is_own

    def prepare_score(self, pod: Pod, cluster: Cluster) -> NodeTable | Nothing:
        """Skip a pod with results of its own."""
        return SKIP if self._is_own(pod, cluster) else cluster.nodes

    def score(self, state: NodeTable, rows: Rows) -> Scores:
        """Score every row 0."""
        return np.zeros(row_count(state, rows), np.int64)
