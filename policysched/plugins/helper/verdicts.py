"""Answers per distinct value instead of per row.

Columns hold codes, so a question about a value is asked once per code and then looked up for every row that has it.
It knows interners and judges, not plugins. Codes are judged when they are first met, not when they are made: one
interner serves all columns of texts, and most of its texts never occur in the column at hand. Where codes were given
up, all answers are forgotten.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable
from typing import Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from policysched.state.tables.interner import Interner

T = TypeVar("T", bound=Hashable)
UNKNOWN = -1


class Verdicts(Generic[T]):
    """A judge's answers, 0 or more, by the codes of an interner.

    Missing: the answer for the code -1 is given from the start.
    """

    __slots__ = ("_answers", "_generation", "_interner", "_judge", "_missing")

    def __init__(self, interner: Interner[T], judge: Callable[[T], int], missing: int = 0) -> None:
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
        """Look the codes up.

        Shapes: (R,) -> (R,).
        Cost: one node operation, and the judge for every value not met before.
        """
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
