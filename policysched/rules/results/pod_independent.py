"""`PodIndependentResults`: results of rules that do not read the pod, cached for all pods.

A rule is pod-independent if it reads nothing of the pod. Each such rule has one row in a matrix. A node is evaluated
again only if an input of the rule changed, or if an aggregate or another shared value changed for it. The work for
such a rule does not grow with the number of pod classes. An edit of a policy evaluates only the rules that are new.

Shapes: F filter rules, S score rules, C the capacity of the columns.
"""

from __future__ import annotations

import itertools
import weakref
from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from policysched.framework import NO_ROWS, Aspect, RowNumbers, Rows
from policysched.language.evaluation.columns import Batch
from policysched.language.ir.graph import Typed
from policysched.language.ir.types import Shape
from policysched.rules.compile.graphs import is_pod_independent, reads_namespaces, shared_parts
from policysched.rules.inputs import aspects_read
from policysched.rules.results.rule_rows import (
    FINE,
    FilterRow,
    FilterStack,
    RuleEvaluator,
    RuleRow,
    ScoreRow,
    ScoreStack,
    as_slice,
)
from policysched.rules.shared_values.aggregates import hold
from policysched.rules.shared_values.context import EvaluationContext, RuleFrame
from policysched.rules.shared_values.derived import AffectedRows, Dependency, after, dependencies_of
from policysched.rules.shared_values.pod_aggregates import PODS, Reads
from policysched.state.tables.journal import ABOUT_NODES

FEW = 256
"""Number of nodes up to which rules of equal shape are evaluated together; beyond it, copying takes longer."""
KEPT_EVALUATORS = 256
"""Maximum number of cached evaluators of rules that read the pod; beyond it, the least recently used are dropped."""
LIVELY = Aspect.USAGE | Aspect.PODS | Aspect.AGE | Aspect.METRICS
"""The changes of nodes (`Aspect`) that are frequent, because of placements, time and metrics."""


class RefreshGroup:
    """Rules that do not read the pod and that are affected by the same changes, so that they are refreshed together."""

    def __init__(self, results: PodIndependentResults) -> None:
        self.rules: Sequence[tuple[int, RuleRow]] = ()
        """The rules, each with its array row in the matrix of codes or values."""
        self.stamp = 0
        self.written = 0
        """Number of the last write of this group's results; writes of all groups are numbered consecutively."""
        self._stacks: tuple[list[tuple[FilterStack | ScoreStack, Rows]], Batch] | None = None
        self._results = weakref.ref(results)  # a cycle of strong references is only freed by the garbage collector
        self._context = results.context
        self._position = -1
        self._stamps: NDArray[np.int64] = np.zeros(0, np.int64)
        self._reads_namespaces = False

    def use(self, rules: Sequence[tuple[int, RuleRow]]) -> None:
        """Replace the rules of the group; the caller has to evaluate new rules on all nodes."""
        self.rules = rules
        self.evaluator = RuleEvaluator([rule for _, rule in rules])
        self._stacks = None
        self._reads_namespaces = any(reads_namespaces(rule.root) for _, rule in rules)
        self._find_inputs()

    @property
    def stacks(self) -> tuple[list[tuple[FilterStack | ScoreStack, Rows]], Batch]:
        """The rules in stacks (rules of equal shape) with their array rows, and the expression graphs of the stacks."""
        if self._stacks is None:
            stacks, batch = self.evaluator.stacks
            indices = np.array([index for index, _ in self.rules], np.intp)
            self._stacks = [(stack, _first_axis(indices[places])) for stack, places in stacks], batch
        return self._stacks

    @property
    def affects_other_rows(self) -> bool:
        """Whether a change of one node can change results on other nodes."""
        return self._reads_namespaces or bool(self._affected.dependencies)

    def refresh(self) -> None:
        """Evaluate the rules on the nodes that changed since the last refresh."""
        if (results := self._results()) is not None:
            results.refresh()

    def forget(self) -> None:
        """Make the next refresh evaluate all nodes."""
        self._stamps = np.zeros(0, np.int64)

    def changed_rows(self, since: int) -> Rows:
        """Return the nodes whose results may have changed since `stamp` had a value."""
        return after(self._stamps[: self._context.cluster.nodes.size], since)

    def due(self) -> Rows:
        """Return the nodes on which the rules have to be evaluated again."""
        if self._namespaces_stamp != self._current_namespaces_stamp():
            self._find_inputs()
            self.forget()
        cluster = self._context.cluster
        journal = cluster.journal
        is_known = self._stamps.size == cluster.nodes.columns.capacity
        if is_known and self._skips_placements and journal.about_nodes <= self._position:
            self._position = journal.position
            return NO_ROWS
        changed: Rows | None = None
        counters_changed = self._reads.counters_changed()
        if is_known:
            reads = self._reads.aspects | (PODS if counters_changed else 0)
            changed, _ = self._context.changed(self._position, reads)
        else:
            self._stamps = np.zeros(cluster.nodes.columns.capacity, np.int64)
        self._position = journal.position
        affected = self._affected.extend(NO_ROWS if changed is None else changed)
        if changed is None:
            affected = slice(0, cluster.nodes.size)
        if affected is not changed:
            self.stamp += 1
            self._stamps[affected] = self.stamp
        return affected

    def _current_namespaces_stamp(self) -> int:
        return self._context.cluster.namespaces_stamp if self._reads_namespaces else 0

    def _find_inputs(self) -> None:
        """Determine the inputs and dependencies of the rules, again after changes of namespace labels."""
        context, roots = self._context, [rule.root for _, rule in self.rules]
        self._namespaces_stamp = self._current_namespaces_stamp()
        self._reads = Reads(roots, context.no_pod, context)
        self._held = hold(context, roots, context.no_pod)
        dependencies = dependencies_of(context, roots, context.no_pod)
        self._affected = AffectedRows(dependencies)
        self._skips_placements = not (self._reads.aspects & ~ABOUT_NODES or self._reads.has_counters or dependencies)


