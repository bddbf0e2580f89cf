"""The score rules of a policy for one pod class: values by row, then one score a row.

Order of steps: a rule's value, its normalising over the feasible rows that have one, the `missing` arm or 0 where there
is none, clipping to 0..100, the mean weighted in rule order in float64, rounding half up.

Shapes: S rules, R rows asked for, N rows in use.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from policysched.framework import Cluster, Mask, Rows, Scores
from policysched.model.objects import Pod
from policysched.rules.compiled import CompiledScore
from policysched.rules.frame import RuleFrame, number

Values = NDArray[np.float64]


class ScoreState:
    """The score rules that speak for a pod class, and the values of those that normalise."""

    __slots__ = ("cluster", "pod", "rules", "values")

    def __init__(self, cluster: Cluster, pod: Pod, rules: tuple[CompiledScore, ...]) -> None:
        self.cluster = cluster
        self.pod = pod
        self.rules = rules
        self.values: Values = np.zeros((len(rules), 0))

    def keep(self, rows: Rows, values: Values) -> None:
        """Remember values by row for the normalising that follows."""
        capacity = self.cluster.nodes.columns.capacity
        if self.values.shape[1] != capacity:
            self.values = np.full((len(self.rules), capacity), np.nan)
        self.values[:, rows] = values

    def normalized(self, feasible: Mask) -> Values:
        """Give all rows' values after each rule's normalising over the feasible ones.

        Shapes: (S, N), NaN where a rule has no value.
        """
        values = self.values[:, : feasible.size].copy()
        frame = RuleFrame(self.cluster, self.pod, slice(0, feasible.size), feasible)
        for position, rule in enumerate(self.rules):
            if not rule.value.is_local:
                values[position] = number(rule.value, frame)
            if rule.takes_maximum:
                values[position] = _scaled_by_maximum(values[position], feasible)
        return values


def raw_scores(state: ScoreState, rows: Rows) -> Values:
    """Evaluate the rules on rows before any normalising.

    Shapes: (S, R), NaN where a rule has no value.
    """
    frame = RuleFrame(state.cluster, state.pod, rows)
    values = np.empty((len(state.rules), frame.rows))
    for position, rule in enumerate(state.rules):
        values[position] = number(rule.value, frame) if rule.value.is_local else np.nan
    if not all(rule.is_local for rule in state.rules):
        state.keep(rows, values)
    return values


def combine(state: ScoreState, values: Values) -> Scores:
    """Make one score a row of the rules' normalised values.

    Shapes: (S, R) -> (R,) int64.
    """
    total = np.zeros(values.shape[1])
    for rule, column in zip(state.rules, values, strict=True):
        total += rule.weight * clipped(rule, column)
    weights = sum(rule.weight for rule in state.rules)
    return np.floor(total / weights + 0.5).astype(np.int64) if weights else np.zeros(total.size, np.int64)


def clipped(rule: CompiledScore, values: Values) -> Values:
    """Fill in what is missing and clip to 0..100.

    Shapes: (R,) -> (R,).
    """
    filled: Values = np.where(np.isnan(values), rule.missing, values)
    return np.minimum(np.maximum(filled, 0.0), 100.0)


def rule_values(state: ScoreState, feasible: Mask) -> Sequence[tuple[CompiledScore, Values]]:
    """Give each rule's own values after normalising, for decision records.

    Shapes: (N,) each, NaN where the rule has none.
    """
    size = feasible.size
    local = raw_scores(state, slice(0, size))
    values = local if all(rule.is_local for rule in state.rules) else state.normalized(feasible)
    return list(zip(state.rules, values, strict=True))


def _scaled_by_maximum(values: Values, feasible: Mask) -> Values:
    present = feasible & ~np.isnan(values)
    highest = values.max(initial=-np.inf, where=present)
    if highest > 0:
        scaled: Values = 100.0 * values / highest
        return scaled
    return np.where(np.isnan(values), np.nan, np.float64(0))
