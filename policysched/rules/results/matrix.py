"""The policy matrix: results of all policies of a profile for a pod class, rules × rows; each policy reads its slice.

Rules that read the pod are evaluated in one go, those that do not are pod-independent results; then the first failing
rule of every policy is one minimum over all rules, and every policy's score one weighted sum, however many policies
there are.

Shapes: P policies, R rows asked for, N rows in use, C the capacity of the columns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, ClassVar, Generic

import numpy as np
from numpy.typing import NDArray

from policysched.framework import ChangedRow, ChangedRows, Codes, Rows, Scores
from policysched.rules.inputs import PodInputs
from policysched.rules.results.pod_independent import FEW, PodIndependentResults, RefreshGroup
from policysched.rules.results.rule_order import RuleOrder
from policysched.rules.results.rule_rows import FINE, FilterRow, RowT, ScoreRow, plugin_codes
from policysched.rules.shared_values.aggregates import hold
from policysched.rules.shared_values.context import RuleFrame
from policysched.rules.shared_values.derived import AffectedRows
from policysched.rules.shared_values.what_if import (
    ChangedFrame,
    ChangedRowsFrame,
    RowByRowError,
    is_row_by_row,
    reads_pods,
)
from policysched.state.tables.columns import parts_of

BYTES_PER_RULE = 256
"""What a rule takes of a matrix. Units: bytes."""
BYTES_PER_SLICE = 512
"""What a policy takes beside its part of the matrix. Units: bytes."""
Array = NDArray[Any]


class PolicyMatrix(ABC, Generic[RowT]):
    """The results of policies for a pod class at one point: filters or scores.

    Args:
        independent: The results that are the same for all pod classes.
        pod: The pod.
        speaking: The rules of each policy that speak for the pod, in their order.
    """

    def __init__(
        self, independent: PodIndependentResults, pod: PodInputs, speaking: Mapping[str, Sequence[RowT]]
    ) -> None:
        self._independent, self.pod = independent, pod
        self._context = context = independent.context
        key = tuple([(name, tuple(rows)) for name, rows in speaking.items() if rows])
        self._order: RuleOrder[RowT] = independent.kept_order((self._dtype, key), lambda: RuleOrder(independent, key))
        order = self._order
        context.seed(pod, order.own_roots)
        self._held: tuple[object, ...] = hold(context, order.own_roots, pod)
        self._held += hold(context, order.direct_roots, context.no_pod)
        self._of_policies, self._dependencies = order.dependencies(context, pod)
        self._depends_on_kept: bool = all(isinstance(one, RefreshGroup) for one in self._dependencies)
        """Whether nothing can have moved while pod-independent results did not."""
        self._stamps: list[int] = []
        self._moves, self._kept_moves = 0, -1
        self._version: object = None
        self._known: tuple[object, Rows, Array] | None = None
        """What was last worked out for few rows, and when."""

    @property
    def nbytes(self) -> int:
        """The memory that it takes, with its parts of what is context. Units: bytes."""
        return BYTES_PER_RULE * len(self._order.policy_of) + parts_of(self._held) + parts_of(self._dependencies)

    def __len__(self) -> int:
        return len(self._order.speaking)

    def slice_of(self, name: str) -> PolicySlice[RowT] | None:
        """Return the part of a policy, None where no rule of it speaks for the pod."""
        place = self._order.places.get(name)
        return None if place is None else PolicySlice(self, place)

    def alone(self, policy: int) -> PolicyMatrix[RowT]:
        """Return the matrix of one policy, for rows that no other one is asked about."""
        return type(self)(self._independent, self.pod, {"": self._order.speaking[policy]})

    def moves(self) -> int:
        """Count how often something moved that a policy depends on beyond its rows."""
        version = self._context.version
        if version != self._version:
            self._version = version
            if self._depends_on_kept:
                independent = self._independent
                independent.refresh(whole=False)
                if independent.moves == self._kept_moves:
                    return self._moves
                self._kept_moves = independent.moves
            for one in self._dependencies:
                one.refresh()
            stamps = [one.stamp for one in self._dependencies]
            self._moves += stamps != self._stamps
            self._stamps = stamps
        return self._moves

    def affected(self, policy: int) -> AffectedRows:
        """Return what a policy depends on beyond its rows."""
        return AffectedRows(self._of_policies[policy])

    def answers(self, rows: Rows) -> Array:
        """Return what all policies say of rows; asked again before anything changed, without working it out again.

        Shapes: (P, R).
        """
        version, last = self._context.version, self._known
        if last is not None and last[1] is rows and last[0] == version:
            return last[2]
        frame = self._context.frame(self.pod, rows)
        known: Array | None = frame.memo.get(self)
        few = is_few(rows)
        if known is None:
            self._independent.refresh(whole=not few)
            known = self._work_out(rows, frame)
            frame.memo[self] = known
        if few:
            self._known = (version, rows, known)
        return known

    @abstractmethod
    def _work_out(self, rows: Rows, frame: RuleFrame) -> Array:
        """Make the answers, the pod's own rules having been evaluated unless that would be too much at once."""

    def changed_code(self: PolicyMatrix[FilterRow], policy: int, changed: ChangedRow) -> int:
        """Return a policy's code for a row whose pods were others."""
        frame = ChangedFrame(self._context, self.pod, changed)
        codes = (rule.result(frame).item() for rule in self._order.speaking[policy])
        return next((code for code in codes if code != FINE), 0)

    def changed_codes(self: PolicyMatrix[FilterRow], policy: int, changed: ChangedRows) -> Codes | None:
        """Return a policy's codes for rows whose pods were others.

        Shapes: (R,). Missing: None where they have to be asked one by one.
        """
        rules = self._order.speaking[policy]
        if any(is_row_by_row(rule.root) for rule in rules):
            return None
        codes = self._unmoved_codes(policy, changed).astype(np.int32)
        frame = ChangedRowsFrame(self._context, self.pod, changed)
        try:
            for rule in rules:
                if reads_pods(rule.root):
                    np.minimum(codes, rule.result(frame), out=codes)
        except RowByRowError:
            return None
        return plugin_codes(codes)

    def _unmoved_codes(self: PolicyMatrix[FilterRow], policy: int, changed: ChangedRows) -> NDArray[np.int64]:
        """Return what the rules say that read nothing of pods, worked out once for the rows. Shapes: (R,)."""
        key, codes = (self, policy), np.full(changed.rows.size, FINE, np.int64)
        if not changed.knows(key):
            frame = RuleFrame(self._context, self.pod, changed.rows)
            for rule in self._order.speaking[policy]:
                if not reads_pods(rule.root):
                    np.minimum(codes, rule.result(frame), out=codes)
        return changed.now(key, lambda: codes)

    def by_rule(self, policy: int, rows: Rows) -> Iterator[tuple[RowT, Array]]:
        """Return the result of each rule of a policy on rows, whatever the others say.

        Shapes: (R,) each.
        """
        self._independent.refresh()
        frame = self._context.frame(self.pod, rows)
        for rule in self._order.speaking[policy]:
            frame.make_room()
            index = self._independent.index.get(rule)
            yield rule, rule.result(frame) if index is None else self._independent_results[index, rows]

    def _combine(self, combine: np.ufunc, into: Array, rows: Rows, frame: RuleFrame) -> Array:
        """Combine the results of each policy's rules, in the order of rules.

        Args:
            combine: What makes one value of two.
            into: What every policy begins with. Shapes: (P, R).
            rows: The rows.
            frame: Their inputs.
        """
        matrix, order = self._independent_results, self._order
        if is_few(rows):
            results = np.empty((order.is_kept.size, frame.rows), into.dtype)
            results[order.still_at] = matrix[order.still[:, None], rows]
            stacks, batch = order.stacks
            batch.evaluate(frame)
            for stack, places in stacks:
                results[places] = stack.result(frame)
            for step in order.steps:
                longer = into[: step.stop - step.start]
                combine(longer, results[step], out=longer)
            return into
        if frame.has_room(len(order.batch)):
            order.batch.evaluate(frame)
        own = []
        for rule in order.own:
            frame.make_room()
            own.append(rule.result(frame))
        frame.make_room()
        kept, rest = iter(order.kept), iter(own)
        for policy, is_kept in zip(order.policy_of, order.is_kept, strict=True):
            combine(into[policy], matrix[next(kept), rows] if is_kept else next(rest), out=into[policy])
        return into

    @property
    @abstractmethod
    def _independent_results(self) -> Array:
        """The pod-independent results. Shapes: (K, C)."""

    _dtype: ClassVar[type[np.signedinteger]]
    """What holds an answer."""


