"""What all policies of a profile say of a pod class, worked out together.

Rules that read the pod are evaluated in one go, those that do not are lines of the board; then the first failing rule
of every policy is one minimum over all lines, and every policy's score one weighted sum, however many policies there
are. A lane is one policy's part of it.

Shapes: A lanes, R rows asked for, N rows in use.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from policysched.framework import Codes, Rows, Scores
from policysched.language.program import Batch
from policysched.language.typed import Typed
from policysched.rules.board import Board, FilterLine, ScoreLine
from policysched.rules.frame import RuleFrame
from policysched.rules.reach import Reach
from policysched.rules.scoring import clipped, rule_values
from policysched.rules.shared import Shared
from policysched.rules.sources import Source
from policysched.rules.subject import Subject
from policysched.rules.verdicts import FINE, done, rule_codes

LineT = TypeVar("LineT", FilterLine, ScoreLine)
Matrix = NDArray[Any]


@lru_cache(maxsize=256)
def batch_of(roots: tuple[Typed, ...]) -> Batch:
    """Give what evaluates some graphs together; pod classes for which the same rules speak have the same."""
    return Batch(roots)


class Sheet(ABC, Generic[LineT]):
    """The lanes of a pod class at one point: filters or scores."""

    def __init__(self, shared: Shared, board: Board, subject: Subject, speaking: Sequence[Sequence[LineT]]) -> None:
        self._shared, self._board, self._subject = shared, board, subject
        self._speaking: Sequence[Sequence[LineT]] = speaking
        self.lanes = len(speaking)
        self._order: list[tuple[int, bool]] = [
            (lane, line.common) for lane, lines in enumerate(speaking) for line in lines
        ]
        """The lane of each line, and whether it is one of the board."""
        self._own: list[LineT] = [line for lines in speaking for line in lines if not line.common]
        common = [board.index[line] for lines in speaking for line in lines if line.common]
        self._of_board: NDArray[np.int64] = np.array(common, np.int64)
        roots = [line.root for line in self._own]
        shared.seed(subject, roots)
        self._held = shared.hold(roots, subject)
        self._batch: Batch = batch_of(tuple(roots))

    def reach(self, lane: int) -> Reach:
        """Give what a lane depends on beyond its rows."""
        lines: Sequence[LineT] = self._speaking[lane]
        sources: list[Source] = self._board.sources([line for line in lines if line.common])
        sources += self._shared.sources([line.root for line in lines if not line.common], self._subject)
        return Reach(sources)

    def answers(self, rows: Rows) -> Matrix:
        """Give what all lanes say of rows; asked again before anything changed, without working it out again.

        Shapes: (A, R).
        """
        frame = self._shared.frame(self._subject, rows)
        known: Matrix | None = frame.memo.get(self)
        if known is None:
            self._board.refresh()
            self._batch.evaluate(frame)
            known = frame.memo[self] = self._work_out(rows, frame)
        return known

    @abstractmethod
    def _work_out(self, rows: Rows, frame: RuleFrame) -> Matrix:
        """Make the answers of lines, the pod's own having been evaluated."""

    def _lines(self, matrix: Matrix, own: Iterable[Matrix], rows: Rows) -> Iterator[tuple[int, Matrix]]:
        """Give what each line says of rows with its lane, in the order of lanes and of rules.

        Args:
            matrix: The lines of the board. Shapes: (K, C).
            own: What the pod's own lines say. Shapes: (R,) each.
            rows: The rows.
        """
        slots = self._of_board
        common = iter(
            [matrix[slot, rows] for slot in slots] if isinstance(rows, slice) else matrix[slots[:, None], rows]
        )
        rest = iter(own)
        for lane, is_common in self._order:
            yield lane, next(common if is_common else rest)


class FilterSheet(Sheet[FilterLine]):
    """The filter rules of all policies."""

    def _work_out(self, rows: Rows, frame: RuleFrame) -> Codes:
        codes = np.full((self.lanes, frame.rows), FINE, np.int32)
        own = [rule_codes(line.place, line.rule, frame, line.missing) for line in self._own]
        for lane, line in self._lines(self._board.codes, own, rows):
            first = codes[lane]
            np.minimum(first, line, out=first)
        return done(codes)


class ScoreSheet(Sheet[ScoreLine]):
    """The score rules of all policies that do not normalise."""

    def _work_out(self, rows: Rows, frame: RuleFrame) -> Scores:
        total = np.zeros((self.lanes, frame.rows))
        own = [line.rule.weight * clipped(line.rule, rule_values(line.rule, frame)) for line in self._own]
        for lane, part in self._lines(self._board.parts, own, rows):
            sums = total[lane]
            sums += part
        weights = [sum(line.rule.weight for line in lines) for lines in self._speaking]
        total /= np.maximum(np.array(weights, np.float64), 1.0)[:, None]
        total += 0.5
        return np.floor(total, out=total).astype(np.int64)
