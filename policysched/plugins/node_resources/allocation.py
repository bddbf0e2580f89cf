"""Scores by resource allocation: LeastAllocated, MostAllocated and RequestedToCapacityRatio.

A score is computed from the capacity of a row, the amount in use, and the amount of the pod. The amount in use has two
definitions in kube-scheduler: with a minimum for each pod (LeastAllocated), or as requested (BalancedAllocation).

Amounts are ordinary if none is negative and no percentage of them overflows 64 bits. For other amounts, the strategies
repeat kube-scheduler's int64 arithmetic step by step. Scores may then leave 0 to 100. This fails the cycle of a pod
that requests such amounts itself; for other pods, the node scores 0.

Divisions of ordinary amounts have non-negative operands, so NumPy's floor equals Go's truncation. With MostAllocated, a
node that is more than full is treated as full, because pods without requests have a minimum amount. The curve of
RequestedToCapacityRatio is a table of 101 scores in kube-scheduler's integer arithmetic, because utilization is an
integer from 0 to 100.

Source: plugins/noderesources/resource_allocation.go, least_allocated.go, most_allocated.go,
requested_to_capacity_ratio.go, v1.36 and v1.37.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, partial
from typing import Final

import numpy as np
from msgspec.structs import force_setattr
from numpy.typing import NDArray

from policysched.framework import MAX_NODE_SCORE, Cluster, Rows, Scores
from policysched.model.objects import Pod
from policysched.model.requests import incoming_amounts, incoming_nonzero
from policysched.model.selection.name_validation import is_scalar_resource_name
from policysched.plugins.arguments import Given, Int64
from policysched.plugins.columns import ONE, SharedByCluster, constant
from policysched.plugins.curves import FULL, ShapePoint, curve_of
from policysched.plugins.node_resources.answer_cache import CachedAnswers
from policysched.state.tables.amounts import WIDEST, Amounts, AmountTables, are_ordinary, at
from policysched.state.tables.columns import quotients


@dataclass(frozen=True, slots=True)
class ResourceWeight:
    """A resource that a scoring strategy scores, with its weight."""

    name: str
    weight: int = 1


CPU_AND_MEMORY = (ResourceWeight("cpu"), ResourceWeight("memory"))
NOTHING, HIGHEST = constant(0), constant(MAX_NODE_SCORE)


@dataclass(frozen=True, eq=False)
class ScoredAmounts:
    """A pod's requested amounts of the resources that a scoring strategy scores.

    Shapes: k resources; `amounts` are (k, 1), `weights` (k,) with their sum, at least 1; results for rows (k, R).
    """

    tables: AmountTables
    resources: tuple[str, ...]
    amounts: Amounts
    weights: Amounts
    weight: int
    nonzero: bool
    ordinary: bool
    """Whether the pod's amounts are small enough for 64-bit arithmetic without overflow."""

    def capacity(self, rows: Rows) -> Amounts:
        """Return the allocatable amounts of nodes; 0 for a resource that a node does not have."""
        places = self.tables.places(self.resources)
        return at(self.tables.allocatable, places, rows)

    def taken(self, rows: Rows) -> Amounts:
        """Return the amounts that the pods on nodes request, without the pod that is scored."""
        places = self.tables.places(self.resources)
        return at(self.tables.counted if self.nonzero else self.tables.requested, places, rows)

    def are_ordinary(self, capacity: Amounts, taken: Amounts) -> bool:
        """Return whether the nodes' amounts and the pod's amounts are small enough for 64 bits without overflow."""
        if self.ordinary and not self.tables.odd:
            return True
        return self.ordinary and not np.count_nonzero((capacity | taken).view(np.uint64) > WIDEST)

    @cached_property
    def plain_amounts(self) -> list[int]:
        """The pod's amounts as Python integers."""
        amounts: list[int] = self.amounts[:, 0].tolist()
        return amounts

    @cached_property
    def plain_weights(self) -> list[int]:
        """The weights of the resources as Python integers."""
        weights: list[int] = self.weights.tolist()
        return weights

    def weight_of(self, counted: Amounts) -> Amounts | int:
        """Return for each node the total weight of the resources whose amount is not 0; at least 1."""
        if np.count_nonzero(counted) == counted.size:
            return self.weight
        weights: Amounts = np.maximum(self.weights @ (counted != 0), 1)
        return weights


