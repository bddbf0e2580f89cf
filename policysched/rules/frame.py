"""The values that programs run on: a pod, and rows of the cluster.

One frame serves all programs for the same rows and pod class; its memo makes equal sub-expressions run once. What is
made of other rows than those at hand comes from `Others`.
"""

from __future__ import annotations

from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from policysched.framework import NO_ROWS, Mask, Rows
from policysched.language.evaluation.columns import Truth, run_program
from policysched.language.evaluation.frames import FrameStrings
from policysched.language.ir.graph import Input, Program, Typed
from policysched.rules.node_inputs import node_column
from policysched.rules.pod_inputs import Scalar
from policysched.rules.subject import Subject
from policysched.state.cluster import Cluster

MOST_KEPT = 1 << 27
"""How much of what was worked out on some rows is kept. Units: bytes."""
_BYTES = 8


class Others(Protocol):
    """What is made of other rows, for the pods that agree in what it reads of them."""

    def aggregate(self, node: Typed, subject: Subject, rows: Rows) -> NDArray[np.float64] | float:
        """Give an aggregate over all nodes on rows. Shapes: (R,) where it has a domain."""

    def tally(self, node: Typed, subject: Subject, rows: Rows) -> NDArray[np.float64]:
        """Give a count or sum over the placed pods of each of the rows. Shapes: (R,)."""


class RuleFrame:
    """What `language.Frame` asks for, over the cluster's columns."""

    __slots__ = ("_cluster", "_others", "_selected", "_subject", "feasible", "memo", "rows", "strings")

    def __init__(
        self, cluster: Cluster, subject: Subject, others: Others, rows: Rows = NO_ROWS, feasible: Mask | None = None
    ) -> None:
        self._cluster = cluster
        self._subject = subject
        self._others = others
        self._selected = rows
        self.strings = FrameStrings(cluster.strings)
        self.rows: int = count_rows(cluster, rows)
        self.feasible = feasible
        self.memo: dict[Any, Any] = dict(subject.scalars)

    def has_room(self, steps: int = 0) -> bool:
        """Tell whether what was worked out, and so many steps more, takes no more than may be kept."""
        return (len(self.memo) + steps) * self.rows * _BYTES <= MOST_KEPT

    def make_room(self) -> None:
        """Forget what graphs gave where it is too much to be kept: it is worked out again where it is asked for.

        Not while a graph is evaluated or asked what it lacks.
        """
        if not self.has_room():
            kept = {key: value for key, value in self.memo.items() if not isinstance(key, Typed)}
            self.memo = kept | self._subject.scalars

    @property
    def now(self) -> float:
        """The present."""
        return self._cluster.moment.seconds

    def column(self, item: Input, /) -> NDArray[Any]:
        """Give a node's or a metric's values on the rows."""
        return node_column(self._cluster, self._subject, item, self._selected)

    def scalar(self, item: Input, /) -> Scalar:
        """Give a pod or cluster input's value."""
        return self._subject.value(item)

    def aggregate(self, node: Typed, /) -> NDArray[np.float64] | float:
        """Give what was made of all nodes."""
        return self._others.aggregate(node, self._subject, self._selected)

    def tally(self, node: Typed, /) -> NDArray[np.float64]:
        """Give what was made of the rows' pods."""
        return self._others.tally(node, self._subject, self._selected)


def count_rows(cluster: Cluster, rows: Rows) -> int:
    """Count the rows selected."""
    return len(range(*rows.indices(cluster.nodes.columns.capacity))) if isinstance(rows, slice) else rows.size


def condition(program: Program, frame: RuleFrame) -> Truth:
    """Run a program that was compiled as a condition."""
    value = run_program(program, frame)
    if not isinstance(value, Truth):
        raise TypeError(f"{program.text} is no condition")
    return value


def number(program: Program, frame: RuleFrame) -> NDArray[np.float64]:
    """Run a program that was compiled as a number.

    Shapes: (R,), or () where it is the same for every row.
    Missing: NaN.
    """
    return np.asarray(run_program(program, frame), np.float64)
