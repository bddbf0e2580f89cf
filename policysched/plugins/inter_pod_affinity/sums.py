"""Weighted sums of pod counts over topology domains; a domain has the nodes with the same value of a label.

Where no two nodes share a value of the label, as for the host name, each node is a domain: its sums are read from the
counters by row. Otherwise all classes that read a counter share its sums (`state.domain_sums`).

Source: plugins/interpodaffinity (topologyToMatchedTermCount, scoreMap), v1.36.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import NamedTuple

import numpy as np

from policysched.framework import NO_ROWS, ChangedRow, ChangedRows, Cluster, Mask, RowNumbers, Rows
from policysched.state.domain_sums import SharedSums, Sums
from policysched.state.placed.counter import PodCounter
from policysched.state.placed.pods import PlacedPod
from policysched.state.tables.columns import memory_of
from policysched.state.tables.domains import NO_DOMAIN, Domains


class WeightedCounter(NamedTuple):
    """A pod counter (the number of matching pods on each node) and the weight that multiplies its counts."""

    counter: PodCounter
    weight: int


KeyedCounter = tuple[str, WeightedCounter]
"""A topology key and a weighted pod counter; the counts are summed over the topology domains of the key."""


def sign_of(weight: int) -> int:
    """Return the sign of a weight: only terms whose weights have the same sign share a pod counter."""
    return (weight > 0) - (weight < 0)


def size_of(weight: int) -> int:
    """Return the absolute value of a weight, but 1 for weight 0, so that the counter counts every matching pod."""
    return abs(weight) or 1


class WeightedSums:
    """Weighted pod counters of one topology key, summed over the topology domains of the key.

    Args:
        domains: The domains of the label.
        parts: The counters, at least one.
        shared: The sums that classes share.
    """

    __slots__ = ("_domains", "_labels", "_parts", "_stamps", "_summed", "_sums", "_total")

    def __init__(self, domains: Domains, parts: Iterable[WeightedCounter], shared: SharedSums) -> None:
        self._parts = tuple(parts)
        self._domains = domains
        self._summed = tuple(shared.of(part.counter, self._domains) for part in self._parts)
        self._labels = -1
        self._stamps: list[int] = []
        self._sums: Sums = np.zeros(0, np.int64)
        self._total: int | None = None
        self._sum_up()

    def refresh(self, changed: RowNumbers, *, signs: bool) -> Rows:
        """Update the sums from changed nodes; return the nodes whose sums changed.

        Args:
            changed: The rows whose pods or labels changed.
            signs: Whether to return only rows whose sums became positive or ceased to be positive.
        """
        domains = self._domains
        domains.refresh()
        if self._labels != domains.stamp:
            self._sum_up()
            return slice(0, domains.size)
        if self._stamps == [part.counter.stamp for part in self._parts]:
            return NO_ROWS
        before = self._sums
        self._sum_up()
        if domains.alone:
            return changed
        if signs:
            chosen = (before > 0) != (self._sums > 0)
            return domains.rows_in(chosen) if np.count_nonzero(chosen) else NO_ROWS
        # reading the scores of all rows takes less time than finding those that changed
        return slice(0, domains.size) if np.count_nonzero(before != self._sums) else NO_ROWS

    def memory(self, rows: int) -> int:
        """Estimate the memory of the sums, an array with `rows` elements, and of the pod counters. Units: bytes."""
        return memory_of(1, rows) + sum(part.counter.nbytes for part in self._parts)

    def of(self, rows: Rows) -> Sums:
        """Return the sum of each node's topology domain; 0 for nodes without the topology label.

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

    def on(self, changed: ChangedRow) -> int:
        """Return the sum of the topology domain of a simulated node."""
        row, domain = changed.row, int(self._domains.of_row[changed.row])
        if domain == NO_DOMAIN:
            return 0
        if self._domains.alone:
            return sum(part.weight * int(changed.count(part.counter)) for part in self._parts)
        total = int(self._sums[domain]) + sum(
            part.weight * int(changed.count(part.counter) - part.counter.counts[row]) for part in self._parts
        )
        for placed, sign in changed.elsewhere:
            if self._domains.of_row[placed.row] == domain:
                total += sign * sum(part.weight * int(part.counter.weight_of(placed)) for part in self._parts)
        return total

    def tells(self, changed: ChangedRows) -> bool:
        """Return whether `on_rows` can compute the sums of given simulated nodes."""
        return all(changed.counts(part.counter) for part in self._parts)

    def on_rows(self, changed: ChangedRows) -> Sums:
        """Return for each simulated node the sum of its topology domain.

        Shapes: (R,).
        """
        of_row = self._domains.of_row[changed.rows]
        total: Sums = np.zeros(of_row.size, np.int64) if self._domains.alone else self._sums[of_row]
        for part in self._parts:
            counts = changed.count(part.counter)
            total += part.weight * (counts if self._domains.alone else counts - part.counter.counts[changed.rows])
        total *= of_row != NO_DOMAIN
        return total

    def counts(self, placed: PlacedPod) -> bool:
        """Return whether any of the counters counts a placed pod."""
        return any(part.counter.weight_of(placed) for part in self._parts)

    def labelled(self, rows: Rows) -> Mask:
        """Return which nodes have the topology label."""
        labelled: Mask = self._domains.of_row[rows] != NO_DOMAIN
        return labelled

    def counts_any(self) -> bool:
        """Return whether any pod is counted on nodes with the topology label, with any weight including 0."""
        if not self._domains.alone:
            return any(np.count_nonzero(summed.values[NO_DOMAIN + 1 :]) for summed in self._summed)
        labelled = self._domains.of_row != NO_DOMAIN
        return any(part.counter.counts.any(where=labelled) for part in self._parts)

    def counts_any_on(self, changed: ChangedRow) -> bool:
        """Return whether any pod is counted after the changes of a simulated node; no weight may be negative."""
        total = self._all_counted()
        for placed, sign in changed.elsewhere:
            if self._domains.of_row[placed.row] != NO_DOMAIN:
                total += sign * sum(int(part.counter.weight_of(placed)) for part in self._parts)
        if self._domains.of_row[changed.row] == NO_DOMAIN:
            return total > 0
        return total > sum(int(part.counter.counts[changed.row] - changed.count(part.counter)) for part in self._parts)

    def count_any_on_rows(self, changed: ChangedRows) -> Mask:
        """Return for each simulated node whether any pod is counted after the changes of this node alone.

        Shapes: (R,).
        """
        rows = changed.rows
        gone = np.zeros(rows.size, np.int64)
        for part in self._parts:
            gone += part.counter.counts[rows] - changed.count(part.counter)
        any_left: Mask = self._all_counted() > gone * self.labelled(rows)
        return any_left

    def _all_counted(self) -> int:
        """Return the number of counted pods on all nodes with the topology label."""
        if self._total is None:
            labelled = self._domains.of_row != NO_DOMAIN
            self._total = sum(int(part.counter.counts.sum(where=labelled)) for part in self._parts)
        return self._total

    def _sum_up(self) -> None:
        self._total = None
        self._labels = self._domains.stamp
        self._stamps = [part.counter.stamp for part in self._parts]
        if self._domains.alone:
            return
        total: Sums = np.zeros(self._domains.count, np.int64)
        for summed, part in zip(self._summed, self._parts, strict=True):
            summed.refresh()
            total += summed.values if part.weight == 1 else summed.values * part.weight
        total[NO_DOMAIN] = 0
        self._sums = total


def sums_by_key(parts: Iterable[KeyedCounter], cluster: Cluster) -> list[WeightedSums]:
    """Return for each topology key the sums of weighted pod counters over the domains of the key."""
    by_key: dict[str, list[WeightedCounter]] = {}
    for key, part in parts:
        by_key.setdefault(key, []).append(part)
    return [WeightedSums(cluster.domains.of(key), parts, cluster.sums) for key, parts in by_key.items()]


def refresh_all(all_sums: Iterable[WeightedSums], changed: RowNumbers, *, signs: bool) -> Rows:
    """Update all given sums from changed nodes; return the nodes for which any sum changed."""
    whole: Rows | None = None
    found: list[RowNumbers] = []
    for sums in all_sums:
        rows = sums.refresh(changed, signs=signs)
        if isinstance(rows, slice):
            whole = rows
        elif rows.size and not any(rows is one for one in found):
            found.append(rows)
    if whole is not None:
        return whole
    return found[0] if len(found) == 1 else np.concatenate(found) if found else NO_ROWS
