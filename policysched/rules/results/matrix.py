"""`PolicyMatrix`: evaluates the rules of several policies for a class of equal pods: a result per policy and node.

On few rows, rules of equal shape are one operation. Results of pod-independent rules are read, not computed. Nothing is
cached here; `blocks` caches the results of policies.

Shapes: P policies, R rows, C the capacity of the columns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Mapping, Sequence
from functools import cached_property
from typing import Any, ClassVar, Generic, NamedTuple

import numpy as np
from numpy.typing import NDArray

from policysched.framework import ChangedRow, ChangedRows, Codes, RowNumbers, Rows
from policysched.language.evaluation.columns import Batch
from policysched.rules.inputs import PodInputs
from policysched.rules.results.pod_independent import FEW, PodIndependentResults
from policysched.rules.results.rule_rows import (
    CODES,
    FINE,
    FilterRow,
    FilterStack,
    RowT,
    ScoreRow,
    ScoreStack,
    as_slice,
    plugin_codes,
)
from policysched.rules.shared_values.aggregates import hold, own_arrays
from policysched.rules.shared_values.context import RuleFrame
from policysched.rules.shared_values.derived import ARRAYS_PER_DEPENDENCY, Dependency, dependencies_of
from policysched.rules.shared_values.what_if import (
    ChangedFrame,
    ChangedRowsFrame,
    RowByRowError,
    is_row_by_row,
    reads_pods,
)
from policysched.state.placed.counter import PodCounter

Array = NDArray[Any]


class Layout(NamedTuple):
    """For an evaluation on few nodes: the order of all rules' results in an array, before they are combined by policy.

    The first rules of all policies come first, then all second rules, and so on; policies with more rules come first.
    """

    kept_at: Rows
    """The array rows of rules that do not read the pod."""
    kept: Rows
    """The array rows of these rules in the matrix of cached pod-independent results."""
    chunks: Sequence[slice]
    """The array rows of the policies' first rules, of their second rules, and so on."""
    policies: Rows
    """The index of each policy if policies are sorted by number of rules, largest first."""
    stacks: Sequence[tuple[FilterStack | ScoreStack, Rows]]
    """The rules that read the pod in stacks (rules of equal shape), each with the array rows of its rules."""
    batch: Batch
    """Evaluates the expression graphs of all stacks."""


