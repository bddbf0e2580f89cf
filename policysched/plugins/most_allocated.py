"""The strategy MostAllocated: the more of its resources a node would have in use, the better.

Knows amounts only. A node that would be more than full counts as full, because pods without requests weigh
something here that no node was asked for.

Source: plugins/noderesources/most_allocated.go, v1.36.
"""

from __future__ import annotations

import numpy as np

from policysched.framework import MAX_NODE_SCORE, Rows, Scores
from policysched.plugins.allocation import Wanted, weighted_mean
from policysched.state.amounts import Amounts
from policysched.state.int64_arrays import quotients


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
