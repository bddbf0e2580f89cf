"""Per-node results of pod-independent rules, shared by all pod classes.

One row of a matrix for each rule. It is written again only for nodes that changed in what the rule reads, and where an
aggregate or a value for all nodes moved; so what such a rule costs does not grow with the number of pod classes, and a
class reads the results of all its policies in a few operations.

Shapes: F filter rules, S score rules, C the capacity of the columns.
"""

from __future__ import annotations

import weakref
from collections.abc import Hashable, Iterable, Sequence

import numpy as np
from numpy.typing import NDArray

from policysched.framework import NO_ROWS, Aspect, Rows
from policysched.language.evaluation.columns import Batch
from policysched.language.ir.graph import Typed
from policysched.language.ir.types import Shape
from policysched.pausing import Pausing, finished
from policysched.rules.compile.graphs import is_pod_independent, reads_namespaces, shared_parts
from policysched.rules.dependencies.aggregates import hold
from policysched.rules.dependencies.context import EvaluationContext
from policysched.rules.dependencies.counters import PODS, Reads
from policysched.rules.dependencies.derived import AffectedRows, Dependency, after, dependencies_of
from policysched.rules.inputs.nodes import aspects_read
from policysched.rules.results.rule_rows import FINE, FilterRow, RuleRow, ScoreRow

LIVELY = Aspect.USAGE | Aspect.PODS | Aspect.AGE | Aspect.METRICS
"""What changes all the time."""


class RefreshGroup:
    """Rules that are written at the same time. It is a dependency: what it reaches, its readers have to read again."""

    __slots__ = ("_affected", "_context", "_generation", "_held", "_position", "_reads", "_reads_namespaces",
                 "_results", "_roots", "_stamps", "batch", "rules", "stamp")  # fmt: skip

    def __init__(self, results: PodIndependentResults, rules: Sequence[tuple[int, RuleRow]]) -> None:
        self._roots = [rule.root for _, rule in rules]
        self.rules = rules
        self.batch = Batch(self._roots)
        # The results hold it: who holds itself is only freed when garbage is looked for.
        self._results = weakref.ref(results)
        self._context = results.context
        self._reads_namespaces = any(reads_namespaces(root) for root in self._roots)
        self.stamp = 0
        self._begin()

    def refresh(self) -> None:
        """Bring the results up to date."""
        if (results := self._results()) is not None:
            results.refresh()

    def moved(self, since: int) -> Rows:
        """Give the rows that dependencies affected after a stamp; those too of which that can no longer be told."""
        return after(self._stamps[: self._context.cluster.nodes.size], since)

    def _current_generation(self) -> int:
        return self._context.cluster.namespaces_generation if self._reads_namespaces else 0

    def _begin(self) -> None:
        """Look for what the rules read; it has to be looked for again when namespaces have other labels."""
        context, roots = self._context, self._roots
        self._generation = self._current_generation()
        self._reads = Reads(roots, context.no_pod, context)
        self._held = hold(context, roots, context.no_pod)
        self._affected = AffectedRows(dependencies_of(context, roots, context.no_pod))
        self._position = -1
        self._stamps: NDArray[np.int64] = np.zeros(0, np.int64)

    def due(self) -> Rows:
        """Give the rows that have to be written again."""
        if self._generation != self._current_generation():
            self._begin()
        cluster = self._context.cluster
        changed: Rows | None = None
        counted = self._reads.counted()
        if self._stamps.size == cluster.nodes.columns.capacity:
            changed, _ = self._context.changed(self._position, self._reads.aspects | (PODS if counted else 0))
        else:
            self._stamps = np.zeros(cluster.nodes.columns.capacity, np.int64)
        self._position = cluster.journal.position
        affected = self._affected.extend(NO_ROWS if changed is None else changed)
        if changed is None:
            affected = slice(0, cluster.nodes.size)
        if affected is not changed:
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
        own_filters = [rule for rule in filters if is_pod_independent(rule.root)]
        own_scores = [rule for rule in scores if is_pod_independent(rule.root)]
        placed: list[tuple[int, RuleRow]] = [*enumerate(own_filters), *enumerate(own_scores)]
        self.index = {rule: index for index, rule in placed}
        """The place of each rule among those of its kind."""
        self.codes: NDArray[np.int32] = np.zeros((len(own_filters), 0), np.int32)
        """Codes of filter rules, FINE where they hold. Shapes: (F, C)."""
        self.values: NDArray[np.float64] = np.zeros((len(own_scores), 0))
        """Values of score rules, NaN where they have none. Shapes: (S, C)."""
        self.parts: NDArray[np.float64] = np.zeros((len(own_scores), 0))
        """Values of score rules, clipped and weighted. Shapes: (S, C)."""
        self.stamps = [0] * len(own_scores)
        """How often each score rule was written."""
        context.seed(context.no_pod, [rule.root for _, rule in placed])
        self._rules = placed
        self._groups: list[RefreshGroup] | None = None
        """None until they are first needed."""

    def dependencies(self, rules: Iterable[RuleRow]) -> list[Dependency]:
        """Return what tells when results of some of the rules have to be read again on rows that did not change."""
        if self._groups is None:
            finished(self._grouping())
        return list(dict.fromkeys(self._group_of[rule] for rule in rules))

    def refresh(self) -> None:
        """Write the results again where something changed."""
        version = self.context.version
        if version != self._version:
            self._version = version
            finished(self.refreshing())

    def refreshing(self) -> Pausing[None]:
        """Write the results again where something changed, pausing after each group of rules.

        What changes meanwhile is written when the results are refreshed next.
        """
        if self._groups is None:
            yield from self._grouping()
        columns = self.context.cluster.nodes.columns
        for group in self._groups or ():
            capacity = columns.capacity
            if self.codes.shape[1] != capacity:
                self.codes = np.full((len(self.codes), capacity), FINE, np.int32)
                self.values, self.parts = np.zeros((2, len(self.values), capacity))
            rows = group.due()
            if isinstance(rows, slice) or rows.size:
                self._write(group, rows)
                yield

    def _write(self, group: RefreshGroup, rows: Rows) -> None:
        frame = self.context.frame(self.context.no_pod, rows)
        if frame.has_room(len(group.batch)):
            group.batch.evaluate(frame)
        for index, rule in group.rules:
            frame.make_room()
            if isinstance(rule, FilterRow):
                self.codes[index, rows] = rule.result(frame)
            else:
                values = rule.values(frame)
                self.stamps[index] += 1
                self.values[index, rows] = values
                self.parts[index, rows] = rule.part(values)

    def _grouping(self) -> Pausing[None]:
        """Put rules together that read alike; one that placements may move on rows of others stands for itself.

        It pauses after each rule and each group, because what they count of placed pods is counted then.
        """
        alike: dict[Hashable, list[tuple[int, RuleRow]]] = {}
        held: list[Reads] = []
        for index, rule in self._rules:
            reads = Reads([rule.root], self.context.no_pod, self.context)
            held.append(reads)
            key: Hashable = (reads.aspects, reads.counts)
            if any(_is_lively(node) for node in shared_parts([rule.root], timed=True)):
                key = rule
            alike.setdefault(key, []).append((index, rule))
            yield
        groups: list[RefreshGroup] = []
        for group in alike.values():
            groups.append(RefreshGroup(self, group))
            yield
        self._groups = groups
        self._group_of = {rule: group for group in groups for _, rule in group.rules}


def _is_lively(node: Typed) -> bool:
    """Tell whether something that many rows look at differs between rows and moves with placements."""
    return node.type.shape is Shape.NODES and bool(aspects_read(node.inputs) & LIVELY)
