"""Tallies of pods, summed over the nodes that share a value of a topology label.

Knows columns of label codes and tallies, no pods. Of a label that no two nodes share a value of, as the host name
usually is, every node is a domain of its own: its sums are read off the tallies row by row and nothing is kept.
Otherwise one sum a domain is kept, shared by all classes that read it, and follows the rows that the journal names;
only rows of domains whose sum moved are of interest then.

Source: plugins/interpodaffinity (topologyToMatchedTermCount, scoreMap), v1.36.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from numpy.typing import NDArray

from policysched.framework import Aspect, Mask, Rows
from policysched.state.journal import Journal
from policysched.state.nodes import NodeTable
from policysched.state.tallies import Tally

ChangedRows = NDArray[np.int32]
Sums = NDArray[np.int64]
NO_ROWS: Final[ChangedRows] = np.zeros(0, np.int32)
LABELS: Final = int(Aspect.LABELS | Aspect.PRESENCE)
KEYS = 1024
"""How many labels' domains are kept."""
FEW = 64
"""How many changed rows are followed one by one."""


@dataclass(frozen=True, slots=True, eq=False)
class Domains:
    """Which rows share a value of a label.

    Shapes: N rows in use, D domains; `ids` (N,), from 0, D for rows without the label.
    """

    codes: NDArray[np.int32]
    ids: NDArray[np.intp]
    count: int
    labelled: Mask
    alone: bool
    """Whether no two rows share a value."""

    @classmethod
    def of(cls, codes: NDArray[np.int32]) -> Domains:
        """Number the domains of a label's codes."""
        labelled = codes >= 0
        values, inverse = np.unique(codes[labelled], return_inverse=True)
        ids = np.full(codes.size, values.size, np.intp)
        ids[labelled] = inverse
        return cls(codes, ids, values.size, labelled, values.size == inverse.size)

    def rows(self, chosen: Mask) -> Rows:
        """Give the rows of domains, or all rows where that is most of them.

        Shapes: chosen (D + 1,).
        """
        count = int(np.count_nonzero(chosen))
        if not count:
            return NO_ROWS
        if 2 * count > self.count:
            return slice(0, self.ids.size)
        return np.flatnonzero(chosen[self.ids]).astype(np.int32)


NO_DOMAINS: Final = Domains.of(np.zeros(0, np.int32))


class Topologies:
    """The domains of the labels that terms name, and the sums over them, made anew when nodes' labels change."""

    def __init__(self, nodes: NodeTable, journal: Journal) -> None:
        self.journal = journal
        self._nodes = nodes
        self._position = self._relabelled = 0
        self._kept: dict[str, tuple[int, Domains]] = {}
        self._summed: weakref.WeakValueDictionary[tuple[Tally, str], SummedTally] = weakref.WeakValueDictionary()

    def of(self, key: str) -> Domains:
        """Give a label's domains; the same object as long as no row has another value.

        Cost: one comparison of the column after nodes or labels changed.
        """
        self._catch_up()
        relabelled, domains = self._kept.get(key, (-1, NO_DOMAINS))
        size = self._nodes.size
        if relabelled == self._relabelled and domains.codes.size == size:
            return domains
        codes = self._nodes.labels(key)[:size]
        if not np.array_equal(domains.codes, codes):
            domains = Domains.of(codes.copy())
        if len(self._kept) == KEYS:
            self._kept.clear()
        self._kept[key] = (self._relabelled, domains)
        return domains

    def _catch_up(self) -> None:
        """See whether any label may have changed."""
        if self._position != self.journal.position:
            changed = self.journal.since(self._position)
            if changed is None or int(np.bitwise_or.reduce(changed[1])) & LABELS:
                self._relabelled += 1
            self._position = self.journal.position

    def summed(self, tally: Tally, key: str) -> SummedTally:
        """Give the sums of a tally over a label's domains; who asks for the same ones shares them."""
        found = self._summed.get((tally, key))
        if found is None:
            found = self._summed[tally, key] = SummedTally(tally, self.journal)
        return found


