"""Which rows count for a spread constraint, and in which domain each of them does.

Knows labels and taints of nodes, and what a pod asks of them; no pods are counted here. That rarely changes while pods
come and go, and it is the same for most pods, so it is kept and shared by all whose constraints ask the same, and only
rows whose labels or taints changed are looked at again.

Source: plugins/podtopologyspread/common.go (matchNodeInclusionPolicies), filtering.go, scoring.go, v1.36.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Collection
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from policysched.framework import Aspect, Cluster, Mask, RowNumbers, Rows
from policysched.model.objects import Pod, Taint, Toleration
from policysched.model.selection.node_selectors import NodeSelectorMatcher, required_nodes, tolerates_all
from policysched.plugins.helper.verdicts import Verdicts
from policysched.plugins.nodes.node_selection import labels_test, selector_test
from policysched.plugins.pod_topology_spread.constraints import Constraint
from policysched.state.memory import part_of
from policysched.state.placed.counters import PodCounter
from policysched.state.tables.domains import NO_DOMAIN

_READ = int(Aspect.LABELS | Aspect.TAINTS | Aspect.PRESENCE)


class Inclusion(NamedTuple):
    """What makes a node count."""

    key: str
    """The label whose values are the domains."""
    labels: frozenset[str]
    """The labels that it must have."""
    demanded: NodeSelectorMatcher | None
    """What its labels must be."""
    tolerations: tuple[Toleration, ...] | None
    """What must cover its taints, where they matter."""
    missing_is_empty: bool
    """Whether a node without the label counts as one whose value is the empty text."""


class Inclusions:
    """Which nodes count for the constraints of one pod.

    Args:
        pod: the pod.
        labels: the labels that nodes must have.
        missing_is_empty: whether a node without a constraint's label counts as one whose value is the empty text.
    """

    __slots__ = ("_demanded", "_labels", "_missing_is_empty", "_tolerations")

    def __init__(self, pod: Pod, labels: frozenset[str], *, missing_is_empty: bool = False) -> None:
        demanded = required_nodes(pod)
        self._demanded = None if demanded.demands_nothing else demanded
        self._tolerations = tuple(pod.spec.tolerations)
        self._labels = labels
        self._missing_is_empty = missing_is_empty

    def of(self, constraint: Constraint) -> Inclusion:
        """Say what makes a node count for one of the constraints."""
        return Inclusion(
            key=constraint.topology_key,
            labels=self._labels,
            demanded=self._demanded if constraint.honors_affinity else None,
            tolerations=self._tolerations if constraint.honors_taints else None,
            missing_is_empty=self._missing_is_empty,
        )


class CountedRows:
    """The domains of rows, and which rows count.

    Call `refresh` before reading.
    Shapes: `domains` and `bins` (capacity,).
    """

    __slots__ = ("__weakref__", "_cluster", "_generation", "_populated", "_seen", "_tests", "_wanted", "bins",
                 "domains", "of_label", "version")  # fmt: skip

    def __init__(self, wanted: Inclusion, cluster: Cluster) -> None:
        self.of_label = cluster.domains.of(wanted.key)
        self.domains: NDArray[np.intp] = np.zeros(0, np.intp)
        """Each row's domain, whether or not it counts."""
        self.bins: NDArray[np.intp] = np.zeros(0, np.intp)
        """The domain in which each row counts, NO_DOMAIN where it does not."""
        self.version = 0
        """Moves when any of it changes."""
        self._wanted = wanted
        self._cluster = cluster
        self._tests = tuple(_tests(wanted, cluster))
        self._seen = 0
        self._generation = -1
        self._populated: NDArray[np.intp] | None = None

    def refresh(self) -> None:
        """Look at the rows again that changed.

        Cost: O(rows that changed).
        """
        journal = self._cluster.journal
        if journal.about_nodes <= self._seen and self.bins.size == self._cluster.nodes.columns.capacity:
            return
        self.of_label.refresh()
        changed = journal.since(self._seen)
        if (
            self._generation != self.of_label.generation
            or changed is None
            or self.bins.size != self.of_label.of_row.size
        ):
            self._look_at_all()
        else:
            rows, aspects = changed
            touched = (aspects & _READ) != 0
            if touched.any():
                self._look_at(rows[touched])
        self._seen = journal.position

    @property
    def nbytes(self) -> int:
        """The memory that it takes, the domains included. Units: bytes."""
        own = self.domains.nbytes if self.domains is not self.of_label.of_row else 0
        return own + self.bins.nbytes + part_of(self.of_label)

    @property
    def populated(self) -> NDArray[np.intp]:
        """The domains that have a row which counts."""
        if self._populated is None:
            self._populated = np.flatnonzero(np.bincount(self.bins)[1:]) + 1
        return self._populated

    def _look_at_all(self) -> None:
        self._generation = self.of_label.generation
        size = self.of_label.of_row.size
        self.bins = np.zeros(size, np.intp)
        self.domains = np.zeros(size, np.intp) if self._wanted.missing_is_empty else self.of_label.of_row
        self._look_at(slice(0, size))

    def _look_at(self, rows: Rows) -> None:
        domains = self.of_label.of_row[rows]
        if self._wanted.missing_is_empty:
            domains = np.where(domains == NO_DOMAIN, self.of_label.number(""), domains)
            self.domains[rows] = domains
        counted = self._cluster.nodes.present.data[rows]
        for test in self._tests:
            counted = counted & test(rows)
        self.bins[rows] = np.where(counted, domains, NO_DOMAIN)
        self._populated = None
        self.version += 1


