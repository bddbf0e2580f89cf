"""Topology domains: each value of a node label gets a number, so that sums over domains are array operations.

The values are numbered from 1; 0 means that a row does not have the label. If most numbers are unused, all values are
numbered again, and `Domains.numbers_stamp` changes.
"""

from __future__ import annotations

import abc
import weakref

import numpy as np
from numpy.typing import NDArray

from policysched.state.tables.columns import RowNumbers, distinct, distinct_places
from policysched.state.tables.interner import MISSING
from policysched.state.tables.journal import Aspect, Journal
from policysched.state.tables.nodes import NodeTable
from policysched.state.tables.sparse import is_sparse

NO_DOMAIN = 0
_READ = int(Aspect.LABELS | Aspect.PRESENCE)


class Grouping(abc.ABC):
    """The number of each node's topology domain, by row; call `refresh` before reading."""

    __slots__ = ("__weakref__", "_alone", "_alone_at", "_nodes", "of_row", "stamp")

    def __init__(self, nodes: NodeTable) -> None:
        self.stamp = 0
        """A number that changes if a node may have changed its domain, or a domain was added."""
        self.of_row: NDArray[np.intp] = np.zeros(0, np.intp)
        """The number of the topology domain of each node, by row. Shapes: (capacity,)."""
        self._nodes = nodes
        self._alone, self._alone_at = True, -1

    @abc.abstractmethod
    def refresh(self) -> None:
        """Update the topology domains of nodes that changed."""

    @property
    @abc.abstractmethod
    def count(self) -> int:
        """Number of topology domains plus 1, for nodes outside of all domains."""

    @property
    def size(self) -> int:
        """Number of rows in use; each has the values of one node, or is free."""
        return self._nodes.size

    @property
    def alone(self) -> bool:
        """Whether each domain has at most one node, as for host names; nodes without the label are ignored."""
        if self._alone_at != self.stamp:
            self._alone = int(np.bincount(self.of_row)[NO_DOMAIN + 1 :].max(initial=0)) <= 1
            self._alone_at = self.stamp
        return self._alone

    def rows_in(self, chosen: NDArray[np.bool_]) -> RowNumbers:
        """Return the rows of the nodes whose domain is in a mask, in ascending order.

        Args:
            chosen: Whether each domain is chosen.

        Shapes: (count,) -> (R,).
        """
        return chosen[self.of_row[: self._nodes.size]].nonzero()[0]


class Domains(Grouping):
    """The topology domains of one node label: nodes with equal values belong to one domain."""

    __slots__ = ("_journal", "_numbers", "_seen", "key", "numbers_stamp")

    def __init__(self, key: str, nodes: NodeTable, journal: Journal) -> None:
        super().__init__(nodes)
        self.key = key
        self.numbers_stamp = 0
        """A number that changes if a domain number may stand for another label value than before."""
        self._journal = journal
        self._numbers: dict[int, int] = {}
        self._seen = 0
        nodes.strings.hold(self)
        self._number_all()

    @property
    def count(self) -> int:
        """Number of topology domains plus 1, for nodes without the label."""
        return len(self._numbers) + 1

    @property
    def codes(self) -> NDArray[np.int32]:
        """For each topology domain, the number that the `Interner` of texts gives to the label value."""
        return np.fromiter(self._numbers, np.int32, len(self._numbers))

    def number(self, value: str) -> int:
        """Return the number of the topology domain with a label value; a new value gets a number."""
        known = len(self._numbers)
        number = self._number(self._nodes.strings.code(value))
        self.stamp += len(self._numbers) > known
        return number

    def refresh(self) -> None:
        """Update the topology domains of the nodes whose labels changed.

        Cost: O(changed rows).
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
        self.stamp += not np.array_equal(self.of_row[rows], numbers)
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
        self.numbers_stamp += 1
        self.stamp += 1


class DomainTable:
    """Creates the topology domains of each node label in use, and shares them between users."""

    def __init__(self, nodes: NodeTable, journal: Journal) -> None:
        self._nodes = nodes
        self._journal = journal
        self._by_key: weakref.WeakValueDictionary[str, Domains] = weakref.WeakValueDictionary()

    def of(self, key: str) -> Domains:
        """Return the topology domains of a node label; all users get the same object."""
        domains = self._by_key.get(key)
        if domains is None:
            domains = self._by_key[key] = Domains(key, self._nodes, self._journal)
        domains.refresh()
        return domains

    def __len__(self) -> int:
        return len(self._by_key)