Percentage = Callable[[Amounts, Amounts], Amounts]
"""Function from the amounts in use and the capacities, which are not 0, to the score of each resource.

Shapes: (k, R), (k, R) -> (k, R).
"""


def weighted_mean(wanted: ScoredAmounts, capacity: Amounts, taken: Amounts, percentage: Percentage) -> Scores:
    """Return the weighted mean of the resources' scores on each node, rounded as in kube-scheduler.

    Shapes: (k, R) -> (R,).
    """
    there = capacity != 0
    scores = np.where(there, percentage(taken + wanted.amounts, np.where(there, capacity, 1)), 0)
    return quotients(wanted.weights @ scores, np.maximum(wanted.weights @ there, 1))


Strategy = Callable[[ScoredAmounts, Rows], Scores]
"""A scoring strategy: a function that returns the scores of nodes, 0 to 100, for a pod's amounts."""
OnRow = Callable[[ScoredAmounts, Sequence[int], Sequence[int]], int]
"""Function that returns the score of one node from a pod's amounts, the node's capacities and its amounts in use."""


def prepare_allocation(
    pod: Pod, cluster: Cluster, resources: Sequence[ResourceWeight], *, nonzero: bool, pod_level: bool = True
) -> ScoredAmounts:
    """Return a pod's amounts of the scored resources, without extended resources that the pod does not request.

    Args:
        pod: The pod.
        cluster: The cluster.
        resources: The scored resources.
        nonzero: Whether a container without a request counts with a minimum.
        pod_level: Whether pod-level requests and a resize count.
    """
    names, in_use = [one.name for one in resources], cluster.amounts_in_use
    if nonzero:
        wanted = incoming_nonzero(pod, names, in_use if pod_level else None)
    else:
        wanted = incoming_amounts(pod, names, in_use)
    kept = [
        (one, amount)
        for one, amount in zip(resources, wanted, strict=True)
        if amount or not is_scalar_resource_name(one.name)
    ]
    return ScoredAmounts(
        tables=cluster.nodes.amounts,
        resources=tuple(one.name for one, _ in kept),
        amounts=np.array([[amount] for _, amount in kept], np.int64).reshape(-1, 1),
        weights=np.array([one.weight for one, _ in kept], np.int64),
        weight=max(sum(one.weight for one, _ in kept), 1),
        nonzero=nonzero,
        ordinary=are_ordinary(amount for _, amount in kept),
    )


class SharedScores:
    """Cached scores of a scoring strategy on all nodes, which classes of pods with equal requests share.

    Args:
        of_rows: The strategy.
        of_row: The strategy for one row; None if it needs arrays.
    """

    def __init__(self, of_rows: Strategy, of_row: OnRow | None) -> None:
        self._of_rows, self._of_row = of_rows, of_row
        self._shared: SharedByCluster[CachedAnswers] = SharedByCluster()

    def of(self, wanted: ScoredAmounts, cluster: Cluster) -> CachedAnswers:
        """Return the cached scores for a pod's amounts."""
        key = (wanted.resources, wanted.amounts.tobytes())
        return self._shared.of(cluster, key, lambda: self._make(wanted, cluster))

    def apart(self, wanted: ScoredAmounts, cluster: Cluster) -> CachedAnswers:
        """Return cached scores for a pod's amounts, not shared with other classes of pods."""
        return CachedAnswers(cluster, partial(_score_rows, wanted, self._of_rows), None, np.int16)

    def _make(self, wanted: ScoredAmounts, cluster: Cluster) -> CachedAnswers:
        of_row = None if self._of_row is None or not wanted.ordinary else partial(_score_row, wanted, self._of_row)
        return CachedAnswers(cluster, partial(_score_rows, wanted, self._of_rows), of_row, np.int16)