class Labelled:
    """Which rows have some labels: looked at again when labels of nodes change."""

    __slots__ = ("_cluster", "_keys", "_mask", "_seen", "_test")

    def __init__(self, keys: Collection[str], cluster: Cluster) -> None:
        self._keys = keys
        self._cluster = cluster
        self._test = labels_test(keys, cluster.nodes)
        self._seen = (0, -1)
        self._mask: Mask | None = None

    def mask(self) -> Mask | None:
        """Tell which rows in use have all the labels, None where every row has.

        Shapes: (N,), not to be changed.
        """
        nodes = self._cluster.nodes
        now = (nodes.size, self._cluster.journal.about_nodes)
        if self._keys and now != self._seen:
            mask = self._test(slice(0, nodes.size))
            self._mask, self._seen = None if mask.all() else mask, now
        return self._mask


def _tests(wanted: Inclusion, cluster: Cluster) -> list[Callable[[Rows], Mask]]:
    nodes = cluster.nodes
    tests = [labels_test(wanted.labels, nodes)] if wanted.labels else []
    if wanted.demanded is not None:
        tests.append(selector_test(wanted.demanded, nodes))
    if wanted.tolerations is not None:
        tolerations = wanted.tolerations
        verdicts = Verdicts[tuple[Taint, ...]](nodes.taint_sets, lambda taints: tolerates_all(tolerations, taints))
        tests.append(lambda rows: verdicts.of(nodes.taints.data[rows]) != 0)
    return tests


class SharedRows:
    """The counted rows that somebody holds, by what makes a node count."""

    def __init__(self) -> None:
        self._rows: weakref.WeakValueDictionary[Inclusion, CountedRows] = weakref.WeakValueDictionary()

    def of(self, wanted: Inclusion, cluster: Cluster) -> CountedRows:
        """Give the rows that count."""
        rows = self._rows.get(wanted)
        if rows is None:
            rows = self._rows[wanted] = CountedRows(wanted, cluster)
        return rows


FEW = 8
"""Changed rows are followed where they are fewer than one in so many; else all are summed up."""

BYTES_PER_SUMS = 2048
"""What the sums and the rows that count take beside their arrays. Units: bytes."""


class DomainSums:
    """How many of the pods that a counter counts are in each domain; without a counter there are none.

    Call `refresh` before reading.
    """

    __slots__ = ("__weakref__", "_counter", "_journal", "_kept", "_nodes", "_now", "_seen", "rows", "values", "version")

    def __init__(self, rows: CountedRows, counter: PodCounter | None, cluster: Cluster) -> None:
        self.rows = rows
        self.values: NDArray[np.float64] = np.zeros(0)
        """The sums, which doubles hold exactly. They are not to be changed.

        Shapes: (domains,).
        """
        self.version = 0
        """Moves when a sum or the rows that count may be others."""
        self._counter = counter
        self._nodes = cluster.nodes
        self._journal = cluster.journal
        self._kept: NDArray[np.int64] = np.zeros(0, np.int64)
        """The counts that were summed up, by row."""
        self._now: tuple[int, ...] = ()
        self._seen = 0

    @property
    def nbytes(self) -> int:
        """The memory that the sums and the counts take, with their part of the rows that count. Units: bytes."""
        counted = 0 if self._counter is None else self._counter.nbytes
        return BYTES_PER_SUMS + self.values.nbytes + self._kept.nbytes + counted + part_of(self.rows)

    def refresh(self) -> None:
        """Bring the sums up to the counter.

        Cost: O(rows that changed), or one operation over all rows where those that count changed.
        """
        self.rows.refresh()
        counted = 0 if self._counter is None else self._counter.version
        now = (self.rows.version, self._nodes.size, counted)
        if now == self._now:
            return
        same_rows = now[:-1] == self._now[:-1]
        changed = self._journal.since(self._seen) if same_rows else None
        if self._counter is None:
            self.values = np.zeros(self.rows.of_label.count)
        elif changed is None or FEW * changed[0].size > self._nodes.size:
            self._sum_up(self._counter)
        else:
            self._follow(changed[0], self._counter)
        self._now, self._seen = now, self._journal.position
        self.version += 1

    def _follow(self, rows: RowNumbers, counter: PodCounter) -> None:
        rows = rows if rows.size == 1 else np.unique(rows)
        counts = counter.counts[rows]
        np.add.at(self.values, self.rows.bins[rows], counts - self._kept[rows])
        self._kept[rows] = counts

    def _sum_up(self, counter: PodCounter) -> None:
        size = self._nodes.size
        self._kept = counter.counts[:size].copy()
        sums = np.bincount(self.rows.bins[:size], self._kept, self.rows.of_label.count)
        self.values = sums.astype(np.float64, copy=False)


class SharedSums:
    """The sums that somebody holds, by cluster, by the nodes that count and by the counter."""

    def __init__(self) -> None:
        self._of: weakref.WeakKeyDictionary[Cluster, _OfCluster] = weakref.WeakKeyDictionary()

    def of(self, wanted: Inclusion, counter: PodCounter | None, cluster: Cluster) -> DomainSums:
        """Give the sums of a counter over the domains of the nodes that count."""
        shared = self._of.get(cluster)
        if shared is None:
            shared = self._of[cluster] = _OfCluster()
        sums = shared.sums.get((wanted, counter))
        if sums is None:
            rows = shared.rows.of(wanted, cluster)
            sums = shared.sums[wanted, counter] = DomainSums(rows, counter, cluster)
        return sums


class _OfCluster:
    def __init__(self) -> None:
        self.rows = SharedRows()
        self.sums: weakref.WeakValueDictionary[tuple[Inclusion, PodCounter | None], DomainSums]
        self.sums = weakref.WeakValueDictionary()
