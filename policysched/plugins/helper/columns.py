"""Operations on columns that several plugins use: masks, reason codes, answers per distinct value.

Columns hold codes, so a question about a value is asked once per code and then looked up for every row that has it.
Codes are judged when they are first met, not when they are made: one interner serves all columns of texts, and most of
its texts never occur in the column at hand. Where codes were given up, all answers are forgotten.

Shapes: R rows asked for, N rows in use, C the capacity of the columns.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Any, Final, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from policysched.framework import Mask, Rows
from policysched.state.tables.interner import Interner
from policysched.state.tables.nodes import NodeTable

T = TypeVar("T", bound=np.generic)
H = TypeVar("H", bound=Hashable)
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
    """A judge's answers, 0 or more, by the codes of an interner.

    Missing: the answer for the code -1 is given from the start.
    """

    __slots__ = ("_answers", "_generation", "_interner", "_judge", "_missing")

    def __init__(self, interner: Interner[H], judge: Callable[[H], int], missing: int = 0) -> None:
        self._interner = interner
        self._judge = judge
        self._missing = missing
        self._answers = np.full(1, missing, np.int16)
        self._generation = interner.generation

    @property
    def nbytes(self) -> int:
        """The memory that the answers take. Units: bytes."""
        return self._answers.nbytes

    def of(self, codes: NDArray[np.int32]) -> NDArray[np.int16]:
        """Look codes up, asking the judge about every value not met before. Shapes: (R,) -> (R,)."""
        if self._generation != self._interner.generation:
            self._generation = self._interner.generation
            self._answers = np.full(1, self._missing, np.int16)
        if len(self._answers) <= len(self._interner):
            self._grow()
        answers = self._answers.take(codes)
        unknown = answers == UNKNOWN
        if unknown.any():
            for code in np.unique(codes[unknown]).tolist():
                self._answers[code] = self._judge(self._interner.value(code))
            answers = self._answers.take(codes)
        return answers

    def _grow(self) -> None:
        """Make room for all codes there are and as many again; the last element stays that of the code -1."""
        answers = np.full(2 * len(self._interner) + 1, UNKNOWN, np.int16)
        answers[: len(self._answers) - 1] = self._answers[:-1]
        answers[-1] = self._missing
        self._answers = answers


class Present:
    """Which of a few numbers, such as domains, the rows of a mask have: kept while these and the mask are the same."""

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
