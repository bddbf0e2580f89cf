"""`NormalizedScores`: scores of a policy with a normalizing rule, which depend on the feasible nodes.

Order of steps: the value of a rule, normalising over the feasible rows with a value, the `missing` arm or 0 for rows
without a value, clipping to 0..100, the weighted mean in rule order in float64, rounding half up.

Shapes: R evaluated rows, N rows in use, C the capacity of the columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from policysched.framework import Mask, Rows, Scores, SizedState
from policysched.rules.inputs import PodInputs
from policysched.rules.results.pod_independent import PodIndependentResults
from policysched.rules.results.rule_rows import ScoreRow, Values
from policysched.rules.shared_values.aggregates import hold, own_arrays
from policysched.rules.shared_values.context import RuleFrame
from policysched.rules.shared_values.derived import ARRAYS_PER_DEPENDENCY, AffectedRows, dependencies_of
from policysched.state.placed.counter import PodCounter
from policysched.state.tables.columns import memory_of

ARRAYS, ARRAYS_PER_RULE = 1, 1
"""Number of arrays with one element per node: for the final scores, and for each rule."""


class NormalizedScores(SizedState):
    """The values of a policy's score rules for a class of equal pods, and scores normalized over the feasible nodes."""

    __slots__ = ("_arrays", "_context", "_held", "_independent", "_last", "_own", "_pod", "_stamps",
                 "affected", "rules")  # fmt: skip

    def __init__(self, independent: PodIndependentResults, pod: PodInputs, rules: Sequence[ScoreRow]) -> None:
        self._independent, self._pod, self.rules = independent, pod, rules
        self._context = context = independent.context
        kept = [rule for rule in rules if rule in independent.index]
        roots = [rule.root for rule in rules if rule not in independent.index]
        context.seed(pod, roots)
        dependencies = dependencies_of(context, roots, pod)
        self.affected = AffectedRows([*independent.dependencies(kept), *dependencies])
        self._arrays = ARRAYS + ARRAYS_PER_RULE * len(rules) + own_arrays(roots, pod)
        self._arrays += ARRAYS_PER_DEPENDENCY * len(dependencies)
        self._held = hold(context, roots, pod)
        self._own: dict[ScoreRow, Values] = {}
        """The values of the rules that read the pod. Shapes: (C,)."""
        self._stamps: Counter[ScoreRow] = Counter()
        """How often the values of each rule that reads the pod were written."""
        self._last: tuple[list[tuple[int, int] | None], Mask, Scores] | None = None

    def memory(self, rows: int) -> int:
        """Estimate the memory of the arrays, which have `rows` elements, and of the pod counters. Units: bytes."""
        return memory_of(self._arrays, rows) + sum(one.nbytes for one in self._held if isinstance(one, PodCounter))

    def affected_rows(self, rows: Rows) -> Rows:
        """Return the changed nodes and the nodes whose shared values, such as aggregates, changed."""
        return self.affected.extend(rows)

    def answers(self, rows: Rows) -> Scores:
        """Evaluate the rules on nodes and cache the values; return the placeholder score 1 for each. Shapes: (R,)."""
        frame = self._context.frame(self._pod, rows)
        for rule in self.rules:
            if rule not in self._independent.index and not rule.root.normalizes:
                if rule not in self._own:
                    self._own[rule] = np.zeros(self._capacity)
                self._own[rule][rows] = rule.values(frame)
                self._stamps[rule] += 1
        return np.ones(frame.rows, np.int64)

    def final(self, feasible: Mask) -> Scores:
        """Return the scores normalized over the feasible nodes; they are cached and must not be changed.

        Shapes: (N,) -> (N,).
        """
        stamps, last = [self._stamp(rule) for rule in self.rules], self._last
        if last is not None and last[0] == stamps and np.array_equal(last[1], feasible):
            return last[2]
        scores = self._combined(feasible)
        self._last = (stamps, feasible, scores) if None not in stamps else None
        return scores

    def by_rule(self, feasible: Mask) -> list[tuple[ScoreRow, Values]]:
        """Return each rule's values on all nodes, normalized over the feasible nodes; `answers` must be called before.

        Shapes: (N,) each, NaN where a rule has no value.
        """
        values = ((rule, self._raw(rule, feasible)) for rule in self.rules)
        return [
            (rule, by_maximum(value, highest(value, feasible)) if rule.rule.takes_maximum else value)
            for rule, value in values
        ]

    @property
    def _capacity(self) -> int:
        return self._context.cluster.nodes.columns.capacity

    def _stamp(self, rule: ScoreRow) -> tuple[int, int] | None:
        """Return a value that changes with the values of a rule; None if the values are not cached."""
        index = self._independent.index.get(rule)
        if index is None:
            return (-1, self._stamps[rule]) if rule in self._stamps else None
        self._independent.refresh()
        return index, self._independent.written(rule)

    def _raw(self, rule: ScoreRow, feasible: Mask) -> Values:
        """Return a rule's values on all nodes before scaling by the maximum. Shapes: (N,)."""
        index, own = self._independent.index.get(rule), self._own.get(rule)
        if index is not None:
            self._independent.refresh()
            kept: Values = self._independent.values[index, : feasible.size]
            return kept
        if own is not None:
            return own[: feasible.size]
        rows = slice(0, feasible.size)
        return rule.values(RuleFrame(self._context, self._pod, rows, feasible))

    def _combined(self, feasible: Mask) -> Scores:
        total: Values | None = None
        for rule in self.rules:
            values = self._raw(rule, feasible)
            part = rule.part(by_maximum(values, highest(values, feasible)) if rule.rule.takes_maximum else values)
            total = part if total is None else total + part
        weights = sum(rule.rule.weight for rule in self.rules)
        if total is None or not weights:
            return np.zeros(feasible.size, np.int64)
        return np.floor(total / weights + 0.5).astype(np.int64)


def highest(values: Values, feasible: Mask) -> float:
    """Return the largest value on feasible nodes; minus infinity if no feasible node has a value."""
    chosen = values[feasible]
    largest = float(np.fmax.reduce(chosen, initial=-np.inf))
    return -np.inf if np.isnan(largest) else largest


def by_maximum(values: Values, top: float) -> Values:
    """Return values scaled so that the largest is 100. Shapes: (N,) -> (N,)."""
    if top > 0:
        scaled: Values = 100.0 * values / top
        return scaled
    return np.where(np.isnan(values), np.nan, np.float64(0))
