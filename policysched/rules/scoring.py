"""The score rules of a policy for one pod class: values by row, then one score a row.

Order of steps: a rule's value, its normalising over the feasible rows that have one, the `missing` arm or 0 where there
is none, clipping to 0..100, the mean weighted in rule order in float64, rounding half up.

Shapes: S rules, R rows asked for, N rows in use.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policysched.framework import Cluster, Mask, Rows, Scores
from policysched.model.objects import Pod
from policysched.rules.compiled import CompiledScore
from policysched.rules.frame import RuleFrame, number

Values = NDArray[np.float64]
Answer = Callable[[Rows], Values]


@dataclass(frozen=True, slots=True)
class ScoreState:
    """The score rules that speak for a pod class, with what answers for each; none for rules that read all rows."""

    cluster: Cluster
    pod: Pod
    rules: tuple[tuple[CompiledScore, Answer | None], ...]

    def scores(self, rows: Rows) -> Scores:
        """Give the final scores of rows, where no rule looks beyond its row.

        Shapes: (R,).
        """
        return combine([(rule, answer(rows)) for rule, answer in self.rules if answer is not None])

    def normalized(self, feasible: Mask) -> list[tuple[CompiledScore, Values]]:
        """Give each rule's values on all rows after its normalising over the feasible ones.

        Shapes: (N,) each, NaN where a rule has no value.
        """
        rows = slice(0, feasible.size)
        frame = RuleFrame(self.cluster, self.pod, rows, feasible)
        values = []
        for rule, answer in self.rules:
            value = answer(rows) if answer is not None else _spread(number(rule.value, frame), frame.rows)
            values.append((rule, _scaled_by_maximum(value, feasible) if rule.takes_maximum else value))
        return values


def rule_values(rule: CompiledScore, frame: RuleFrame) -> Values:
    """Evaluate one rule before any normalising.

    Shapes: (R,), NaN where it has no value.
    """
    return _spread(number(rule.value, frame), frame.rows)


def combine(values: list[tuple[CompiledScore, Values]]) -> Scores:
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
    filled: Values = np.where(np.isnan(values), rule.missing, values)
    return np.minimum(np.maximum(filled, 0.0), 100.0)


def _spread(value: Values, rows: int) -> Values:
    return value if value.shape else np.full(rows, value, np.float64)


def _scaled_by_maximum(values: Values, feasible: Mask) -> Values:
    present = feasible & ~np.isnan(values)
    highest = values.max(initial=-np.inf, where=present)
    if highest > 0:
        scaled: Values = 100.0 * values / highest
        return scaled
    return np.where(np.isnan(values), np.nan, np.float64(0))
