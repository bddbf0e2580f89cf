"""Sums over the nodes of each topology domain, which are updated when single nodes change.

A changed row changes the sum of its domain by the difference. `CounterSums` sums a pod counter and reads changed rows
from the journal; equal sums are shared.

Shapes: C the capacity of the columns, D domains.
"""

from __future__ import annotations

import weakref
from typing import Final

import numpy as np
from numpy.typing import NDArray

from policysched.state.placed.counter import PodCounter
from policysched.state.tables.columns import Rows, distinct
from policysched.state.tables.domains import Grouping
from policysched.state.tables.journal import Journal

Sums = NDArray[np.int64]
FEW: Final = 4
"""Number of nodes up to which sums are updated node by node instead of with arrays."""
_NONE: Final[Sums] = np.zeros(0, np.int64)


class DomainSums:
    """For one topology key: an amount of each node, and its sum over each topology domain.

    Args:
        of_row: The domain of each row. Shapes: (C,).
        count: Number of domains.
    """

    __slots__ = ("_of_row", "added", "totals")

    def __init__(self, of_row: NDArray[np.integer], count: int) -> None:
        self._of_row = of_row
        self.added: Sums = np.zeros(of_row.size, np.int64)
        """The amount of each node, by row; read-only. Shapes: (C,)."""
        self.totals: Sums = np.zeros(count, np.int64)
        """The sum of the amounts over each topology domain; read-only. Shapes: (D,)."""

    def put(self, rows: Rows, amounts: Sums) -> None:
        """Replace the amounts of some nodes (distinct rows), and update the sums of the nodes' topology domains.

        Cost: O(rows).
        """
        more = amounts - self.added[rows]
        self.added[rows] = amounts
        np.add.at(self.totals, self._of_row[rows], more)

    def put_all(self, amounts: Sums) -> None:
        """Replace the amounts of all nodes, and compute all sums. Shapes: (C,)."""
        self.added = amounts.copy()
        # Integers below 2**53 are exact in the doubles that bincount adds.
        self.totals = np.bincount(self._of_row, weights=amounts, minlength=self.totals.size).astype(np.int64)

    def follow(self, rows: NDArray[np.intp], amounts: Sums) -> None:
        """Take over the amounts of changed nodes, given by row, from an array with all nodes. Shapes: amounts (C,)."""
        if rows.size > FEW:
            rows = distinct(rows)
            self.put(rows, amounts[rows])
            return
        totals, added, of_row = self.totals, self.added, self._of_row
        for row in rows.tolist():
            totals[of_row[row]] += amounts[row] - added[row]
            added[row] = amounts[row]


class CounterSums:
    """The number of matching pods in each topology domain, from a pod counter; call `refresh` before reading."""

    __slots__ = ("__weakref__", "_journal", "_position", "_seen", "_sums", "counter", "domains", "stamp")

    def __init__(self, counter: PodCounter, domains: Grouping, journal: Journal) -> None:
        self.counter = counter
        self.domains = domains
        self.stamp = 0
        """A number that changes if a sum, or the topology domain of a node, may have changed."""
        self._journal = journal
        self._position = 0
        self._seen = (-1, -1)
        self._sums: DomainSums | None = None
        """The sums; None until sums are needed, because a domain with one node needs none."""

    @property
    def values(self) -> Sums:
        """The sum of each topology domain; meaningless for nodes outside of all domains; read-only. Shapes: (D,)."""
        return _NONE if self._sums is None else self._sums.totals

    def refresh(self) -> None:
        """Update the sums after changes of the pod counter or of nodes' topology domains.

        Cost: O(changed rows), or an operation over all rows after domains changed.
        """
        self.domains.refresh()
        now = (self.domains.stamp, self.counter.stamp)
        position, self._position = self._position, self._journal.position
        if now == self._seen:
            return
        counts = self.counter.counts.astype(np.int64, copy=False)
        changed = self._journal.since(position) if now[0] == self._seen[0] else None
        if self._sums is None or changed is None:
            self._sums = DomainSums(self.domains.of_row, self.domains.count)
            self._sums.put_all(counts)
        else:
            self._sums.follow(changed[0], counts)
        self._seen = now
        self.stamp += 1


class SharedSums:
    """Creates `CounterSums`; users of the same pod counter and topology key share one object."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._of: weakref.WeakValueDictionary[tuple[PodCounter, Grouping], CounterSums]
        self._of = weakref.WeakValueDictionary()

    def of(self, counter: PodCounter, domains: Grouping) -> CounterSums:
        """Return the numbers of pods that a pod counter counts in each topology domain."""
        found = self._of.get((counter, domains))
        if found is None:
            found = self._of[counter, domains] = CounterSums(counter, domains, self._journal)
        return found

    def __len__(self) -> int:
        return len(self._of)
