"""The filter rules of a policy for one pod class: codes by row, and their texts.

A code is 1 + rule · 64 + detail; detail 0 means that the condition was false, 1 to 62 that it was unknown because an
input was missing (numbered as they are found), 63 that it was unknown without a missing input (a division by zero).
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policysched.framework import Cluster, Codes, Mask, Rows, Status, unresolvable, unschedulable
from policysched.language.typed import Input
from policysched.model.objects import Pod
from policysched.rules.compiled import CompiledFilter
from policysched.rules.frame import RuleFrame, condition
from policysched.state.interner import MISSING

DETAILS = 64
NO_INPUT = 63
LONGEST_TEXT = 80


@dataclass(slots=True)
class FilterState:
    """The filter rules that speak for a pod class, and the inputs that were found missing."""

    cluster: Cluster
    pod: Pod
    policy: str
    rules: tuple[CompiledFilter, ...]
    missing: list[Input] = field(default_factory=list)

    def number(self, item: Input) -> int:
        """Give a missing input's detail."""
        if item not in self.missing:
            if len(self.missing) == NO_INPUT - 1:
                return NO_INPUT
            self.missing.append(item)
        return self.missing.index(item) + 1


def rule_codes(state: FilterState, rows: Rows) -> Codes:
    """Give each row the code of the first rule that does not hold there.

    Shapes: (R,) int32, 0 where all hold.
    """
    frame = RuleFrame(state.cluster, state.pod, rows)
    codes = np.zeros(frame.rows, np.int32)
    for position, rule in enumerate(state.rules):
        value = condition(rule.require, frame)
        failing = (codes == 0) & ~_column(value.true, frame.rows)
        if not failing.any():
            continue
        codes[failing] = 1 + position * DETAILS
        unknown = failing & _column(value.unknown, frame.rows)
        if unknown.any():
            codes[unknown] += _details(state, rule, frame, unknown)[unknown]
    return codes


def kept(state: FilterState, rule: CompiledFilter, rows: Rows) -> tuple[Mask, Mask]:
    """Tell where one rule holds and where it is unknown, whatever the others say.

    Shapes: (R,), (R,).
    """
    frame = RuleFrame(state.cluster, state.pod, rows)
    value = condition(rule.require, frame)
    return _column(value.true, frame.rows), _column(value.unknown, frame.rows)


def rule_reason(state: FilterState, code: int) -> Status:
    """Translate a code into the policy's status."""
    position, detail = divmod(code - 1, DETAILS)
    rule = state.rules[position]
    text = f"policy {state.policy}/{rule.name}: {_explanation(state, rule, detail)}"
    return unschedulable(text) if rule.resolvable else unresolvable(text)


def _explanation(state: FilterState, rule: CompiledFilter, detail: int) -> str:
    if detail == 0:
        return rule.message or _shortened(rule.require.text)
    if detail == NO_INPUT:
        return f"{_shortened(rule.require.text)} is unknown"
    return f"{state.missing[detail - 1].text} is missing"


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"


def _details(state: FilterState, rule: CompiledFilter, frame: RuleFrame, unknown: Mask) -> Codes:
    """Give unknown rows the detail of the input that they lack; rows that lack the same are asked about once."""
    details = np.zeros(frame.rows, np.int32)
    lacking = np.zeros(frame.rows, np.int64)
    for position, item in enumerate(rule.require.inputs[:NO_INPUT]):
        lacking |= _missing(item, frame).astype(np.int64) << position
    for pattern in np.unique(lacking[unknown]).tolist():
        rows = unknown & (lacking == pattern)
        missing = rule.require.missing_input(frame, int(np.flatnonzero(rows)[0]))
        details[rows] = NO_INPUT if missing is None else state.number(missing)
    return details


def _missing(item: Input, frame: RuleFrame) -> Mask:
    if item.key == "*":
        return np.zeros(frame.rows, np.bool_)
    if item.root != "node":
        return np.full(frame.rows, frame.scalar(item) is None)
    column: NDArray[Any] = frame.column(item)
    if column.dtype == np.int32:
        return np.asarray(column == MISSING)
    return np.isnan(column) if column.dtype == np.float64 else np.zeros(frame.rows, np.bool_)


def _column(value: Any, rows: int) -> Mask:
    return np.broadcast_to(value, rows)
