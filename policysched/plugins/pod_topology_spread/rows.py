"""The nodes that a spread constraint includes by its node inclusion policies, and their topology domains.

The included nodes depend on labels and taints of nodes, not on placed pods, and are the same for most pods. So they are
shared by all constraints with equal policies, and only rows with changed labels or taints are evaluated again.

Source: plugins/podtopologyspread/common.go (matchNodeInclusionPolicies), filtering.go, scoring.go, v1.36.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from policysched.framework import Aspect, Cluster, Mask, Rows
from policysched.model.objects import Pod, Taint, Toleration
from policysched.model.selection.node_selectors import NodeSelectorMatcher, TolerationMatcher, required_nodes
from policysched.plugins.columns import AnswersByCode
from policysched.plugins.nodes.node_selection import SelectorTest, labels_test
from policysched.plugins.pod_topology_spread.constraints import Constraint
from policysched.state.tables.domains import NO_DOMAIN, Grouping

_READ = int(Aspect.LABELS | Aspect.TAINTS | Aspect.PRESENCE)


class Inclusion(NamedTuple):
    """The conditions under which a spread constraint includes a node."""

    key: str
    """The node label whose values are the topology domains."""
    labels: frozenset[str]
    """The labels that an included node must have."""
    demanded: NodeSelectorMatcher | None
    """The node affinity and nodeSelector that an included node must match; None if nodeAffinityPolicy ignores them."""
    tolerations: tuple[Toleration, ...] | None
    """The tolerations that must cover an included node's taints; None if nodeTaintsPolicy ignores taints."""
    missing_is_empty: bool
    """Whether a node without the label is treated as a node whose label is empty."""


class Inclusions:
    """The conditions under which each constraint of a pod includes a node.

    Args:
        pod: the pod.
        labels: the labels that nodes must have.
        missing_is_empty: whether a node without a constraint's label is treated as one with an empty value.
    """

    __slots__ = ("_demanded", "_labels", "_missing_is_empty", "_tolerations")

    def __init__(self, pod: Pod, labels: frozenset[str], *, missing_is_empty: bool = False) -> None:
        demanded = required_nodes(pod)
        self._demanded = None if demanded.demands_nothing else demanded
        self._tolerations = tuple(pod.spec.tolerations)
        self._labels = labels
        self._missing_is_empty = missing_is_empty

    def of(self, constraint: Constraint) -> Inclusion:
        """Return the conditions under which a constraint includes a node."""
        return Inclusion(
            key=constraint.topology_key,
            labels=self._labels,
            demanded=self._demanded if constraint.honors_affinity else None,
            tolerations=self._tolerations if constraint.honors_taints else None,
            missing_is_empty=self._missing_is_empty,
        )


class CountedRows(Grouping):
    """The topology domain of each node that a constraint includes; NO_DOMAIN for nodes that it does not include."""

    __slots__ = ("_cluster", "_populated", "_seen", "_stamp", "_tests", "_wanted", "domains", "of_label")

    def __init__(self, wanted: Inclusion, cluster: Cluster) -> None:
        super().__init__(cluster.nodes)
        self.of_label = cluster.domains.of(wanted.key)
        self.domains: NDArray[np.intp] = np.zeros(0, np.intp)
        """The topology domain of each node, whether the constraint includes the node or not. Shapes: (capacity,)."""
        self._wanted = wanted
        self._cluster = cluster
        self._tests = tuple(_tests(wanted, cluster))
        self._seen = 0
        self._stamp = -1
        self._populated: NDArray[np.intp] | None = None

    def refresh(self) -> None:
        """Evaluate the conditions for inclusion on the nodes that changed.

        Cost: O(rows that changed).
        """
        journal = self._cluster.journal
        if journal.about_nodes <= self._seen and self.of_row.size == self._cluster.nodes.columns.capacity:
            return
        self.of_label.refresh()
        changed = journal.since(self._seen)
        renumbered = self._stamp != self.of_label.numbers_stamp or self.of_row.size != self.of_label.of_row.size
        if renumbered or changed is None:
            self._look_at_all()
        else:
            rows, aspects = changed
            touched = (aspects & _READ) != 0
            if touched.any():
                self._look_at(rows[touched])
        self._seen = journal.position

    @property
    def count(self) -> int:
        """The number of topology domains, including NO_DOMAIN."""
        return self.of_label.count

    @property
    def populated(self) -> NDArray[np.intp]:
        """The topology domains with at least one included node."""
        if self._populated is None:
            self._populated = np.flatnonzero(np.bincount(self.of_row)[1:]) + 1
        return self._populated

    def _look_at_all(self) -> None:
        self._stamp = self.of_label.numbers_stamp
        size = self.of_label.of_row.size
        self.of_row = np.zeros(size, np.intp)
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
        self.of_row[rows] = np.where(counted, domains, NO_DOMAIN)
        self._populated = None
        self.stamp += 1


class Labelled:
    """The nodes that have all of some labels; cached until labels of a node change."""

    __slots__ = ("_cluster", "_keys", "_mask", "_seen", "_test")

    def __init__(self, keys: Collection[str], cluster: Cluster) -> None:
        self._keys = keys
        self._cluster = cluster
        self._test = labels_test(keys, cluster.nodes)
        self._seen = (0, -1)
        self._mask: Mask | None = None

    def mask(self) -> Mask | None:
        """Return a mask of the nodes that have all the labels; None if all nodes have them.

        Shapes: (N,); callers must not change the array.
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
        tests.append(SelectorTest(wanted.demanded, nodes))
    if wanted.tolerations is not None:
        tolerations = wanted.tolerations
        verdicts = AnswersByCode[tuple[Taint, ...]](nodes.taint_sets, TolerationMatcher(tolerations).covers_all)
        tests.append(lambda rows: verdicts.of(nodes.taints.data[rows]) != 0)
    return tests
