"""The strategy MostAllocated: the more of its resources a node would have in use, the better.

Knows amounts only. A node that would be more than full counts as full, because pods without requests weigh
something here that no node was asked for.

Source: plugins/noderesources/most_allocated.go, v1.36.
"""

from __future__ import annotations

import numpy as np

from policysched.framework import MAX_NODE_SCORE, Rows, Scores
from policysched.plugins.allocation import Amounts, Wanted
from policysched.plugins.bases import row_count


def most_allocated(wanted: Wanted, rows: Rows) -> Scores:
    """Give the weighted mean of what rows would have in use in percent.

    Shapes: R rows -> (R,).
    Missing: resources that a row does not have do not count there; with none at all the score is 0.
    """
    total = np.zeros(row_count(wanted.nodes, rows), np.int64)
    weights: Amounts | np.int64 = np.int64(sum(one.weight for one in wanted.amounts))
    for one in wanted.amounts:
        capacity = wanted.capacity(one.name, rows)
        used = wanted.taken(one.name, rows) + one.amount
        np.minimum(used, capacity, out=used)
        used *= MAX_NODE_SCORE
        used //= np.maximum(capacity, 1)
        total += used if one.weight == 1 else used * one.weight
        absent = capacity == 0
        if absent.any():
            weights = weights - one.weight * absent
    scores: Scores = total // np.maximum(weights, 1)
    return scores