class PodIndependentResults:
    """The results, on one cluster, of all rules in force that do not read the pod, before normalizing."""

    def __init__(self, context: EvaluationContext) -> None:
        self.context = context
        self.index: dict[RuleRow, int] = {}
        """The array row of each rule in the matrix of codes or values."""
        capacity = context.cluster.nodes.columns.capacity
        self.codes: NDArray[np.int32] = np.zeros((0, capacity), np.int32)
        """The codes of filter rules; FINE if the condition is true. Shapes: (F, C)."""
        self.values: NDArray[np.float64] = np.zeros((0, capacity))
        """The values of score rules; NaN if missing. Shapes: (S, C)."""
        self.parts: NDArray[np.float64] = np.zeros((0, capacity))
        """The values of score rules, clipped and multiplied by the weights. Shapes: (S, C)."""
        self._evaluators: LRUCache[tuple[RuleRow, ...], RuleEvaluator] = LRUCache(KEPT_EVALUATORS)
        self._owners: weakref.WeakKeyDictionary[object, Sequence[RuleRow]] = weakref.WeakKeyDictionary()
        self._groups: dict[Hashable, RefreshGroup] = {}
        self._group_of: dict[RuleRow, Hashable] = {}
        self._writes = itertools.count(1)
        self._current_stamp: object = None
        """The value of the context's stamp for which the results were computed."""

    def use(self, owner: object, rules: Iterable[RuleRow]) -> None:
        """Cache the results of rules for as long as the given owner exists."""
        if owner in self._owners:
            return
        self._owners[owner] = tuple(rules)
        try:
            self._regroup()
        except BaseException:
            del self._owners[owner]
            self._regroup()
            raise

    def evaluator(self, rules: tuple[RuleRow, ...]) -> RuleEvaluator:
        """Return the evaluator for given rules that read the pod, which all pods with the same rules share."""
        found = self._evaluators.get(rules)
        if found is None:
            found = self._evaluators[rules] = RuleEvaluator(rules)
        return found

    def dependencies(self, rules: Iterable[RuleRow]) -> list[Dependency]:
        """Return the refresh groups of the given rules in which a change of one node can change results on others."""
        groups = dict.fromkeys(self._groups[self._group_of[rule]] for rule in rules)
        return [group for group in groups if group.affects_other_rows]

    def written(self, rule: RuleRow) -> int:
        """Return a number that increases with each write of a rule's results."""
        return self._groups[self._group_of[rule]].written

    def refresh(self) -> None:
        """Evaluate the rules on the nodes that changed since the last refresh."""
        stamp = self.context.stamp
        if stamp == self._current_stamp:
            return
        try:
            self._write_due()
        except BaseException:  # the results are partly written
            self._current_stamp = None
            for group in self._groups.values():
                group.forget()
            raise
        self._current_stamp = stamp

    def _regroup(self) -> None:
        """Drop the rules whose owner no longer exists, and evaluate new rules on all nodes."""
        owned = dict.fromkeys(rule for rules in self._owners.values() for rule in rules)
        for rules in [rules for rules in self._evaluators if not owned.keys() >= set(rules)]:
            del self._evaluators[rules]
        live = [rule for rule in owned if is_pod_independent(rule.root)]
        gone = [rule for rule in self.index if rule not in owned]
        new = [rule for rule in live if rule not in self.index]
        if not gone and not new:
            return
        self.refresh()
        for rule in gone:
            del self.index[rule]
            self._group_of.pop(rule, None)
        if gone:
            self.context.clear_scalars()
        self.context.seed(self.context.no_pod, [rule.root for rule in (live if gone else new)])
        self._give_rows(new)
        for rule in new:
            self._group_of[rule] = _group_key(rule, self.context)
        self._fill_groups()
        for rule in new:
            rows = slice(0, self.context.cluster.nodes.size)
            self._write(self.index[rule], rule, self.context.frame(self.context.no_pod, rows))
            self._groups[self._group_of[rule]].written = next(self._writes)

    def _give_rows(self, rules: Iterable[RuleRow]) -> None:
        """Assign array rows of the result matrices to new rules; rows of dropped rules are reused first."""
        for kind, count in ((FilterRow, len(self.codes)), (ScoreRow, len(self.values))):
            taken = {index for rule, index in self.index.items() if isinstance(rule, kind)}
            own = [rule for rule in rules if isinstance(rule, kind)]
            free = [index for index in range(count + len(own)) if index not in taken]
            self.index |= dict(zip(own, free, strict=False))
        rows = [
            [index for rule, index in self.index.items() if isinstance(rule, kind)] for kind in (FilterRow, ScoreRow)
        ]
        filters, scores = (1 + max(one, default=-1) for one in rows)
        self.codes = _with_rows(self.codes, filters, FINE)
        self.values, self.parts = _with_rows(self.values, scores, 0), _with_rows(self.parts, scores, 0)

    def _fill_groups(self) -> None:
        """Divide the rules into refresh groups by key; groups with unchanged rules are kept."""
        found: dict[Hashable, list[tuple[int, RuleRow]]] = {}
        for rule, index in self.index.items():
            found.setdefault(self._group_of[rule], []).append((index, rule))
        for key in self._groups.keys() - found.keys():
            del self._groups[key]
        for key, rules in found.items():
            group = self._groups.get(key)
            if group is None:
                group = self._groups[key] = RefreshGroup(self)
            if group.rules != rules:
                group.use(rules)
        # the caller writes the new rules on all rows, so their groups have no rows due
        for group in self._groups.values():
            group.due()

    def _write_due(self) -> None:
        """Evaluate each refresh group on the nodes that changed for the group."""
        capacity = self.context.cluster.nodes.columns.capacity
        if self.codes.shape[1] != capacity:
            self.codes = np.full((len(self.codes), capacity), FINE, np.int32)
            self.values, self.parts = np.zeros((2, len(self.values), capacity))
        for group in self._groups.values():
            rows = group.due()
            if isinstance(rows, slice):
                for index, rule in group.rules:
                    self._write(index, rule, self.context.frame(self.context.no_pod, rows))
            elif rows.size:
                self._write_group(group, self.context.frame(self.context.no_pod, rows))
            else:
                continue
            group.written = next(self._writes)

    def _write_group(self, group: RefreshGroup, frame: RuleFrame) -> None:
        """Evaluate a refresh group on the nodes of a frame (values that expressions read), and store the results."""
        rows = frame.selected
        if frame.rows > FEW:
            batch = group.evaluator.batch
            if frame.has_room(len(batch)):
                batch.evaluate(frame)
            for index, rule in group.rules:
                self._write(index, rule, frame)
            return
        stacks, batch = group.stacks
        batch.evaluate(frame)
        for stack, at in stacks:
            if isinstance(stack, FilterStack):
                self.codes[at, rows] = stack.result(frame)
            else:
                self.values[at, rows] = values = stack.values(frame)
                self.parts[at, rows] = stack.part(values)

    def _write(self, index: int, rule: RuleRow, frame: RuleFrame) -> None:
        """Evaluate a rule on the nodes of a frame (the values that expressions read), and store the results."""
        frame.make_room()
        rows = frame.selected
        if isinstance(rule, FilterRow):
            self.codes[index, rows] = rule.result(frame)
        else:
            self.values[index, rows] = values = rule.values(frame)
            self.parts[index, rows] = rule.part(values)


def _first_axis(places: RowNumbers) -> Rows:
    """Return indices of array rows in a form that NumPy combines with indices of columns."""
    found = as_slice(places)
    return found if isinstance(found, slice) else found[:, None]


def _group_key(rule: RuleRow, context: EvaluationContext) -> Hashable:
    """Return the key of a rule's refresh group; a rule by which a placement changes results on other nodes is alone."""
    if any(_is_lively(node) for node in shared_parts([rule.root], timed=True)):
        return rule
    reads = Reads([rule.root], context.no_pod, context)
    return (reads.aspects, reads.has_counters)


def _is_lively(node: Typed) -> bool:
    """Return whether an expression differs between nodes and changes with placements, time or metrics."""
    return node.type.shape is Shape.NODES and bool(aspects_read(node.inputs) & LIVELY)


def _with_rows(matrix: NDArray[Any], rows: int, filling: float) -> NDArray[Any]:
    """Return a matrix with at least `rows` array rows; added rows have the value `filling`."""
    more = rows - len(matrix)
    return np.vstack((matrix, np.full((more, matrix.shape[1]), filling, matrix.dtype))) if more > 0 else matrix
