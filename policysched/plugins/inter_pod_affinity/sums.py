"""Pod counters, summed over the nodes that share a value of a topology label.

Knows domains of labels and counters, no pods. Of a label that no two nodes share a value of, as the host name
usually is, every node is a domain of its own: its sums are read off the counters row by row and nothing is kept.
Otherwise one sum a domain is kept, shared by all classes that read it, and follows the rows that the journal names;
only rows of domains whose sum moved are of interest then.

Source: plugins/interpodaffinity (topologyToMatchedTermCount, scoreMap), v1.36.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from policysched.framework import NO_ROWS, Mask, RowNumbers, Rows
from policysched.plugins.helper.present import Present
from policysched.state.memory import part_of
from policysched.state.placed.counters import PodCounter
from policysched.state.tables.domains import NO_DOMAIN, Domains, DomainTable
from policysched.state.tables.journal import Journal
from policysched.state.tables.nodes import NodeTable

Sums = NDArray[np.int64]
FEW: Final = 4


class SummedCounter:
    """One counter, summed over domains.

    Shapes: `sums` (D,), 0 for rows without the label.
    """

    __slots__ = (
        "__weakref__",
        "_counted",
        "_domains",
        "_journal",
        "_labels",
        "_position",
        "_version",
        "counter",
        "sums",
    )

    def __init__(self, counter: PodCounter, domains: Domains, journal: Journal) -> None:
        self.counter = counter
        self.sums: Sums = np.zeros(0, np.int64)
        self._domains = domains
        self._journal = journal
        self._labels = self._position = self._version = -1
        self._counted: Sums = np.zeros(0, np.int64)

    @property
    def nbytes(self) -> int:
        """The memory of the sums, of what was summed up, and of the counter. Units: bytes."""
        return self.sums.nbytes + self._counted.nbytes + self.counter.nbytes

    def renew(self) -> Sums:
        """Bring the sums up to the counter; the domains are up to date."""
        if self._labels != self._domains.version:
            self._sum_up()
        elif self._version != self.counter.version:
            changed = self._journal.since(self._position)
            if changed is None or changed[0].size > self._counted.size:
                self._sum_up()
            else:
                self._follow(changed[0])
        self._position, self._version = self._journal.position, self.counter.version
        return self.sums

    def _follow(self, rows: RowNumbers) -> None:
        counts, counted, of_row = self.counter.counts, self._counted, self._domains.of_row
        # a few rows are looked at faster one by one
        moved = rows if rows.size <= FEW else rows[counts[rows] != counted[rows]]
        for row in set(moved.tolist()):
            self.sums[of_row[row]] += counts[row] - counted[row]
            counted[row] = counts[row]
        self.sums[NO_DOMAIN] = 0

    def _sum_up(self) -> None:
        domains = self._domains
        self._labels = domains.version
        self._counted = self.counter.counts.copy()
        # whole numbers below 2**53 are exact in the doubles that bincount sums in
        self.sums = np.bincount(domains.of_row, weights=self._counted, minlength=domains.count).astype(np.int64)
        self.sums[NO_DOMAIN] = 0


class SummedCounters:
    """The sums that somebody holds; whoever asks for the same ones shares them."""

    def __init__(self, domains: DomainTable, nodes: NodeTable, journal: Journal) -> None:
        self.nodes = nodes
        self._domains = domains
        self._journal = journal
        self._by_key: weakref.WeakValueDictionary[tuple[PodCounter, str], SummedCounter] = weakref.WeakValueDictionary()

    def domains(self, key: str) -> Domains:
        """Give the domains of a label."""
        return self._domains.of(key)

    def of(self, counter: PodCounter, domains: Domains) -> SummedCounter:
        """Give the sums of a counter over domains."""
        found = self._by_key.get((counter, domains.key))
        if found is None:
            found = self._by_key[counter, domains.key] = SummedCounter(counter, domains, self._journal)
        return found


class Part(NamedTuple):
    """A counter and what each of its counts adds."""

    counter: PodCounter
    weight: int


class DomainSums:
    """Weighted counters, summed over the domains of one label.

    Args:
        key: the label.
        parts: what is summed up; there is at least one.
        shared: the sums that classes share.
    """

    __slots__ = ("_domains", "_labels", "_nodes", "_parts", "_present", "_summed", "_sums", "_versions")

    def __init__(self, key: str, parts: Iterable[Part], shared: SummedCounters) -> None:
        self._parts = tuple(parts)
        self._nodes = shared.nodes
        self._domains = shared.domains(key)
        self._summed = tuple(shared.of(part.counter, self._domains) for part in self._parts)
        self._present = Present()
        self._labels = -1
        self._versions: list[int] = []
        self._sums: Sums = np.zeros(0, np.int64)
        self._sum_up()

    def renew(self, changed: RowNumbers, *, signs: bool) -> Rows:
        """Catch up; give the rows whose sums moved.

        Args:
            changed: the rows whose pods or labels changed.
            signs: whether only sums that became positive, or ceased to be so, are of interest.
        """
        domains = self._domains
        domains.refresh()
        if self._labels != domains.version:
            self._sum_up()
            return slice(0, self._nodes.size)
        if self._versions == [part.counter.version for part in self._parts]:
            return NO_ROWS
        before = self._sums
        self._sum_up()
        if domains.alone:
            return changed
        if signs:
            chosen = (before > 0) != (self._sums > 0)
            return domains.rows_in(chosen) if np.count_nonzero(chosen) else NO_ROWS
        # scores of all rows are read at once in less time than it takes to find out which ones moved
        return slice(0, self._nodes.size) if np.count_nonzero(before != self._sums) else NO_ROWS

    def of(self, rows: Rows) -> Sums:
        """Give each row the sum of its domain, 0 where the row does not have the label.

        Shapes: (R,), a new array.
        """
        of_row = self._domains.of_row[rows]
        if not self._domains.alone:
            return self._sums.take(of_row)
        first, *others = self._parts
        total: Sums = first.counter.counts[rows] * first.weight
        for part in others:
            total += part.counter.counts[rows] * part.weight
        total *= of_row != NO_DOMAIN
        return total

    @property
    def nbytes(self) -> int:
        """The memory that it takes, with its parts of what is shared. Units: bytes."""
        own = self._sums.nbytes + self._present.nbytes
        return own + part_of(self._domains) + sum(map(part_of, self._summed))

    @property
    def by_domain(self) -> bool:
        """Whether rows share sums, so that there are fewer of them than rows."""
        return not self._domains.alone

    @property
    def values(self) -> Sums:
        """The sum of each domain, where rows share them; not to be changed.

        Shapes: (D,).
        """
        return self._sums

    @property
    def of_row(self) -> NDArray[np.intp]:
        """The domain of each row in use.

        Shapes: (N,).
        """
        return self._domains.of_row[: self._nodes.size]

    def present(self, mask: Mask) -> NDArray[np.intp]:
        """Give the domains that the rows of a mask are in.

        Shapes: (N,) -> (found,).
        """
        return self._present.among(self._domains.of_row, self._domains.version, mask)

    def labelled(self, rows: Rows) -> Mask:
        """Tell which rows have the label."""
        labelled: Mask = self._domains.of_row[rows] != NO_DOMAIN
        return labelled

    def counts_any(self) -> bool:
        """Tell whether any pod is counted on a row that has the label, whatever it adds."""
        if not self._domains.alone:
            return any(np.count_nonzero(summed.sums) for summed in self._summed)
        labelled = self._domains.of_row != NO_DOMAIN
        return any(part.counter.counts.any(where=labelled) for part in self._parts)

    def _sum_up(self) -> None:
        self._labels = self._domains.version
        self._versions = [part.counter.version for part in self._parts]
        if self._domains.alone:
            return
        first, *others = zip(self._summed, self._parts, strict=True)
        total: Sums = first[0].renew() * first[1].weight
        for summed, part in others:
            total += summed.renew() * part.weight
        self._sums = total


def renewed(all_sums: Iterable[DomainSums], changed: RowNumbers, *, signs: bool) -> Rows:
    """Catch up several; give all rows that one of them reached."""
    whole: Rows | None = None
    found: list[RowNumbers] = []
    for sums in all_sums:
        rows = sums.renew(changed, signs=signs)
        if isinstance(rows, slice):
            whole = rows
        elif rows.size and not any(rows is one for one in found):
            found.append(rows)
    if whole is not None:
        return whole
    return found[0] if len(found) == 1 else np.concatenate(found) if found else NO_ROWS
