"""The score rules of a policy for one pod class: values by row, then one score a row.

Order of steps: a rule's value, its normalising over the feasible rows that have one, the `missing` arm or 0 where there
is none, clipping to 0..100, the mean weighted in rule order in float64, rounding half up.

Shapes: R rows asked for, N rows in use, C the capacity of the columns.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import NDArray

from policysched.framework import Mask, Rows, Scores
from policysched.rules.compiled import CompiledScore
from policysched.rules.frame import RuleFrame, count_rows, number
from policysched.rules.kept import Kept, Reach
from policysched.rules.shared import Shared
from policysched.rules.subject import Subject

Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True)
class ScoreState:
    """The score rules that speak for a pod class."""

    shared: Shared
    subject: Subject
    rules: tuple[CompiledScore, ...]
    common: Kept | None
    """The scores by row, where no rule reads the pod and none normalises."""
    kept: dict[str, Kept]
    """Values of rules that read nothing of the pod, by rule, where some rule normalises."""
    normalizes: bool
    reach: Reach
    held: object
    values: dict[str, Values] = field(default_factory=dict)
    """Values of the other rules, where some rule normalises. Shapes: (C,)."""

    def scores(self, rows: Rows) -> Scores:
        """Give the final scores of rows; where some rule normalises, keep the values for it instead.

        Shapes: (R,).
        """
        if self.common is not None:
            self.common.refresh()
            return self.common.at(rows)
        frame = self.shared.frame(self.subject, rows)
        if not self.normalizes:
            return combine([(rule, rule_values(rule, frame)) for rule in self.rules])
        for rule in self.rules:
            if rule.name not in self.kept and not rule.value.root.normalizes:
                self._values(rule)[rows] = rule_values(rule, frame)
        return np.ones(count_rows(self.shared.cluster, rows), np.int64)

    def normalized(self, feasible: Mask) -> list[tuple[CompiledScore, Values]]:
        """Give each rule's values on all rows after its normalising over the feasible ones, `scores` having been asked.

        Shapes: (N,) each, NaN where a rule has no value.
        """
        rows = slice(0, feasible.size)
        frame = RuleFrame(self.shared.cluster, self.subject, self.shared, rows, feasible)
        values = ((rule, self._raw(rule, rows, frame)) for rule in self.rules)
        return [(rule, _by_maximum(value, feasible) if rule.takes_maximum else value) for rule, value in values]

    @property
    def nbytes(self) -> int:
        """The memory of what belongs to this pod class alone. Units: bytes."""
        return sum(values.nbytes for values in self.values.values())

    def _raw(self, rule: CompiledScore, rows: Rows, frame: RuleFrame) -> Values:
        kept = self.kept.get(rule.name)
        if kept is not None:
            kept.refresh()
            return kept.at(rows)
        values = self.values.get(rule.name)
        return values[rows] if values is not None else rule_values(rule, frame)

    def _values(self, rule: CompiledScore) -> Values:
        values = self.values.get(rule.name)
        if values is None:
            values = self.values[rule.name] = np.zeros(self.shared.cluster.nodes.columns.capacity)
        return values


def rule_values(rule: CompiledScore, frame: RuleFrame) -> Values:
    """Evaluate one rule before any normalising.

    Shapes: (R,), NaN where it has no value.
    """
    value = number(rule.value, frame)
    return value if value.shape else np.full(frame.rows, value, np.float64)


def combine(values: Sequence[tuple[CompiledScore, Values]]) -> Scores:
    """Make one score a row of the rules' normalised values.

    Shapes: (R,) each -> (R,) int64.
    """
    total = np.zeros(values[0][1].size)
    weights = 0
    for rule, column in values:
        total += rule.weight * clipped(rule, column)
        weights += rule.weight
    return np.floor(total / weights + 0.5).astype(np.int64) if weights else np.zeros(total.size, np.int64)


def clipped(rule: CompiledScore, values: Values) -> Values:
    """Fill in what is missing and clip to 0..100.

    Shapes: (R,) -> (R,).
    """
    filled: Values = np.where(np.isnan(values), rule.missing, values) if rule.value.type.optional else values
    return np.minimum(np.maximum(filled, 0.0), 100.0)


def _by_maximum(values: Values, feasible: Mask) -> Values:
    present = feasible & ~np.isnan(values)
    highest = values.max(initial=-np.inf, where=present)
    if highest > 0:
        scaled: Values = 100.0 * values / highest
        return scaled
    return np.where(np.isnan(values), np.nan, np.float64(0))