class PolicyMatrix(ABC, Generic[RowT]):
    """The rules of all policies that apply to a class of equal pods, at one extension point.

    Args:
        independent: The results of pod-independent rules.
        pod: A pod of the class.
        rules: The rules of each policy that apply, by the policy's name.
    """

    def __init__(self, independent: PodIndependentResults, pod: PodInputs, rules: Mapping[str, Sequence[RowT]]) -> None:
        self.pod = pod
        self.names = tuple(rules)
        self.rules: list[tuple[RowT, ...]] = [tuple(own) for own in rules.values()]
        self._independent, self._context = independent, independent.context
        self._all: list[RowT] = [rule for own in self.rules for rule in own]
        index = independent.index
        self._own: tuple[RowT, ...] = tuple(rule for rule in self._all if rule not in index)
        own_roots = [rule.root for rule in self._own]
        self._context.seed(pod, own_roots)
        self._held = hold(self._context, own_roots, pod)
        self.counters = [one for one in self._held if isinstance(one, PodCounter)]
        """The pod counters (numbers of matching pods by node) of the rules that read the pod."""
        own_dependencies = [
            dependencies_of(self._context, [rule.root for rule in own if rule not in index], pod) for own in self.rules
        ]
        self.dependencies: list[list[Dependency]] = [
            independent.dependencies(rule for rule in rules if rule in index) + own
            for rules, own in zip(self.rules, own_dependencies, strict=True)
        ]
        """For each policy, the shared values (such as aggregates) on which it depends."""
        self.arrays = own_arrays(own_roots, pod) + ARRAYS_PER_DEPENDENCY * sum(map(len, own_dependencies))
        """Number of arrays with one element per node, for shared values that read the pod."""

    def evaluate(self, rows: Rows) -> Array:
        """Return the results of all policies on the given nodes. Shapes: (P, R)."""
        self._independent.refresh()
        frame = self._context.frame(self.pod, rows)
        if isinstance(rows, np.ndarray) and rows.size <= FEW:
            return self._final(self._evaluate_few(rows, frame))
        batch = self._independent.evaluator(self._own).batch
        if frame.has_room(len(batch)):
            batch.evaluate(frame)
        found = np.empty((len(self.rules), frame.rows), self._dtype)
        for place in range(len(self.rules)):
            self._combine_rules(place, frame, found[place])
        return self._final(found)

    def evaluate_policy(self, place: int, rows: Rows) -> Array:
        """Return the results of one policy. Shapes: (R,)."""
        self._independent.refresh()
        frame = self._context.frame(self.pod, rows)
        found = np.empty((1, frame.rows), self._dtype)
        self._combine_rules(place, frame, found[0])
        result: Array = self._final(found, place)[0]
        return result

    def by_rule(self, place: int, rows: Rows) -> Iterator[tuple[RowT, Array]]:
        """Yield the result of each rule of a policy. Shapes: (R,) each."""
        self._independent.refresh()
        yield from self._results(place, self._context.frame(self.pod, rows))

    def _results(self, place: int, frame: RuleFrame) -> Iterator[tuple[RowT, Array]]:
        for rule in self.rules[place]:
            frame.make_room()
            index = self._independent.index.get(rule)
            yield rule, rule.result(frame) if index is None else self._kept[index, frame.selected]
        frame.make_room()

    def _combine_rules(self, place: int, frame: RuleFrame, found: Array) -> None:
        """Combine the results of a policy's rules, in their order, in the array `found`. Shapes: found (R,)."""
        results = self._results(place, frame)
        found[:] = next(results)[1]
        for _, result in results:
            self._combine(found, result, out=found)

    def _evaluate_few(self, rows: RowNumbers, frame: RuleFrame) -> Array:
        """Return the results of all policies on few nodes; rules of equal shape are one operation. Shapes: (P, R)."""
        kept_at, kept, (firsts, *others), policies, stacks, batch = self._layout
        results = np.empty((len(self._all), frame.rows), self._dtype)
        results[kept_at] = _columns(self._kept, kept, rows)
        batch.evaluate(frame)
        for stack, at in stacks:
            results[at] = stack.result(frame)
        found = results[firsts]
        for chunk in others:
            longer = found[: chunk.stop - chunk.start]
            self._combine(longer, results[chunk], out=longer)
        return found[policies]

    @cached_property
    def _layout(self) -> Layout:
        sizes = np.array([len(own) for own in self.rules])
        by_size = np.argsort(-sizes, kind="stable")
        policies = np.argsort(by_size)
        counts: list[int] = [int((sizes > place).sum()) for place in range(int(sizes.max()))]
        begins = np.cumsum([0, *counts])
        of_rules = [(policy, place) for policy, own in enumerate(self.rules) for place in range(len(own))]
        places = np.array([begins[place] + policies[policy] for policy, place in of_rules])
        kept = [index for rule in self._all if (index := self._independent.index.get(rule)) is not None]
        is_kept = np.array([rule in self._independent.index for rule in self._all])
        stacks, batch = self._independent.evaluator(self._own).stacks
        at = places[~is_kept]
        return Layout(
            as_slice(places[is_kept]),
            as_slice(np.array(kept, np.intp)),
            [slice(begin, begin + count) for begin, count in zip(begins.tolist(), counts, strict=False)],
            as_slice(policies),
            [(stack, as_slice(at[own])) for stack, own in stacks],
            batch,
        )

    @property
    @abstractmethod
    def _kept(self) -> Array:
        """The cached results of rules that do not read the pod. Shapes: (K, C)."""

    @abstractmethod
    def _final(self, found: Array, place: int | slice = slice(None)) -> Array:
        """Return the results of policies, given the combined results of their rules. Shapes: (P, R) -> (P, R)."""

    _combine: ClassVar[np.ufunc]
    """Function that combines the results of two rules of a policy, elementwise."""
    _dtype: ClassVar[type[np.number[Any]]]
    """NumPy type of the results: reason codes or scores."""


