"""What pod-independent rules say of each row, kept once for all pod classes and written again where it may differ.

It is one row of a matrix for each rule. A row is written again only for nodes that changed in what the rule reads, and
where an aggregate or a value for all nodes moved; so what such a rule costs does not grow with the number of pod
classes.

Shapes: F filter rules, S score rules, C the capacity of the columns.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Iterable, Sequence
from functools import lru_cache
from typing import Any, TypeVar

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from policysched.framework import NO_ROWS, Aspect, Rows
from policysched.language.evaluation.columns import Batch
from policysched.language.ir.graph import Typed, per_graph
from policysched.language.ir.types import Shape
from policysched.rules.compile.graphs import is_pod_independent, reads_image_sizes, reads_namespaces, shared_parts
from policysched.rules.inputs import aspects_read
from policysched.rules.results.rule_rows import FINE, FilterRow, RuleRow, ScoreRow, Stacks, mixed_stacks, stacks_of
from policysched.rules.shared_values.aggregates import hold
from policysched.rules.shared_values.context import EvaluationContext, RuleFrame
from policysched.rules.shared_values.derived import AffectedRows, Dependency, after, dependencies_of
from policysched.rules.shared_values.pod_aggregates import PODS, Reads
from policysched.state.tables.journal import ABOUT_NODES

T = TypeVar("T")
FEW = 256
"""On how many rows rules of one shape are evaluated at once: for more, the copies that this takes cost more than it
saves."""
MOST_ORDERS = 256
"""For how many sets of rules that speak their order in a matrix is kept."""
LIVELY = Aspect.USAGE | Aspect.PODS | Aspect.AGE | Aspect.METRICS
"""What changes all the time."""


@per_graph
def is_direct(root: Typed) -> bool:
    """Return whether placements change what a graph says that reads nothing of the pod, and on their rows alone."""
    if not aspects_read(root.inputs) & (Aspect.USAGE | Aspect.PODS):
        return False
    elsewhere = any(True for _ in shared_parts([root], timed=True))
    return not (elsewhere or reads_image_sizes([root]) or reads_namespaces(root))


class RefreshGroup:
    """Rules that are written at the same time. It is a dependency: what it reaches, its readers have to read again."""

    __slots__ = ("_affected", "_context", "_generation", "_held", "_position", "_reads", "_reads_namespaces",
                 "_results", "_roots", "_skips_placements", "_stacks", "_stamps", "batch", "is_direct", "rules",
                 "scoring", "stamp")  # fmt: skip

    def __init__(self, results: PodIndependentResults, rules: Sequence[tuple[int, RuleRow]]) -> None:
        self._roots = [rule.root for _, rule in rules]
        self.rules = rules
        self.is_direct: bool = all(is_direct(root) for root in self._roots)
        """Whether the rules are evaluated anew by who asks about few rows."""
        self.scoring = [index for index, rule in rules if isinstance(rule, ScoreRow)]
        """The places of those that score."""
        self.batch = Batch(self._roots)
        self._stacks: Stacks | None = None
        # The results hold it: who holds itself is only freed when garbage is looked for.
        self._results = weakref.ref(results)
        self._context = results.context
        self._reads_namespaces = any(reads_namespaces(root) for root in self._roots)
        self.stamp = 0
        self._begin()

    def refresh(self) -> None:
        """Bring the results up to date."""
        if (results := self._results()) is not None:
            results.refresh(whole=self.is_direct)

    @property
    def stacks(self) -> Stacks:
        """What evaluates the rules on few rows: filters and scores with their places, and all of them together."""
        if self._stacks is None:
            filters = [(index, rule) for index, rule in self.rules if isinstance(rule, FilterRow)]
            scores = [(index, rule) for index, rule in self.rules if isinstance(rule, ScoreRow)]
            self._stacks = stacks_of(filters, scores)
        return self._stacks

    def forget(self) -> None:
        """Have all rows written again."""
        self._stamps: NDArray[np.int64] = np.zeros(0, np.int64)

    def moved(self, since: int) -> Rows:
        """Return the rows that dependencies affected after a stamp; those too of which that can no longer be told."""
        return after(self._stamps[: self._context.cluster.nodes.size], since)

    def _current_generation(self) -> int:
        return self._context.cluster.namespaces_stamp if self._reads_namespaces else 0

    def _begin(self) -> None:
        """Look for what the rules read; it has to be looked for again when namespaces have other labels."""
        context, roots = self._context, self._roots
        self._generation = self._current_generation()
        self._reads = Reads(roots, context.no_pod, context)
        self._held = hold(context, roots, context.no_pod)
        dependencies = dependencies_of(context, roots, context.no_pod)
        self._affected = AffectedRows(dependencies)
        self._skips_placements = not (self._reads.aspects & ~ABOUT_NODES or self._reads.counts or dependencies)
        self._position = -1
        self.forget()

    def _count(self) -> None:
        if (results := self._results()) is not None:
            results.moves += 1

    def due(self) -> Rows:
        """Return the rows that have to be written again."""
        if self._generation != self._current_generation():
            self._begin()
        cluster = self._context.cluster
        journal = cluster.journal
        is_known = self._stamps.size == cluster.nodes.columns.capacity
        if is_known and self._skips_placements and journal.about_nodes <= self._position:
            self._position = journal.position
            return NO_ROWS
        changed: Rows | None = None
        counted = self._reads.counted()
        if is_known:
            changed, _ = self._context.changed(self._position, self._reads.aspects | (PODS if counted else 0))
        else:
            self._stamps = np.zeros(cluster.nodes.columns.capacity, np.int64)
        self._position = journal.position
        affected = self._affected.extend(NO_ROWS if changed is None else changed)
        if changed is None:
            affected = slice(0, cluster.nodes.size)
        if affected is not changed:
            self._count()
            self.stamp += 1
            self._stamps[affected] = self.stamp
        return affected


class PodIndependentResults:
    """What those of some rules say that read nothing of the pod, before any normalising."""

    def __init__(
        self, context: EvaluationContext, filters: Iterable[FilterRow] = (), scores: Iterable[ScoreRow] = ()
    ) -> None:
        self.context = context
        self._version: object = None
        """When the results were last brought up to date, but perhaps those of direct rules."""
        self._whole_version: object = None
        self.moves = 0
        """How often a group of rules had rows that something else than a change of them affected."""
        own_filters = [rule for rule in filters if is_pod_independent(rule.root)]
        own_scores = [rule for rule in scores if is_pod_independent(rule.root)]
        placed: list[tuple[int, RuleRow]] = [*enumerate(own_filters), *enumerate(own_scores)]
        self.index = {rule: index for index, rule in placed}
        """The place of each rule among those of its kind."""
        self.direct: frozenset[RuleRow] = frozenset(rule for rule in self.index if is_direct(rule.root))
        """Rules that whoever asks about few rows evaluates: placements change what they say, on their rows alone."""
        self.codes: NDArray[np.int32] = np.zeros((len(own_filters), 0), np.int32)
        """Codes of filter rules, FINE where they hold. Shapes: (F, C)."""
        self.values: NDArray[np.float64] = np.zeros((len(own_scores), 0))
        """Values of score rules, NaN where they have none. Shapes: (S, C)."""
        self.parts: NDArray[np.float64] = np.zeros((len(own_scores), 0))
        """Values of score rules, clipped and weighted. Shapes: (S, C)."""
        self.stamps = [0] * len(own_scores)
        """How often each score rule was written."""
        self._rules = placed
        self.seed()
        # Those were written before this one was made: nobody ever waits for who waits for him.
        self._earlier = {rule: weakref.ref(context.results[rule]) for _, rule in placed if rule in context.results}
        self._groups: list[RefreshGroup] | None = None
        """None until they are first needed."""
        self.batch_of = lru_cache(maxsize=256)(Batch)
        """What evaluates some graphs together; pod classes for which the same rules speak have the same."""
        self.own_stacks = lru_cache(maxsize=256)(mixed_stacks)
        """The same of some rules for few rows: those of one shape together."""
        self._orders: LRUCache[Hashable, Any] = LRUCache(MOST_ORDERS)

    def kept_order(self, key: Hashable, make: Callable[[], T]) -> T:
        """Return what a set of rules that speak stands for, the same for all pod classes for which they do."""
        found: T | None = self._orders.get(key)
        if found is None:
            found = self._orders[key] = make()
        return found

    def seed(self) -> None:
        """Find out what the rules make of no pod and no node, for all frames."""
        self.context.seed(self.context.no_pod, [rule.root for _, rule in self._rules])

    def dependencies(self, rules: Iterable[RuleRow]) -> list[Dependency]:
        """Return what tells when results of some of the rules have to be read again on rows that did not change."""
        if self._groups is None:
            self._make_groups()
        return list(dict.fromkeys(self._group_of[rule] for rule in rules))

    def refresh(self, *, whole: bool = True) -> None:
        """Write the results again where something changed; those of direct rules if all are wanted."""
        version = self.context.version
        if version == (self._whole_version if whole else self._version):
            return
        try:
            self._write_due(whole=whole)
        except BaseException:  # half of it is written
            self._version = self._whole_version = None
            for group in self._groups or ():
                group.forget()
            raise
        self._version = version
        if whole:
            self._whole_version = version

    def _write_due(self, *, whole: bool) -> None:
        """Write the results again where something changed."""
        if self._groups is None:
            self._make_groups()
        capacity = self.context.cluster.nodes.columns.capacity
        if self.codes.shape[1] != capacity:
            self.codes = np.full((len(self.codes), capacity), FINE, np.int32)
            self.values, self.parts = np.zeros((2, len(self.values), capacity))
        for group in self._groups or ():
            if group.is_direct and not whole:
                continue
            rows = group.due()
            if isinstance(rows, slice):
                self._write_all(group, rows)
            elif rows.size:
                self._write_group(group, self.context.frame(self.context.no_pod, rows))

    def _write_all(self, group: RefreshGroup, rows: slice) -> None:
        """Write what a group of rules says of all rows."""
        for index, rule in group.rules:
            if not self._take_over(index, rule, rows):
                self._write(index, rule, self.context.frame(self.context.no_pod, rows))
            self.context.results[rule] = self

    def _take_over(self, index: int, rule: RuleRow, rows: slice) -> bool:
        """Copy what an earlier set's results say of all rows, once; return whether there are any."""
        earlier = self._earlier.pop(rule, None)
        before = None if earlier is None else earlier()
        if before is None:
            return False
        before.refresh()
        known = before.index[rule]
        if isinstance(rule, FilterRow):
            self.codes[index, rows] = before.codes[known, rows]
        else:
            self.stamps[index] += 1
            self.values[index, rows] = before.values[known, rows]
            self.parts[index, rows] = before.parts[known, rows]
        return True

    def _write_group(self, group: RefreshGroup, frame: RuleFrame) -> None:
        """Write what a group of rules says of rows that changed."""
        if frame.rows > FEW:
            if frame.has_room(len(group.batch)):
                group.batch.evaluate(frame)
            for index, rule in group.rules:
                self._write(index, rule, frame)
            return
        filters, scores, batch = group.stacks
        batch.evaluate(frame)
        for filter_stack, places in filters:
            self.codes[places, frame.selected] = filter_stack.result(frame)
        for score_stack, places in scores:
            values = score_stack.values(frame)
            self.values[places, frame.selected] = values
            self.parts[places, frame.selected] = score_stack.part(values)
        for index in group.scoring:
            self.stamps[index] += 1

    def _write(self, index: int, rule: RuleRow, frame: RuleFrame) -> None:
        frame.make_room()
        rows = frame.selected
        if isinstance(rule, FilterRow):
            self.codes[index, rows] = rule.result(frame)
        else:
            values = rule.values(frame)
            self.stamps[index] += 1
            self.values[index, rows] = values
            self.parts[index, rows] = rule.part(values)

    def _make_groups(self) -> None:
        """Put rules together that read alike; one that placements may move on rows of others stands for itself."""
        together: dict[Hashable, list[tuple[int, RuleRow]]] = {}
        held: list[Reads] = []
        for index, rule in self._rules:
            reads = Reads([rule.root], self.context.no_pod, self.context)
            held.append(reads)
            key: Hashable = (reads.aspects, reads.counts, is_direct(rule.root))
            if any(_is_lively(node) for node in shared_parts([rule.root], timed=True)):
                key = rule
            together.setdefault(key, []).append((index, rule))
        self._groups = groups = [RefreshGroup(self, group) for group in together.values()]
        self._group_of = {rule: group for group in groups for _, rule in group.rules}


def _is_lively(node: Typed) -> bool:
    """Return whether something that many rows look at differs between rows and moves with placements."""
    return node.type.shape is Shape.NODES and bool(aspects_read(node.inputs) & LIVELY)
