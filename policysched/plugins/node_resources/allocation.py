"""What scores of resource allocation start from: capacities, what is taken, and what the pod adds.

Knows columns of amounts. Two readings of "taken" exist in kube-scheduler: with what every pod weighs at least
(LeastAllocated), or as really requested (BalancedAllocation); the state remembers which.

Amounts are ordinary as long as no percentage of them can wrap around in 64 bits and none is below 0. Strategies are
quick for those and have a second way for all others, which does step by step what kube-scheduler's int64 do. A score
may leave 0 to 100 there, which fails the cycle of a pod that asks for such amounts itself. An ordinary pod does not pay
for what others put on a node: that node scores 0 for it.

Source: plugins/noderesources/resource_allocation.go, v1.36.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from policysched.framework import MAX_NODE_SCORE, Cluster, Rows, Scores
from policysched.model.objects import Pod
from policysched.model.requests import incoming_amounts
from policysched.model.selection.names import is_scalar_resource_name
from policysched.plugins.node_resources.kept import Kept, Shared
from policysched.state.tables.amounts import WIDEST, Amounts, AmountTables, are_ordinary, at
from policysched.state.tables.int64_arrays import quotients


@dataclass(frozen=True, slots=True)
class ResourceWeight:
    """A resource that a score looks at."""

    name: str
    weight: int = 1


CPU_AND_MEMORY = (ResourceWeight("cpu"), ResourceWeight("memory"))


@dataclass(frozen=True, slots=True, eq=False)
class Wanted:
    """What the pod adds of the scored resources that matter to it.

    Shapes: k resources; `amounts` are (k, 1), `weights` (k,) with their sum, at least 1, what is asked of rows (k, R).
    """

    tables: AmountTables
    resources: tuple[str, ...]
    amounts: Amounts
    weights: Amounts
    weight: int
    nonzero: bool
    ordinary: bool
    """Whether what the pod wants is ordinary."""

    def capacity(self, rows: Rows) -> Amounts:
        """Give what rows have, 0 where they do not know a resource."""
        places = self.tables.places(self.resources)
        return at(self.tables.allocatable, places, rows)

    def taken(self, rows: Rows) -> Amounts:
        """Give what is taken on rows without the pod."""
        places = self.tables.places(self.resources)
        return at(self.tables.counted if self.nonzero else self.tables.requested, places, rows)

    def on_row(self, row: int) -> tuple[list[int], list[int]]:
        """Give what one row has and what is taken there, one number a resource."""
        places = self.tables.places(self.resources)
        table = self.tables.counted if self.nonzero else self.tables.requested
        return self.tables.allocatable[places, row].tolist(), table[places, row].tolist()

    def are_ordinary(self, capacity: Amounts, taken: Amounts) -> bool:
        """Tell whether these amounts are ordinary, and those that the pod wants."""
        if self.surely_ordinary:
            return True
        return self.ordinary and not np.count_nonzero((capacity | taken).view(np.uint64) > WIDEST)

    @property
    def surely_ordinary(self) -> bool:
        """Whether all amounts are ordinary, whichever rows are looked at."""
        return self.ordinary and not self.tables.odd

    @property
    def plain_amounts(self) -> list[int]:
        """The amounts as plain numbers."""
        amounts: list[int] = self.amounts[:, 0].tolist()
        return amounts

    def weight_of(self, counted: Amounts) -> Amounts | int:
        """Give each row's sum of the weights of the resources whose amount there is not 0, at least 1."""
        if np.count_nonzero(counted) == counted.size:
            return self.weight
        weights: Amounts = np.maximum(self.weights @ (counted != 0), 1)
        return weights


Percentage = Callable[[Amounts, Amounts], Amounts]
"""What a score makes of what is used and of what there is, never 0, resource by resource.

Shapes: (k, R), (k, R) -> (k, R).
"""


def weighted_mean(wanted: Wanted, capacity: Amounts, taken: Amounts, percentage: Percentage) -> Scores:
    """Give the mean of what rows score by each resource that they have, step by step as kube-scheduler does.

    Shapes: (k, R) -> (R,).
    """
    there = capacity != 0
    scores = np.where(there, percentage(taken + wanted.amounts, np.where(there, capacity, 1)), 0)
    return quotients(wanted.weights @ scores, np.maximum(wanted.weights @ there, 1))


Strategy = Callable[[Wanted, Rows], Scores]
"""How rows are scored by what is wanted, 0 to 100."""
OnRow = Callable[[Wanted, Sequence[int], Sequence[int]], int]
"""How one row is scored by what is wanted, what it has of each resource and what of it is taken."""


def prepare_allocation(pod: Pod, cluster: Cluster, resources: Sequence[ResourceWeight], *, nonzero: bool) -> Wanted:
    """Work out the pod's amounts; extended resources that it does not request are left out."""
    wanted = incoming_amounts(pod, (one.name for one in resources), nonzero=nonzero)
    kept = [
        (one, amount)
        for one, amount in zip(resources, wanted, strict=True)
        if amount or not is_scalar_resource_name(one.name)
    ]
    return Wanted(
        tables=cluster.nodes.amounts,
        resources=tuple(one.name for one, _ in kept),
        amounts=np.array([[amount] for _, amount in kept], np.int64).reshape(-1, 1),
        weights=np.array([one.weight for one, _ in kept], np.int64),
        weight=max(sum(one.weight for one, _ in kept), 1),
        nonzero=nonzero,
        ordinary=are_ordinary(amount for _, amount in kept),
    )


class SharedScores:
    """The scores of a strategy that pod classes hold; those that want the same share them.

    Args:
        of_rows: The strategy.
        of_row: The same for one row, None where there is no way without arrays.
    """

    def __init__(self, of_rows: Strategy, of_row: OnRow | None) -> None:
        self._of_rows, self._of_row = of_rows, of_row
        self._shared: Shared[Kept] = Shared()

    def of(self, wanted: Wanted, cluster: Cluster) -> Kept:
        """Give the scores for what a pod wants."""
        key = (wanted.resources, wanted.amounts.tobytes())
        return self._shared.of(cluster, key, lambda: self._make(wanted, cluster))

    def _make(self, wanted: Wanted, cluster: Cluster) -> Kept:
        of_row = None if self._of_row is None or not wanted.ordinary else partial(_score_row, wanted, self._of_row)
        return Kept(cluster, partial(_score_rows, wanted, self._of_rows), of_row, np.int16)


def _score_rows(wanted: Wanted, of_rows: Strategy, rows: Rows) -> NDArray[np.signedinteger]:
    """Score rows, in 16 bits where no score can leave 0 to 100."""
    scores = of_rows(wanted, rows)
    if wanted.surely_ordinary:
        return scores.astype(np.int16)
    return np.where((scores < 0) | (scores > MAX_NODE_SCORE), 0, scores) if wanted.ordinary else scores


def _score_row(wanted: Wanted, of_row: OnRow, row: int) -> int | None:
    have, taken = wanted.on_row(row)
    if wanted.tables.odd and not are_ordinary((*have, *taken)):
        return None
    return of_row(wanted, have, taken)
