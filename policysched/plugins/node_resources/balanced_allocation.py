"""NodeResourcesBalancedAllocation: prefers nodes whose resources would be evenly used.

Scores are computed in float64 and in kube-scheduler's order of operations, because they are truncated: another order
could differ by one.

Source: plugins/noderesources/balanced_allocation.go, v1.36.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np
from msgspec.structs import force_setattr
from numpy.typing import NDArray

from policysched.framework import MAX_NODE_SCORE, SKIP, Aspect, Cluster, Nothing, Rows, ScorePlugin, Scores
from policysched.model.objects import Pod
from policysched.plugins.arguments import Fault, PluginArguments
from policysched.plugins.columns import ONE, constant
from policysched.plugins.node_resources.allocation import (
    CPU_AND_MEMORY,
    SCORED_BY_DEFAULT,
    ResourceWeight,
    ScoredAmounts,
    ScoredResource,
    SharedScores,
    prepare_allocation,
    weighted,
)
from policysched.plugins.node_resources.answer_cache import CachedAnswers
from policysched.state.tables.columns import from_floats, quotients

PAIR = 2
"""Number of scored resources for which a single node can be scored without arrays."""
HALF, WHOLE, HIGHEST = constant(0.5), constant(1.0), constant(float(MAX_NODE_SCORE))
MIDDLE = constant(MAX_NODE_SCORE + MAX_NODE_SCORE // 2)
"""Added to the change of the balance before halving, so that an unchanged balance scores 75."""
Floats = NDArray[np.float64]


class NodeResourcesBalancedAllocation(ScorePlugin[CachedAnswers]):
    """The NodeResourcesBalancedAllocation plugin: scores nodes by how evenly their resources would be used.

    Args:
        resources: the resources to balance; their weights are ignored.
    """

    name = "NodeResourcesBalancedAllocation"
    score_reads = Aspect.CAPACITY | Aspect.USAGE
    scores_alone = True

    def __init__(self, resources: Sequence[ResourceWeight] = CPU_AND_MEMORY) -> None:
        self._resources = tuple(resources)
        self._kept = SharedScores(balanced, None)
        self._pairs = SharedScores(balanced, balanced_on_row)

    def prepare_score(self, pod: Pod, cluster: Cluster) -> CachedAnswers | Nothing:
        """Return the scores for the pod's requests, computed when read; SKIP if it requests no scored resource."""
        wanted = prepare_allocation(pod, cluster, self._resources, nonzero=False)
        if not wanted.amounts.any():
            return SKIP
        return (self._pairs if len(wanted.resources) == PAIR else self._kept).of(wanted, cluster)

    def stays_in_range(self, state: CachedAnswers) -> bool:
        """Return whether scores are within 0 to 100, because no amount so far was large enough for an overflow."""
        return state.narrow

    def score(self, state: CachedAnswers, rows: Rows) -> Scores:
        """Score nodes by how much the pod improves the balance of their utilization; an unchanged balance scores 75."""
        return state.of(rows).astype(np.int64)


def balanced(wanted: ScoredAmounts, rows: Rows) -> Scores:
    """Return scores of nodes by how much a pod improves the balance of their utilization.

    Shapes: R rows -> (R,).
    """
    capacity, taken = wanted.capacity(rows), wanted.taken(rows)
    ordinary = wanted.are_ordinary(capacity, taken)
    whole = (np.maximum(capacity, ONE) if ordinary else np.where(capacity == 0, 1, capacity)).astype(np.float64)
    fractions = np.empty((2, *whole.shape))
    # division of equal types needs no buffer
    np.divide(taken.astype(np.float64), whole, out=fractions[0])
    np.divide((taken + wanted.amounts).astype(np.float64), whole, out=fractions[1])
    np.minimum(fractions, WHOLE, out=fractions)
    absent = None if np.count_nonzero(capacity) == capacity.size else capacity == 0
    without_pod, with_pod = _balances(fractions, absent)
    change: Scores = with_pod - without_pod
    if not ordinary:
        return quotients(change + MAX_NODE_SCORE // 2, 2) + MAX_NODE_SCORE // 2
    change += MIDDLE
    change >>= ONE
    return change


def balanced_on_row(wanted: ScoredAmounts, have: Sequence[int], taken: Sequence[int]) -> int:
    """Return the balance score of one node with two resources whose amounts cannot overflow, without arrays."""
    first, second = wanted.plain_amounts
    without_pod = _balance_of_two(have, taken[0], taken[1])
    with_pod = _balance_of_two(have, taken[0] + first, taken[1] + second)
    return (with_pod - without_pod + MAX_NODE_SCORE + MAX_NODE_SCORE // 2) >> 1


def _balance_of_two(have: Sequence[int], first: int, second: int) -> int:
    if not all(have):
        return MAX_NODE_SCORE
    one, other = min(float(first) / float(have[0]), 1.0), min(float(second) / float(have[1]), 1.0)
    return int((1.0 - abs(one - other) / 2) * float(MAX_NODE_SCORE))


def _balances(fractions: Floats, absent: NDArray[np.bool_] | None) -> Scores:
    """Return the balance of each node without and with the pod: 100 minus the deviation of its utilizations.

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
    return from_floats(deviations)


def _deviation(fractions: Floats, absent: NDArray[np.bool_]) -> Floats:
    """Return for each node the deviation between the utilizations of its resources; 0 for fewer than two resources.

    Shapes: (k, R), (k, R) -> (R,).
    """
    count = np.maximum(len(absent) - absent.sum(axis=0), 1)
    total = np.zeros(fractions.shape[1])
    highest, lowest = np.full(len(total), -math.inf), np.full(len(total), math.inf)
    for fraction, missing in zip(fractions, absent, strict=True):
        total += np.where(missing, 0.0, fraction)
        highest = np.where(missing, highest, np.maximum(highest, fraction))
        lowest = np.where(missing, lowest, np.minimum(lowest, fraction))
    mean = total / count
    squares = np.zeros(len(total))
    for fraction, missing in zip(fractions, absent, strict=True):
        squares += np.where(missing, 0.0, (fraction - mean) * (fraction - mean))
    return np.where(count > 2, np.sqrt(squares / count), np.where(count == 2, (highest - lowest) / 2, 0.0))


class BalanceArguments(PluginArguments, frozen=True):
    """The arguments of NodeResourcesBalancedAllocation."""

    resources: tuple[ScoredResource, ...] = ()

    def __post_init__(self) -> None:
        """Set the default resources: cpu and memory."""
        force_setattr(self, "resources", self.resources or SCORED_BY_DEFAULT)

    def faults(self) -> Iterator[Fault]:
        """Yield the invalid fields of the arguments, each with the reason."""
        for index, one in enumerate(self.resources):
            if one.weight != 1:
                yield f"resources[{index}].weight", f"{one.weight} is not 1, the only supported weight"
            if one.name in {other.name for other in self.resources[:index]}:
                yield f"resources[{index}].name", f'"{one.name}" is listed twice'


def balanced_allocation(given: BalanceArguments) -> NodeResourcesBalancedAllocation:
    """Create NodeResourcesBalancedAllocation."""
    return NodeResourcesBalancedAllocation(weighted(given.resources))