def _score_rows(wanted: ScoredAmounts, of_rows: Strategy, rows: Rows) -> NDArray[np.signedinteger]:
    """Return the scores of nodes, as 16-bit integers if all are certainly 0 to 100."""
    scores = of_rows(wanted, rows)
    if wanted.ordinary and not wanted.tables.odd:
        return scores.astype(np.int16)
    return np.where((scores < 0) | (scores > MAX_NODE_SCORE), 0, scores) if wanted.ordinary else scores


def _score_row(wanted: ScoredAmounts, of_row: OnRow, row: int) -> int | None:
    tables, places = wanted.tables, wanted.tables.places(wanted.resources)
    have = tables.allocatable[places, row].tolist()
    taken = (tables.counted if wanted.nonzero else tables.requested)[places, row].tolist()
    if tables.odd and not are_ordinary((*have, *taken)):
        return None
    return of_row(wanted, have, taken)


def least_allocated(wanted: ScoredAmounts, rows: Rows) -> Scores:
    """Return for each node the weighted mean of the free percentages of the resources after placing the pod.

    Shapes: R rows -> (R,).
    Missing: resources that a row does not have are ignored; a row without any scores 0.
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
    """Return the free percentage of each capacity; 0 if more than the capacity is in use."""
    return np.where(used > capacity, 0, quotients((capacity - used) * MAX_NODE_SCORE, capacity))


def least_allocated_on_row(wanted: ScoredAmounts, have: Sequence[int], taken: Sequence[int]) -> int:
    """Return the LeastAllocated score of one node whose amounts cannot overflow, computed without arrays."""
    total = weight = 0
    for capacity, used, amount, factor in zip(have, taken, wanted.plain_amounts, wanted.plain_weights, strict=True):
        if capacity:
            total += factor * (max(capacity - used - amount, 0) * MAX_NODE_SCORE // capacity)
            weight += factor
    return total // max(weight, 1)


def most_allocated(wanted: ScoredAmounts, rows: Rows) -> Scores:
    """Return for each node the weighted mean of the used percentages of the resources after placing the pod.

    Shapes: R rows -> (R,).
    Missing: resources that a row does not have are ignored; a row without any scores 0.
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
    """Return the used percentage of each capacity."""
    return quotients(np.minimum(used, capacity) * MAX_NODE_SCORE, capacity)


class RequestedToCapacityRatio:
    """The strategy RequestedToCapacityRatio, which scores the utilization of resources by a curve.

    Args:
        shape: The points of the curve: at least one, by rising utilization.
    """

    def __init__(self, shape: Sequence[ShapePoint]) -> None:
        self._curve = curve_of(shape)

    def __call__(self, wanted: ScoredAmounts, rows: Rows) -> Scores:
        """Return for each node the weighted mean of the curve's scores of the resources; halves are rounded up.

        Shapes: R rows -> (R,).
        Missing: resources that a row does not have, and resources that score 0, are ignored; a row without any
            scores 0.
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
        # halves are rounded up; the denominators are small, so float64 distinguishes the quotients from integers
        mean: Scores = ((2 * total + weight) / (2 * weight)).astype(np.int64)
        return mean


class ScoredResource(Given, frozen=True):
    """A resource with its weight in plugin arguments; weight 0 is treated as 1."""

    name: str = ""
    weight: Int64 = 0

    def __post_init__(self) -> None:
        """Set weight 0 to 1."""
        force_setattr(self, "weight", self.weight or 1)


SCORED_BY_DEFAULT: Final = tuple(ScoredResource(name=one.name, weight=one.weight) for one in CPU_AND_MEMORY)
"""The resources that are scored if the plugin arguments list none."""


def weighted(resources: Sequence[ScoredResource]) -> tuple[ResourceWeight, ...]:
    """Return the scored resources of plugin arguments with their weights."""
    return tuple(ResourceWeight(one.name, one.weight) for one in resources)
