"""`PolicyBlock`: the results on all nodes of all policies of a profile, for a class of equal pods.

A change evaluates all policies on the nodes that changed, and a policy alone on the nodes for which one of its shared
values changed. After an edit, a new block takes over the rows of policies whose rules are the same.

Shapes: P policies, Q policies that ever rejected a node, R rows, C the capacity of the columns.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Iterator, Sequence
from typing import Any, Generic

import numpy as np
from numpy.typing import NDArray

from policysched.framework import NO_ROWS, ChangedRow, Codes, RowNumbers, Rows, Scores, SizedState
from policysched.rules.results.matrix import FilterMatrix, PolicyMatrix, ScoreMatrix
from policysched.rules.results.rule_rows import CODES, RowT
from policysched.rules.shared_values.derived import AffectedRows, together
from policysched.state.tables.columns import memory_of

BYTES = 2048
"""Memory of a `PolicyBlock` without arrays and policies. Units: bytes."""
BYTES_PER_POLICY = 1024
"""Memory of a `PolicyBlock` for each policy, without arrays. Units: bytes."""


class PolicyBlock(SizedState, ABC, Generic[RowT]):
    """The results on all nodes of all policies, at one extension point, for a class of equal pods.

    Args:
        owner: Keeps the results of the rules that do not read the pod.
        matrix: The rules that apply to the pod class.
        capacity: The capacity of the columns.
        before: The block of an earlier set of policies, up to date.
    """

    def __init__(
        self, owner: object, matrix: PolicyMatrix[RowT], capacity: int, before: PolicyBlock[RowT] | None = None
    ) -> None:
        self._owner = owner
        self.matrix: PolicyMatrix[RowT] = matrix
        self._capacity = capacity
        self._affected = [AffectedRows(own) for own in matrix.dependencies]
        self._dependencies = tuple(dict.fromkeys(one for own in matrix.dependencies for one in own))
        self._stamps = [one.stamp for one in self._dependencies]
        self._updated: tuple[Rows, NDArray[Any]] | None = None
        """The nodes that `update` evaluated last, and the combined results of all policies on them."""
        self._taken_over: frozenset[int] = frozenset()
        """The policies whose results were copied from an earlier block, so that `answers` does not evaluate them."""
        if before is not None:
            known = {(name, rules): place for place, (name, rules) in enumerate(before.rows())}
            same = [(place, known[one]) for place, one in enumerate(self.rows()) if one in known]
            self._take_over(before, same)
            self._taken_over = frozenset(place for place, _ in same)

    def memory(self, rows: int) -> int:
        """Estimate the memory of the arrays, which have `rows` elements, and of the pod counters. Units: bytes."""
        own = BYTES + BYTES_PER_POLICY * len(self.matrix.names) + self._array.nbytes
        return own + memory_of(self.matrix.arrays, rows) + sum(one.nbytes for one in self.matrix.counters)

    def rows(self) -> Iterator[tuple[str, tuple[RowT, ...]]]:
        """Return the name and the rules of each policy."""
        return zip(self.matrix.names, self.matrix.rules, strict=True)

    def update(self, rows: RowNumbers) -> Rows:
        """Evaluate changed nodes and nodes whose shared values, such as aggregates, changed; return these nodes."""
        answers = self._store(rows, self.matrix.evaluate(rows))
        found: list[Rows] = [rows]
        for place, affected in self._affected_policies():
            self._store_policy(place, affected, self.matrix.evaluate_policy(place, affected))
            found.append(affected)
        if len(found) == 1:
            self._updated = rows, answers
            return rows
        joined = together(found)
        self._updated = joined, self._read(joined)
        return joined

    def answers(self, rows: Rows) -> NDArray[Any]:
        """Return the combined results of all policies; evaluate nodes that `update` did not evaluate. Shapes: (R,)."""
        updated, self._updated = self._updated, None
        return updated[1] if updated is not None and updated[0] is rows else self._evaluate(rows)

    def _evaluate(self, rows: Rows) -> NDArray[Any]:
        taken_over, self._taken_over = self._taken_over, frozenset()
        if not taken_over:
            return self._store(rows, self.matrix.evaluate(rows))
        for place in range(len(self.matrix.names)):
            if place not in taken_over:
                self._store_policy(place, rows, self.matrix.evaluate_policy(place, rows))
        return self._read(rows)

    def _affected_policies(self) -> Sequence[tuple[int, Rows]]:
        """Return, by index of the policy, the nodes on which its shared values, such as aggregates, changed."""
        if not self._dependencies:
            return ()
        for one in self._dependencies:
            one.refresh()
        stamps = [one.stamp for one in self._dependencies]
        if stamps == self._stamps:
            return ()
        self._stamps = stamps
        found = ((place, affected.extend(NO_ROWS)) for place, affected in enumerate(self._affected))
        return [(place, rows) for place, rows in found if rows is not NO_ROWS]

    @property
    @abstractmethod
    def _array(self) -> NDArray[Any]:
        """The results: an array row for each policy, a column for each node. Shapes: (P, C) or (Q, C)."""

    @abstractmethod
    def _take_over(self, before: Any, places: Sequence[tuple[int, int]]) -> None:
        """Copy results from an earlier `PolicyBlock`; `places` pairs a policy's indices in this and the earlier one."""

    @abstractmethod
    def _store(self, rows: Rows, results: NDArray[Any]) -> NDArray[Any]:
        """Store the results of each policy, and return the combined results. Shapes: (P, R) -> (R,)."""

    @abstractmethod
    def _store_policy(self, place: int, rows: Rows, results: NDArray[Any]) -> None:
        """Store the results of one policy. Shapes: (R,)."""

    @abstractmethod
    def _read(self, rows: Rows) -> NDArray[Any]:
        """Return the combined results of all policies from stored results. Shapes: (R,)."""


