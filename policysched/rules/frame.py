"""The values that programs run on: a pod, and rows of the cluster.

One frame serves all programs of a policy for the same rows; its memo makes equal sub-expressions run once. Pod values
come from the pod class, so they are read once and kept.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

from policysched.framework import Mask, Rows
from policysched.language.program import Program, Truth
from policysched.language.typed import Input
from policysched.model.objects import Pod
from policysched.rules.node_inputs import node_column
from policysched.rules.pod_inputs import Scalar, pod_value
from policysched.state.cluster import Cluster
from policysched.state.interner import Strings

NO_ROWS = np.zeros(0, np.int32)


class RuleFrame:
    """What `language.Frame` asks for, over the cluster's columns."""

    __slots__ = ("_cluster", "_pod", "_rows", "feasible", "memo", "rows", "strings")

    def __init__(self, cluster: Cluster, pod: Pod, rows: Rows = NO_ROWS, feasible: Mask | None = None) -> None:
        self._cluster = cluster
        self._pod = pod
        self._rows = rows
        self.strings: Strings = cluster.strings
        self.rows: int = count_rows(cluster, rows)
        self.feasible = feasible
        self.memo: dict[Any, Any] = {}

    def column(self, item: Input, /) -> NDArray[Any]:
        """Give a node input's values on the rows."""
        return node_column(self._cluster, self._pod, item, self._rows)

    def scalar(self, item: Input, /) -> Scalar:
        """Give a pod or cluster input's value."""
        return pod_value(self._pod, item, self._cluster)


def count_rows(cluster: Cluster, rows: Rows) -> int:
    """Count the rows selected."""
    return len(range(*rows.indices(cluster.nodes.columns.capacity))) if isinstance(rows, slice) else rows.size


def condition(program: Program, frame: RuleFrame) -> Truth:
    """Run a program that was compiled as a condition."""
    value = program.run(frame)
    if not isinstance(value, Truth):
        raise TypeError(f"{program.text} is no condition")
    return value


def number(program: Program, frame: RuleFrame) -> NDArray[np.float64]:
    """Run a program that was compiled as a number.

    Shapes: (R,), or () where it is the same for every row.
    Missing: NaN.
    """
    return np.asarray(program.run(frame), np.float64)
