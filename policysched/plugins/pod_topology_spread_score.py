"""The score of PodTopologySpread: the fewer pods there are already, weighted by how many domains share them.

What a domain's pods count for depends on how many domains the feasible nodes have, so a score is only known once those
are. Rows that lack a label are passed over, unless the constraints are the system's own.

Shapes: N rows in use, D domains.
Source: plugins/podtopologyspread/scoring.go, v1.36.
"""

from __future__ import annotations

import functools
import math
from dataclasses import dataclass
from typing import Final, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from policysched.framework import MAX_NODE_SCORE, Mask, Scores
from policysched.plugins.pod_topology_spread_constraints import Constraint
from policysched.plugins.pod_topology_spread_sums import DomainSums
from policysched.state.domains import NO_DOMAIN
from policysched.state.nodes import NodeTable
from policysched.state.tallies import Tally

T = TypeVar("T", bound=np.generic)
_LN2: Final = (6.93147180369123816490e-01, 1.90821492927058770002e-10)
_ODD: Final = (6.666666666666735130e-01, 2.857142874366239149e-01, 1.818357216161805012e-01, 1.479819860511658591e-01)
_EVEN: Final = (3.999999999940941908e-01, 2.222219843214978396e-01, 1.531383769920937332e-01)


class Scored:
    """The rows that are scored: those that are feasible and have the labels that are demanded.

    Shapes: `mask` (N,).
    """

    __slots__ = ("count", "mask", "print", "whole")

    def __init__(self, mask: Mask) -> None:
        self.mask = mask
        self.count = int(np.count_nonzero(mask))
        self.whole = self.count == mask.size
        self.print = mask.tobytes()
        """What two masks are compared by."""

    def of(self, values: NDArray[T]) -> NDArray[T]:
        """Give the values of these rows.

        Shapes: (N,) -> (count,).
        """
        return values if self.whole else values[self.mask]


class Wish(Protocol):
    """One constraint that a pod would like to be kept."""

    def score(self, scored: Scored) -> NDArray[np.float64]:
        """Give each row the weighted count of pods in its domain, 0 where it is in none.

        Shapes: (N,), a new array.
        """


class NodeWish:
    """A wish to spread over nodes: each row is its own domain, whatever its label says and whether or not it counts."""

    __slots__ = ("_key", "_nodes", "_offset", "_tally")

    def __init__(self, constraint: Constraint, tally: Tally | None, nodes: NodeTable) -> None:
        self._key = constraint.topology_key
        self._offset = constraint.max_skew - 1
        self._tally = tally
        self._nodes = nodes

    def score(self, scored: Scored) -> NDArray[np.float64]:
        """Weight the pods of each row."""
        size = scored.mask.size
        counts = np.zeros(size) if self._tally is None else self._tally.counts[:size]
        score: NDArray[np.float64] = counts * natural_log(scored.count + 2)
        score += self._offset
        unlabelled = self._nodes.labels(self._key)[:size] < 0
        if unlabelled.any():
            score[unlabelled] = 0
        return score


class DomainWish:
    """A wish to spread over the values of any other label."""

    __slots__ = ("_offset", "_rows", "_seen", "_sums", "_there")

    def __init__(self, constraint: Constraint, sums: DomainSums) -> None:
        self._offset = constraint.max_skew - 1
        self._sums = sums
        self._rows = sums.rows
        self._seen: tuple[int, bytes] = (-1, b"")
        self._there: NDArray[np.intp] = np.zeros(0, np.intp)

    def score(self, scored: Scored) -> NDArray[np.float64]:
        """Weight the pods of each row's domain."""
        of_domain, _ = self._by_domain(scored)
        of_domain[NO_DOMAIN] = 0
        return of_domain[self._rows.of_label.of_row[: scored.mask.size]]

    def finals(self, scored: Scored) -> Scores:
        """Give the final scores where it is the only wish, and rows without its label are passed over."""
        of_domain, there = self._by_domain(scored)
        raw = _rounded(of_domain)
        finals = _normalized(raw, raw[there])
        finals[NO_DOMAIN] = 0
        return finals[self._rows.of_label.of_row[: scored.mask.size]]

    def _by_domain(self, scored: Scored) -> tuple[NDArray[np.float64], NDArray[np.intp]]:
        """Weight the pods of each domain; give with it the domains that scored rows are in."""
        self._sums.refresh()
        seen = (self._rows.version, scored.print)
        if seen != self._seen:
            there = np.zeros(self._rows.of_label.count, np.bool_)
            there[scored.of(self._rows.domains[: scored.mask.size])] = True
            self._there, self._seen = np.flatnonzero(there), seen
        weighted = self._sums.values * natural_log(self._there.size + 2)
        weighted += self._offset
        return weighted, self._there


@dataclass(frozen=True, slots=True)
class SoftState:
    """The constraints that a pod would like to be kept."""

    nodes: NodeTable
    wishes: tuple[Wish, ...]
    labels: tuple[str, ...]
    """The labels without which a row is passed over."""

    def finals(self, feasible: Mask) -> Scores:
        """Score the rows, 0 to 100.

        Shapes: (N,) -> (N,).
        """
        mask = feasible
        for key in self.labels:
            mask = mask & (self.nodes.labels(key)[: mask.size] >= 0)
        scored = Scored(mask)
        first, *others = self.wishes
        if isinstance(first, DomainWish) and self.labels and not others:
            return first.finals(scored)
        total = first.score(scored)
        for wish in others:
            total += wish.score(scored)
        raw = _rounded(total)
        finals = _normalized(raw, scored.of(raw))
        if self.labels and not scored.whole:
            finals[~mask] = 0
        return finals


def _rounded(scores: NDArray[np.float64]) -> Scores:
    """Round halves away from 0; the array is used up."""
    scores += 0.5
    return np.floor(scores, out=scores).astype(np.int64)


def _normalized(scores: Scores, scored: Scores) -> Scores:
    """Turn scores around and scale them to 0..100 by the lowest and highest of those that are scored; use them up."""
    highest = max(0, int(scored.max(initial=0)))
    if highest == 0:
        scores.fill(MAX_NODE_SCORE)
        return scores
    lowest = int(scored.min())
    np.subtract(highest + lowest, scores, out=scores)
    scores *= MAX_NODE_SCORE
    scores //= highest
    # scores below 0 come from a maxSkew below 1, which the API server refuses
    return scores if lowest >= 0 else np.clip(scores, 0, MAX_NODE_SCORE)


@functools.lru_cache(maxsize=4096)
def natural_log(number: int) -> float:
    """Give the logarithm as Go computes it, which is not always the double that other libraries round to.

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
