"""The score of PodTopologySpread: the fewer pods there are already, weighted by how many domains share them.

What a domain's pods count for depends on how many domains the feasible nodes have, so a score is only known once those
are. Rows that lack a label are passed over, unless the constraints are the system's own.

Shapes: N rows in use, D domains.
Source: plugins/podtopologyspread/scoring.go, v1.36.
"""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from policysched.framework import MAX_NODE_SCORE, Mask, Scores
from policysched.plugins.pod_topology_spread_constraints import Constraint
from policysched.plugins.pod_topology_spread_rows import CountedRows
from policysched.state.domains import NO_DOMAIN
from policysched.state.nodes import NodeTable
from policysched.state.tallies import Tally

_LN2: Final = (6.93147180369123816490e-01, 1.90821492927058770002e-10)
_ODD: Final = (6.666666666666735130e-01, 2.857142874366239149e-01, 1.818357216161805012e-01, 1.479819860511658591e-01)
_EVEN: Final = (3.999999999940941908e-01, 2.222219843214978396e-01, 1.531383769920937332e-01)


class Wish(Protocol):
    """One constraint that a pod would like to be kept."""

    def score(self, scored: Mask) -> NDArray[np.float64]:
        """Give each row the weighted count of pods in its domain, 0 where it is in none.

        Shapes: (N,) -> (N,), a new array.
        """


@dataclass(frozen=True, slots=True)
class NodeWish:
    """A wish to spread over nodes: each row is its own domain, whatever its label says and whether or not it counts."""

    constraint: Constraint
    tally: Tally | None
    nodes: NodeTable

    def score(self, scored: Mask) -> NDArray[np.float64]:
        """Weight the pods of each row."""
        weight = natural_log(int(np.count_nonzero(scored)) + 2)
        counts = np.zeros(scored.size) if self.tally is None else self.tally.counts[: scored.size]
        score: NDArray[np.float64] = counts * weight + (self.constraint.max_skew - 1)
        score[self.nodes.labels(self.constraint.topology_key)[: scored.size] < 0] = 0
        return score


@dataclass(frozen=True, slots=True)
class DomainWish:
    """A wish to spread over the values of any other label."""

    constraint: Constraint
    tally: Tally | None
    rows: CountedRows

    def score(self, scored: Mask) -> NDArray[np.float64]:
        """Weight the pods of each row's domain."""
        self.rows.refresh()
        there = np.zeros(self.rows.of_label.count, np.bool_)
        there[self.rows.domains[: scored.size][scored]] = True
        weight = natural_log(int(np.count_nonzero(there)) + 2)
        of_domain = self.rows.sums(self.tally) * weight + (self.constraint.max_skew - 1)
        of_domain[NO_DOMAIN] = 0
        return of_domain[self.rows.of_label.of_row[: scored.size]]


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
        scored = feasible
        for key in self.labels:
            scored = scored & (self.nodes.labels(key)[: scored.size] >= 0)
        first, *others = self.wishes
        total = first.score(scored)
        for wish in others:
            total += wish.score(scored)
        return _normalized(np.floor(total + 0.5).astype(np.int64), scored)


def _normalized(scores: Scores, scored: Mask) -> Scores:
    """Turn scores around and scale them to 0..100; rows that are passed over get 0."""
    highest = int(scores.max(initial=0, where=scored))
    if highest == 0:
        return np.where(scored, MAX_NODE_SCORE, 0)
    lowest = int(scores.min(initial=highest, where=scored))
    finals: Scores = MAX_NODE_SCORE * (highest + lowest - scores) // highest
    finals[~scored] = 0
    # scores below 0 come from a maxSkew below 1, which the API server refuses
    return finals if lowest >= 0 else np.clip(finals, 0, MAX_NODE_SCORE)


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
