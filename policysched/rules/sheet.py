"""What all policies of a profile say of a pod class, worked out together.

Rules that read the pod are evaluated in one go, those that do not are lines of the board; then the first failing rule
of every policy is one minimum over all lines, and every policy's score one weighted sum, however many policies there
are. A lane is one policy's part of it.

Shapes: A lanes, R rows asked for, N rows in use.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Generic, TypeVar

import numpy as np
from numpy.typing import NDArray

from policysched.framework import Codes, Rows, Scores
from policysched.language.program import Batch
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


@dataclass(frozen=True, slots=True)
class Places:
    """Some lines with the lanes that they belong to, in the order of lanes.

    Shapes: `lines` and `lanes` (K,), `starts` and `owners` one a lane that has any.
    """

    lines: NDArray[np.int64]
    lanes: NDArray[np.int64]
    starts: NDArray[np.int64]
    owners: NDArray[np.int64]

    @classmethod
    def of(cls, pairs: Sequence[tuple[int, int]]) -> Places:
        """Make them of lines and lanes."""
        lines, lanes = np.array(pairs, np.int64).reshape(-1, 2).T
        starts = np.flatnonzero(np.diff(lanes, prepend=-1))
        return cls(lines, lanes, starts, lanes[starts])

    def of_lines(self, matrix: Matrix, rows: Rows) -> Matrix:
        """Give the lines of a matrix on rows. Shapes: (K, R)."""
        found: Matrix = matrix[self.lines, rows] if isinstance(rows, slice) else matrix[self.lines[:, None], rows]
        return found


class Sheet(ABC, Generic[LineT]):
    """The lanes of a pod class at one point: filters or scores."""

    def __init__(self, shared: Shared, board: Board, subject: Subject, speaking: Sequence[Sequence[LineT]]) -> None:
        self._shared, self._board, self._subject = shared, board, subject
        self._speaking: Sequence[Sequence[LineT]] = speaking
        self.lanes = len(speaking)
        pairs = [(line, lane) for lane, lines in enumerate(speaking) for line in lines]
        self._own: list[tuple[LineT, int]] = [(line, lane) for line, lane in pairs if not line.common]
        self._common: list[tuple[LineT, int]] = [(line, lane) for line, lane in pairs if line.common]
        roots = [line.root for line, _ in self._own]
        shared.seed(subject, roots)
        self._held = shared.hold(roots, subject)
        self._batch = Batch(roots)

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


class FilterSheet(Sheet[FilterLine]):
    """The filter rules of all policies."""

    def __init__(
        self, shared: Shared, board: Board, subject: Subject, speaking: Sequence[Sequence[FilterLine]]
    ) -> None:
        super().__init__(shared, board, subject, speaking)
        self._of_board = Places.of([(self._board.index[line], lane) for line, lane in self._common])
        self._of_pod = Places.of(list(enumerate(lane for _, lane in self._own)))

    def _work_out(self, rows: Rows, frame: RuleFrame) -> Codes:
        codes = np.full((self.lanes, frame.rows), FINE, np.int32)
        if self._common:
            lines = self._of_board.of_lines(self._board.codes, rows)
            codes[self._of_board.owners] = np.minimum.reduceat(lines, self._of_board.starts, axis=0)
        if self._own:
            lines = np.stack([rule_codes(line.place, line.rule, frame, line.missing) for line, _ in self._own])
            owners = self._of_pod.owners
            codes[owners] = np.minimum(codes[owners], np.minimum.reduceat(lines, self._of_pod.starts, axis=0))
        return done(codes)


class ScoreSheet(Sheet[ScoreLine]):
    """The score rules of all policies that do not normalise."""

    def __init__(self, shared: Shared, board: Board, subject: Subject, speaking: Sequence[Sequence[ScoreLine]]) -> None:
        super().__init__(shared, board, subject, speaking)
        turns = {line: turn for lines in self._speaking for turn, line in enumerate(lines)}
        most = max((len(lines) for lines in self._speaking), default=0)
        own = list(enumerate(self._own))
        self._turns = [
            (
                Places.of([(self._board.index[line], lane) for line, lane in self._common if turns[line] == turn]),
                Places.of([(place, lane) for place, (line, lane) in own if turns[line] == turn]),
            )
            for turn in range(most)
        ]
        """The lines that are each lane's first rule, then those that are its second, and so on."""
        weights = [sum(line.rule.weight for line in lines) for lines in self._speaking]
        self._weights = np.maximum(np.array(weights, np.float64), 1.0)[:, None]

    def _work_out(self, rows: Rows, frame: RuleFrame) -> Scores:
        parts = [line.rule.weight * clipped(line.rule, rule_values(line.rule, frame)) for line, _ in self._own]
        own = np.stack(parts) if parts else np.zeros((0, frame.rows))
        total = np.zeros((self.lanes, frame.rows))
        for of_board, of_pod in self._turns:
            if of_board.lines.size:
                total[of_board.lanes] += of_board.of_lines(self._board.parts, rows)
            if of_pod.lines.size:
                total[of_pod.lanes] += own[of_pod.lines]
        scores: Scores = np.floor(total / self._weights + 0.5).astype(np.int64)
        return scores