def is_few(rows: Rows) -> bool:
    """Return whether rules are to be evaluated on rows all at once."""
    return isinstance(rows, np.ndarray) and rows.size <= FEW


class FilterMatrix(PolicyMatrix[FilterRow]):
    """The filter rules of all policies: the code of each one's first rule that does not hold."""

    _dtype = np.int32

    @property
    def _independent_results(self) -> Codes:
        return self._independent.codes

    def _work_out(self, rows: Rows, frame: RuleFrame) -> Codes:
        codes = np.full((len(self), frame.rows), FINE, np.int32)
        return plugin_codes(self._combine(np.minimum, codes, rows, frame))


class ScoreMatrix(PolicyMatrix[ScoreRow]):
    """The score rules of all policies that do not normalise: the weighted mean of each one's."""

    _dtype = np.int64

    @property
    def _independent_results(self) -> Array:
        return self._independent.parts

    def _work_out(self, rows: Rows, frame: RuleFrame) -> Scores:
        total = self._combine(np.add, np.zeros((len(self), frame.rows)), rows, frame)
        total /= self._order.weights
        total += 0.5
        return np.floor(total, out=total).astype(np.int64)


class PolicySlice(Generic[RowT]):
    """One policy's part of a matrix. Each who asks has one of its own: it knows what was asked of it last."""

    __slots__ = ("_alone", "_alone_rows", "_moves", "affected", "place", "together")

    def __init__(self, matrix: PolicyMatrix[RowT], place: int) -> None:
        self.together: PolicyMatrix[RowT] = matrix
        """The matrix that it is a part of."""
        self.place = place
        """Its place there."""
        self.affected = matrix.affected(place)
        self._alone: PolicyMatrix[RowT] | None = None
        self._alone_rows: Rows | None = None
        """The rows that this policy was last found to be asked about by itself."""
        self._moves = -1
        """How often something had moved when this was last asked what it reaches."""

    @property
    def nbytes(self) -> int:
        """The memory that it takes; the first one's is that of the matrix as well. Units: bytes."""
        alone = self._alone.nbytes if self._alone is not None else 0
        return BYTES_PER_SLICE + alone + (0 if self.place else self.together.nbytes)

    def affected_rows(self, rows: Rows) -> Rows:
        """Add the rows that see something else of what many rows look at together."""
        moves, self._alone_rows = self.together.moves(), None
        if moves == self._moves:
            return rows
        self._moves = moves
        found = self.affected.extend(rows)
        self._alone_rows = None if found is rows else found
        return found

    def answers(self, rows: Rows) -> Array:
        """Return what the policy says of rows. Shapes: (R,)."""
        matrix, place = self.together, self.place
        if rows is self._alone_rows:
            if self._alone is None:
                self._alone = matrix.alone(place)
            matrix, place = self._alone, 0
        answers: Array = matrix.answers(rows)[place]
        return answers

    def changed_code(self: PolicySlice[FilterRow], changed: ChangedRow) -> int:
        """Return the policy's code for a row whose pods were others."""
        return self.together.changed_code(self.place, changed)

    def changed_codes(self: PolicySlice[FilterRow], changed: ChangedRows) -> Codes | None:
        """Return the policy's codes for rows whose pods were others.

        Missing: None where they have to be asked one by one.
        """
        return self.together.changed_codes(self.place, changed)

    def by_rule(self, rows: Rows) -> Iterator[tuple[RowT, Array]]:
        """Return the result of each of its rules on rows. Shapes: (R,) each."""
        return self.together.by_rule(self.place, rows)
