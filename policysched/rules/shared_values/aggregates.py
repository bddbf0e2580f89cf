"""Aggregates over nodes in expressions, such as `sum(x) by key`, which are updated when their inputs change.

A domain is the set of nodes with one value of the key, such as a zone or a rack. Counts, sums and means of whole
numbers are adjusted by the changed rows: a placement changes one row of one domain. Other aggregates are recomputed if
an input changed. For an extreme of values that are equal within each domain, one node of each domain is evaluated.

Shapes: R rows, D domains (1 without a key), C the capacity of the columns.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, Final

import numpy as np
from numpy.typing import NDArray

from policysched.framework import ABOUT_PODS, NO_ROWS, Aspect, Cluster, RowNumbers, Rows
from policysched.language.evaluation.columns import aggregate_over, evaluate_columns, sums_with_one_changed
from policysched.language.ir.graph import AGGREGATES, POD_AGGREGATES, TIME, Input, Op, Typed
from policysched.rules.compile.graphs import VOLATILE, cached_parts, key_of, row_independent
from policysched.rules.compile.policy import MetricInput
from policysched.rules.inputs import PodInputs, aspects_read
from policysched.rules.shared_values.context import EvaluationContext, Floats, RuleFrame
from policysched.rules.shared_values.pod_aggregates import InputChanges, counter, namespaces_stamp, pod_aggregate_at
from policysched.state.domain_sums import DomainSums
from policysched.state.tables.domains import Grouping
from policysched.state.tables.interner import MISSING

EXACT: Final = float(2**52)
"""Limit of the sum of absolute values up to which whole numbers are added and subtracted exactly as floats."""
FEW: Final = 64
"""Maximum number of changed nodes for which sums are adjusted; for more, the aggregate is recomputed."""
ARRAYS_PER_AGGREGATE: Final = 3
"""Number of arrays with one element per node in an aggregate or pod counter."""
_ADDED: Final = frozenset({Op.COUNT_NODES, Op.SUM_NODES, Op.AVG_NODES})
_SUMMED: Final = frozenset({Op.SUM_NODES, Op.AVG_NODES})
_EXTREMES: Final = frozenset({Op.MIN_NODES, Op.MAX_NODES})


def evaluation_context(cluster: Cluster) -> EvaluationContext:
    """Return a context that evaluates expressions on a cluster."""
    return EvaluationContext(cluster, aggregate_at, pod_aggregate_at)


def aggregate_at(context: EvaluationContext, node: Typed, pod: PodInputs, rows: Rows) -> Floats | float:
    """Return the value of an aggregate for each of the given nodes.

    Shapes: (R,) if the aggregate has a key.
    """
    return _aggregate(context, node, pod).at(rows)


def changed_aggregate_at(
    context: EvaluationContext, node: Typed, pod: PodInputs, rows: Rows, row: int, changed: RuleFrame
) -> Floats | float:
    """Return the value of an aggregate for each of the given nodes, as if one node had changed.

    Args:
        context: The context.
        node: The aggregate.
        pod: The scheduled pod.
        rows: The rows.
        row: The row that would change.
        changed: The frame of this row with the change.

    Shapes: (R,) if the aggregate has a key.
    Cost: O(R) if each row alone decides its contribution; else one operation over all nodes.
    """
    return _aggregate(context, node, pod).changed_at(rows, row, changed)


def changed_aggregates_at(
    context: EvaluationContext, node: Typed, pod: PodInputs, rows: RowNumbers, changed: RuleFrame
) -> Floats | None:
    """Return for each node the value of an aggregate, as if only this node had changed.

    Args:
        context: The context.
        node: The aggregate.
        pod: The scheduled pod.
        rows: The rows.
        changed: The frame of the rows, each with its change.

    Shapes: (R,).
    Missing: None if each row has to be evaluated by itself.
    """
    return _aggregate(context, node, pod).changed_each(rows, changed)


def hold(context: EvaluationContext, roots: Iterable[Typed], pod: PodInputs) -> tuple[object, ...]:
    """Return objects that keep pod counters, aggregates, ages and metrics of expressions cached while referenced."""
    kept = [cached_parts(root) for root in roots]
    held: list[object] = [
        counter(context, node, pod) for nodes, _ in kept for node in nodes if node.op in POD_AGGREGATES
    ]
    held += [_aggregate(context, node, pod) for nodes, _ in kept for node in nodes if node.op in AGGREGATES]
    for item in {item for _, items in kept for item in items}:
        if isinstance(item, MetricInput):
            held.append(context.cluster.metrics.column(item.metric, item.max_age))
        else:
            held.append(context.cluster.ages.held() if item.root == "node" else context.cluster.pod_ages.held())
    return tuple(one for one in held if one is not None)


def own_arrays(roots: Iterable[Typed], pod: PodInputs) -> int:
    """Return the number of arrays that expressions use for values which read the pod, and so are not shared."""
    nodes = {node for root in roots for node in cached_parts(root)[0]}
    return ARRAYS_PER_AGGREGATE * sum(bool(pod.key(node.inputs)) for node in nodes)


def domains_of(context: EvaluationContext, key: Typed, pod: PodInputs) -> AggregateDomains:
    """Return the domains (groups of nodes) of a `by` key, which are cached while they are referenced."""
    about = pod if pod.key(key.inputs) else context.no_pod
    place = ("domains", key, namespaces_stamp(context, key))
    found: AggregateDomains | None = about.found.get(place)
    if found is None:
        found = about.found[place] = AggregateDomains(key, about, context)
    return found


def _aggregate(context: EvaluationContext, node: Typed, pod: PodInputs) -> Aggregate:
    """Return an aggregate that all pods with equal values of its inputs share, cached while it is referenced."""
    place = (node, namespaces_stamp(context, node))
    found: Aggregate | None = pod.found.get(place)
    if found is not None:
        return found
    own = pod.key(node.inputs)
    if own and TIME in node.inputs:
        # plain scalars of a pod keep the time of its evaluation, so pod classes cannot share the aggregate
        own = (own, pod)
    key: Hashable = (*place, own)
    found = context.aggregates.get(key)
    if found is None:
        about = pod if own else context.no_pod
        held = hold(context, (*node.args, *node.inner), about)
        found = context.aggregates[key] = Aggregate(node, about, context, held)
    pod.found[place] = found
    return found


class AggregateDomains(Grouping):
    """The domains (groups of nodes) of a `by` key; nodes for which the key has no value form a domain, too.

    The domain of a row without a node is arbitrary.
    """

    __slots__ = ("_changes", "_context", "_key", "_pod", "heads", "none")

    def __init__(self, key: Typed, pod: PodInputs, context: EvaluationContext) -> None:
        super().__init__(context.cluster.nodes)
        self._key = key
        self._pod = pod
        self._context = context
        self._changes = InputChanges(key, pod, context)
        self.heads: RowNumbers = NO_ROWS
        """The row number of one node of each domain. Shapes: (D,)."""
        self.none: NDArray[np.bool_] = np.zeros(0, np.bool_)
        """Mask of the domain of the nodes for which the key has no value. Shapes: (D,)."""

    @property
    def count(self) -> int:
        """Number of domains of the key, at least 1."""
        return self.heads.size

    def refresh(self) -> None:
        """Recompute the domains if their inputs changed; `stamp` increases only if a domain changed."""
        capacity = self._context.cluster.nodes.columns.capacity
        if self._changes.is_current() and self.of_row.size == capacity:
            return
        rows = self._context.everything()
        frame = self._context.frame(self._pod, rows)
        codes = np.broadcast_to(_codes(evaluate_columns(self._key, frame)), (frame.rows,))
        known, first, found = np.unique(codes, return_index=True, return_inverse=True)
        of_row = np.zeros(capacity, np.intp)
        of_row[rows] = found
        heads, none = np.arange(capacity)[rows][first], known < 0
        if not first.size:
            heads, none = np.zeros(1, np.intp), np.ones(1, np.bool_)
        old, new = (self.of_row, self.heads, self.none), (of_row, heads, none)
        if not all(map(np.array_equal, old, new)):
            self.of_row, self.heads, self.none = new
            self.stamp += 1


class Aggregate:
    """An aggregate over nodes, for all pods with equal values of the aggregate's inputs.

    Args:
        node: The graph node of the aggregate.
        pod: A pod with these values.
        context: The context.
        held: The cached parts of its inner graphs, to hold references to them.
    """

    __slots__ = ("__weakref__", "_adds", "_changes", "_context", "_domains", "_domains_stamp", "_found", "_held",
                 "_inner_domains", "_is_local", "_node", "_others", "_pod", "_sums")  # fmt: skip

    def __init__(self, node: Typed, pod: PodInputs, context: EvaluationContext, held: Sequence[object]) -> None:
        self._node = node
        self._pod = pod
        self._context = context
        self._held = held
        self._changes = InputChanges(node, pod, context)
        self._domains = domains_of(context, node.args[0], pod) if node.args else None
        self._inner_domains = _inner_domains(node, pod, context)
        self._is_local = _is_local(node)
        self._adds = node.op in _ADDED and self._is_local
        self._domains_stamp = -1
        self._found: Floats = np.full(1, math.nan)
        self._sums: WholeSums | None = None
        self._others: Floats | None = None

    def at(self, rows: Rows) -> Floats | float:
        """Return the value of the aggregate for each of the given nodes.

        Shapes: (R,) if the aggregate has a key.
        """
        self._refresh()
        return float(self._found[0]) if self._domains is None else self._found[self._domains.of_row[rows]]

    def changed_at(self, rows: Rows, row: int, changed: RuleFrame) -> Floats | float:
        """Return the value of the aggregate for each of the given nodes, as if one node had changed."""
        self._refresh()
        domain = 0 if self._domains is None else int(self._domains.of_row[row])
        value = self._changed_domain(domain, row, changed)
        if value is None:
            everything = self._context.everything()
            found = aggregate_over(self._node, changed.over(everything))
            if self._domains is None:
                return found
            by_row = np.full(self._context.cluster.nodes.columns.capacity, math.nan)
            by_row[everything] = found
            return by_row[rows]
        if self._domains is None:
            return value
        values = self._found[self._domains.of_row[rows]]
        if not self._domains.none[domain]:
            values[self._domains.of_row[rows] == domain] = value
        return values

    def changed_each(self, rows: RowNumbers, changed: RuleFrame) -> Floats | None:
        """Return for each node the value of the aggregate, as if only this node had changed."""
        self._refresh()
        if not self._is_local or self._keys_read_pods():
            return None
        domains = np.zeros(rows.size, np.intp) if self._domains is None else self._domains.of_row[rows]
        values: Floats | None = None
        if self._sums is not None:
            values = self._sums.changed_each(rows, domains, changed)
        elif self._node.op in _EXTREMES:
            now = as_column(np.asarray(evaluate_columns(self._node.inner[0], changed), np.float64), rows.size)
            values = (np.fmin if self._node.op == Op.MIN_NODES else np.fmax)(self._extremes_of_others()[rows], now)
        if values is None and self._node.op in _SUMMED:
            values = self._summed_each(rows, changed)
        if values is not None and self._domains is not None:
            values[self._domains.none[domains]] = math.nan
        return values

    def _summed_each(self, rows: RowNumbers, changed: RuleFrame) -> Floats | None:
        """Return for each node the sum or mean of its domain, as if only this node had changed, also for fractions.

        Shapes: (R,). Missing: None if magnitudes differ too much for exact sums.
        """
        everything, [inner] = self._context.everything(), self._node.inner
        frame = self._context.frame(self._pod, everything)
        before = as_column(np.asarray(evaluate_columns(inner, frame), np.float64), frame.rows)
        now = as_column(np.asarray(evaluate_columns(inner, changed), np.float64), rows.size)
        domains = self._domains
        of = np.zeros(frame.rows, np.intp) if domains is None else domains.of_row[everything]
        places = rows if isinstance(everything, slice) else np.searchsorted(everything, rows)
        return sums_with_one_changed(self._node, of, 1 if domains is None else domains.count, before, places, now)

    def _extremes_of_others(self) -> Floats:
        """Return for each node the minimum or maximum of the other nodes of its domain; cached until an input changes.

        Shapes: (C,). Missing: NaN.
        """
        if self._others is None:
            capacity, rows = self._context.cluster.nodes.columns.capacity, self._context.everything()
            frame = self._context.frame(self._pod, rows)
            values = as_column(np.asarray(evaluate_columns(self._node.inner[0], frame), np.float64), frame.rows)
            of = np.zeros(frame.rows, np.intp) if self._domains is None else self._domains.of_row[rows]
            sign = -1.0 if self._node.op == Op.MIN_NODES else 1.0
            self._others = np.full(capacity, math.nan)
            self._others[rows] = sign * _largest_of_others(sign * values, of)
        return self._others

    def _keys_read_pods(self) -> bool:
        return any(ABOUT_PODS & aspects_read(key.inputs) for key in self._node.args)

    def _changed_domain(self, domain: int, row: int, changed: RuleFrame) -> float | None:
        """Return the value of a domain as if one of its nodes had changed; None if all nodes have to be evaluated."""
        if not self._is_local or self._keys_read_pods():
            return None
        if self._sums is not None:
            return self._sums.changed(row, domain, changed)
        if self._node.op not in _EXTREMES:
            return None
        [inner] = self._node.inner
        unchanged = self._context.frame(self._pod, np.array([row]))
        before, now = (float(np.max(evaluate_columns(inner, frame))) for frame in (unchanged, changed))
        best, better = self._found.item(domain), np.fmin if self._node.op == Op.MIN_NODES else np.fmax
        found = float(better(best, now))
        return found if before != best or found == now else None

    def _refresh(self) -> None:
        if self._domains is not None:
            self._domains.refresh()
        domains = self._domains.stamp if self._domains is not None else 0
        if not self._changes.is_current() or domains != self._domains_stamp:
            if domains != self._domains_stamp or not self._adjust():
                self._compute()
            self._domains_stamp = domains

    def _adjust(self) -> bool:
        """Adjust the sums by the changed nodes; return False if the aggregate has to be recomputed instead."""
        rows, sums = self._changes.rows, self._sums
        if sums is None or rows is None or rows.size > FEW or self._changes.changed_aspects & Aspect.PRESENCE:
            return False
        present = self._context.cluster.nodes.present.data[rows]
        if not present.all():
            rows = rows[present]
        if not sums.fill(rows, self._context.frame(self._pod, rows)):
            return False
        self._read(sums)
        return True

    def _compute(self) -> None:
        self._others = None
        rows = self._rows()
        frame = self._context.frame(self._pod, rows)
        self._sums = self._new_sums(rows, frame)
        if self._sums is not None:
            self._read(self._sums)
            return
        found = aggregate_over(self._node, frame)
        if self._domains is None:
            self._found = np.array([found], np.float64)
            return
        by_row = np.full(self._context.cluster.nodes.columns.capacity, math.nan)
        by_row[rows] = found
        self._found = by_row[self._domains.heads]

    def _rows(self) -> Rows:
        """Return the nodes to evaluate: all, or one of each group that has equal values of the inner expression."""
        if self._inner_domains is None or not self._context.cluster.nodes.count:
            return self._context.everything()
        self._inner_domains.refresh()
        return self._inner_domains.heads

    def _new_sums(self, rows: Rows, frame: RuleFrame) -> WholeSums | None:
        """Return sums that later changes can adjust; None unless each node contributes a whole number of its own."""
        if not self._adds:
            return None
        capacity = self._context.cluster.nodes.columns.capacity
        of_row, domains = np.zeros(capacity, np.intp), 1
        if self._domains is not None:
            of_row, domains = self._domains.of_row, self._domains.count
        sums = WholeSums(self._node, of_row, domains)
        return sums if sums.fill(rows, frame) else None

    def _read(self, sums: WholeSums) -> None:
        self._found = sums.results()
        if self._domains is not None:
            self._found[self._domains.none] = math.nan


class WholeSums:
    """Exact sums of whole numbers for each domain (group of nodes) of an aggregate; for a mean, also the counts."""

    __slots__ = ("_node", "_parts", "_size")

    def __init__(self, node: Typed, of_row: NDArray[np.intp], domains: int) -> None:
        self._node = node
        self._parts = [DomainSums(of_row, domains) for _ in range(2 if node.op is Op.AVG_NODES else 1)]
        self._size = 0.0
        """The sum of the magnitudes of all contributions."""

    def fill(self, rows: Rows, frame: RuleFrame) -> bool:
        """Set the contributions of given nodes; return whether all are whole numbers small enough for exact sums."""
        now = self._adding(frame)
        self._size += float(np.abs(now[0]).sum() - np.abs(self._parts[0].added[rows]).sum())
        if np.count_nonzero(now != np.rint(now)) or not self._size < EXACT:
            return False
        for sums, amounts in zip(self._parts, now.astype(np.int64), strict=True):
            sums.put(rows, amounts)
        return True

    def changed(self, row: int, domain: int, frame: RuleFrame) -> float | None:
        """Return the aggregate of a domain as if one node had changed; None if the sum would not be exact."""
        found = self.changed_each(np.array([row]), np.array([domain]), frame)
        return None if found is None else found.item(0)

    def changed_each(self, rows: RowNumbers, domains: NDArray[np.intp], frame: RuleFrame) -> Floats | None:
        """Return for each node the aggregate of its domain, as if only this node had changed.

        Shapes: (R,).
        Missing: None if an aggregate would not stay exact.
        """
        now = self._adding(frame)
        before = np.array([one.added[rows] for one in self._parts], np.float64)
        sizes = self._size + np.abs(now[0]) - np.abs(before[0])
        if np.count_nonzero(now != np.rint(now)) or not (sizes < EXACT).all():
            return None
        totals: Floats = now - before + np.array([one.totals[domains] for one in self._parts])
        with np.errstate(all="ignore"):
            found: Floats = totals[0] / totals[1] if self._node.op is Op.AVG_NODES else totals[0]
        return found

    def results(self) -> Floats:
        """Return the aggregate of each domain as a new array.

        Shapes: (D,). Missing: NaN for a mean without values.
        """
        found: Floats = self._parts[0].totals.astype(np.float64)
        if self._node.op is Op.AVG_NODES:
            with np.errstate(all="ignore"):
                found /= self._parts[1].totals
        return found

    def _adding(self, frame: RuleFrame) -> Floats:
        """Return what each node contributes to each sum. Shapes: (K, R) with K 2 for a mean, else 1."""
        value: Any = evaluate_columns(self._node.inner[0], frame)
        if self._node.op is Op.COUNT_NODES:
            true: Floats = as_column(np.asarray(value[0], np.float64), frame.rows)[None]
            return true
        values: Floats = as_column(np.asarray(value, np.float64), frame.rows)[None]
        there = ~np.isnan(values)
        summed: Floats = np.where(there, values, 0.0)
        return np.concatenate((summed, there)) if self._node.op is Op.AVG_NODES else summed


def _largest_of_others(values: Floats, domains: NDArray[np.intp]) -> Floats:
    """Return for each node the largest value of the other nodes in its domain, or NaN. Shapes: (R,)."""
    present = np.where(np.isnan(values), -math.inf, values)
    order = np.lexsort((present, domains))
    two = np.full((2, int(domains.max(initial=-1)) + 1), -math.inf)
    """The second largest and the largest value of each domain. Shapes: (2, D)."""
    ends = np.flatnonzero(np.diff(domains[order], append=-1))
    two[1][domains[order[ends]]] = present[order[ends]]
    seconds = ends[np.diff(ends, prepend=-1) > 1]
    two[0][domains[order[seconds]]] = present[order[seconds - 1]]
    found = np.where(present == two[1][domains], two[0][domains], two[1][domains])
    return np.where(np.isinf(found), math.nan, found)


def _is_local(node: Typed) -> bool:
    """Return whether a node's contribution to an aggregate depends on this node only."""
    [inner] = node.inner
    return inner.local and not any(_is_elsewhere(item) for item in inner.inputs)


def _is_elsewhere(item: Input) -> bool:
    """Return whether a change of a node can change an input on other nodes: counts over the cluster, image sizes."""
    return (item.root, item.path[0]) in VOLATILE or item.path[0] == "image_bytes"


def _inner_domains(node: Typed, pod: PodInputs, context: EvaluationContext) -> AggregateDomains | None:
    """Return groups of nodes that contribute equal values to a minimum or maximum; one node of each is evaluated.

    Missing: None if all rows have to be evaluated.
    """
    [inner] = node.inner
    if node.op not in _EXTREMES or node.args or not row_independent(inner)[inner]:
        return None
    key = key_of(inner)
    return domains_of(context, key, pod) if key is not None else None


def as_column(value: NDArray[Any], rows: int) -> NDArray[Any]:
    """Return a value as an array with one element for each node; a single value is repeated. Shapes: -> (R,)."""
    return value if value.shape == (rows,) else np.broadcast_to(value, (rows,))


def _codes(value: object) -> NDArray[np.integer]:
    """Return the values of a `by` key as integer codes; a single text for all nodes gets an arbitrary code."""
    if isinstance(value, np.ndarray):
        return value
    return np.asarray(MISSING if value is None else 0)
