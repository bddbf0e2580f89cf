"""The score rules of a policy for one pod class: values by row, then one score a row.

Order of steps: a rule's value, its normalising over the feasible rows that have one, the `missing` arm or 0 where there
is none, clipping to 0..100, the mean weighted in rule order in float64, rounding half up.

Shapes: R rows asked for, N rows in use, C the capacity of the columns.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType

import numpy as np
from numpy.typing import NDArray

from policysched.framework import Mask, Rows, Scores
from policysched.rules.compiled import CompiledScore
from policysched.rules.frame import RuleFrame, number
from policysched.rules.reach import Reach
from policysched.rules.shared import Shared
from policysched.rules.subject import Subject

Values = NDArray[np.float64]
Common = Callable[[slice], Values]
NOTHING_COMMON: Mapping[str, Common] = MappingProxyType({})


@dataclass(frozen=True, slots=True)
class ScoreState:
    """The score rules of one policy that speak for a pod class."""

    shared: Shared
    subject: Subject
    rules: tuple[CompiledScore, ...]
    normalizes: bool
    reach: Reach
    held: object
    common: Mapping[str, Common]
    """What has the values of rules that are the same for all pod classes, by rule; asked where some rule normalises."""
    values: dict[str, Values] = field(default_factory=dict)
    """Values of the other rules, where some rule normalises. Shapes: (C,)."""

    def answers(self, rows: Rows) -> Scores:
        """Give the final scores of rows; where some rule normalises, keep the values for it instead.

        Shapes: (R,).
        """
        frame = self.shared.frame(self.subject, rows)
        if not self.normalizes:
            return combine([(rule, rule_values(rule, frame)) for rule in self.rules])
        for rule in self.rules:
            if rule.name not in self.common and not rule.value.root.normalizes:
                self._values(rule)[rows] = rule_values(rule, frame)
        return np.ones(frame.rows, np.int64)

    def reached(self, rows: Rows) -> Rows:
        """Add the rows that see another aggregate, or another value for all rows, than when this was last asked."""
        return self.reach.extend(rows)

    def normalized(self, feasible: Mask) -> list[tuple[CompiledScore, Values]]:
        """Give each rule's values on all rows after its normalising over the feasible ones; `answers` was asked before.

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

    def _raw(self, rule: CompiledScore, rows: slice, frame: RuleFrame) -> Values:
        common = self.common.get(rule.name)
        if common is not None:
            return common(rows)
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