class FilterMatrix(PolicyMatrix[FilterRow]):
    """Filter rules by policy; a policy's result is the reason code of its first rule that is not true, or 0."""

    _combine, _dtype = np.minimum, np.int32

    @property
    def _kept(self) -> Codes:
        return self._independent.codes

    def _final(self, found: Codes, place: int | slice = slice(None)) -> Codes:  # noqa: ARG002 - the same for all policies
        return plugin_codes(found)

    def changed_code(self, changed: ChangedRow) -> int:
        """Return the reason code of the first rule that is not true on a simulated node, or 0."""
        frame = ChangedFrame(self._context, self.pod, changed)
        for place, own in enumerate(self.rules):
            codes = (rule.result(frame).item() for rule in own)
            code = next((code for code in codes if code != FINE), 0)
            if code:
                return place * CODES + code
        return 0

    def changed_codes(self, changed: ChangedRows) -> Codes | None:
        """Return for each simulated node the reason code of the first rule that is not true, or 0.

        Shapes: (R,). Missing: None if each row has to be evaluated by itself.
        """
        if self._is_row_by_row:
            return None
        codes: Codes = changed.now(self, lambda: self._unchanged_codes(changed)).astype(np.int32)
        frame = ChangedRowsFrame(self._context, self.pod, changed)
        try:
            self._reduce(codes, frame, reading_pods=True)
        except RowByRowError:
            return None
        return plugin_codes(codes)

    @cached_property
    def _is_row_by_row(self) -> bool:
        return any(is_row_by_row(rule.root) for rule in self._all)

    def _unchanged_codes(self, changed: ChangedRows) -> NDArray[np.int64]:
        """Return the code of the first rule that is not true, among rules that read no pods, or FINE. Shapes: (R,)."""
        codes = np.full(changed.rows.size, FINE, np.int64)
        self._reduce(codes, RuleFrame(self._context, self.pod, changed.rows), reading_pods=False)
        return codes

    def _reduce(self, codes: NDArray[np.signedinteger[Any]], frame: RuleFrame, *, reading_pods: bool) -> None:
        for place, own in enumerate(self.rules):
            for rule in own:
                if reads_pods(rule.root) is reading_pods:
                    result = rule.result(frame)
                    result[result != FINE] += place * CODES
                    np.minimum(codes, result, out=codes)


class ScoreMatrix(PolicyMatrix[ScoreRow]):
    """Score rules, without normalizing rules, by policy; a policy's result is the weighted mean of its rules."""

    _combine, _dtype = np.add, np.float64

    @property
    def _kept(self) -> Array:
        return self._independent.parts

    def _final(self, found: Array, place: int | slice = slice(None)) -> Array:
        found /= self._weights[place]
        found += 0.5
        return np.floor(found, out=found)

    @cached_property
    def _weights(self) -> NDArray[np.float64]:
        """The sum of the weights of each policy's rules, at least 1. Shapes: (P, 1)."""
        return np.array([[max(1.0, sum(rule.rule.weight for rule in own))] for own in self.rules])


def _columns(matrix: Array, at: Rows, columns: RowNumbers) -> Array:
    """Return the elements of a matrix in given array rows and columns, by NumPy's `take`, which is faster."""
    if isinstance(at, slice):
        found: Array = matrix[at].take(columns, axis=1)
    else:
        found = matrix.take(at[:, None] * matrix.shape[1] + columns)
    return found
