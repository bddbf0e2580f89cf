"""NumPy operations on columns (arrays over all nodes) that several plugins use, and caches of results.

Columns contain codes of values, so a function is evaluated once per code and looked up for every row. When codes are
reassigned, all results are dropped.

Shapes: R rows evaluated, N rows in use, C the capacity of the columns.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Final, Generic, TypeVar
from weakref import WeakKeyDictionary, WeakValueDictionary

import numpy as np
from numpy.typing import NDArray

from policysched.framework import Cluster, Mask, Rows
from policysched.state.tables.columns import distinct
from policysched.state.tables.interner import Interner
from policysched.state.tables.nodes import NodeTable

T = TypeVar("T", bound=np.generic)
H = TypeVar("H", bound=Hashable)
V = TypeVar("V")
UNKNOWN: Final = -1


def constant(value: float) -> NDArray[Any]:
    """Return a number as an array without dimensions, with which NumPy operations on short arrays are twice as fast."""
    return np.array(value)


ONE: Final[NDArray[np.int64]] = constant(1)


def codes_where(mask: Mask, code: int = 1) -> NDArray[np.int32]:
    """Return an array of reason codes: the given code where the mask is True, else 0, which accepts the node."""
    return mask.astype(np.int32) if code == 1 else np.where(mask, np.int32(code), np.int32(0))


def levelled(values: NDArray[T], mask: Mask) -> NDArray[T]:
    """Replace the values outside a mask by a value inside the mask, so that minimum and maximum are those of the mask.

    Shapes: (N,) -> (N,); of an empty mask (0,).
    """
    [outside] = (~mask).nonzero()
    if outside.size == values.size:
        return values[:0]
    made = values.copy()
    made[outside] = values[mask.argmax()]
    return made


def row_count(nodes: NodeTable, rows: Rows) -> int:
    """Return the number of nodes that a slice or array of row numbers selects."""
    return len(nodes.present.data[rows])


class AnswersByCode(Generic[H]):
    """Cached results of a function by the number (interned code) of its argument; results are integers from 0 on.

    Missing: the answer for the code -1 is 0.
    """

    __slots__ = ("_answers", "_interner", "_judge", "_stamp")

    def __init__(self, interner: Interner[H], judge: Callable[[H], int]) -> None:
        self._interner = interner
        self._judge = judge
        self._answers = np.zeros(1, np.int16)
        self._stamp = interner.stamp

    def of(self, codes: NDArray[np.int32]) -> NDArray[np.int16]:
        """Return the function's results for arguments given by their numbers; only missing results are computed."""
        if self._stamp != self._interner.stamp:
            self._stamp = self._interner.stamp
            self._answers = np.zeros(1, np.int16)
        if len(self._answers) <= len(self._interner):
            self._grow()
        answers = self._answers.take(codes)
        unknown = answers == UNKNOWN
        if unknown.any():
            for code in distinct(codes[unknown]).tolist():
                self._answers[code] = self._judge(self._interner.value(code))
            answers = self._answers.take(codes)
        return answers

    def _grow(self) -> None:
        """Double the array of cached results; its last element remains the result for -1, a missing value."""
        answers = np.full(2 * len(self._interner) + 1, UNKNOWN, np.int16)
        answers[: len(self._answers) - 1] = self._answers[:-1]
        answers[-1] = 0
        self._answers = answers


class SharedByCluster(Generic[V]):
    """Values cached by cluster and key, shared by classes of equal pods; a value is kept while a class refers to it."""

    def __init__(self) -> None:
        self._kept: WeakKeyDictionary[Cluster, WeakValueDictionary[Hashable, V]] = WeakKeyDictionary()

    def of(self, cluster: Cluster, key: Hashable, make: Callable[[], V]) -> V:
        """Return the value of a key in a cluster; if no value is cached, create the value with `make`."""
        kept = self._kept.get(cluster)
        if kept is None:
            kept = self._kept[cluster] = WeakValueDictionary()
        found = kept.get(key)
        if found is None:
            found = kept[key] = make()
        return found


class PresentNumbers:
    """The distinct numbers (such as numbers of topology domains) of the nodes in a mask, cached for the last mask."""

    __slots__ = ("_found", "_seen")

    def __init__(self) -> None:
        self._seen: tuple[int, bytes] = (-1, b"")
        self._found: NDArray[np.intp] = np.zeros(0, np.intp)

    def among(self, numbers: NDArray[np.intp], version: int, mask: Mask) -> NDArray[np.intp]:
        """Return the distinct numbers of the nodes in a mask, in ascending order.

        Args:
            numbers: Non-negative number of each row.
            version: Value that changes whenever a number does.
            mask: Selected rows.

        Shapes: numbers (C,), mask (N,) -> (found,).
        """
        seen = (version, mask.tobytes())
        if seen != self._seen:
            # bincount with weights is faster than selecting the rows first
            self._found = np.bincount(numbers[: mask.size], mask).nonzero()[0]
            self._seen = seen
        return self._found
