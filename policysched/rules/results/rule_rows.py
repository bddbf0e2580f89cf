"""Results of a single rule on nodes: reason codes of a filter, values of a score; stacks of rules of equal shape.

A filter gives each row a detail: 0 if its condition is true, 1 if it is false, 2 if it is unknown without a missing
input (a division by zero), 3 or more if an input is missing. With a missing input, the condition is unknown, or false
because of a `?? false`. Missing inputs are numbered in the order in which they are found. The code of a policy is the
place of its first rule that is not true, times DETAILS, plus the detail. So the smallest code above 0 is that of the
first such rule.

Shapes: R rows.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from policysched.framework import Codes, Mask, Rows, Status, unresolvable, unschedulable
from policysched.language.evaluation.columns import Batch, evaluate_columns, missing_inputs
from policysched.language.evaluation.frames import Frame
from policysched.language.evaluation.stacks import alike, stack
from policysched.language.ir.graph import ANY_KEY, Input, Typed
from policysched.rules.compile.compiler import MAX_RULES
from policysched.rules.compile.policy import CompiledFilter, CompiledScore
from policysched.rules.shared_values.context import RuleFrame, number
from policysched.state.tables.interner import Interner

DETAILS = 1 << 16
"""Number of reason codes of a rule: condition false, condition unknown, and one for each missing input."""
CODES = MAX_RULES * DETAILS
"""Number of reason codes of a policy."""
FALSE = 1
UNKNOWN = 2
FIRST_MISSING = 3
LONGEST_TEXT = 80
MOST_MISSING = 1024
"""Maximum number of missing inputs that a policy distinguishes; beyond it, the keys of inputs are ignored."""
FINE = 2**31 - 1
"""The code of a true condition; it is larger than every reason code, so that the minimum is the first rejection."""
Lack = tuple[Input, bool]
"""A missing input, and whether the condition is false because of it; otherwise, the condition is unknown."""
Values = NDArray[np.float64]


@dataclass(frozen=True, slots=True, eq=False)
class FilterRow:
    """A filter rule with its index in the policy, which can be evaluated on nodes."""

    place: int
    rule: CompiledFilter
    missing: Interner[Lack]
    """The missing inputs found so far in the policy's conditions, each with a number."""

    @property
    def root(self) -> Typed:
        """The compiled condition of the rule, as an expression graph."""
        return self.rule.require.root

    def result(self, frame: Frame) -> Codes:
        """Return for each node the reason code of the filter; FINE if the condition is true.

        Shapes: (R,) int32, FINE if the condition is true.
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
        """Return whether a reason code of the rule means that the condition is unknown instead of false."""
        detail = (code - 1) % DETAILS + 1
        return detail == UNKNOWN or (detail >= FIRST_MISSING and not self.missing.value(detail - FIRST_MISSING)[1])

    def _number(self, lack: Lack) -> int:
        """Return the number of a missing input; beyond MOST_MISSING inputs, the key of the input is ignored."""
        item, defaulted = lack
        if item.key is not None and len(self.missing) >= MOST_MISSING and self.missing.find(lack) < 0:
            lack = (replace(item, key=ANY_KEY), defaulted)
        return self.missing.code(lack)


@dataclass(frozen=True, slots=True, eq=False)
class ScoreRow:
    """A score rule that can be evaluated on nodes."""

    rule: CompiledScore

    @property
    def root(self) -> Typed:
        """The compiled value of the rule, as an expression graph."""
        return self.rule.value.root

    def values(self, frame: RuleFrame) -> Values:
        """Return the values of the rule on nodes, before normalizing.

        Shapes: (R,), NaN if the rule has no value.
        """
        value = number(self.rule.value, frame)
        return value if value.shape else np.full(frame.rows, value, np.float64)

    def result(self, frame: RuleFrame) -> Values:
        """Return the weighted scores of the rule on nodes. Shapes: (R,)."""
        return self.part(self.values(frame))

    def part(self, values: Values) -> Values:
        """Return weighted scores for the rule's values: missing values are replaced, then clipped to 0 to 100.

        Clipping replaces NaN by 0. Without any node, a value that cannot be missing may be NaN as well.

        Shapes: (R,) -> (R,).
        """
        rule = self.rule
        filled: Values = np.where(np.isnan(values), rule.missing, values) if rule.missing else values
        return rule.weight * np.minimum(np.fmax(filled, 0.0), 100.0)


RuleRow = FilterRow | ScoreRow
RowT = TypeVar("RowT", FilterRow, ScoreRow)


class FilterStack:
    """Filter rules whose conditions have the same shape, which are evaluated in one operation.

    Shapes: G the rules.
    """

    __slots__ = ("_failed", "_rules", "root")

    def __init__(self, rules: Sequence[FilterRow]) -> None:
        self._rules = rules
        self.root = stack([rule.root for rule in rules])
        """The compiled conditions of all rules, as one expression graph."""
        self._failed = np.array([[rule.place * DETAILS + FALSE] for rule in rules], np.int32)

    def result(self, frame: Frame) -> Codes:
        """Return the reason codes of each rule on each node.

        Shapes: (G, R), or (G, 1) if the codes are the same for every row.
        """
        true, unknown = evaluate_columns(self.root, frame)
        codes = np.where(true, np.int32(FINE), self._failed)
        if unknown is False or not np.count_nonzero(unknown):
            return codes
        codes = np.array(np.broadcast_to(codes, (len(self._rules), frame.rows)))
        for place in np.flatnonzero(np.broadcast_to(unknown, codes.shape).any(axis=1)).tolist():
            codes[place] = self._rules[place].result(frame)
        return codes


class ScoreStack:
    """Score rules whose expressions have the same shape, which are evaluated in one operation.

    Shapes: G the rules.
    """

    __slots__ = ("_missing", "_weights", "root")

    def __init__(self, rules: Sequence[ScoreRow]) -> None:
        self.root = stack([rule.root for rule in rules])
        """The compiled expressions of all rules, as one expression graph."""
        missing = [[rule.rule.missing] for rule in rules]
        self._missing = np.array(missing, np.float64) if any(one for [one] in missing) else None
        """The scores of nodes for which a rule has no value (`missing`); None if all are 0. Shapes: (G, 1)."""
        self._weights = np.array([[rule.rule.weight] for rule in rules], np.float64)

    def values(self, frame: Frame) -> Values:
        """Return the values of each rule on each node, before normalizing.

        Shapes: (G, R), or a shape that broadcasts to it if values are equal.
        """
        return np.asarray(evaluate_columns(self.root, frame), np.float64)

    def result(self, frame: Frame) -> Values:
        """Return the weighted scores of each rule on each node. Shapes: (G, R) or (G, 1)."""
        return self.part(self.values(frame))

    def part(self, values: Values) -> Values:
        """Return weighted scores for the rules' values: missing values are replaced, then clipped to 0 to 100."""
        filled = values if self._missing is None else np.where(np.isnan(values), self._missing, values)
        return self._weights * np.minimum(np.fmax(filled, 0.0), 100.0)


