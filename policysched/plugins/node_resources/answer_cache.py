"""Cached answers of the resource plugins: fit and score by row, shared by pod classes that request the same.

Pods of many workloads ask for the same few amounts. What these score on a row, and whether they fit there, changes with
the row alone: a placement is followed once for each of them, not once for each class. A single row is worked out with
plain numbers: that takes a fraction of what operations on arrays take however short they are.

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
"""How many rows are worked out one by one."""
OfRows = Callable[[Rows], NDArray[Any]]
OfRow = Callable[[int], int | None]
"""The same for one row; None where only arrays tell the same."""


class CachedAnswers:
    """The answers of all rows; they follow the journal when asked.

    Args:
        cluster: The rows.
        of_rows: Answers for rows.
        of_row: Answers for one row, None where that takes arrays.
        dtype: What holds an answer of one row; rows may be answered in wider numbers, and all are kept in those then.
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
        """Whether no answer was given in wider numbers."""
        return self._answers.dtype == self._dtype

    def distinct(self) -> list[int]:
        """Return the answers that rows had when they were last asked for, each once."""
        found: list[int] = distinct(self._answers).tolist()
        return found

    def of(self, rows: Rows) -> NDArray[Any]:
        """Return the answers of rows; not to be changed.

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
