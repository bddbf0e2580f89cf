"""The filter rules of a policy for one pod class: codes by row, and their texts.

A rule answers each row with a detail: 0 where its condition holds, 1 where it is false, 2 where it is unknown without a
missing input (a division by zero), from 3 on where an input was missing (numbered as they are found): the condition is
unknown then, or false because a `?? false` says so. A code is the place of the first rule that does not hold, times
DETAILS, plus its detail; so the smallest code but 0 is that of the first rule.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from policysched.framework import Codes, Mask, Rows, Status, unresolvable, unschedulable
from policysched.language.evaluation.columns import evaluate_columns, missing_inputs
from policysched.language.ir.graph import ANY_KEY, Input
from policysched.rules.compiled import CompiledFilter
from policysched.rules.frame import RuleFrame, condition
from policysched.rules.reach import Reach
from policysched.rules.shared import Shared
from policysched.rules.subject import Subject
from policysched.state.interner import Interner
from policysched.state.memory import part_of

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
Placed = tuple[int, CompiledFilter]
"""A rule with its place in the policy."""


@dataclass(frozen=True, slots=True)
class FilterState:
    """The filter rules of one policy that speak for a pod class, asked by themselves."""

    shared: Shared
    subject: Subject
    rules: tuple[Placed, ...]
    reach: Reach
    missing: Interner[Lack]
    """What some condition of the policy lacked."""
    held: tuple[object, ...]

    def codes(self, rows: Rows) -> Codes:
        """Give each row the code of the first rule that does not hold there.

        Shapes: (R,) int32, 0 where all hold.
        """
        frame = self.shared.frame(self.subject, rows)
        codes = np.full(frame.rows, FINE, np.int32)
        for place, rule in self.rules:
            np.minimum(codes, rule_codes(place, rule, frame, self.missing), out=codes)
        return done(codes)

    @property
    def nbytes(self) -> int:
        """The memory that it takes, with its parts of what is shared. Units: bytes."""
        return sum(map(part_of, (*self.held, *self.reach.sources)))

    def reached(self, rows: Rows) -> Rows:
        """Add the rows that see another aggregate, or another value for all rows, than when this was last asked."""
        return self.reach.extend(rows)


def rule_codes(place: int, rule: CompiledFilter, frame: RuleFrame, missing: Interner[Lack]) -> Codes:
    """Give each row the code of one rule.

    Shapes: (R,) int32, FINE where it holds.
    """
    true, unknown = evaluate_columns(rule.require.root, frame)
    codes = np.where(_column(true, frame.rows), np.int32(FINE), np.int32(place * DETAILS + FALSE))
    if unknown is False:
        return codes
    lacking = _column(unknown, frame.rows)
    if not lacking.any():
        return codes
    stated = lacking if rule.stated is None else _column(evaluate_columns(rule.stated.root, frame)[1], frame.rows)
    codes[lacking & stated] = place * DETAILS + UNKNOWN
    for item, rows in missing_inputs(rule.require, frame, lacking):
        first = place * DETAILS + FIRST_MISSING
        codes[rows & stated] = first + _number((item, False), missing)
        if rule.stated is not None:
            codes[rows & ~stated] = first + _number((item, True), missing)
    return codes


def _number(lack: Lack, missing: Interner[Lack]) -> int:
    """Number what was missing; of too many with a key, only what they are keys of is told."""
    item, stated = lack
    if item.key is not None and len(missing) >= MOST_MISSING and missing.find(lack) < 0:
        lack = (replace(item, key=ANY_KEY), stated)
    return missing.code(lack)


def done(codes: Codes) -> Codes:
    """Turn codes of which the smallest were looked for into those of a plugin.

    Shapes: any, the same.
    """
    codes *= codes != FINE
    return codes


def reason(policy: str, rules: Sequence[CompiledFilter], missing: Interner[Lack], code: int) -> Status:
    """Translate a code into the policy's status."""
    position, detail = divmod(code - 1, DETAILS)
    rule = rules[position]
    text = f"policy {policy}/{rule.name}: {_explanation(rule, missing, detail + 1)}"
    return unschedulable(text) if rule.resolvable else unresolvable(text)


def kept(frame: RuleFrame, rule: CompiledFilter) -> tuple[Mask, Mask]:
    """Tell on which rows one rule holds and on which it is unknown, whatever the others say.

    Shapes: (R,), (R,).
    """
    value = condition(rule.written, frame)
    return _column(value.true, frame.rows), _column(value.unknown, frame.rows)


def _explanation(rule: CompiledFilter, missing: Interner[Lack], detail: int) -> str:
    if detail == FALSE:
        return rule.message or _shortened(rule.require.text)
    if detail == UNKNOWN:
        return f"{_shortened(rule.require.text)} is unknown"
    item, defaulted = missing.value(detail - FIRST_MISSING)
    said = f"{item.text} is missing"
    return f"{rule.message or _shortened(rule.require.text)} ({said})" if defaulted else said


def _column(value: Any, rows: int) -> Mask:
    return value if isinstance(value, np.ndarray) else np.full(rows, value, np.bool_)


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"
