"""Sums per topology domain of per-node values, updated incrementally.

A maintained view: an index of rows by domain (`tables.domains`), what every row added last, and one sum a domain. A
change of a row moves one sum by the difference; the rows that it affects are those of the domains whose sum moved.
Sums of pod counters follow the journal by themselves and are shared by all who ask for the same ones.

Shapes: C the capacity of the columns, D domains.
"""

from __future__ import annotations

import weakref
from typing import Final

import numpy as np
from numpy.typing import NDArray

from policysched.state.placed.counter import PodCounter
from policysched.state.tables.columns import Rows, distinct, part_of
from policysched.state.tables.domains import Grouping
from policysched.state.tables.journal import Journal

Sums = NDArray[np.int64]
GOOD_PART: Final = 8
"""Changed rows are followed where they are fewer than one in so many; else all are summed up."""
FEW: Final = 4
"""Up to how many rows are followed faster one by one."""
BYTES_PER_SUMS: Final = 2048
"""What the sums take beside their arrays. Units: bytes."""
_NONE: Final[Sums] = np.zeros(0, np.int64)


class DomainSums:
    """Sums of whole numbers over domains, with what each row adds to them.

    Args:
        of_row: The domain of each row. Shapes: (C,).
        count: How many domains there are.
    """

    __slots__ = ("_of_row", "added", "totals")

    def __init__(self, of_row: NDArray[np.integer], count: int) -> None:
        self._of_row = of_row
        self.added: Sums = np.zeros(of_row.size, np.int64)
        """What each row adds; not to be changed. Shapes: (C,)."""
        self.totals: Sums = np.zeros(count, np.int64)
        """The sum of each domain; not to be changed. Shapes: (D,)."""

    @property
    def nbytes(self) -> int:
        """The memory that they take. Units: bytes."""
        return self.added.nbytes + self.totals.nbytes

    def put(self, rows: Rows, amounts: Sums) -> None:
        """Let rows, each named once, add these amounts in place of what they added.

        Cost: O(rows).
        """
        more = amounts - self.added[rows]
        self.added[rows] = amounts
        np.add.at(self.totals, self._of_row[rows], more)

    def put_all(self, amounts: Sums) -> None:
        """Let all rows add these amounts. Shapes: (C,)."""
        self.added = amounts.copy()
        # whole numbers below 2**53 are exact in the doubles that bincount sums in
        self.totals = np.bincount(self._of_row, weights=amounts, minlength=self.totals.size).astype(np.int64)

    def follow(self, rows: NDArray[np.intp], amounts: Sums) -> None:
        """Let some rows, named any number of times, add what all rows' amounts say of them. Shapes: amounts (C,)."""
        if rows.size > FEW:
            rows = distinct(rows)
            self.put(rows, amounts[rows])
            return
        totals, added, of_row = self.totals, self.added, self._of_row
        for row in rows.tolist():
            totals[of_row[row]] += amounts[row] - added[row]
            added[row] = amounts[row]


class CounterSums:
    """A pod counter, summed over domains. Call `refresh` before reading."""

    __slots__ = ("__weakref__", "_journal", "_position", "_seen", "_sums", "counter", "domains", "version")

    def __init__(self, counter: PodCounter, domains: Grouping, journal: Journal) -> None:
        self.counter = counter
        self.domains = domains
        self.version = 0
        """Moves when a sum may be another, or belong to another domain."""
        self._journal = journal
        self._position = 0
        self._seen = (-1, -1)
        self._sums: DomainSums | None = None
        """None before they were asked for: what is a domain of its own is read off the counter."""

    @property
    def values(self) -> Sums:
        """The sums; that of the rows without a domain means nothing. They are not to be changed. Shapes: (D,)."""
        return _NONE if self._sums is None else self._sums.totals

    @property
    def nbytes(self) -> int:
        """The memory that they take, with their part of counter and domains. Units: bytes."""
        sums = 0 if self._sums is None else self._sums.nbytes
        return BYTES_PER_SUMS + sums + self.counter.nbytes + part_of(self.domains)

    def refresh(self) -> None:
        """Bring the sums up to the counter.

        Cost: O(rows that changed), or one operation over all rows where domains changed.
        """
        self.domains.refresh()
        now = (self.domains.version, self.counter.version)
        position, self._position = self._position, self._journal.position
        if now == self._seen:
            return
        counts = self.counter.counts.astype(np.int64, copy=False)
        changed = self._journal.since(position) if now[0] == self._seen[0] else None
        if self._sums is None or changed is None or GOOD_PART * changed[0].size > counts.size:
            self._sums = DomainSums(self.domains.of_row, self.domains.count)
            self._sums.put_all(counts)
        else:
            self._sums.follow(changed[0], counts)
        self._seen = now
        self.version += 1


class SharedSums:
    """The sums of pod counters that somebody holds; whoever asks for the same ones shares them."""

    def __init__(self, journal: Journal) -> None:
        self._journal = journal
        self._of: weakref.WeakValueDictionary[tuple[PodCounter, Grouping], CounterSums]
        self._of = weakref.WeakValueDictionary()

    def of(self, counter: PodCounter, domains: Grouping) -> CounterSums:
        """Return the sums of a counter over domains."""
        found = self._of.get((counter, domains))
        if found is None:
            found = self._of[counter, domains] = CounterSums(counter, domains, self._journal)
        return found

    def __len__(self) -> int:
        return len(self._of)
