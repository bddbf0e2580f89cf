"""What one rule says of rows: the codes of a filter and their texts, the values of a score.

A filter answers each row with a detail: 0 where its condition holds, 1 where it is false, 2 where it is unknown without
a missing input (a division by zero), from 3 on where an input was missing (numbered as they are found): the condition
is unknown then, or false because a `?? false` says so. A code is the place of the first rule that does not hold, times
DETAILS, plus its detail; so the smallest code but 0 is that of the first rule.

Shapes: R rows asked for.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policysched.framework import Codes, Mask, Status, unresolvable, unschedulable
from policysched.language.evaluation.columns import evaluate_columns, missing_inputs
from policysched.language.ir.graph import ANY_KEY, Input, Typed
from policysched.rules.compile.policy import CompiledFilter, CompiledScore
from policysched.rules.dependencies.context import RuleFrame, number
from policysched.state.tables.interner import Interner

DETAILS = 1 << 24
"""More than the inputs that a policy can find missing: keys computed from pods may be many."""
FALSE = 1
UNKNOWN = 2
FIRST_MISSING = 3
LONGEST_TEXT = 80
MOST_MISSING = 1024
"""How many inputs a policy tells apart that were missing; those with keys made of pods may be any number."""
FINE = 2**31 - 1
"""Stands for 0 where the smallest of several rules' codes is looked for."""
Lack = tuple[Input, bool]
"""A missing input, and whether the condition is false for it and not unknown."""
Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class FilterRow:
    """A filter rule with its place in its policy."""

    place: int
    rule: CompiledFilter
    missing: Interner[Lack]
    """What some condition of the policy lacked."""

    @property
    def root(self) -> Typed:
        """The graph of its condition."""
        return self.rule.require.root

    def result(self, frame: RuleFrame) -> Codes:
        """Give the code of each row.

        Shapes: (R,) int32, FINE where the rule holds.
        """
        true, unknown = evaluate_columns(self.root, frame)
        first = self.place * DETAILS
        codes = np.where(_column(true, frame.rows), np.int32(FINE), np.int32(first + FALSE))
        if unknown is False:
            return codes
        lacking = _column(unknown, frame.rows)
        if not lacking.any():
            return codes
        stated = self.rule.stated
        unsaid = lacking if stated is None else _column(evaluate_columns(stated.root, frame)[1], frame.rows)
        codes[lacking & unsaid] = first + UNKNOWN
        for item, rows in missing_inputs(self.rule.require, frame, lacking):
            codes[rows & unsaid] = first + FIRST_MISSING + self._number((item, False))
            if stated is not None:
                codes[rows & ~unsaid] = first + FIRST_MISSING + self._number((item, True))
        return codes

    def is_unknown(self, code: int) -> bool:
        """Tell whether the condition as it is written is unknown, and not false, where the rule gave a code."""
        detail = (code - 1) % DETAILS + 1
        return detail == UNKNOWN or (detail >= FIRST_MISSING and not self.missing.value(detail - FIRST_MISSING)[1])

    def _number(self, lack: Lack) -> int:
        """Number what was missing; of too many with a key, only what they are keys of is told."""
        item, defaulted = lack
        if item.key is not None and len(self.missing) >= MOST_MISSING and self.missing.find(lack) < 0:
            lack = (replace(item, key=ANY_KEY), defaulted)
        return self.missing.code(lack)


@dataclass(frozen=True, slots=True, eq=False)
class ScoreRow:
    """A score rule."""

    rule: CompiledScore

    @property
    def root(self) -> Typed:
        """The graph of its value."""
        return self.rule.value.root

    def values(self, frame: RuleFrame) -> Values:
        """Evaluate the rule before any normalising.

        Shapes: (R,), NaN where it has no value.
        """
        value = number(self.rule.value, frame)
        return value if value.shape else np.full(frame.rows, value, np.float64)

    def result(self, frame: RuleFrame) -> Values:
        """Give what the rule adds to the scores of rows. Shapes: (R,)."""
        return self.part(self.values(frame))

    def part(self, values: Values) -> Values:
        """Fill in what is missing, clip to 0..100, and weigh; without any node even what is never missing may be.

        Shapes: (R,) -> (R,).
        """
        rule = self.rule
        filled: Values = np.where(np.isnan(values), rule.missing, values) if rule.value.type.optional else values
        return rule.weight * np.minimum(np.fmax(filled, 0.0), 100.0)


RuleRow = FilterRow | ScoreRow


def done(codes: Codes) -> Codes:
    """Turn codes of which the smallest were looked for into those of a plugin.

    Shapes: any, the same.
    """
    codes *= codes != FINE
    return codes


def reason(policy: str, rows: Sequence[FilterRow], code: int) -> Status:
    """Translate a code into the policy's status."""
    position, detail = divmod(code - 1, DETAILS)
    row = rows[position]
    text = f"policy {policy}/{row.rule.name}: {_explanation(row, detail + 1)}"
    return unschedulable(text) if row.rule.resolvable else unresolvable(text)


def _explanation(row: FilterRow, detail: int) -> str:
    rule = row.rule
    if detail == FALSE:
        return rule.message or _shortened(rule.require.text)
    if detail == UNKNOWN:
        return f"{_shortened(rule.require.text)} is unknown"
    item, defaulted = row.missing.value(detail - FIRST_MISSING)
    said = f"{item.text} is missing"
    return f"{rule.message or _shortened(rule.require.text)} ({said})" if defaulted else said


def _column(value: Any, rows: int) -> Mask:
    return value if isinstance(value, np.ndarray) else np.full(rows, value, np.bool_)


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"
