"""The strategy LeastAllocated: the more of its resources a node would have left, the better.

Knows amounts only. All divisions are of whole numbers that are not negative, so that NumPy's floor is Go's
truncation.

Source: plugins/noderesources/least_allocated.go, v1.36.
"""

from __future__ import annotations

import numpy as np

from policysched.framework import MAX_NODE_SCORE, Rows, Scores
from policysched.plugins.allocation import Amounts, Wanted
from policysched.plugins.bases import row_count


def least_allocated(wanted: Wanted, rows: Rows) -> Scores:
    """Give the weighted mean of what rows would have left in percent.

    Shapes: R rows -> (R,).
    Missing: resources that a row does not have do not count there; with none at all the score is 0.
    """
    total = np.zeros(row_count(wanted.nodes, rows), np.int64)
    weights: Amounts | np.int64 = np.int64(sum(one.weight for one in wanted.amounts))
    for one in wanted.amounts:
        capacity = wanted.capacity(one.name, rows)
        left = capacity - wanted.taken(one.name, rows)
        left -= one.amount
        np.maximum(left, 0, out=left)
        left *= MAX_NODE_SCORE
        left //= np.maximum(capacity, 1)
        total += left if one.weight == 1 else left * one.weight
        absent = capacity == 0
        if absent.any():
            weights = weights - one.weight * absent
    scores: Scores = total // np.maximum(weights, 1)
    return scores
