"""The score of PodTopologySpread: fewer matching pods are better, weighted by the number of domains.

The weight of a constraint depends on the number of domains of the feasible rows, so scores are computed in
NormalizeScore. Rows without a label are ignored, unless the constraints are the system defaults. Rows in the same
domains, with equal numbers of pods, have equal scores; each such combination is computed once.

Shapes: N rows in use, K places.
Source: plugins/podtopologyspread/scoring.go, v1.36.
"""

from __future__ import annotations

import functools
import math
from collections.abc import Callable, Collection, Sequence
from typing import Final, TypeVar

import numpy as np
from numpy.typing import NDArray

from policysched.framework import MAX_NODE_SCORE, Cluster, Mask, Scores, SizedState
from policysched.plugins.columns import PresentNumbers, levelled
from policysched.plugins.pod_topology_spread.constraints import ARRAYS_PER_CONSTRAINT, Constraint
from policysched.plugins.pod_topology_spread.rows import CountedRows, Labelled
from policysched.state.domain_sums import CounterSums
from policysched.state.placed.counter import PodCounter
from policysched.state.tables.columns import memory_of, quotients
from policysched.state.tables.domains import NO_DOMAIN

Floats = NDArray[np.float64]
Places = NDArray[np.intp]
T = TypeVar("T", bound=np.generic)
_LN2: Final = (6.93147180369123816490e-01, 1.90821492927058770002e-10)
_ODD: Final = (6.666666666666735130e-01, 2.857142874366239149e-01, 1.818357216161805012e-01, 1.479819860511658591e-01)
_EVEN: Final = (3.999999999940941908e-01, 2.222219843214978396e-01, 1.531383769920937332e-01)


class Scored:
    """The nodes that get a score of PodTopologySpread: the feasible nodes with the required labels.

    Shapes: `mask` (N,).
    """

    __slots__ = ("count", "mask", "whole")

    def __init__(self, mask: Mask) -> None:
        self.mask = mask
        self.count = int(np.count_nonzero(mask))
        self.whole = self.count == mask.size

    def present(self, places: Places, count: int) -> Places:
        """Return which groups have scored nodes; `places` has the group of each node, `count` is the number of groups.

        Shapes: (N,) -> (found,).
        """
        there = np.zeros(count, np.bool_)
        there[self.of(places)] = True
        return there.nonzero()[0]

    def of(self, values: NDArray[T]) -> NDArray[T]:
        """Return a copy of values in which nodes without a score have the value of a scored node.

        Shapes: (N,) -> (N,); without any such row (0,).
        """
        return values if self.whole else levelled(values, self.mask)


class SoftOverNodes:
    """A soft constraint on the host name: each node is a topology domain; nodes with equal pod counts form a group.

    A row's place is its number of pods; the last place is for rows without the label.
    """

    __slots__ = ("_count", "_labelled", "_offset", "_places", "counter")

    def __init__(self, constraint: Constraint, counter: PodCounter, cluster: Cluster) -> None:
        self._offset = constraint.max_skew - 1
        self.counter = counter
        self._labelled = Labelled((constraint.topology_key,), cluster)
        self._places: Places = np.zeros(0, np.intp)
        self._count = 0

    def weighted(self, scored: Scored) -> Floats:
        """Return the weighted number of counted pods for each group of nodes with equal numbers.

        Shapes: (K,), a new array.
        """
        size = scored.mask.size
        self._places = self.counter.counts[:size]
        last = int(self._places[self._places.argmax()]) + 1
        weighted: Floats = np.arange(last + 1, dtype=np.float64)
        weighted *= natural_log(scored.count + 2)
        weighted += self._offset
        weighted[last] = 0
        self._count = last + 1
        labelled = self._labelled.mask()
        if labelled is not None:
            self._places = np.where(labelled, self._places, last)
        return weighted

    def places(self, size: int) -> Places:  # noqa: ARG002 - they are of as many rows as were scored
        """Return the group of each node as `weighted` computed it; the array must not be changed. Shapes: (N,)."""
        return self._places

    def present(self, scored: Scored) -> Places:
        """Return which groups have scored nodes. Shapes: (found,)."""
        return scored.present(self._places, self._count)


class SoftOverDomains:
    """A soft constraint on a label other than the host name; the nodes of a topology domain form a group."""

    __slots__ = ("_domains", "_offset", "_present", "_rows", "_sums", "counter")

    def __init__(self, constraint: Constraint, rows: CountedRows, sums: CounterSums) -> None:
        self._offset = constraint.max_skew - 1
        self._sums, self.counter = sums, sums.counter
        self._rows = rows
        self._domains = PresentNumbers()
        self._present = PresentNumbers()

    def weighted(self, scored: Scored) -> Floats:
        """Return the weighted number of counted pods for each topology domain. Shapes: (K,), a new array."""
        self._sums.refresh()
        domains = self._domains.among(self._rows.domains, self._rows.stamp, scored.mask)
        weighted: Floats = self._sums.values.astype(np.float64)
        weighted *= natural_log(domains.size + 2)
        weighted += self._offset
        weighted[NO_DOMAIN] = 0
        return weighted

    def places(self, size: int) -> Places:
        """Return the topology domain of each node; the array must not be changed. Shapes: (N,)."""
        return self._rows.of_label.of_row[:size]

    def present(self, scored: Scored) -> Places:
        """Return which topology domains have scored nodes, cached until nodes or domains change."""
        return self._present.among(self._rows.of_label.of_row, self._rows.stamp, scored.mask)


