"""What changed since a class was last looked at, told to each plugin by what it reads.

Shapes: E entries of the journal.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import reduce
from operator import and_, or_
from typing import Final

import numpy as np
from numpy.typing import NDArray

from policysched.framework import NO_ROWS, Aspect, RowNumbers

PRESENCE: Final = int(Aspect.PRESENCE)


class Changes:
    """The rows that changed, some of them perhaps twice, and in which aspects: two arrays (E,)."""

    __slots__ = ("_aspects", "_common", "_rows", "_selected", "_touched")

    def __init__(self, rows: RowNumbers, aspects: NDArray[np.int32]) -> None:
        self._rows = rows
        self._aspects = aspects
        distinct = set(aspects.tolist())
        self._touched = reduce(or_, distinct, 0)
        self._common = reduce(and_, distinct, -1)
        self._selected: dict[int, RowNumbers] = {}

    def of(self, reads: int) -> RowNumbers | None:
        """Give the rows that changed in one of some aspects, None where there is none.

        It is one object for all who read the same, so that what is found out about it can be shared.
        """
        relevant = self._touched & reads
        if not relevant:
            return None
        if self._common & relevant:
            return self._rows
        found = self._selected.get(relevant)
        if found is None:
            found = self._selected[relevant] = self._rows[(self._aspects & relevant) != 0]
        return found


def joined(rows: Sequence[RowNumbers]) -> RowNumbers:
    """Put rows one behind the other."""
    return np.concatenate(rows) if rows else NO_ROWS
