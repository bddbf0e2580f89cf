"""Which nodes are in the same domain: zones, racks, whatever string an aggregate goes `by`.

What differs between domains alone is worked out for one node of each; there are few of them, and their members change
only when labels or nodes do.

Shapes: D domains, C the capacity of the columns.
"""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from policysched.framework import NO_ROWS, RowNumbers
from policysched.language.evaluation.columns import evaluate_columns
from policysched.language.ir.graph import Typed
from policysched.rules.frames import Frames
from policysched.rules.reads import Version
from policysched.rules.subject import Subject
from policysched.state.interner import MISSING


class Domains:
    """The domains of one key. Nodes without the key are one more, in which aggregates are missing."""

    __slots__ = ("__weakref__", "_frames", "_key", "_subject", "_version", "heads", "ids", "none")

    def __init__(self, key: Typed, subject: Subject, frames: Frames) -> None:
        self._key = key
        self._subject = subject
        self._frames = frames
        self._version = Version(key, subject, frames)
        self.heads: RowNumbers = NO_ROWS
        """A row of each domain; there is always one. Shapes: (D,)."""
        self.ids: NDArray[np.int64] = np.zeros(0, np.int64)
        """Each row's domain; rows without a node have any. It is another array when anything of this changed.

        Shapes: (C,).
        """
        self.none: NDArray[np.bool_] = np.zeros(0, np.bool_)
        """Which domain is that of the nodes without the key. Shapes: (D,)."""

    @property
    def nbytes(self) -> int:
        """The memory that they take. Units: bytes."""
        return self.heads.nbytes + self.ids.nbytes + self.none.nbytes

    def refresh(self) -> None:
        """Bring them up to date."""
        capacity = self._frames.cluster.nodes.columns.capacity
        if not self._version.is_past() and self.ids.size == capacity:
            return
        rows = self._frames.everything()
        frame = self._frames.frame(self._subject, rows)
        codes = np.broadcast_to(_codes(evaluate_columns(self._key, frame)), (frame.rows,))
        known, first, found = np.unique(codes, return_index=True, return_inverse=True)
        ids = np.zeros(capacity, np.int64)
        ids[rows] = found
        if first.size:
            self._take(ids, np.arange(capacity)[rows][first], known < 0)
        else:
            self._take(ids, np.zeros(1, np.intp), np.ones(1, np.bool_))

    def _take(self, ids: NDArray[np.int64], heads: RowNumbers, none: NDArray[np.bool_]) -> None:
        """Take what was found; what is the same stays the same arrays."""
        same = np.array_equal(ids, self.ids) and np.array_equal(heads, self.heads) and np.array_equal(none, self.none)
        if not same:
            self.ids, self.heads, self.none = ids, heads, none


def _codes(value: object) -> NDArray[np.integer]:
    """Give codes; for a key that is one text for all rows any code will do."""
    if isinstance(value, np.ndarray):
        return value
    return np.asarray(MISSING if value is None else 0)
