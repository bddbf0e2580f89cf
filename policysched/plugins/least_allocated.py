"""The strategy LeastAllocated: the more of its resources a node would have left, the better.

Knows amounts only. Divisions of ordinary amounts are of whole numbers that are not negative, so that NumPy's floor is
Go's truncation.

Source: plugins/noderesources/least_allocated.go, v1.36.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from policysched.framework import MAX_NODE_SCORE, Rows, Scores
from policysched.plugins.allocation import Wanted, weighted_mean
from policysched.plugins.bases import ONE, constant
from policysched.state.amounts import Amounts
from policysched.state.int64_arrays import quotients

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
