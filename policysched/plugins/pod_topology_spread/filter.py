"""The filter of PodTopologySpread: rejects topology domains where one more pod would exceed `maxSkew`.

Each constraint has one reason code per domain. A placement changes the sum of one domain, and sometimes the minimum of
all sums. Rows are evaluated again only if the code of their domain changes.

Source: plugins/podtopologyspread/filtering.go, v1.36.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from itertools import takewhile
from typing import Final

import numpy as np

from policysched.framework import (
    ChangedRow,
    ChangedRows,
    Codes,
    Mask,
    RowNumbers,
    Rows,
    SizedState,
    unresolvable,
    unschedulable,
)
from policysched.model.objects import Pod
from policysched.plugins.columns import row_count
from policysched.plugins.pod_topology_spread.constraints import ARRAYS_PER_CONSTRAINT, Constraint
from policysched.plugins.pod_topology_spread.rows import CountedRows
from policysched.state.domain_sums import CounterSums
from policysched.state.placed.pods import PlacedPod
from policysched.state.tables.columns import memory_of
from policysched.state.tables.domains import NO_DOMAIN
from policysched.state.tables.nodes import NodeTable

UNBALANCED, UNLABELLED = 1, 2
UNEVEN: Final = "node(s) didn't match pod topology spread constraints"
REASONS: Final = {UNBALANCED: unschedulable(UNEVEN), UNLABELLED: unresolvable(f"{UNEVEN} (missing required label)")}
NOTHING_COUNTED: Final = 2**31 - 1
"""The minimum number of counted pods over all domains, if there are no domains."""


class DomainVerdicts:
    """The reason codes of one spread constraint by topology domain; nodes without the label form a domain."""

    __slots__ = (
        "_constraint",
        "_lowest",
        "_namespace",
        "_own",
        "_seen",
        "_sums",
        "changed",
        "codes",
        "counter",
        "renumbered",
        "rows",
    )

    def __init__(self, constraint: Constraint, rows: CountedRows, sums: CounterSums, pod: Pod) -> None:
        self.rows = rows
        self.codes: Codes = np.zeros(0, np.int32)
        """The reason code of each topology domain; 0 accepts its nodes. Shapes: (domains,)."""
        self.changed: Mask | None = None
        """The domains whose code changed since all nodes were evaluated; None if no code changed.

        Shapes: (domains,).
        """
        self.renumbered = False
        """Whether topology domains got new numbers since all nodes were evaluated."""
        self._constraint = constraint
        self._sums, self.counter = sums, sums.counter
        self._namespace = pod.metadata.namespace
        self._own = int(constraint.counts(pod.metadata.labels))
        self._seen = (0, 0)
        self._lowest: tuple[int, int, int] | None = None

    def refresh(self) -> None:
        """Recompute the reason codes if numbers of pods or of topology domains changed."""
        self._sums.refresh()
        now = (self._sums.stamp, self.rows.of_label.numbers_stamp)
        if now == self._seen:
            return
        codes = self._judge()
        if now[1] != self._seen[1]:
            self.changed, self.renumbered = None, True
        else:
            self._compare(codes)
        self.codes, self._seen, self._lowest = codes, now, None

    def settle(self) -> None:
        """Record that all nodes were evaluated with the current codes of their domains."""
        self.changed, self.renumbered = None, False

    def of(self, rows: Rows) -> Codes:
        """Return the reason code of each node's topology domain; 0 accepts the node."""
        codes: Codes = self.codes[self.rows.domains[rows]]
        return codes

    def counts(self, placed: PlacedPod) -> bool:
        """Return whether the constraint counts a pod, without checking whether the pod is being deleted."""
        return self._constraint.selects(placed, self._namespace)

    def on(self, changed: ChangedRow) -> int:
        """Return the reason code of a simulated node; 0 accepts the node.

        Source: plugins/podtopologyspread/filtering.go (updateWithPod, criticalPaths).
        """
        domain = int(self.rows.domains[changed.row])
        more = self._constraint.more_on(changed, self._namespace)
        if changed.elsewhere:
            return self._on_with_others(changed, domain, more)
        if not more or self.rows.of_row[changed.row] == NO_DOMAIN:
            return int(self.codes[domain])
        where, lowest, second = self._two_least()
        own = int(self._sums.values[domain]) + more
        least = min(own, second if where == domain else lowest)
        if self.rows.populated.size < self._constraint.min_domains:
            least = 0
        return UNBALANCED if own + self._own - least > self._constraint.max_skew else 0

    def _on_with_others(self, changed: ChangedRow, domain: int, more: int) -> int:
        """Return a simulated node's code if pods elsewhere change, too; `more` is the change on the node itself."""
        if domain == NO_DOMAIN:
            return UNLABELLED
        sums, of_row = self._sums.values.copy(), self.rows.of_row
        sums[of_row[changed.row]] += more
        for row, change in self._constraint.more_elsewhere(changed, self._namespace):
            sums[of_row[row]] += change
        populated = self.rows.populated
        least = int(sums[populated].min(initial=NOTHING_COUNTED))
        if populated.size < self._constraint.min_domains:
            least = 0
        return UNBALANCED if int(sums[domain]) + self._own - least > self._constraint.max_skew else 0

    def on_rows(self, changed: ChangedRows) -> Codes:
        """Return the reason code of each simulated node; 0 accepts the node.

        Shapes: (R,).
        """
        domains = self.rows.domains[changed.rows]
        more = self._constraint.more_on_rows(changed, self._namespace)
        codes: Codes = self.codes[domains]
        moved = np.flatnonzero((more != 0) & (self.rows.of_row[changed.rows] != NO_DOMAIN))
        if not moved.size:
            return codes
        where, lowest, second = self._two_least()
        own = self._sums.values[domains[moved]] + more[moved]
        least = np.minimum(own, np.where(domains[moved] == where, second, lowest))
        if self.rows.populated.size < self._constraint.min_domains:
            least[:] = 0
        codes[moved] = np.where(own + self._own - least > self._constraint.max_skew, UNBALANCED, 0)
        return codes

    def _two_least(self) -> tuple[int, int, int]:
        """Return the domain with the fewest pods, its number of pods, and the smallest number of the other domains."""
        if self._lowest is None:
            populated = self.rows.populated
            sums = self._sums.values[populated]
            least = int(sums.argmin())
            others = np.delete(sums, least)
            self._lowest = int(populated[least]), int(sums[least]), int(others.min(initial=NOTHING_COUNTED))
        return self._lowest

    def _judge(self) -> Codes:
        sums = self._sums.values
        populated = self.rows.populated
        least = sums[populated].min() if populated.size else NOTHING_COUNTED
        if populated.size < self._constraint.min_domains:
            least = 0
        codes = (sums + (self._own - least) > self._constraint.max_skew).astype(np.int32)
        codes[NO_DOMAIN] = UNLABELLED
        return codes

    def _compare(self, codes: Codes) -> None:
        changed = np.zeros(codes.size, np.bool_)
        known = self.codes.size
        changed[:known] = codes[:known] != self.codes
        if self.changed is not None:
            changed[: self.changed.size] |= self.changed
        self.changed = changed if changed.any() else None


