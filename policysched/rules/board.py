"""What rules that read nothing of the pod say of every row, for all pod classes.

One line a rule. Lines are written again only on rows that changed in what their rules read, and where an aggregate or a
value for all rows moved; so what such a rule costs does not grow with the number of pod classes, and a class reads the
lines of all its policies in a few operations.

Shapes: F filter lines, S score lines, C the capacity of the columns.
"""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policysched.framework import NO_ROWS, Aspect, Rows
from policysched.language.evaluation.columns import Batch
from policysched.language.ir.graph import Typed
from policysched.language.ir.types import Shape
from policysched.rules.compiled import CompiledFilter, CompiledScore
from policysched.rules.frame import RuleFrame
from policysched.rules.node_inputs import aspects_read
from policysched.rules.reach import Reach, is_common
from policysched.rules.reads import PODS, Reads
from policysched.rules.scoring import clipped, rule_values
from policysched.rules.shared import Shared
from policysched.rules.sources import Source, after, boundaries, reads_namespaces
from policysched.rules.verdicts import FINE, Lack, rule_codes
from policysched.state.interner import Interner


@dataclass(frozen=True, slots=True, eq=False)
class FilterLine:
    """A filter rule with its place in its policy."""

    place: int
    rule: CompiledFilter
    missing: Interner[Lack]

    @property
    def root(self) -> Typed:
        """The graph of its condition."""
        return self.rule.require.root

    @property
    def common(self) -> bool:
        """Whether the rule says the same for all pod classes."""
        return is_common(self.root)

    def write(self, board: Board, index: int, rows: Rows, frame: RuleFrame) -> None:
        """Write what the rule says of some rows."""
        board.codes[index, rows] = rule_codes(self.place, self.rule, frame, self.missing)


@dataclass(frozen=True, slots=True, eq=False)
class ScoreLine:
    """A score rule."""

    rule: CompiledScore

    @property
    def root(self) -> Typed:
        """The graph of its value."""
        return self.rule.value.root

    @property
    def common(self) -> bool:
        """Whether the rule says the same for all pod classes, before any normalising."""
        return is_common(self.root)

    def write(self, board: Board, index: int, rows: Rows, frame: RuleFrame) -> None:
        """Write what the rule says of some rows."""
        values = rule_values(self.rule, frame)
        board.stamps[index] += 1
        board.values[index, rows] = values
        board.parts[index, rows] = self.rule.weight * clipped(self.rule, values)


Line = FilterLine | ScoreLine
LIVELY = Aspect.USAGE | Aspect.PODS | Aspect.AGE | Aspect.METRICS
"""What changes all the time."""


class CommonLine:
    """A score rule's line, for policies that normalise."""

    __slots__ = ("_board", "_index")

    def __init__(self, board: Board, line: ScoreLine) -> None:
        self._board = board
        self._index = board.index[line]

    @property
    def stamp(self) -> int:
        """How often it was written."""
        self._board.refresh()
        return self._board.stamps[self._index]

    def values(self, size: int) -> NDArray[np.float64]:
        """Give the values. Shapes: (N,)."""
        self._board.refresh()
        values: NDArray[np.float64] = self._board.values[self._index, :size]
        return values


