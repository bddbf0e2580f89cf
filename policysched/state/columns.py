"""Arrays that grow together: one element a row, doubled when rows run out.

A column's `data` covers the whole capacity and is replaced when that grows, so callers take it anew each time and
slice it to the rows in use.
"""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import NDArray

FIRST_CAPACITY = 64


class Column:
    """One growing array."""

    __slots__ = ("data", "fill")

    def __init__(self, capacity: int, dtype: type[np.generic], fill: float) -> None:
        self.fill = fill
        self.data: NDArray[Any] = np.full(capacity, fill, dtype)


class ColumnSet:
    """Columns of one capacity."""

    __slots__ = ("_columns", "capacity")

    def __init__(self) -> None:
        self.capacity = FIRST_CAPACITY
        self._columns: list[Column] = []

    def new(self, dtype: type[np.generic], fill: float = 0) -> Column:
        """Add a column filled with one value.

        Shapes: data (capacity,).
        """
        column = Column(self.capacity, dtype, fill)
        self._columns.append(column)
        return column

    def drop(self, column: Column) -> None:
        """Stop growing a column that nobody reads any more."""
        self._columns.remove(column)

    def grow(self) -> None:
        """Double the capacity; new elements have their column's fill value."""
        old, self.capacity = self.capacity, self.capacity * 2
        for column in self._columns:
            data = np.full(self.capacity, column.fill, column.data.dtype)
            data[:old] = column.data
            column.data = data