class SummedTally:
    """One tally, summed over domains.

    Shapes: `sums` (D + 1,), the last of them 0.
    """

    __slots__ = ("__weakref__", "_counted", "_domains", "_journal", "_position", "_version", "sums", "tally")

    def __init__(self, tally: Tally, journal: Journal) -> None:
        self.tally = tally
        self.sums: Sums = np.zeros(1, np.int64)
        self._journal = journal
        self._domains: Domains | None = None
        self._position = self._version = -1
        self._counted: Sums = np.zeros(0, np.int64)

    def renew(self, domains: Domains) -> Sums:
        """Bring the sums up to the tally."""
        if domains is not self._domains:
            self._sum_up(domains)
        elif self._version != self.tally.version:
            changed = self._journal.since(self._position)
            if changed is None or changed[0].size > FEW:
                self._sum_up(domains)
            else:
                self._follow(set(changed[0].tolist()), domains.ids)
        self._position, self._version = self._journal.position, self.tally.version
        return self.sums

    def _follow(self, rows: set[int], ids: NDArray[np.intp]) -> None:
        counts, counted = self.tally.counts, self._counted
        for row in rows:
            if counts[row] != counted[row]:
                if ids[row] + 1 < self.sums.size:
                    self.sums[ids[row]] += counts[row] - counted[row]
                counted[row] = counts[row]

    def _sum_up(self, domains: Domains) -> None:
        self._domains = domains
        self._counted = self.tally.counts[: domains.ids.size].copy()
        # whole numbers below 2**53 are exact in the doubles that bincount sums in
        sums = np.bincount(domains.ids, weights=self._counted, minlength=domains.count + 1)
        self.sums = sums.astype(np.int64)
        self.sums[domains.count] = 0


class Part(NamedTuple):
    """A tally and what each of its counts adds."""

    tally: Tally
    weight: int


class DomainSums:
    """Weighted tallies, summed over the domains of one label.

    Args:
        key: the label.
        parts: what is summed up; there is at least one.
        topologies: the cluster's domains.
    """

    __slots__ = ("_domains", "_key", "_parts", "_summed", "_sums", "_topologies", "_versions")

    def __init__(self, key: str, parts: Iterable[Part], topologies: Topologies) -> None:
        self._key = key
        self._parts = tuple(parts)
        self._topologies = topologies
        self._summed = tuple(topologies.summed(part.tally, key) for part in self._parts)
        self._domains = topologies.of(key)
        self._versions: list[int] = []
        self._sums: Sums = np.zeros(0, np.int64)
        self._sum_up()

    def renew(self, changed: ChangedRows, *, signs: bool) -> Rows:
        """Catch up; give the rows whose sums moved.

        Args:
            changed: the rows whose pods or labels changed.
            signs: whether only sums that became positive, or ceased to be so, are of interest.
        """
        domains = self._topologies.of(self._key)
        if domains is not self._domains:
            self._domains = domains
            self._sum_up()
            return slice(0, domains.ids.size)
        if self._versions == [part.tally.version for part in self._parts]:
            return NO_ROWS
        before = self._sums
        self._sum_up()
        if domains.alone:
            return changed
        return domains.rows((before > 0) != (self._sums > 0) if signs else before != self._sums)

    def of(self, rows: Rows) -> Sums:
        """Give each row the sum of its domain, 0 where the row does not have the label.

        Shapes: (R,), a new array.
        """
        if not self._domains.alone:
            return self._sums.take(self._domains.ids[rows])
        size = self._domains.ids.size
        first, *others = self._parts
        total: Sums = first.tally.counts[:size][rows] * first.weight
        for part in others:
            total += part.tally.counts[:size][rows] * part.weight
        total *= self._domains.labelled[rows]
        return total

    def labelled(self, rows: Rows) -> Mask:
        """Tell which rows have the label."""
        return self._domains.labelled[rows]

    def counts_any(self) -> bool:
        """Tell whether any pod is counted on a row that has the label, whatever it adds."""
        if not self._domains.alone:
            return any(summed.sums.any() for summed in self._summed)
        labelled = self._domains.labelled
        return any(part.tally.counts[: labelled.size].any(where=labelled) for part in self._parts)

    def _sum_up(self) -> None:
        self._versions = [part.tally.version for part in self._parts]
        if self._domains.alone:
            return
        total: Sums = np.zeros(self._domains.count + 1, np.int64)
        for summed, part in zip(self._summed, self._parts, strict=True):
            total += summed.renew(self._domains) * part.weight
        self._sums = total


def renewed(all_sums: Iterable[DomainSums], changed: ChangedRows, *, signs: bool) -> Rows:
    """Catch up several; give all rows that one of them reached."""
    reached = [sums.renew(changed, signs=signs) for sums in all_sums]
    whole = next((rows for rows in reached if isinstance(rows, slice)), None)
    if whole is not None:
        return whole
    found = {id(rows): rows for rows in reached if not isinstance(rows, slice) and rows.size}
    return np.concatenate(tuple(found.values())) if found else NO_ROWS