class HardState(SizedState):
    """The filter's state for a class of equal pods: their hard (DoNotSchedule) constraints.

    All nodes violate a constraint over a label that no node has. So the constraints after the first such constraint are
    not evaluated until a node has the label.

    Args:
        nodes: the nodes.
        constraints: the constraints in their order.
        judge: computes the verdicts of a constraint.
    """

    __slots__ = ("_constraints", "_judge", "_stamp", "_verdicts", "nodes")

    def __init__(
        self, nodes: NodeTable, constraints: Sequence[Constraint], judge: Callable[[Constraint], DomainVerdicts]
    ) -> None:
        self.nodes = nodes
        self._constraints = constraints
        self._judge = judge
        self._verdicts: list[DomainVerdicts] = []
        self._stamp = -1

    def memory(self, rows: int) -> int:
        """Estimate the memory of the state, whose arrays have `rows` elements. Units: bytes."""
        of_constraint = memory_of(ARRAYS_PER_CONSTRAINT, rows)
        return sum(of_constraint + one.counter.nbytes for one in self._verdicts)

    def counts(self, placed: PlacedPod) -> bool:
        """Return whether an evaluated constraint counts a pod."""
        return any(one.counts(placed) for one in self._verdicts)

    def codes(self, rows: Rows) -> Codes:
        """Return for each node the reason code of the first violated constraint, or 0."""
        self._renew()
        for one in self._verdicts:
            one.refresh()
            if isinstance(rows, slice):
                one.settle()
        broken = [one.of(rows) for one in self._verdicts]
        return self._first_of(broken, row_count(self.nodes, rows))

    def _first_of(self, broken: list[Codes], size: int) -> Codes:
        """Return for each node the code of the first violated constraint, given the codes by evaluated constraint."""
        if len(broken) < len(self._constraints):
            broken.append(np.full(size, UNLABELLED, np.int32))
        codes = broken.pop()
        for own in reversed(broken):
            codes = np.where(own, own, codes)
        return codes

    def _renew(self) -> bool:
        """Update which constraints have to be evaluated; return whether these constraints changed."""
        if self._stamp == self.nodes.label_keys_stamp:
            return False
        self._stamp = self.nodes.label_keys_stamp
        asked = list(takewhile(lambda one: self.nodes.has_label(one.topology_key), self._constraints))
        before = len(self._verdicts)
        self._verdicts = self._verdicts[: len(asked)] + [self._judge(one) for one in asked[before:]]
        return len(asked) != before

    def on(self, changed: ChangedRow) -> int:
        """Return the reason code of the first constraint that a simulated node violates, or 0."""
        codes = (one.on(changed) for one in self._verdicts)
        all_asked = len(self._verdicts) == len(self._constraints)
        return next(filter(None, codes), 0 if all_asked else UNLABELLED)

    def on_rows(self, changed: ChangedRows) -> Codes | None:
        """Return for each simulated node the reason code of the first constraint that the node violates, or 0.

        Shapes: (R,). Missing: None if pods on other rows change, too.
        """
        if changed.reaches_others:
            return None
        return self._first_of([one.on_rows(changed) for one in self._verdicts], changed.rows.size)

    def affected(self, rows: RowNumbers) -> Rows:
        """Return the given nodes, and the nodes of topology domains whose reason code changed."""
        if self._renew():
            return slice(0, self.nodes.size)
        affected = [rows]
        for one in self._verdicts:
            one.refresh()
            if one.renumbered:
                return slice(0, self.nodes.size)
            if one.changed is not None:
                affected.append(one.rows.of_label.rows_in(one.changed))
            one.settle()
        return rows if len(affected) == 1 else np.concatenate(affected)
