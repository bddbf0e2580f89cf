"""The scoring strategies of NodeResourcesFit: LeastAllocated, MostAllocated and RequestedToCapacityRatio.

Knows amounts only. Divisions of ordinary amounts are of whole numbers that are not negative, so that NumPy's floor is
Go's truncation. With MostAllocated a node that would be more than full counts as full, because pods without requests
weigh something here that no node was asked for. The curve of RequestedToCapacityRatio is a table of 101 scores, made
once in kube-scheduler's arithmetic of whole numbers, because utilisation is a whole number from 0 to 100.

Source: plugins/noderesources/least_allocated.go, most_allocated.go, requested_to_capacity_ratio.go,
plugins/helper/shape_score.go, v1.36.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final

import numpy as np
from numpy.typing import NDArray

from policysched.framework import MAX_NODE_SCORE, Rows, Scores
from policysched.plugins.helper.bases import ONE, constant
from policysched.plugins.node_resources.allocation import Wanted, weighted_mean
from policysched.state.tables.amounts import Amounts
from policysched.state.tables.int64_arrays import quotients

NOTHING, HIGHEST = constant(0), constant(MAX_NODE_SCORE)


def least_allocated(wanted: Wanted, rows: Rows) -> Scores:
    """Give the weighted mean of what rows would have left in percent.

    Shapes: R rows -> (R,).
    Missing: resources that a row does not have do not count there; with none at all the score is 0.
    """
    capacity, taken = wanted.capacity(rows), wanted.taken(rows)
    if not wanted.are_ordinary(capacity, taken):
        return weighted_mean(wanted, capacity, taken, _left)
    left = capacity - taken
    left -= wanted.amounts
    np.maximum(left, NOTHING, out=left)
    left *= HIGHEST
    left //= np.maximum(capacity, ONE)
    scores: Scores = wanted.weights @ left
    scores //= wanted.weight_of(capacity)
    return scores


def _left(used: Amounts, capacity: Amounts) -> Amounts:
    """Give what is left in percent, 0 where more is used than there is."""
    return np.where(used > capacity, 0, quotients((capacity - used) * MAX_NODE_SCORE, capacity))


def least_allocated_on_row(wanted: Wanted, have: Sequence[int], taken: Sequence[int]) -> int:
    """Give the same for one row of ordinary amounts."""
    total = weight = 0
    for capacity, used, amount, factor in zip(have, taken, wanted.plain_amounts, wanted.weights.tolist(), strict=True):
        if capacity:
            total += factor * (max(capacity - used - amount, 0) * MAX_NODE_SCORE // capacity)
            weight += factor
    return total // max(weight, 1)


def most_allocated(wanted: Wanted, rows: Rows) -> Scores:
    """Give the weighted mean of what rows would have in use in percent.

    Shapes: R rows -> (R,).
    Missing: resources that a row does not have do not count there; with none at all the score is 0.
    """
    capacity, taken = wanted.capacity(rows), wanted.taken(rows)
    if not wanted.are_ordinary(capacity, taken):
        return weighted_mean(wanted, capacity, taken, _in_use)
    used = taken + wanted.amounts
    np.minimum(used, capacity, out=used)
    used *= MAX_NODE_SCORE
    used //= np.maximum(capacity, 1)
    scores: Scores = wanted.weights @ used
    scores //= wanted.weight_of(capacity)
    return scores


def _in_use(used: Amounts, capacity: Amounts) -> Amounts:
    """Give what is in use in percent."""
    return quotients(np.minimum(used, capacity) * MAX_NODE_SCORE, capacity)


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
