"""Tallies of pods, summed over the nodes that share a value of a topology label.

Knows columns of label codes and tallies, no pods. Of a label that no two nodes share a value of, as the host name
usually is, every node is a domain of its own: its sums are read off the tallies row by row and nothing is kept.
Otherwise one sum a domain is kept and made anew when a tally moves; only rows of domains whose sum moved are of
interest then.

Source: plugins/interpodaffinity (topologyToMatchedTermCount, scoreMap), v1.36.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from policysched.framework import Mask, Rows
from policysched.state.journal import Journal
from policysched.state.nodes import NodeTable
from policysched.state.tallies import Tally

ChangedRows = NDArray[np.int32]
Sums = NDArray[np.int64]
NO_ROWS: Final[ChangedRows] = np.zeros(0, np.int32)
KEYS = 1024


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


class Topologies:
    """The domains of the labels that terms name, made anew when nodes' labels change."""

    def __init__(self, nodes: NodeTable, journal: Journal) -> None:
        self._nodes = nodes
        self._journal = journal
        self._kept: LRUCache[str, tuple[int, Domains]] = LRUCache(KEYS)

    def of(self, key: str) -> Domains:
        """Give a label's domains; the same object as long as no row has another value.

        Cost: one comparison of the column after each change of the cluster.
        """
        position = self._journal.position
        kept = self._kept.get(key)
        if kept is not None and kept[0] == position:
            return kept[1]
        codes = self._nodes.labels(key)[: self._nodes.size]
        same = kept is not None and np.array_equal(kept[1].codes, codes)
        domains = kept[1] if kept is not None and same else Domains.of(codes.copy())
        self._kept[key] = (position, domains)
        return domains


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

    __slots__ = ("_domains", "_key", "_parts", "_sums", "_topologies", "_versions")

    def __init__(self, key: str, parts: Sequence[Part], topologies: Topologies) -> None:
        self._key = key
        self._parts = tuple(parts)
        self._topologies = topologies
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
        moved = (before > 0) != (self._sums > 0) if signs else before != self._sums
        return np.flatnonzero(moved[domains.ids]).astype(np.int32) if moved.any() else NO_ROWS

    def of(self, rows: Rows) -> Sums:
        """Give each row the sum of its domain, 0 where the row does not have the label.

        Shapes: (R,).
        """
        if not self._domains.alone:
            return self._sums.take(self._domains.ids[rows])
        return self._weighed(rows) * self._domains.labelled[rows]

    def labelled(self, rows: Rows) -> Mask:
        """Tell which rows have the label."""
        return self._domains.labelled[rows]

    def counts_any(self) -> bool:
        """Tell whether any pod is counted on a row that has the label, whatever it adds."""
        labelled = self._domains.labelled
        return any(part.tally.counts[: labelled.size].any(where=labelled) for part in self._parts)

    def _sum_up(self) -> None:
        self._versions = [part.tally.version for part in self._parts]
        if self._domains.alone:
            return
        ids, count = self._domains.ids, self._domains.count
        values = self._weighed(slice(0, ids.size))
        # whole numbers below 2**53 are exact in the doubles that bincount sums in
        self._sums = np.bincount(ids, weights=values, minlength=count + 1).astype(np.int64)
        self._sums[count] = 0

    def _weighed(self, rows: Rows) -> Sums:
        size = self._domains.ids.size
        first, *others = self._parts
        total: Sums = first.tally.counts[:size][rows] * first.weight
        for part in others:
            total += part.tally.counts[:size][rows] * part.weight
        return total


def renewed(all_sums: Iterable[DomainSums], changed: ChangedRows, *, signs: bool) -> Rows:
    """Catch up several; give all rows that one of them reached."""
    reached = [sums.renew(changed, signs=signs) for sums in all_sums]
    whole = next((rows for rows in reached if isinstance(rows, slice)), None)
    if whole is not None:
        return whole
    found = [rows for rows in reached if not isinstance(rows, slice) and rows.size]
    return np.concatenate(found) if len(found) > 1 else (found or [NO_ROWS])[0]
