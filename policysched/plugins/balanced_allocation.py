"""NodeResourcesBalancedAllocation: prefer nodes whose resources the pod leaves evenly used.

Knows amounts only. The arithmetic is in doubles and in kube-scheduler's order of operations, because scores are
truncated: another order would now and then differ by one.

Source: plugins/noderesources/balanced_allocation.go, v1.36.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policysched.framework import MAX_NODE_SCORE, SKIP, Aspect, Cluster, Rows, Scores
from policysched.model.objects import Pod
from policysched.plugins.allocation import CPU_AND_MEMORY, ResourceWeight, Wanted, prepare_allocation
from policysched.plugins.bases import ONE, FinalScores, OwnRowOnly, constant

HALF, WHOLE, HIGHEST = constant(0.5), constant(1.0), constant(float(MAX_NODE_SCORE))
MIDDLE = constant(MAX_NODE_SCORE + MAX_NODE_SCORE // 2)
"""What makes half of it, rounded down, 75 where the balance stays as it is."""
Floats = NDArray[np.float64]


class NodeResourcesBalancedAllocation(OwnRowOnly, FinalScores):
    """The plugin.

    Args:
        resources: the resources to balance; their weights play no part.
    """

    name = "NodeResourcesBalancedAllocation"
    score_reads = Aspect.CAPACITY | Aspect.USAGE

    def __init__(self, resources: Sequence[ResourceWeight] = CPU_AND_MEMORY) -> None:
        self._resources = tuple(resources)

    def prepare_score(self, pod: Pod, cluster: Cluster) -> Any:
        """Work out the pod's amounts; a pod that requests none of the resources would crowd one node: skip it."""
        wanted = prepare_allocation(pod, cluster, self._resources, nonzero=False)
        return wanted if wanted.amounts.any() else SKIP

    score_alone = prepare_score

    def score(self, state: Wanted, rows: Rows) -> Scores:
        """Score rows by how much the pod improves their balance: 75 where it changes nothing."""
        capacity, taken = state.capacity(rows), state.taken(rows)
        whole = np.maximum(capacity, ONE).astype(np.float64)
        fractions = np.empty((2, *whole.shape))
        # numbers of one kind are divided without a buffer
        np.divide(taken.astype(np.float64), whole, out=fractions[0])
        np.divide((taken + state.amounts).astype(np.float64), whole, out=fractions[1])
        np.minimum(fractions, WHOLE, out=fractions)
        absent = None if np.count_nonzero(capacity) == capacity.size else capacity == 0
        without_pod, with_pod = _balances(fractions, absent)
        change: Scores = with_pod - without_pod
        change += MIDDLE
        change >>= ONE
        return change


def _balances(fractions: Floats, absent: NDArray[np.bool_] | None) -> Scores:
    """Score the standard deviation of the fractions without and with the pod, 100 where they are all equal.

    Shapes: (2, k, R), absent resources (k, R) -> (2, R).
    """
    if fractions.shape[1] == 2:
        deviations = fractions[:, 0] - fractions[:, 1]
        np.abs(deviations, out=deviations)
        deviations *= HALF
        if absent is not None:
            deviations[:, absent.any(axis=0)] = 0.0
    else:
        absent = np.zeros(fractions.shape[1:], np.bool_) if absent is None else absent
        deviations = np.array([_deviation(one, absent) for one in fractions])
    np.subtract(WHOLE, deviations, out=deviations)
    deviations *= HIGHEST
    return deviations.astype(np.int64)


def _deviation(fractions: Floats, absent: NDArray[np.bool_]) -> Floats:
    """Take each row's deviation over the resources that it has; of fewer than two there is none.

    Shapes: (k, R), (k, R) -> (R,).
    """
    count = np.maximum(len(absent) - absent.sum(axis=0), 1)
    total = np.zeros(fractions.shape[1])
    highest, lowest = np.zeros(len(total)), np.ones(len(total))
    for fraction, missing in zip(fractions, absent, strict=True):
        total += np.where(missing, 0.0, fraction)
        highest = np.where(missing, highest, np.maximum(highest, fraction))
        lowest = np.where(missing, lowest, np.minimum(lowest, fraction))
    mean = total / count
    squares = np.zeros(len(total))
    for fraction, missing in zip(fractions, absent, strict=True):
        squares += np.where(missing, 0.0, (fraction - mean) * (fraction - mean))
    return np.where(count > 2, np.sqrt(squares / count), np.where(count == 2, (highest - lowest) / 2, 0.0))