class Block:
    """Lines that are written at the same time. It is a source: what it reaches, its readers have to read again."""

    __slots__ = ("_board", "_epoch", "_held", "_position", "_reach", "_reads", "_reads_namespaces", "_roots", "_shared",
                 "_stamps", "batch", "lines", "stamp")  # fmt: skip

    def __init__(self, board: Board, shared: Shared, lines: Sequence[tuple[int, Line]]) -> None:
        self._roots = [line.root for _, line in lines]
        self.lines = lines
        self.batch = Batch(self._roots)
        self._board = board
        self._shared = shared
        self._reads_namespaces = any(reads_namespaces(root) for root in self._roots)
        self.stamp = 0
        self._begin()

    def refresh(self) -> None:
        """Bring the board up to date."""
        self._board.refresh()

    def moved(self, since: int) -> Rows:
        """Give the rows that sources reached after a stamp; those too of which that can no longer be told."""
        return after(self._stamps[: self._shared.cluster.nodes.size], since)

    def _current_epoch(self) -> int:
        return self._shared.cluster.namespaces_epoch if self._reads_namespaces else 0

    def _begin(self) -> None:
        """Look for what the lines read; it has to be looked for again when namespaces have other labels."""
        shared, roots = self._shared, self._roots
        self._epoch = self._current_epoch()
        self._reads = Reads(roots, shared.nobody, shared)
        self._held = shared.hold(roots, shared.nobody)
        self._reach = Reach(shared.sources(roots, shared.nobody))
        self._position = -1
        self._stamps: NDArray[np.int64] = np.zeros(0, np.int64)

    def due(self) -> Rows:
        """Give the rows that have to be written again."""
        if self._epoch != self._current_epoch():
            self._begin()
        cluster = self._shared.cluster
        changed: Rows | None = None
        counted = self._reads.counted()
        if self._stamps.size == cluster.nodes.columns.capacity:
            changed, _ = self._shared.changed(self._position, self._reads.aspects | (PODS if counted else 0))
        else:
            self._stamps = np.zeros(cluster.nodes.columns.capacity, np.int64)
        self._position = cluster.journal.position
        reached = self._reach.extend(NO_ROWS if changed is None else changed)
        if changed is None:
            reached = slice(0, cluster.nodes.size)
        if reached is not changed:
            self.stamp += 1
            self._stamps[reached] = self.stamp
        return reached


class Board:
    """The lines of some policies' rules."""

    def __init__(self, shared: Shared, filters: Sequence[FilterLine], scores: Sequence[ScoreLine]) -> None:
        self._shared = shared
        self._version: object = None
        placed: list[tuple[int, Line]] = [*enumerate(filters), *enumerate(scores)]
        self.index = {line: index for index, line in placed}
        """The place of each line among those of its kind."""
        self.codes: NDArray[np.int32] = np.zeros((len(filters), 0), np.int32)
        """Codes of filter rules, FINE where they hold. Shapes: (F, C)."""
        self.values: NDArray[np.float64] = np.zeros((len(scores), 0))
        """Values of score rules, NaN where they have none. Shapes: (S, C)."""
        self.parts: NDArray[np.float64] = np.zeros((len(scores), 0))
        """Values of score rules, clipped and weighted. Shapes: (S, C)."""
        self.stamps = [0] * len(scores)
        """How often each score rule was written."""
        shared.seed(shared.nobody, [line.root for _, line in placed])
        self._blocks = self._grouped(placed)
        self._block_of = {line: block for block in self._blocks for _, line in block.lines}

    def sources(self, lines: Sequence[Line]) -> list[Source]:
        """Give what tells when lines have to be read again on rows that did not change."""
        return list(dict.fromkeys(self._block_of[line] for line in lines))

    def refresh(self) -> None:
        """Write the lines again where something changed."""
        version = self._shared.version
        if version == self._version:
            return
        self._version = version
        capacity = self._shared.cluster.nodes.columns.capacity
        if self.codes.shape[1] != capacity:
            self.codes = np.full((len(self.codes), capacity), FINE, np.int32)
            self.values, self.parts = np.zeros((2, len(self.values), capacity))
        for block in self._blocks:
            rows = block.due()
            if isinstance(rows, slice) or rows.size:
                self._write(block, rows)

    def _write(self, block: Block, rows: Rows) -> None:
        frame = self._shared.frame(self._shared.nobody, rows)
        if frame.has_room(len(block.batch)):
            block.batch.evaluate(frame)
        for index, line in block.lines:
            frame.make_room()
            line.write(self, index, rows, frame)

    def _grouped(self, lines: Sequence[tuple[int, Line]]) -> list[Block]:
        """Put lines together that read alike; one that placements may move on rows of others stands for itself."""
        alike: dict[Hashable, list[tuple[int, Line]]] = {}
        for index, line in lines:
            reads = Reads([line.root], self._shared.nobody, self._shared)
            key: Hashable = (reads.aspects, reads.counts)
            if any(_is_lively(node) for node in boundaries([line.root], timed=True)):
                key = line
            alike.setdefault(key, []).append((index, line))
        return [Block(self, self._shared, group) for group in alike.values()]


def _is_lively(node: Typed) -> bool:
    """Tell whether something that many rows look at differs between rows and moves with placements."""
    return node.type.shape is Shape.NODES and bool(aspects_read(node.inputs) & LIVELY)
