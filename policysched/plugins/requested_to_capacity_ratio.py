"""The strategy RequestedToCapacityRatio: a curve over how full a node would be says how good that is.

Knows amounts and the curve. Utilisation is a whole number from 0 to 100, so the curve is a table of 101 scores, made
once in kube-scheduler's arithmetic of whole numbers.

Source: plugins/noderesources/requested_to_capacity_ratio.go, plugins/helper/shape_score.go, v1.36.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from policysched.framework import MAX_NODE_SCORE, Rows, Scores
from policysched.plugins.allocation import Wanted
from policysched.state.int64_arrays import quotients

FULL: Final = 100
HIGHEST_POINT: Final = 10
"""The best score that a point of the curve can have."""


@dataclass(frozen=True, slots=True)
class Point:
    """A point of the curve: how good a utilisation in percent is, from 0 to 10."""

    utilization: int
    score: int


class RequestedToCapacityRatio:
    """The strategy.

    Args:
        points: at least one point, by rising utilisation.
    """

    def __init__(self, points: Sequence[Point]) -> None:
        self._curve: NDArray[np.int64] = np.array([score_at(points, level) for level in range(FULL + 1)], np.int64)

    def __call__(self, wanted: Wanted, rows: Rows) -> Scores:
        """Give the weighted mean of the curve's scores, halves rounded up.

        Shapes: R rows -> (R,).
        Missing: resources that a row does not have, and those that score 0, do not count there; with none at all
            the score is 0.
        """
        capacity, taken = wanted.capacity(rows), wanted.taken(rows)
        used = taken + wanted.amounts
        if wanted.are_ordinary(capacity, taken):
            np.minimum(used, capacity, out=used)
            used *= FULL
            used //= np.maximum(capacity, 1)
        else:
            used = np.where(used > capacity, FULL, quotients(used * FULL, np.where(capacity == 0, 1, capacity)))
        scores = self._curve.take(used, mode="clip")
        scores[capacity == 0] = 0
        total, weight = wanted.weights @ scores, wanted.weight_of(scores)
        # halves go up; the quotients' denominators are small, so doubles keep them apart from whole numbers
        mean: Scores = ((2 * total + weight) / (2 * weight)).astype(np.int64)
        return mean


def score_at(points: Sequence[Point], level: int) -> int:
    """Read the curve at a level, straight between two points and flat beyond the first and last; 0 to 100."""
    scale = MAX_NODE_SCORE // HIGHEST_POINT
    before = points[0]
    for point in points:
        if level <= point.utilization:
            return _between(before, point, level, scale) if point is not points[0] else point.score * scale
        before = point
    return before.score * scale


def _between(before: Point, after: Point, level: int, scale: int) -> int:
    climb = (after.score - before.score) * scale * (level - before.utilization)
    width = after.utilization - before.utilization
    # towards zero, as kube-scheduler divides
    step = climb // width if climb >= 0 else -(-climb // width)
    return before.score * scale + step
