"""The score rules of a policy for one pod class: values by row, then one score a row.

Order of steps: a rule's value, its normalising over the feasible rows that have one, the `missing` arm or 0 where there
is none, clipping to 0..100, the mean weighted in rule order in float64, rounding half up.

Shapes: R rows asked for, N rows in use, C the capacity of the columns.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from types import MappingProxyType
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from policysched.framework import Mask, Rows, Scores
from policysched.rules.compiled import CompiledScore
from policysched.rules.frame import RuleFrame, number
from policysched.rules.reach import Reach
from policysched.rules.shared import Shared
from policysched.rules.subject import Subject
from policysched.state.memory import part_of

Values = NDArray[np.float64]
PART_BYTES = 8
"""What a rule's part of the final scores takes a row."""
BYTES_PER_RULE = 512
"""What a rule takes beside its arrays. Units: bytes."""
LAST_BYTES = 9
"""What the final scores take a row, with the feasible rows that they were made for."""


class Common(Protocol):
    """The values of a rule that is the same for all pod classes."""

    @property
    def stamp(self) -> int:
        """A number that grows whenever a value changes; values are up to date when it was asked for."""

    def values(self, size: int) -> Values:
        """Give the values. Shapes: (N,)."""


@dataclass(frozen=True, slots=True)
class ScoreState:
    """The score rules of one policy that speak for a pod class."""

    shared: Shared
    subject: Subject
    rules: tuple[CompiledScore, ...]
    normalizes: bool
    reach: Reach
    held: tuple[object, ...]
    common: Mapping[str, Common]
    """The rules that are the same for all pod classes, where some rule normalises."""
    own: dict[str, Values] = field(default_factory=dict)
    """Values of the other rules, where some rule normalises. Shapes: (C,)."""
    stamps: Counter[str] = field(default_factory=Counter)
    """How often those were written."""

    def answers(self, rows: Rows) -> Scores:
        """Give the final scores of rows; where some rule normalises, keep the values for it instead.

        Shapes: (R,).
        """
        frame = self.shared.frame(self.subject, rows)
        if not self.normalizes:
            return combine([(rule, rule_values(rule, frame)) for rule in self.rules])
        for rule in self.rules:
            if rule.name not in self.common and not rule.value.root.normalizes:
                self._write(rule, rows, frame)
        return np.ones(frame.rows, np.int64)

    def reached(self, rows: Rows) -> Rows:
        """Add the rows that see another aggregate, or another value for all rows, than when this was last asked."""
        return self.reach.extend(rows)

    def normalized(self, feasible: Mask) -> list[tuple[CompiledScore, Values]]:
        """Give each rule's values on all rows after its normalising over the feasible ones; `answers` was asked before.

        Shapes: (N,) each, NaN where a rule has no value.
        """
        values = ((rule, self.raw(rule, feasible)) for rule in self.rules)
        return [
            (rule, by_maximum(value, highest(value, feasible)) if rule.takes_maximum else value)
            for rule, value in values
        ]

    def raw(self, rule: CompiledScore, feasible: Mask) -> Values:
        """Give a rule's values on all rows before its own normalising. Shapes: (N,)."""
        common, own = self.common.get(rule.name), self.own.get(rule.name)
        if common is not None:
            return common.values(feasible.size)
        if own is not None:
            return own[: feasible.size]
        rows = slice(0, feasible.size)
        return rule_values(rule, RuleFrame(self.shared.cluster, self.subject, self.shared, rows, feasible))

    def stamp(self, rule: CompiledScore) -> int | None:
        """Give a number that grows whenever a value of the rule changes, None where they are not kept."""
        common = self.common.get(rule.name)
        return common.stamp if common is not None else self.stamps.get(rule.name)

    @property
    def capacity(self) -> int:
        """How many rows columns have."""
        return self.shared.cluster.nodes.columns.capacity

    @property
    def nbytes(self) -> int:
        """The memory that it takes, with its parts of what is shared. Units: bytes."""
        own = sum(values.nbytes for values in self.own.values())
        return BYTES_PER_RULE * len(self.rules) + own + sum(map(part_of, (*self.held, *self.reach.sources)))

    def _write(self, rule: CompiledScore, rows: Rows, frame: RuleFrame) -> None:
        values = self.own.get(rule.name)
        if values is None:
            values = self.own[rule.name] = np.zeros(self.capacity)
        values[rows] = rule_values(rule, frame)
        self.stamps[rule.name] += 1


