"""`Column`: a growing array with one element per node. `ColumnSet`: all columns of a cluster. Array functions.

A column's `data` has an element for each row of the capacity and is replaced when the capacity grows, so callers read
it again after each change and slice it to the rows in use.

`quotients` and `from_floats` have the results of Go's int64, where NumPy's differ; for Python's integers see
`policysched.model.quantity`.

Source: the Go specification, "Integer operators" and "Conversions"; the latter as amd64 does them.
"""

from __future__ import annotations

import weakref
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from policysched.model.quantity import MIN

FIRST_CAPACITY = 64
RowNumbers = NDArray[np.intp]
"""Numbers of rows, each of which has the values of one node, in NumPy's index type."""
Rows = slice | RowNumbers
NO_ROWS: Final[RowNumbers] = np.zeros(0, np.intp)
Whole = NDArray[np.int64]
Floats = NDArray[np.float64]
IntegerT = TypeVar("IntegerT", bound=np.integer[Any])
BEYOND: Final = 2.0**63
"""Smallest float that is larger than every int64."""
BYTES_PER_ARRAY, BYTES_PER_VALUE = 1024, 8
"""Estimated memory of an array over all nodes: per array, and per element. Units: bytes."""
_SMALL: Final = 64
"""Largest number for which `counted` always uses an array with one element for each possible number."""


class Column:
    """A growing array with one element per node (row); with a depth, a matrix of several such arrays."""

    __slots__ = ("__weakref__", "data", "fill")

    def __init__(self, shape: tuple[int, ...], dtype: type[np.generic], fill: float) -> None:
        self.fill = fill
        self.data: NDArray[Any] = np.full(shape, fill, dtype)

    @property
    def codes(self) -> NDArray[Any]:
        """The elements, if these are the numbers that an `Interner` gives to texts or other values."""
        return self.data

    def resize(self, depth: int) -> None:
        """Set the number of arrays in the matrix; new arrays are filled with the default element."""
        have, capacity = self.data.shape
        data = np.full((depth, capacity), self.fill, self.data.dtype)
        data[: min(have, depth)] = self.data[:depth]
        self.data = data

    def widen(self, capacity: int) -> None:
        """Set a larger number of elements (capacity); new elements are the default element."""
        data = np.full((*self.data.shape[:-1], capacity), self.fill, self.data.dtype)
        data[..., : self.data.shape[-1]] = self.data
        self.data = data

    def narrow(self, capacity: int) -> None:
        """Set a smaller number of elements (capacity); elements beyond it are dropped."""
        self.data = self.data[..., :capacity].copy()


class ColumnSet:
    """All columns of a cluster, which have the same number of elements; a column without users is dropped."""

    __slots__ = ("_columns", "capacity")

    def __init__(self) -> None:
        self.capacity = FIRST_CAPACITY
        self._columns: weakref.WeakSet[Column] = weakref.WeakSet()

    def new(self, dtype: type[np.generic], fill: float = 0, *, depth: int = 0) -> Column:
        """Create a column (array over nodes) whose elements all have the value `fill`.

        Shapes: data (capacity,), with a depth (depth, capacity).
        """
        column = Column((depth, self.capacity) if depth else (self.capacity,), dtype, fill)
        self._columns.add(column)
        return column

    def grow(self) -> None:
        """Double the number of elements of all columns."""
        self.capacity *= 2
        for column in list(self._columns):
            column.widen(self.capacity)

    def shrink(self, rows: int) -> None:
        """Halve the number of elements of all columns as often as `rows` elements still fit."""
        while self.capacity > FIRST_CAPACITY and rows <= self.capacity // 2:
            self.capacity //= 2
        for column in list(self._columns):
            column.narrow(self.capacity)

    @property
    def count(self) -> int:
        """Number of columns that are still in use."""
        return len(self._columns)


def distinct(numbers: NDArray[IntegerT]) -> NDArray[IntegerT]:
    """Return the distinct values of an integer array, in ascending order.

    `np.unique` does the same, but imports NumPy's masked arrays at its first call, which would delay the first pod.
    Shapes: (R,) -> (V,).
    """
    ordered = np.sort(numbers)
    found: NDArray[IntegerT] = ordered[_begins(ordered)]
    return found


def distinct_places(numbers: NDArray[IntegerT]) -> tuple[NDArray[IntegerT], NDArray[np.intp]]:
    """Return the distinct values of an integer array, ascending, and for each element the index of its value.

    Shapes: (R,) -> (V,), (R,).
    """
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    begins = _begins(ordered)
    places = np.empty(numbers.size, np.intp)
    places[order] = np.cumsum(begins) - 1
    return ordered[begins], places


def counted(numbers: NDArray[IntegerT]) -> tuple[list[int], list[int]]:
    """Return the distinct values of a non-negative integer array, ascending, and how often each value occurs.

    Shapes: (R,) -> V and V of them.
    """
    if numbers.size and int(numbers.max()) > 4 * numbers.size + _SMALL:
        values, places = distinct_places(numbers)
        return values.tolist(), np.bincount(places).tolist()
    counts = np.bincount(numbers)
    found = counts.nonzero()[0]
    return found.tolist(), counts[found].tolist()


def _begins(ordered: NDArray[np.integer[Any]]) -> NDArray[np.bool_]:
    """Return a mask of the elements that differ from their predecessor. Shapes: (R,) -> (R,)."""
    begins = np.ones(ordered.size, np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=begins[1:])
    return begins


def quotients(numbers: Whole, divisors: Whole | int) -> Whole:
    """Return quotients of integers, rounded towards zero; no divisor may be 0.

    Shapes: as NumPy broadcasts them.
    """
    over = np.asarray(divisors, np.int64)
    # As in Go, the lowest int64 divided by -1 is itself.
    divided = np.where(over == -1, 1, over)
    found: Whole = numbers // divided
    found += (found < 0) & (found * divided != numbers)
    return np.where(over == -1, -found, found)


def from_floats(values: Floats) -> Whole:
    """Return floats as int64, rounded towards zero; values outside of int64 become the lowest int64.

    Shapes: (...) -> (...).
    """
    if np.abs(values).max(initial=0.0) < BEYOND:
        return values.astype(np.int64)
    fits = (values >= -BEYOND) & (values < BEYOND)
    return np.where(fits, values, float(MIN)).astype(np.int64)


def memory_of(arrays: int, rows: int) -> int:
    """Return the estimated memory of a number of arrays with one element per node. Units: bytes.

    Units: bytes.
    """
    return arrays * (BYTES_PER_ARRAY + BYTES_PER_VALUE * rows)
