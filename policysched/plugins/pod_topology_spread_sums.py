"""How many pods there are in each domain of a spread constraint, kept up to date placement by placement.

Knows tallies and which rows count. Pod classes whose constraints select the same pods over the same nodes share the
sums, so that a placement is followed once however many classes read them.

Source: plugins/podtopologyspread/filtering.go (calPreFilterState), scoring.go (PreScore), v1.36.
"""

from __future__ import annotations

import weakref

import numpy as np
from numpy.typing import NDArray

from policysched.framework import Cluster, RowNumbers
from policysched.plugins.pod_topology_spread_rows import CountedRows, Inclusion, SharedRows
from policysched.state.memory import part_of
from policysched.state.placed.counters import Tally

FEW = 8
"""Changed rows are followed where they are fewer than one in so many; else all are summed up."""

BYTES_PER_SUMS = 2048
"""What the sums and the rows that count take beside their arrays. Units: bytes."""


class DomainSums:
    """How many of the pods that a tally counts are in each domain; without a tally there are none.

    Call `refresh` before reading.
    """

    __slots__ = ("__weakref__", "_journal", "_kept", "_nodes", "_now", "_seen", "_tally", "rows", "values", "version")

    def __init__(self, rows: CountedRows, tally: Tally | None, cluster: Cluster) -> None:
        self.rows = rows
        self.values: NDArray[np.float64] = np.zeros(0)
        """The sums, which doubles hold exactly. They are not to be changed.

        Shapes: (domains,).
        """
        self.version = 0
        """Moves when a sum or the rows that count may be others."""
        self._tally = tally
        self._nodes = cluster.nodes
        self._journal = cluster.journal
        self._kept: NDArray[np.int64] = np.zeros(0, np.int64)
        """The counts that were summed up, by row."""
        self._now: tuple[int, ...] = ()
        self._seen = 0

    @property
    def nbytes(self) -> int:
        """The memory that the sums and the counts take, with their part of the rows that count. Units: bytes."""
        counted = 0 if self._tally is None else self._tally.nbytes
        return BYTES_PER_SUMS + self.values.nbytes + self._kept.nbytes + counted + part_of(self.rows)

    def refresh(self) -> None:
        """Bring the sums up to the tally.

        Cost: O(rows that changed), or one operation over all rows where those that count changed.
        """
        self.rows.refresh()
        counted = 0 if self._tally is None else self._tally.version
        now = (self.rows.version, self._nodes.size, counted)
        if now == self._now:
            return
        same_rows = now[:-1] == self._now[:-1]
        changed = self._journal.since(self._seen) if same_rows else None
        if self._tally is None:
            self.values = np.zeros(self.rows.of_label.count)
        elif changed is None or FEW * changed[0].size > self._nodes.size:
            self._sum_up(self._tally)
        else:
            self._follow(changed[0], self._tally)
        self._now, self._seen = now, self._journal.position
        self.version += 1

    def _follow(self, rows: RowNumbers, tally: Tally) -> None:
        rows = rows if rows.size == 1 else np.unique(rows)
        counts = tally.counts[rows]
        np.add.at(self.values, self.rows.bins[rows], counts - self._kept[rows])
        self._kept[rows] = counts

    def _sum_up(self, tally: Tally) -> None:
        size = self._nodes.size
        self._kept = tally.counts[:size].copy()
        sums = np.bincount(self.rows.bins[:size], self._kept, self.rows.of_label.count)
        self.values = sums.astype(np.float64, copy=False)


class SharedSums:
    """The sums that somebody holds, by cluster, by the nodes that count and by the tally."""

    def __init__(self) -> None:
        self._of: weakref.WeakKeyDictionary[Cluster, _OfCluster] = weakref.WeakKeyDictionary()

    def of(self, wanted: Inclusion, tally: Tally | None, cluster: Cluster) -> DomainSums:
        """Give the sums of a tally over the domains of the nodes that count."""
        shared = self._of.get(cluster)
        if shared is None:
            shared = self._of[cluster] = _OfCluster()
        sums = shared.sums.get((wanted, tally))
        if sums is None:
            rows = shared.rows.of(wanted, cluster)
            sums = shared.sums[wanted, tally] = DomainSums(rows, tally, cluster)
        return sums


class _OfCluster:
    def __init__(self) -> None:
        self.rows = SharedRows()
        self.sums: weakref.WeakValueDictionary[tuple[Inclusion, Tally | None], DomainSums]
        self.sums = weakref.WeakValueDictionary()
