"""What all policies of a profile say of a pod class, worked out together.

Rules that read the pod are evaluated in one go, those that do not are lines of the board; then the first failing rule
of every policy is one minimum over all lines, and every policy's score one weighted sum, however many policies there
are. A lane is one policy's part of it.

Shapes: A lanes, R rows asked for, N rows in use.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from policysched.framework import Codes, Mask, Rows, Scores
from policysched.language.evaluation.columns import Batch
from policysched.language.ir.graph import Typed
from policysched.rules.board import Board, FilterLine, ScoreLine
from policysched.rules.frame import RuleFrame
from policysched.rules.reach import Reach
from policysched.rules.scoring import clipped, rule_values
from policysched.rules.shared import Shared
from policysched.rules.sources import Source
from policysched.rules.subject import Subject
from policysched.rules.verdicts import FINE, done, rule_codes
from policysched.state.memory import part_of

FEW = 256
"""Of how many rows lines are combined all at once: for more, the copies that this takes cost more than it saves."""
BYTES_PER_LINE = 256
"""What a line takes of a sheet. Units: bytes."""
LineT = TypeVar("LineT", FilterLine, ScoreLine)
Matrix = NDArray[Any]


@lru_cache(maxsize=256)
def batch_of(roots: tuple[Typed, ...]) -> Batch:
    """Give what evaluates some graphs together; pod classes for which the same rules speak have the same."""
    return Batch(roots)


class Sheet(ABC, Generic[LineT]):
    """The lanes of a pod class at one point: filters or scores.

    Args:
        shared: What all rules share.
        board: The lines that are the same for all pod classes.
        subject: The pod.
        speaking: The rules of each lane, in their order; lanes with most rules first.
    """

    def __init__(self, shared: Shared, board: Board, subject: Subject, speaking: Sequence[Sequence[LineT]]) -> None:
        self._shared, self._board, self._subject = shared, board, subject
        self._speaking: Sequence[Sequence[LineT]] = speaking
        self.lanes = len(speaking)
        lines = [(lane, line.common) for lane, lines in enumerate(speaking) for line in lines]
        self._lanes: list[int] = [lane for lane, _ in lines]
        """The lane of each line."""
        self._is_common: Mask = np.array([common for _, common in lines], np.bool_)
        """Whether a line is one of the board."""
        stacked, self._steps = _stacked([len(lines) for lines in speaking])
        self._common_at, self._own_at = stacked[self._is_common], stacked[~self._is_common]
        self._own: list[LineT] = [line for lines in speaking for line in lines if not line.common]
        common = [board.index[line] for lines in speaking for line in lines if line.common]
        self._of_board: NDArray[np.int64] = np.array(common, np.int64)
        roots = [line.root for line in self._own]
        shared.seed(subject, roots)
        self._held = shared.hold(roots, subject)
        self._batch: Batch = batch_of(tuple(roots))
        self._sources: list[Source] = list(
            dict.fromkeys(one for lane in range(self.lanes) for one in self.reach(lane).sources)
        )
        self._stamps: list[int] = []
        self._moves = 0
        self._version: object = None
        self._known: tuple[object, Rows, Matrix] | None = None
        """What was last worked out for few rows, and when."""

    @property
    def nbytes(self) -> int:
        """The memory that it takes, with its parts of what is shared. Units: bytes."""
        return BYTES_PER_LINE * len(self._lanes) + sum(map(part_of, (*self._held, *self._sources)))

    def moves(self) -> int:
        """Count how often something moved that a lane depends on beyond its rows."""
        version = self._shared.version
        if version != self._version:
            self._version = version
            for source in self._sources:
                source.refresh()
            stamps = [source.stamp for source in self._sources]
            self._moves += stamps != self._stamps
            self._stamps = stamps
        return self._moves

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
        version, last = self._shared.version, self._known
        if last is not None and last[1] is rows and last[0] == version:
            return last[2]
        frame = self._shared.frame(self._subject, rows)
        known: Matrix | None = frame.memo.get(self)
        if known is None:
            self._board.refresh()
            if frame.has_room(len(self._batch)):
                self._batch.evaluate(frame)
            known = frame.memo[self] = self._work_out(rows, frame)
        if isinstance(rows, np.ndarray) and rows.size <= FEW:
            self._known = (version, rows, known)
        return known

    @abstractmethod
    def _work_out(self, rows: Rows, frame: RuleFrame) -> Matrix:
        """Make the answers of lines, the pod's own having been evaluated unless that would be too much at once."""

    def _each_own(self, frame: RuleFrame, ask: Callable[[LineT], Matrix]) -> list[Matrix]:
        """Ask the pod's own lines one after the other, keeping no more than there is room for."""
        found = []
        for line in self._own:
            frame.make_room()
            found.append(ask(line))
        frame.make_room()
        return found

    def _combine(self, combine: np.ufunc, into: Matrix, matrix: Matrix, own: Sequence[Matrix], rows: Rows) -> Matrix:
        """Combine what the lines of each lane say, in the order of rules.

        Args:
            combine: What makes one value of two.
            into: What every lane begins with. Shapes: (A, R).
            matrix: The lines of the board. Shapes: (K, C).
            own: What the pod's own lines say. Shapes: (R,) each.
            rows: The rows.
        """
        if isinstance(rows, np.ndarray) and rows.size <= FEW:
            lines = np.empty((self._is_common.size, rows.size), into.dtype)
            lines[self._common_at] = matrix[self._of_board[:, None], rows]
            if own:
                lines[self._own_at] = own
            for step in self._steps:
                longer = into[: step.stop - step.start]
                combine(longer, lines[step], out=longer)
            return into
        common, rest = iter(self._of_board), iter(own)
        for lane, is_common in zip(self._lanes, self._is_common, strict=True):
            combine(into[lane], matrix[next(common), rows] if is_common else next(rest), out=into[lane])
        return into


def _stacked(sizes: Sequence[int]) -> tuple[NDArray[np.int64], list[slice]]:
    """Put the first lines of all lanes side by side, then the second ones of all that have one, and so on.

    Args:
        sizes: How many lines each lane has, the largest first.

    Returns:
        Where each line stands then, lane by lane; and where each of these steps does.
    """
    counts = [sum(size > place for size in sizes) for place in range(max(sizes, default=0))]
    begins = [sum(counts[:place]) for place in range(len(counts))]
    found = [begins[place] + lane for lane, size in enumerate(sizes) for place in range(size)]
    steps = [slice(begin, begin + count) for begin, count in zip(begins, counts, strict=True)]
    return np.array(found, np.int64), steps


class FilterSheet(Sheet[FilterLine]):
    """The filter rules of all policies."""

    def _work_out(self, rows: Rows, frame: RuleFrame) -> Codes:
        codes = np.full((self.lanes, frame.rows), FINE, np.int32)
        own = self._each_own(frame, lambda line: rule_codes(line.place, line.rule, frame, line.missing))
        return done(self._combine(np.minimum, codes, self._board.codes, own, rows))


class ScoreSheet(Sheet[ScoreLine]):
    """The score rules of all policies that do not normalise."""

    def _work_out(self, rows: Rows, frame: RuleFrame) -> Scores:
        total = np.zeros((self.lanes, frame.rows))
        own = self._each_own(frame, lambda line: line.rule.weight * clipped(line.rule, rule_values(line.rule, frame)))
        self._combine(np.add, total, self._board.parts, own, rows)
        weights = [sum(line.rule.weight for line in lines) for lines in self._speaking]
        total /= np.maximum(np.array(weights, np.float64), 1.0)[:, None]
        total += 0.5
        return np.floor(total, out=total).astype(np.int64)