class FilterBlock(PolicyBlock[Any]):
    """All policies' reason codes for a class of equal pods; a node's combined code is the first rejecting policy's."""

    matrix: FilterMatrix
    _codes: Codes
    """The codes of the policies that rejected any node. Shapes: (Q, C)."""
    _rejecting: NDArray[np.int32]
    """The indices of the policies that rejected any node, ascending. Shapes: (Q,)."""

    def __init__(self, owner: object, matrix: FilterMatrix, capacity: int, before: FilterBlock | None = None) -> None:
        self._codes, self._rejecting = np.zeros((0, capacity), np.int32), np.zeros(0, np.int32)
        super().__init__(owner, matrix, capacity, before)

    def rejecting(self) -> Iterator[tuple[str, Codes]]:
        """Yield the policies that rejected any node, each with its reason codes. Shapes: (C,)."""
        for place, codes in zip(self._rejecting.tolist(), self._codes, strict=True):
            yield self.matrix.names[place], np.where(codes, codes + np.int32(place * CODES), 0)

    def changed_code(self, changed: ChangedRow) -> int:
        """Return the reason code of the first policy that rejects a simulated node, or 0."""
        return self.matrix.changed_code(changed)

    @property
    def _array(self) -> Codes:
        return self._codes

    def _take_over(self, before: FilterBlock, places: Sequence[tuple[int, int]]) -> None:
        known = dict(zip(before._rejecting.tolist(), before._codes, strict=True))
        found = [(place, known[there]) for place, there in places if there in known]
        if found:
            self._rejecting = np.array([place for place, _ in found], np.int32)
            self._codes = np.array([codes for _, codes in found])

    def _store(self, rows: Rows, results: Codes) -> Codes:
        if np.count_nonzero(results):
            self._add((results != 0).any(axis=1).nonzero()[0].tolist())
        if not self._rejecting.size:
            return np.zeros(results.shape[1], np.int32)
        codes = results[self._rejecting]
        self._codes[:, rows] = codes
        return self._first(codes)

    def _store_policy(self, place: int, rows: Rows, results: Codes) -> None:
        if np.count_nonzero(results):
            self._add([place])
        at = self._rejecting.searchsorted(place)
        if at < self._rejecting.size and self._rejecting[at] == place:
            self._codes[at, rows] = results

    def _add(self, places: Sequence[int]) -> None:
        """Add array rows for policies that reject a node for the first time."""
        known = self._rejecting.tolist()
        new = [place for place in places if place not in known]
        if not new:
            return
        rejecting = np.array(known + new, np.int32)
        order = np.argsort(rejecting)
        codes = np.concatenate((self._codes, np.zeros((len(new), self._capacity), np.int32)))
        self._rejecting, self._codes = rejecting[order], codes[order]

    def _read(self, rows: Rows) -> Codes:
        return self._first(self._codes[:, rows])

    def _first(self, codes: Codes) -> Codes:
        """Return for each node the reason code of the first policy that rejects the node. Shapes: (Q, R) -> (R,)."""
        if not self._rejecting.size:
            return np.zeros(codes.shape[1], np.int32)
        first = (codes != 0).argmax(axis=0)
        found: Codes = codes[first, np.arange(first.size)]
        return np.where(found, found + self._rejecting[first] * np.int32(CODES), 0)


class ScoreBlock(PolicyBlock[Any]):
    """All policies' scores for a class of equal pods, without normalized ones; combined, they are a weighted sum.

    Args:
        owner: Keeps the results of the rules that do not read the pod.
        matrix: The rules that apply to the pod class.
        capacity: The capacity of the columns.
        weights: The weight of each policy.
        before: The block of an earlier set of policies, up to date.
    """

    matrix: ScoreMatrix

    def __init__(
        self,
        owner: object,
        matrix: ScoreMatrix,
        capacity: int,
        weights: Sequence[int],
        before: ScoreBlock | None = None,
    ) -> None:
        self._weights = np.array(weights, np.float64)  # products of floats are faster than of integers, and exact
        self.scores: NDArray[np.int8] = np.zeros((len(weights), capacity), np.int8)
        """The score of each policy on each node. Shapes: (P, C)."""
        super().__init__(owner, matrix, capacity, before)

    @property
    def _array(self) -> NDArray[np.int8]:
        return self.scores

    def _take_over(self, before: ScoreBlock, places: Sequence[tuple[int, int]]) -> None:
        for place, there in places:
            self.scores[place] = before.scores[there]

    def _store(self, rows: Rows, results: NDArray[np.float64]) -> Scores:
        self.scores[:, rows] = results
        return self._sum(results)

    def _store_policy(self, place: int, rows: Rows, results: NDArray[np.float64]) -> None:
        self.scores[place, rows] = results

    def _read(self, rows: Rows) -> Scores:
        return self._sum(self.scores[:, rows])

    def _sum(self, scores: NDArray[np.floating | np.signedinteger]) -> Scores:
        """Return the weighted sums of the policies' scores. Shapes: (P, R) -> (R,)."""
        sums = self._weights @ scores
        return sums.astype(np.int64)
