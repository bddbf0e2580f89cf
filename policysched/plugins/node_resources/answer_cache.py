"""`CachedAnswers`: results of the resource plugins by node, which classes of pods with equal requests share.

Pods of many workloads request the same few amounts, and the result for such amounts depends on the row only. So a
placement is evaluated once for each combination of amounts, not for each class. A single row is computed without
arrays, which is faster.

Shapes: C the capacity of the columns, N rows in use.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policysched.framework import Cluster, Rows
from policysched.state.tables.columns import distinct

MOST_ONE_BY_ONE = 2
"""Maximum number of changed nodes that are computed one by one instead of with arrays."""
OfRows = Callable[[Rows], NDArray[Any]]
OfRow = Callable[[int], int | None]
"""Function that returns the result of one node; None if the node can only be computed with arrays."""


class CachedAnswers:
    """The cached results of a function for all nodes; changed nodes are recomputed at the next read.

    Args:
        cluster: The cluster.
        of_rows: Computes the results of rows.
        of_row: Computes the result of one row; None if that needs arrays.
        dtype: The type of the cached results; wider results of `of_rows` widen the cache.
    """

    __slots__ = ("__weakref__", "_answers", "_cluster", "_dtype", "_of_row", "_of_rows", "_seen")

    def __init__(self, cluster: Cluster, of_rows: OfRows, of_row: OfRow | None, dtype: type[np.integer]) -> None:
        self._cluster = cluster
        self._of_rows, self._of_row = of_rows, of_row
        self._dtype = np.dtype(dtype)
        self._answers: NDArray[Any] = np.zeros(0, dtype)
        self._seen = 0

    @property
    def narrow(self) -> bool:
        """Whether all cached results fit into the integer type of the first results."""
        return self._answers.dtype == self._dtype

    def distinct(self) -> list[int]:
        """Return the distinct cached results."""
        found: list[int] = distinct(self._answers).tolist()
        return found

    def of(self, rows: Rows) -> NDArray[Any]:
        """Return the cached results of the given nodes; the caller must not change the array.

        Shapes: (R,).
        """
        if self._seen != self._cluster.journal.position or not self._answers.size:
            self._renew()
        return self._answers[rows]

    def _renew(self) -> None:
        nodes, journal = self._cluster.nodes, self._cluster.journal
        capacity = nodes.columns.capacity
        changed = journal.since(self._seen) if self._answers.size == capacity else None
        self._seen = journal.position
        if changed is None:
            answers = self._of_rows(slice(0, nodes.size))
            self._answers = np.zeros(capacity, self._dtype)
            self._put(slice(0, nodes.size), answers)
        elif self._of_row is None or changed[0].size > MOST_ONE_BY_ONE:
            self._put(changed[0], self._of_rows(changed[0]))
        else:
            for row in changed[0].tolist():
                answer = self._of_row(row)
                if answer is None:
                    self._put(np.array([row]), self._of_rows(np.array([row])))
                else:
                    self._answers[row] = answer

    def _put(self, rows: Rows, answers: NDArray[Any]) -> None:
        if answers.dtype.itemsize > self._answers.dtype.itemsize:
            self._answers = self._answers.astype(answers.dtype)
        self._answers[rows] = answers
