"""`PodCounter`: for each node, the number of pods that match, for example, a selector; placements update it.

A pod's weight depends on its signature only, so a counter weighs each signature once. A counter of few signatures has
a dictionary of weights and is found by signature. A counter of many signatures is dense: it has an array of weights and
is called for every pod.

If weights are fractions, or so large that integer sums might overflow 64 bits, a row is summed again with `math.fsum`
after each change, so that the sum does not depend on the order of changes.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policysched.model.quantity import wrap
from policysched.state.placed.pods import PlacedPod, PodTable
from policysched.state.tables.columns import Column

WIDEST = 2**50
"""Largest weight of a pod in integer sums; sums of thousands of such pods fit into 64 bits."""
TERMS = 4
"""Number of affinity terms that take as long to evaluate for a pod as all other work for a weight."""
BYTES_PER_SIGNATURE = 256
"""Estimated memory of one stored weight. Units: bytes."""
LEAST_DENSE, DENSE_SHARE = 256, 8
"""Number and share of signatures (sets of alike pods) with a weight from which an array stores the weights."""
Weigh = Callable[[PlacedPod], float]
"""Function that returns a pod's weight in a counter, from fields in which alike pods (a signature) are equal."""


class PodCounter:
    """For each node, the sum of its pods' weights; usually a pod has weight 1 if it matches a selector, else 0."""

    __slots__ = ("__weakref__", "_dense", "_weigh", "column", "effort", "reads", "stamp", "weights")

    def __init__(self, column: Column, weigh: Weigh, terms: int = 1) -> None:
        self.column = column
        self._weigh = weigh
        self.effort = max(1, terms // TERMS)
        """Time to compute the weight of a pod, as a multiple of the time for a counter with one affinity term."""
        self.weights: dict[int, float] = {}
        """The weights other than 0 by pods' signature (alike pods are equal); empty if the counter is dense."""
        self._dense: NDArray[Any] | None = None
        self.reads: tuple[object, ...] = ()
        """The columns of pod labels from which the weights were computed, kept alive for other counters."""
        self.stamp = 0
        """A number that changes if the sum of any node changes."""

    @property
    def counts(self) -> NDArray[Any]:
        """The sum of pod weights on each node, by row; read-only, valid until the next change.

        Shapes: (capacity,), int64 or float64.
        """
        return self.column.data

    @property
    def fractions(self) -> bool:
        """Whether the sums are floats instead of integers."""
        return self.column.data.dtype != np.int64

    def weight_of(self, placed: PlacedPod) -> float:
        """Return a pod's weight in the counter, whether the pod is placed or not."""
        return self.of_signature(placed.signature) if placed.signature >= 0 else self._weigh(placed)

    def of_signature(self, signature: int) -> float:
        """Return the weight in the counter of the alike pods that share a signature."""
        if self._dense is None:
            return self.weights.get(signature, 0)
        weight: float = self._dense.item(signature) if signature < self._dense.size else 0
        return weight

    def counts_signature(self, signature: int) -> bool:
        """Return whether the alike pods that share a signature have a weight other than 0 in the counter."""
        return self._dense is None or bool(self.of_signature(signature))

    @property
    def is_dense(self) -> bool:
        """Whether the counter matches so many kinds of pods that it stores weights in an array, and sees every pod."""
        return self._dense is not None

    @property
    def nbytes(self) -> int:
        """Estimated memory of the stored weights. Units: bytes."""
        return BYTES_PER_SIGNATURE * len(self.weights) + (0 if self._dense is None else self._dense.nbytes)

    def weigh(self, signature: int, placed: PlacedPod, like: float | None = None) -> bool:
        """Store the weight of new alike pods (a signature), computed or given by `like`; return whether it is not 0."""
        weight = self._weigh(placed) if like is None else like
        if weight:
            if abs(weight) > WIDEST:
                self._take_fractions()
            kept = int(weight) if self.column.data.dtype == np.int64 else weight
            if self._dense is None:
                self.weights[signature] = kept
            else:
                self._grow(signature + 1)
                self._dense[signature] = kept
        return bool(weight)

    def weigh_together(self, signatures: NDArray[np.intp], weights: NDArray[Any], size: int) -> list[int]:
        """Store the weights of many signatures (sets of alike pods); return those with a weight, none if now dense.

        Args:
            signatures: Distinct signatures.
            weights: Their weights.
            size: Number of signatures, including free numbers.

        Shapes: (S,) each.
        """
        counting = np.flatnonzero(weights)
        weights, counted = weights[counting], signatures[counting]
        if np.count_nonzero(np.abs(weights) > WIDEST):
            self._take_fractions()
        kept = weights.astype(self.column.data.dtype)
        if _are_many(counting.size, size):
            self._dense = np.zeros(size, self.column.data.dtype)
            self._dense[counted] = kept
            return []
        those: list[int] = counted.tolist()
        self.weights.update(zip(those, kept.tolist(), strict=True))
        return those

    def densify(self, size: int) -> list[int]:
        """Store weights in an array if many of `size` signatures (alike pods) have one; return these, else none."""
        if self._dense is not None or not _are_many(len(self.weights), size):
            return []
        found_by = [*self.weights]
        self._dense = np.zeros(size, self.column.data.dtype)
        self._dense[found_by] = list(self.weights.values())
        self.weights.clear()
        return found_by

    def forget(self, signature: int) -> None:
        """Remove the weight of a signature (set of alike pods), because its last pod was removed."""
        if self._dense is None:
            self.weights.pop(signature, None)
        elif signature < self._dense.size:
            self._dense[signature] = 0

    def _take_fractions(self) -> None:
        self.column.data = self.column.data.astype(np.float64, copy=False)
        if self._dense is not None:
            self._dense = self._dense.astype(np.float64, copy=False)

    def _grow(self, size: int) -> None:
        if self._dense is not None and size > self._dense.size:
            more = max(size - self._dense.size, self._dense.size)
            self._dense = np.concatenate((self._dense, np.zeros(more, self._dense.dtype)))

    def fill(self, pods: PodTable, signatures: int) -> None:
        """Compute the sum of weights on each node from all placed pods.

        Cost: O(placed pods) in array operations; with fractions a loop over the rows with weighted pods.
        """
        if self._dense is None:
            weights = np.zeros(signatures, self.column.data.dtype)
            weights[list(self.weights)] = list(self.weights.values())
        else:
            self._grow(signatures)
            weights = self._dense
        used = pods.rows >= 0
        rows, amounts = pods.rows[used], weights[pods.signatures[used]]
        if amounts.dtype == np.int64:
            np.add.at(self.column.data, rows, amounts)
            return
        for row in np.unique(rows[amounts != 0]).tolist():
            self._sum(row, pods)

    def add(self, placed: PlacedPod, sign: int, pods: PodTable) -> None:
        """Add a placed pod's weight to the sum of its node; `sign` -1 subtracts the weight."""
        self.stamp += 1
        if self.column.data.dtype == np.int64:
            data, row = self.column.data, placed.row
            data[row] = wrap(data.item(row) + sign * int(self.of_signature(placed.signature)))
        else:
            self._sum(placed.row, pods)

    def move(self, before: PlacedPod, after: PlacedPod, pods: PodTable) -> None:
        """Replace the weight of a placed pod by the weight of a newer version of the pod."""
        was, now = self.of_signature(before.signature), self.of_signature(after.signature)
        if was == now:
            return
        self.stamp += 1
        if self.column.data.dtype == np.int64:
            data, row = self.column.data, after.row
            data[row] = wrap(data.item(row) + int(now) - int(was))
        else:
            self._sum(after.row, pods)

    def _sum(self, row: int, pods: PodTable) -> None:
        self.column.data[row] = math.fsum(self.of_signature(one.signature) for one in pods.on_row(row))


def _are_many(count: int, size: int) -> bool:
    return count >= LEAST_DENSE and count * DENSE_SHARE >= size
