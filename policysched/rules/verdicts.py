"""The filter rules of a policy for one pod class: codes by row, and their texts.

A rule answers each row with a detail: 0 where its condition holds, 1 where it is false, 2 where it is unknown without a
missing input (a division by zero), from 3 on where it is unknown because an input was missing (numbered as they are
found). A code is the place of the first rule that does not hold, times DETAILS, plus its detail.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import numpy as np

from policysched.framework import Cluster, Codes, Mask, Rows, Status, unresolvable, unschedulable
from policysched.language.typed import Input
from policysched.model.objects import Pod
from policysched.rules.compiled import CompiledFilter
from policysched.rules.frame import RuleFrame, condition
from policysched.state.interner import Interner

DETAILS = 1 << 24
"""More than the inputs that a policy can find missing: keys computed from pods may be many."""
FALSE = 1
UNKNOWN = 2
FIRST_MISSING = 3
LONGEST_TEXT = 80
Details = Callable[[Rows], Codes]


@dataclass(frozen=True, slots=True)
class FilterState:
    """The filter rules that speak for a pod class, in order, with what answers for each of them."""

    policy: str
    rules: tuple[tuple[CompiledFilter, Details], ...]
    missing: Interner[Input]
    """The inputs that some condition of the policy lacked."""

    def codes(self, rows: Rows) -> Codes:
        """Give each row the code of the first rule that does not hold there.

        Shapes: (R,) int32, 0 where all hold.
        """
        codes: Codes | None = None
        for position, (_, answer) in enumerate(self.rules):
            details = answer(rows)
            if codes is None:
                codes = details.copy()
                continue
            failing = (codes == 0) & (details != 0)
            if failing.any():
                codes[failing] = details[failing] + position * DETAILS
        return codes if codes is not None else np.zeros(0, np.int32)

    def reason(self, code: int) -> Status:
        """Translate a code into the policy's status."""
        position, detail = divmod(code - 1, DETAILS)
        rule = self.rules[position][0]
        text = f"policy {self.policy}/{rule.name}: {self._explanation(rule, detail + 1)}"
        return unschedulable(text) if rule.resolvable else unresolvable(text)

    def _explanation(self, rule: CompiledFilter, detail: int) -> str:
        if detail == FALSE:
            return rule.message or _shortened(rule.require.text)
        if detail == UNKNOWN:
            return f"{_shortened(rule.require.text)} is unknown"
        return f"{self.missing.value(detail - FIRST_MISSING).text} is missing"


def rule_details(rule: CompiledFilter, missing: Interner[Input], frame: RuleFrame) -> Codes:
    """Answer for one rule.

    Shapes: (R,) int32.
    """
    value = condition(rule.require, frame)
    details = np.zeros(frame.rows, np.int32)
    details[~_column(value.true, frame.rows)] = FALSE
    unknown = _column(value.unknown, frame.rows)
    if unknown.any():
        details[unknown] = UNKNOWN
        for item, rows in rule.require.missing_inputs(frame, unknown):
            details[rows] = FIRST_MISSING + missing.code(item)
    return details


def kept(cluster: Cluster, pod: Pod, rule: CompiledFilter) -> tuple[Mask, Mask]:
    """Tell on which rows one rule holds and on which it is unknown, whatever the others say.

    Shapes: (N,), (N,).
    """
    frame = RuleFrame(cluster, pod, slice(0, cluster.nodes.size))
    value = condition(rule.require, frame)
    return _column(value.true, frame.rows), _column(value.unknown, frame.rows)


def _column(value: Mask | bool, rows: int) -> Mask:
    return value if isinstance(value, np.ndarray) else np.full(rows, value, np.bool_)


def _shortened(text: str) -> str:
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"


def all_hold(state_rules: Sequence[CompiledFilter], frame: RuleFrame) -> bool:
    """Tell whether every rule holds on every row of a frame."""
    return all(bool(np.all(condition(rule.require, frame).true)) for rule in state_rules)
