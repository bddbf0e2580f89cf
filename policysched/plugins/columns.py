"""Operations on columns that several plugins need, and answers kept by code or by cluster.

Columns hold codes, so a question about a value is asked once per code and then looked up for every row that has it;
where codes were given up, all answers are forgotten.

Shapes: R rows asked for, N rows in use, C the capacity of the columns.
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
    """Return a number as an array without axes: for few rows NumPy takes that in half the time of a plain number."""
    return np.array(value)


ONE: Final[NDArray[np.int64]] = constant(1)


def codes_where(mask: Mask, code: int = 1) -> NDArray[np.int32]:
    """Return the reason code where the mask holds, else 0."""
    return mask.astype(np.int32) if code == 1 else np.where(mask, np.int32(code), np.int32(0))


def levelled(values: NDArray[T], mask: Mask) -> NDArray[T]:
    """Put one of a mask's values in the place of all that are outside: lowest and highest are those of the mask then.

    Shapes: (N,) -> (N,); of an empty mask (0,).
    """
    [outside] = (~mask).nonzero()
    if outside.size == values.size:
        return values[:0]
    made = values.copy()
    made[outside] = values[mask.argmax()]
    return made


def row_count(nodes: NodeTable, rows: Rows) -> int:
    """Count the rows selected."""
    return len(nodes.present.data[rows])


class AnswersByCode(Generic[H]):
    """A function's answers (0 or more) about interned values, by their codes; each value is asked about once.

    Missing: the answer for the code -1 is 0.
    """

    __slots__ = ("_answers", "_generation", "_interner", "_judge")

    def __init__(self, interner: Interner[H], judge: Callable[[H], int]) -> None:
        self._interner = interner
        self._judge = judge
        self._answers = np.zeros(1, np.int16)
        self._generation = interner.generation

    @property
    def nbytes(self) -> int:
        """The memory that the answers take. Units: bytes."""
        return self._answers.nbytes

    def of(self, codes: NDArray[np.int32]) -> NDArray[np.int16]:
        """Look codes up, asking the judge about every value not met before. Shapes: (R,) -> (R,)."""
        if self._generation != self._interner.generation:
            self._generation = self._interner.generation
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
        """Make room for all codes there are and as many again; the last element stays that of the code -1."""
        answers = np.full(2 * len(self._interner) + 1, UNKNOWN, np.int16)
        answers[: len(self._answers) - 1] = self._answers[:-1]
        answers[-1] = 0
        self._answers = answers


class SharedByCluster(Generic[V]):
    """What pod classes share: kept by cluster and by key as long as somebody holds it."""

    def __init__(self) -> None:
        self._kept: WeakKeyDictionary[Cluster, WeakValueDictionary[Hashable, V]] = WeakKeyDictionary()

    def of(self, cluster: Cluster, key: Hashable, make: Callable[[], V]) -> V:
        """Return what a key stands for, made if nobody holds it."""
        kept = self._kept.get(cluster)
        if kept is None:
            kept = self._kept[cluster] = WeakValueDictionary()
        found = kept.get(key)
        if found is None:
            found = kept[key] = make()
        return found


class PresentNumbers:
    """Which numbers, such as domains, occur on the rows of a mask; kept while both are the same."""

    __slots__ = ("_found", "_seen")

    def __init__(self) -> None:
        self._seen: tuple[int, bytes] = (-1, b"")
        self._found: NDArray[np.intp] = np.zeros(0, np.intp)

    @property
    def nbytes(self) -> int:
        """The memory that it takes. Units: bytes."""
        return len(self._seen[1]) + self._found.nbytes

    def among(self, numbers: NDArray[np.intp], version: int, mask: Mask) -> NDArray[np.intp]:
        """Return the numbers that some row of the mask has, each once, rising.

        Args:
            numbers: The number of each row, not negative.
            version: What is another whenever a number is.
            mask: The rows.

        Shapes: numbers (C,), mask (N,) -> (found,).
        """
        seen = (version, mask.tobytes())
        if seen != self._seen:
            # with weights it is quicker than to pick the rows first
            self._found = np.bincount(numbers[: mask.size], mask).nonzero()[0]
            self._seen = seen
        return self._found