class RuleEvaluator:
    """Evaluates rules together: common parts once, and on few nodes all rules of equal shape in one operation."""

    def __init__(self, rules: Sequence[RuleRow]) -> None:
        self._rules = rules

    @cached_property
    def batch(self) -> Batch:
        """Evaluates the expression graphs of all rules on many nodes."""
        return Batch([rule.root for rule in self._rules])

    @cached_property
    def stacks(self) -> tuple[list[tuple[FilterStack | ScoreStack, NDArray[np.intp]]], Batch]:
        """The rules in stacks (rules of equal shape), each with its rules' indices; and the graphs of the stacks."""
        places: dict[type, list[int]] = {FilterRow: [], ScoreRow: []}
        for place, rule in enumerate(self._rules):
            places[type(rule)].append(place)
        alike_filters, alike_scores = (
            [np.array(own)[group] for group in alike([self._rules[place].root for place in own])]
            for own in places.values()
        )
        stacks: list[tuple[FilterStack | ScoreStack, NDArray[np.intp]]] = [
            *((FilterStack([self._rules[place] for place in group]), group) for group in alike_filters),
            *((ScoreStack([self._rules[place] for place in group]), group) for group in alike_scores),
        ]
        return stacks, Batch([stack.root for stack, _ in stacks])


def filter_rows(rules: Sequence[CompiledFilter], before: Sequence[FilterRow] = ()) -> tuple[FilterRow, ...]:
    """Return a policy's filter rules with their indices; reuse equal rules of an earlier generation.

    Args:
        rules: The rules.
        before: The rules of an earlier generation. A rule that is equal and at the same place is reused, with the
            numbers of its missing inputs. If there are too many of these, no rule is reused and numbering restarts.
    """
    known: Interner[Lack] = before[0].missing if before else Interner()
    if 2 * len(known) > MOST_MISSING:
        before, known = (), Interner()
    same = {row.place: row for row in before if row.place < len(rules) and row.rule == rules[row.place]}
    return tuple(same.get(place) or FilterRow(place, rule, known) for place, rule in enumerate(rules))


def score_rows(rules: Sequence[CompiledScore], before: Sequence[ScoreRow] = ()) -> tuple[ScoreRow, ...]:
    """Return a policy's score rules; reuse equal rules of an earlier generation."""
    same = {row.rule.name: row for row in before}
    return tuple(row if (row := same.get(rule.name)) and row.rule == rule else ScoreRow(rule) for rule in rules)


def plugin_codes(codes: Codes) -> Codes:
    """Replace FINE by 0 in an array of codes; change and return the array.

    Shapes: any, the same.
    """
    codes *= codes != FINE
    return codes


def as_slice(places: NDArray[np.intp]) -> Rows:
    """Return ascending, evenly spaced indices as a slice, which NumPy handles faster; else the indices."""
    if not places.size:
        return slice(0, 0)
    step = int(places[1] - places[0]) if places.size > 1 else 1
    if step < 1 or (np.diff(places) != step).any():
        return places
    return slice(int(places[0]), int(places[-1]) + 1, step)


def reason(policy: str, rows: Sequence[FilterRow], code: int) -> Status:
    """Return the rejection status that a reason code of a policy stands for."""
    position, detail = divmod(code - 1, DETAILS)
    row = rows[position]
    text = f"policy {policy}/{row.rule.name}: {_explanation(row, detail + 1)}"
    return unschedulable(text) if row.rule.resolvable else unresolvable(text)


def _explanation(row: FilterRow, detail: int) -> str:
    rule = row.rule
    if detail == FALSE:
        return rule.message or shortened(rule.require.text)
    if detail == UNKNOWN:
        why = rule.require.gaps
        return f"{shortened(rule.require.text)} is unknown" + (f" ({why})" if why else "")
    item, defaulted = row.missing.value(detail - FIRST_MISSING)
    said = f"{item.text} is missing"
    return f"{rule.message or shortened(rule.require.text)} ({said})" if defaulted else said


def _column(value: Any, rows: int) -> Mask:
    return value if isinstance(value, np.ndarray) else np.full(rows, value, np.bool_)


def shortened(text: str) -> str:
    """Return a text, cut to the maximum length of an expression in a reason."""
    return text if len(text) <= LONGEST_TEXT else text[: LONGEST_TEXT - 1] + "…"
