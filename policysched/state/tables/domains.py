"""Topology domains: the values of a label as small dense numbers, so that sums over them are one array operation.

Codes of the interner are sparse over one label; here the values that nodes have now are numbered from 1, and
0 stands for rows without the label. Rows are looked at again when their labels changed. Numbers of values that are gone
are only given out anew when most are, and then all of them, which `generation` tells.
"""

from __future__ import annotations

import abc
import weakref

import numpy as np
from numpy.typing import NDArray

from policysched.state.tables.columns import NO_ROWS, RowNumbers, Rows, distinct, distinct_places
from policysched.state.tables.interner import MISSING
from policysched.state.tables.journal import Aspect, Journal
from policysched.state.tables.nodes import NodeTable
from policysched.state.tables.sparse import is_sparse

NO_DOMAIN = 0
_READ = int(Aspect.LABELS | Aspect.PRESENCE)
FEW = 8
"""Of how many domains the rows are looked up domain by domain."""
MANY, GOOD_PART = 256, 4
"""How many rows, and one in how many of all, take longer to pick than to look at all, one behind the other."""
BYTES_PER_NUMBER = 128
"""What the number of a value takes. Units: bytes."""


class Grouping(abc.ABC):
    """Rows in domains that are numbered densely, and the rows of each domain. Call `refresh` before reading."""

    __slots__ = (
        "__weakref__",
        "_alone",
        "_alone_at",
        "_nodes",
        "_ordered",
        "_ordered_at",
        "_starts",
        "of_row",
        "version",
    )

    def __init__(self, nodes: NodeTable) -> None:
        self.version = 0
        """Moves when any row may be in another domain than before, or when there are more numbers."""
        self.of_row: NDArray[np.intp] = np.zeros(0, np.intp)
        """The domain of each row. Shapes: (capacity,)."""
        self._nodes = nodes
        self._alone, self._alone_at = True, -1
        self._ordered = self._starts = NO_ROWS
        self._ordered_at = (-1, 0)

    @abc.abstractmethod
    def refresh(self) -> None:
        """Bring the domains of rows up to date."""

    @property
    @abc.abstractmethod
    def count(self) -> int:
        """How many numbers are given out."""

    @property
    def size(self) -> int:
        """How many rows are in use."""
        return self._nodes.size

    @property
    def nbytes(self) -> int:
        """The memory that they take. Units: bytes."""
        return self.of_row.nbytes + self._ordered.nbytes + self._starts.nbytes

    @property
    def alone(self) -> bool:
        """Whether no two rows are in one domain, as with host names; those of NO_DOMAIN do not matter."""
        if self._alone_at != self.version:
            self._alone = int(np.bincount(self.of_row)[NO_DOMAIN + 1 :].max(initial=0)) <= 1
            self._alone_at = self.version
        return self._alone

    def rows_in(self, chosen: NDArray[np.bool_], *, exact: bool = False) -> Rows:
        """Return the rows in use of some domains, in no order.

        Args:
            chosen: Which domains.
            exact: Whether all rows are too many where these would be a good part of them.

        Shapes: (D,) -> (R,), D at most `count`.
        Cost: O(R + D) for a few domains, else O(rows).
        """
        [numbers] = chosen.nonzero()
        size = self._nodes.size
        if numbers.size > FEW:
            return chosen[self.of_row[:size]].nonzero()[0]
        if (self.version, size) != self._ordered_at:
            of_row = self.of_row[:size]
            self._ordered, self._ordered_at = np.argsort(of_row, kind="stable"), (self.version, size)
            self._starts = np.concatenate(([0], np.cumsum(np.bincount(of_row, minlength=self.count))))
        starts = self._starts
        found = [self._ordered[starts[number] : starts[number + 1]] for number in numbers.tolist()]
        if not exact and sum(map(len, found)) > max(MANY, size // GOOD_PART):
            return slice(0, size)
        return np.concatenate(found) if found else NO_ROWS


class Domains(Grouping):
    """The domains of one label."""

    __slots__ = ("_journal", "_numbers", "_seen", "generation", "key")

    def __init__(self, key: str, nodes: NodeTable, journal: Journal) -> None:
        super().__init__(nodes)
        self.key = key
        self.generation = 0
        """Moves when numbers may mean other values than before."""
        self._journal = journal
        self._numbers: dict[int, int] = {}
        self._seen = 0
        nodes.strings.hold(self)
        self._number_all()

    @property
    def count(self) -> int:
        """How many numbers are given out, that of rows without the label included."""
        return len(self._numbers) + 1

    @property
    def codes(self) -> NDArray[np.int32]:
        """The codes of the values that have numbers."""
        return np.fromiter(self._numbers, np.int32, len(self._numbers))

    @property
    def nbytes(self) -> int:
        """The memory that they take. Units: bytes."""
        return super().nbytes + BYTES_PER_NUMBER * len(self._numbers)

    def number(self, value: str) -> int:
        """Return the number of a value, whether or not a node has it."""
        known = len(self._numbers)
        number = self._number(self._nodes.strings.code(value))
        self.version += len(self._numbers) > known
        return number

    def refresh(self) -> None:
        """Look at the rows again whose labels changed.

        Cost: O(rows that changed).
        """
        journal = self._journal
        if self.of_row.size != self._nodes.columns.capacity:
            self._number_all()
            return
        if journal.about_nodes <= self._seen:
            return
        changed = journal.since(self._seen)
        if changed is None:
            self._number_all()
            return
        self._seen = journal.position
        rows, aspects = changed
        touched = (aspects & _READ) != 0
        if touched.any():
            self._renumber(distinct(rows[touched]))

    def _renumber(self, rows: RowNumbers) -> None:
        codes = self._nodes.labels(self.key)[rows]
        numbers = np.array([self._number(code) for code in codes.tolist()], np.intp)
        self.version += not np.array_equal(self.of_row[rows], numbers)
        self.of_row[rows] = numbers
        if is_sparse(len(self._numbers), self._nodes.count):
            self._number_all()

    def _number(self, code: int) -> int:
        if code == MISSING:
            return NO_DOMAIN
        return self._numbers.setdefault(code, len(self._numbers) + 1)

    def _number_all(self) -> None:
        codes = self._nodes.labels(self.key)
        values, inverse = distinct_places(codes)
        self._numbers = {}
        numbers = np.array([self._number(code) for code in values.tolist()], np.intp)
        self.of_row = numbers[inverse]
        self._seen = self._journal.position
        self.generation += 1
        self.version += 1


class DomainTable:
    """The domains of the labels that somebody asks about; they live as long as somebody holds them."""

    def __init__(self, nodes: NodeTable, journal: Journal) -> None:
        self._nodes = nodes
        self._journal = journal
        self._by_key: weakref.WeakValueDictionary[str, Domains] = weakref.WeakValueDictionary()

    def of(self, key: str) -> Domains:
        """Return the domains of a label's values."""
        domains = self._by_key.get(key)
        if domains is None:
            domains = self._by_key[key] = Domains(key, self._nodes, self._journal)
        domains.refresh()
        return domains

    def __len__(self) -> int:
        return len(self._by_key)