SoftConstraint = SoftOverNodes | SoftOverDomains


class SoftState(SizedState):
    """The score's state for a class of equal pods: their soft (ScheduleAnyway) constraints.

    While no node has a required label, all rows are ignored, and no constraint is evaluated.

    Args:
        constraints: the constraints, at least one.
        make: creates the score of a constraint.
        labels: the required labels; rows without one are ignored.
        cluster: the cluster.
    """

    __slots__ = ("_constraints", "_keys", "_labelled", "_make", "_soft", "in_range", "nodes")

    def __init__(
        self,
        constraints: Sequence[Constraint],
        make: Callable[[Constraint], SoftConstraint],
        labels: Collection[str],
        cluster: Cluster,
    ) -> None:
        self.nodes = cluster.nodes
        self._constraints = constraints
        self._make = make
        self._soft: tuple[SoftConstraint, ...] = ()
        self._keys = labels
        self.in_range = all(one.max_skew >= 1 for one in constraints)
        """Whether scores are within 0 to 100: false for a maxSkew below 1, which API servers reject."""
        self._labelled = Labelled(labels, cluster)

    def memory(self, rows: int) -> int:
        """Estimate the memory of the state, whose arrays have `rows` elements. Units: bytes."""
        of_constraint = memory_of(ARRAYS_PER_CONSTRAINT, rows)
        return sum(of_constraint + one.counter.nbytes for one in self._soft)

    def finals(self, feasible: Mask) -> Scores:
        """Return the final scores of all nodes, 0 to 100, which depend on the feasible nodes.

        Shapes: (N,) -> (N,).
        """
        if not all(map(self.nodes.has_label, self._keys)):
            return np.zeros(feasible.size, np.int64)
        if not self._soft:
            self._soft = tuple(self._make(one) for one in self._constraints)
        labelled = self._labelled.mask()
        scored = Scored(feasible if labelled is None else feasible & labelled)
        weighted = [soft.weighted(scored) for soft in self._soft]
        if math.prod(map(len, weighted)) <= max(feasible.size, len(weighted[0])):
            finals = self._by_combination(weighted, scored)
        else:
            finals = self._by_row(weighted, scored)
        if labelled is not None:
            finals[~labelled] = 0
        return finals

    def _by_combination(self, weighted: Sequence[Floats], scored: Scored) -> Scores:
        """Return the scores of nodes, computed once for each combination of groups over all constraints."""
        size = scored.mask.size
        first, *others = self._soft
        total, places = weighted[0], first.places(size)
        for soft, part in zip(others, weighted[1:], strict=True):
            total = (total[:, np.newaxis] + part).ravel()
            places = places * len(part) + soft.places(size)
        raw = _rounded(total)
        present = scored.present(places, len(total)) if others else first.present(scored)
        return _normalized(raw, raw[present]).take(places)

    def _by_row(self, weighted: Sequence[Floats], scored: Scored) -> Scores:
        """Return the scores of nodes, computed node by node, if there are more combinations of groups than nodes."""
        size = scored.mask.size
        total = np.zeros(size)
        for soft, part in zip(self._soft, weighted, strict=True):
            total += part.take(soft.places(size))
        raw = _rounded(total)
        return _normalized(raw, scored.of(raw))


def _rounded(scores: Floats) -> Scores:
    """Round scores in place to integers, halves away from 0."""
    scores += 0.5
    return np.floor(scores, out=scores).astype(np.int64)


def _normalized(scores: Scores, scored: Scores) -> Scores:
    """Invert scores in place, and scale them to 0 to 100 by the range of the scored nodes."""
    highest = int(scored[scored.argmax()]) if scored.size else 0
    if highest <= 0:
        scores.fill(MAX_NODE_SCORE)
        return scores
    lowest = int(scored[scored.argmin()])
    np.subtract(highest + lowest, scores, out=scores)
    if lowest < 0:
        # kube-scheduler marks ignored rows with -1, and also ignores scored rows with this score
        return np.where(scores == highest + lowest + 1, 0, quotients(scores * MAX_NODE_SCORE, highest))
    scores *= MAX_NODE_SCORE
    scores //= highest
    return scores


@functools.lru_cache(maxsize=4096)
def natural_log(number: int) -> float:
    """Return the natural logarithm exactly as Go computes it; other libraries round differently.

    Source: Go's math/log.go.
    """
    fraction, exponent = math.frexp(number)
    if fraction < math.sqrt(0.5):
        fraction, exponent = fraction * 2, exponent - 1
    f = fraction - 1
    s = f / (2 + f)
    square = s * s
    fourth = square * square
    odd = square * (_ODD[0] + fourth * (_ODD[1] + fourth * (_ODD[2] + fourth * _ODD[3])))
    even = fourth * (_EVEN[0] + fourth * (_EVEN[1] + fourth * _EVEN[2]))
    half = 0.5 * f * f
    return exponent * _LN2[0] - ((half - (s * (half + (odd + even)) + exponent * _LN2[1])) - f)