NOTHING_COMMON: Mapping[str, Common] = MappingProxyType({})


@dataclass(slots=True)
class Part:
    """What one rule adds to the scores, and what it was made of."""

    made_of: tuple[int | None, float, int]
    """The stamp of the values, the largest of them, and how many rows there were."""
    values: Values
    """Clipped and weighted. Shapes: (N,)."""


class Finals:
    """The final scores of a policy that normalises, made anew where something that they are made of changed."""

    __slots__ = ("_last", "_parts", "state")

    def __init__(self, state: ScoreState) -> None:
        self.state = state
        self._last: tuple[list[int | None], Mask, Scores] | None = None
        self._parts: dict[str, Part] = {}

    def answers(self, rows: Rows) -> Scores:
        """Have the values of rows kept. Shapes: (R,)."""
        return self.state.answers(rows)

    def reached(self, rows: Rows) -> Rows:
        """Add the rows that see something else of what many rows look at together."""
        return self.state.reached(rows)

    def of(self, feasible: Mask) -> Scores:
        """Normalise over the feasible rows; the answer is not to be changed, it may be given again.

        Shapes: (N,) -> (N,).
        """
        stamps, last = [self.state.stamp(rule) for rule in self.state.rules], self._last
        if last is not None and last[0] == stamps and np.array_equal(last[1], feasible):
            return last[2]
        scores = self._combined(feasible)
        self._last = (stamps, feasible, scores) if None not in stamps else None
        return scores

    def _combined(self, feasible: Mask) -> Scores:
        total: Values | None = None
        for rule in self.state.rules:
            part = self._part(rule, feasible).values
            total = part if total is None else total + part
        weights = sum(rule.weight for rule in self.state.rules)
        if total is None or not weights:
            return np.zeros(feasible.size, np.int64)
        return np.floor(total / weights + 0.5).astype(np.int64)

    @property
    def nbytes(self) -> int:
        """The memory of what belongs to this pod class alone, once it has been asked for. Units: bytes."""
        return self.state.nbytes + (PART_BYTES * len(self.state.rules) + LAST_BYTES) * self.state.capacity

    def _part(self, rule: CompiledScore, feasible: Mask) -> Part:
        state, stamp = self.state, self.state.stamp(rule)
        values = state.raw(rule, feasible)
        top = highest(values, feasible) if rule.takes_maximum else 0.0
        known = self._parts.get(rule.name)
        if known is not None and stamp is not None and known.made_of == (stamp, top, feasible.size):
            return known
        scaled = by_maximum(values, top) if rule.takes_maximum else values
        part = Part((stamp, top, feasible.size), rule.weight * clipped(rule, scaled))
        self._parts[rule.name] = part
        return part


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
    """Fill in what is missing and clip to 0..100; without any node even what is never missing may be.

    Shapes: (R,) -> (R,).
    """
    filled: Values = np.where(np.isnan(values), rule.missing, values) if rule.value.type.optional else values
    return np.minimum(np.fmax(filled, 0.0), 100.0)


def highest(values: Values, feasible: Mask) -> float:
    """Give the largest value of the feasible rows, minus infinity where none has one."""
    chosen = values[feasible]
    largest = float(np.fmax.reduce(chosen, initial=-np.inf))
    return -np.inf if np.isnan(largest) else largest


def by_maximum(values: Values, top: float) -> Values:
    """Scale values to 100 for the largest. Shapes: (N,) -> (N,)."""
    if top > 0:
        scaled: Values = 100.0 * values / top
        return scaled
    return np.where(np.isnan(values), np.nan, np.float64(0))
