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
from policysched.plugins.allocation import CPU_AND_MEMORY, Amounts, ResourceWeight, Wanted, prepare_allocation
from policysched.plugins.bases import FinalScores, OwnRowOnly

HALF = MAX_NODE_SCORE // 2
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
        return wanted if any(one.amount for one in wanted.amounts) else SKIP

    score_alone = prepare_score

    def score(self, state: Wanted, rows: Rows) -> Scores:
        """Score rows by how much the pod improves their balance: 75 where it changes nothing."""
        capacities = [state.capacity(one.name, rows) for one in state.amounts]
        absent = _absent(capacities)
        without_pod: list[Floats] = []
        with_pod: list[Floats] = []
        for one, capacity in zip(state.amounts, capacities, strict=True):
            taken = state.taken(one.name, rows)
            whole = np.maximum(capacity, 1).astype(np.float64)
            without_pod.append(_fraction(taken, whole))
            with_pod.append(_fraction(taken + one.amount, whole))
        change = _balance(with_pod, absent) - _balance(without_pod, absent)
        change += HALF
        change >>= 1
        return change + HALF


def _absent(capacities: Sequence[Amounts]) -> NDArray[np.bool_] | None:
    """Tell which resources which rows do not have; None where all have all.

    Shapes: K columns (R,) -> (K, R).
    """
    if all(capacity.all() for capacity in capacities):
        return None
    return np.array([capacity == 0 for capacity in capacities])


def _fraction(taken: Amounts, whole: Floats) -> Floats:
    """Divide what is taken by what there is, at most 1."""
    fraction = taken.astype(np.float64)
    fraction /= whole
    return np.minimum(fraction, 1.0, out=fraction)


def _balance(fractions: list[Floats], absent: NDArray[np.bool_] | None) -> Scores:
    """Score the standard deviation of the fractions, 100 where they are all equal."""
    if len(fractions) == 2:
        deviation = np.abs((fractions[0] - fractions[1]) / 2)
        if absent is not None:
            deviation[absent.any(axis=0)] = 0.0
    else:
        deviation = _deviation(fractions, np.zeros((len(fractions), 1), np.bool_) if absent is None else absent)
    return ((1 - deviation) * float(MAX_NODE_SCORE)).astype(np.int64)


def _deviation(fractions: list[Floats], absent: NDArray[np.bool_]) -> Floats:
    """Take each row's deviation over the resources that it has; of fewer than two there is none."""
    count = np.maximum(len(absent) - absent.sum(axis=0), 1)
    total = np.zeros(len(fractions[0]))
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
