"""Growing arrays with one element for each row, doubled when rows run out.

A column's `data` covers the whole capacity and is replaced when that grows, so callers take it anew each time and
slice it to the rows in use.

Quotients, and whole numbers made of doubles, are here as Go's int64 has them, where NumPy's differ; for plain numbers
see `policysched.model.quantity`. Memory that several hold is counted in equal parts: all parts together are what it
takes.

Source: the Go specification, "Integer operators" and "Conversions"; the latter as amd64 does them.
"""

from __future__ import annotations

import sys
import weakref
from collections.abc import Sequence
from typing import Any, Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from policysched.model.quantity import MIN

FIRST_CAPACITY = 64
RowNumbers = NDArray[np.intp]
"""Rows by number, in what NumPy indexes with: anything narrower would be converted at each use."""
Rows = slice | RowNumbers
NO_ROWS: Final[RowNumbers] = np.zeros(0, np.intp)
Whole = NDArray[np.int64]
Floats = NDArray[np.float64]
IntegerT = TypeVar("IntegerT", bound=np.integer[Any])
BEYOND: Final = 2.0**63
"""The smallest double above all int64."""
BYTES_PER_ARRAY, BYTES_PER_VALUE = 1024, 8
"""Estimated memory of an array over all rows: besides its values, and per row. Units: bytes."""
_SMALL: Final = 64
"""Numbers up to this are counted by place, however few there are."""
_OWN_REFERENCES: Final = 2
"""References to an argument that nobody holds: the function's own, and that of the call that counts them."""


class Column:
    """One growing array, or several of a kind, one above the other."""

    __slots__ = ("__weakref__", "data", "fill")

    def __init__(self, shape: tuple[int, ...], dtype: type[np.generic], fill: float) -> None:
        self.fill = fill
        self.data: NDArray[Any] = np.full(shape, fill, dtype)

    @property
    def codes(self) -> NDArray[Any]:
        """The elements of a column of codes, for the interner that gave them."""
        return self.data

    @property
    def nbytes(self) -> int:
        """The memory that it takes. Units: bytes."""
        return self.data.nbytes

    def resize(self, depth: int) -> None:
        """Keep so many arrays; new ones have the fill value."""
        have, capacity = self.data.shape
        data = np.full((depth, capacity), self.fill, self.data.dtype)
        data[: min(have, depth)] = self.data[:depth]
        self.data = data

    def widen(self, capacity: int) -> None:
        """Make room for more elements; they have the fill value."""
        data = np.full((*self.data.shape[:-1], capacity), self.fill, self.data.dtype)
        data[..., : self.data.shape[-1]] = self.data
        self.data = data

    def narrow(self, capacity: int) -> None:
        """Return the elements back that are beyond a capacity."""
        self.data = self.data[..., :capacity].copy()


class ColumnSet:
    """Columns of one capacity; each lives as long as somebody holds it."""

    __slots__ = ("_columns", "capacity")

    def __init__(self) -> None:
        self.capacity = FIRST_CAPACITY
        self._columns: weakref.WeakSet[Column] = weakref.WeakSet()

    def new(self, dtype: type[np.generic], fill: float = 0, *, depth: int = 0) -> Column:
        """Add a column filled with one value.

        Shapes: data (capacity,), with a depth (depth, capacity).
        """
        column = Column((depth, self.capacity) if depth else (self.capacity,), dtype, fill)
        self._columns.add(column)
        return column

    def grow(self) -> None:
        """Double the capacity; new elements have their column's fill value."""
        self.capacity *= 2
        for column in list(self._columns):
            column.widen(self.capacity)

    def shrink(self, rows: int) -> None:
        """Halve the capacity as long as so many rows have room."""
        while self.capacity > FIRST_CAPACITY and rows <= self.capacity // 2:
            self.capacity //= 2
        for column in list(self._columns):
            column.narrow(self.capacity)

    @property
    def count(self) -> int:
        """How many columns somebody holds."""
        return len(self._columns)


def distinct(numbers: NDArray[IntegerT]) -> NDArray[IntegerT]:
    """Return which integers there are, in order.

    So does `np.unique`, which imports NumPy's masked arrays when it is first asked: the first pod would wait for that.
    Shapes: (R,) -> (V,).
    """
    ordered = np.sort(numbers)
    found: NDArray[IntegerT] = ordered[_begins(ordered)]
    return found


def distinct_places(numbers: NDArray[IntegerT]) -> tuple[NDArray[IntegerT], NDArray[np.intp]]:
    """Return which integers there are, in order, and the place of each number among them.

    Shapes: (R,) -> (V,), (R,).
    """
    order = np.argsort(numbers, kind="stable")
    ordered = numbers[order]
    begins = _begins(ordered)
    places = np.empty(numbers.size, np.intp)
    places[order] = np.cumsum(begins) - 1
    return ordered[begins], places


def counted(numbers: NDArray[IntegerT]) -> tuple[list[int], list[int]]:
    """Return which integers there are, none below 0, in order, and how often each is there.

    Shapes: (R,) -> V and V of them.
    """
    if numbers.size and int(numbers.max()) > 4 * numbers.size + _SMALL:
        values, places = distinct_places(numbers)
        return values.tolist(), np.bincount(places).tolist()
    counts = np.bincount(numbers)
    found = counts.nonzero()[0]
    return found.tolist(), counts[found].tolist()


def _begins(ordered: NDArray[np.integer[Any]]) -> NDArray[np.bool_]:
    """Return where another number begins. Shapes: (R,) -> (R,)."""
    begins = np.ones(ordered.size, np.bool_)
    np.not_equal(ordered[1:], ordered[:-1], out=begins[1:])
    return begins


def quotients(numbers: Whole, divisors: Whole | int) -> Whole:
    """Divide towards zero; no divisor is 0.

    Shapes: as NumPy broadcasts them.
    """
    over = np.asarray(divisors, np.int64)
    # the lowest number divided by -1 wraps around to itself, as its negative does
    divided = np.where(over == -1, 1, over)
    found: Whole = numbers // divided
    found += (found < 0) & (found * divided != numbers)
    return np.where(over == -1, -found, found)


def from_floats(values: Floats) -> Whole:
    """Drop what stands behind the point; what is no int64 becomes the lowest one.

    Shapes: (...) -> (...).
    """
    if np.abs(values).max(initial=0.0) < BEYOND:
        return values.astype(np.int64)
    fits = (values >= -BEYOND) & (values < BEYOND)
    return np.where(fits, values, float(MIN)).astype(np.int64)


def memory_of(arrays: int, rows: int) -> int:
    """Estimate the memory of arrays over all rows.

    Units: bytes.
    """
    return arrays * (BYTES_PER_ARRAY + BYTES_PER_VALUE * rows)


def part_of(shared: object) -> int:
    """Return one holder's part of `nbytes`, the memory of something shared; 0 where it does not say. Units: bytes."""
    holders = max(1, sys.getrefcount(shared) - _OWN_REFERENCES)
    return int(getattr(shared, "nbytes", 0)) // holders


def parts_of(shared: Sequence[object]) -> int:
    """Return the parts of those that a sequence holds. Units: bytes."""
    total = 0
    for one in shared:  # no other function is called: it would hold each of them, too
        total += int(getattr(one, "nbytes", 0)) // max(1, sys.getrefcount(one) - _OWN_REFERENCES)
    return total
