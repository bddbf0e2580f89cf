"""Aggregates over all nodes: `sum(x) by key` and the like, kept up to date.

Counts, sums and means of whole numbers are adjusted by what changed: a placement moves one row of one domain. All else
is computed anew where something that it reads changed, and on one row a domain where that is enough.

Shapes: D domains (1 without a key), C the capacity of the columns, K what is added up of each row.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from policysched.framework import Aspect, Rows
from policysched.language.evaluation.columns import evaluate_columns
from policysched.language.evaluation.reductions import aggregate_over
from policysched.language.ir.graph import Input, Op, Typed
from policysched.rules.domains import Domains
from policysched.rules.frame import RuleFrame
from policysched.rules.frames import Frames
from policysched.rules.reads import Version
from policysched.rules.rowless import key_of, rowless
from policysched.rules.sources import spread
from policysched.rules.subject import Subject
from policysched.state.memory import part_of

Floats = NDArray[np.float64]
EXACT: Final = float(2**52)
"""Below this, what a row adds now less what it added before is exact, and so is every sum of such differences."""
FEW: Final = 64
"""How many changed rows are worth adjusting for."""
BYTES_PER_AGGREGATE: Final = 4096
"""What an aggregate takes beside its arrays. Units: bytes."""
_ADDED: Final = frozenset({Op.COUNT_NODES, Op.SUM_NODES, Op.AVG_NODES})
_EXTREMES: Final = frozenset({Op.MIN_NODES, Op.MAX_NODES})


class Aggregate:
    """One aggregate, for the pods that agree in what it reads of them."""

    __slots__ = ("__weakref__", "_adds", "_domains", "_found", "_frames", "_held", "_ids", "_node", "_of", "_subject",
                 "_sums", "_version")  # fmt: skip

    def __init__(self, node: Typed, subject: Subject, frames: Frames, held: Sequence[object]) -> None:
        self._node = node
        self._subject = subject
        self._frames = frames
        self._held = held
        self._version = Version(node, subject, frames)
        self._domains = frames.domains(node.args[0], subject) if node.args else None
        self._of = _domains_of(node, subject, frames)
        self._adds = _is_added(node)
        self._ids: NDArray[np.int64] | None = None
        self._found: Floats = np.full(1, math.nan)
        self._sums: Sums | None = None

    @property
    def nbytes(self) -> int:
        """The memory that it takes, with what it holds. Units: bytes."""
        sums = self._sums.nbytes if self._sums is not None else 0
        domains = part_of(self._domains) if self._domains is not None else 0
        return BYTES_PER_AGGREGATE + self._found.nbytes + sums + domains + sum(map(part_of, self._held))

    def at(self, rows: Rows) -> Floats | float:
        """Give its value on rows.

        Shapes: (R,) where it has a domain.
        """
        self._refresh()
        return float(self._found[0]) if self._domains is None else self._found[self._domains.ids[rows]]

    def _refresh(self) -> None:
        if self._domains is not None:
            self._domains.refresh()
        ids = self._domains.ids if self._domains is not None else None
        if self._version.is_past() or ids is not self._ids:
            if ids is not self._ids or not self._adjust():
                self._compute()
            self._ids = ids

    def _adjust(self) -> bool:
        """Take the changed rows into account; tell whether that was possible."""
        rows, sums = self._version.rows, self._sums
        if sums is None or rows is None or rows.size > FEW or self._version.touched & Aspect.PRESENCE:
            return False
        present = self._frames.cluster.nodes.present.data[rows]
        if not present.all():
            rows = rows[present]
        if not sums.fill(rows, self._frames.frame(self._subject, rows)):
            return False
        self._show(sums)
        return True

    def _compute(self) -> None:
        rows = self._rows()
        frame = self._frames.frame(self._subject, rows)
        self._sums = self._begin(rows, frame)
        if self._sums is not None:
            self._show(self._sums)
            return
        found = aggregate_over(self._node, frame)
        if self._domains is None:
            self._found = np.array([found], np.float64)
            return
        by_row = np.full(self._frames.cluster.nodes.columns.capacity, math.nan)
        by_row[rows] = found
        self._found = by_row[self._domains.heads]

    def _rows(self) -> Rows:
        """Give the rows that have to be looked at."""
        if self._of is None or not self._frames.cluster.nodes.count:
            return self._frames.everything()
        self._of.refresh()
        return self._of.heads

    def _begin(self, rows: Rows, frame: RuleFrame) -> Sums | None:
        """Give the sums to adjust from now on, None where the aggregate is no sum of whole numbers of each row."""
        if not self._adds:
            return None
        capacity = self._frames.cluster.nodes.columns.capacity
        ids, domains = np.zeros(capacity, np.int64), 1
        if self._domains is not None:
            ids, domains = self._domains.ids, self._domains.heads.size
        sums = Sums(self._node, ids, domains)
        return sums if sums.fill(rows, frame) else None

    def _show(self, sums: Sums) -> None:
        self._found = sums.results()
        if self._domains is not None:
            self._found[self._domains.none] = math.nan


class Sums:
    """Sums of whole numbers by domain, and counts for their mean, with what each row adds to them."""

    __slots__ = ("_added", "_ids", "_node", "_size", "_totals")

    def __init__(self, node: Typed, ids: NDArray[np.int64], domains: int) -> None:
        self._node = node
        self._ids = ids
        kinds = 2 if node.op is Op.AVG_NODES else 1
        self._added: Floats = np.zeros((kinds, ids.size))
        self._size = 0.0
        """The sum of all magnitudes."""
        self._totals: Floats = np.zeros((kinds, domains))

    @property
    def nbytes(self) -> int:
        """The memory that they take. Units: bytes."""
        return self._added.nbytes + self._totals.nbytes

    def fill(self, rows: Rows, frame: RuleFrame) -> bool:
        """Take what rows add now, each named once; tell whether all of it is whole and small enough to stay exact."""
        now = self._adding(frame)
        before = self._added[:, rows]
        more = now - before
        self._size += float(np.abs(now[0]).sum() - np.abs(before[0]).sum())
        if np.count_nonzero(now != np.rint(now)) or not self._size < EXACT:
            return False
        self._added[:, rows] = now
        for totals, added in zip(self._totals, more, strict=True):
            np.add.at(totals, self._ids[rows], added)
        return True

    def results(self) -> Floats:
        """Give the aggregate of each domain; the array is the caller's.

        Shapes: (D,). Missing: NaN, a mean of nothing.
        """
        found: Floats = self._totals[0].copy()
        if self._node.op is Op.AVG_NODES:
            with np.errstate(all="ignore"):
                found /= self._totals[1]
        return found

    def _adding(self, frame: RuleFrame) -> Floats:
        """Give what rows add. Shapes: (K, R)."""
        value: Any = evaluate_columns(self._node.inner[0], frame)
        if self._node.op is Op.COUNT_NODES:
            true: Floats = spread(np.asarray(value[0], np.float64), frame.rows)[None]
            return true
        values: Floats = spread(np.asarray(value, np.float64), frame.rows)[None]
        there = ~np.isnan(values)
        summed: Floats = np.where(there, values, 0.0)
        return np.concatenate((summed, there)) if self._node.op is Op.AVG_NODES else summed


def _is_added(node: Typed) -> bool:
    """Tell whether an aggregate is a sum of what each row decides by itself."""
    [inner] = node.inner
    return node.op in _ADDED and inner.local and not any(_is_elsewhere(item) for item in inner.inputs)


def _is_elsewhere(item: Input) -> bool:
    """Tell whether another row may change an input: how many nodes or pods there are, how large an image is."""
    return item.root == "cluster" or item.path[0] == "image_bytes"


def _domains_of(node: Typed, subject: Subject, frames: Frames) -> Domains | None:
    """Give the domains of which one row each is enough: for the largest of values that are the same in a domain."""
    [inner] = node.inner
    if node.op not in _EXTREMES or node.args or not rowless(inner)[inner]:
        return None
    key = key_of(inner)
    return frames.domains(key, subject) if key is not None else None
