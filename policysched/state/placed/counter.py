"""One pod counter: the sum of the weights of the pods on each node, updated on every placement and removal.

A pod's weight depends on its signature alone, so a counter weighs each signature once. Most counters count few
signatures and are found by these; one that counts many (a dense one) has an array of weights and is asked about every
pod.

Weights may be fractions. A row's sum is then taken anew with `math.fsum`, so that it does not depend on the order in
which pods came and went. So it is, from then on, where a single weight is so large that whole sums might leave 64 bits.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policysched.model.quantity import wrap
from policysched.state.placed.pods import PlacedPod, PodTable
from policysched.state.tables.columns import Column, parts_of

FEW = 8
"""Of how many signatures the pods are looked for signature by signature when a counter is filled."""
WIDEST = 2**50
"""The largest weight of whole sums: thousands of such pods on a row stay within 64 bits."""
TERMS = 4
"""By how many terms a pod is weighed in about the time that a counter of one takes beside that."""
BYTES_PER_COUNTER = 2048
"""What a counter takes beside its column and its signatures: who knows it, and by what. Units: bytes."""
BYTES_PER_FACET, FACETS_INCLUDED = 512, 4
"""What each thing takes that pods are looked up by and that leads to the counter, but for a few. Units: bytes."""
BYTES_PER_SIGNATURE = 256
"""What each signature that counts in a counter takes there and beside it. Units: bytes."""
LEAST_DENSE, DENSE_SHARE = 256, 8
"""How many signatures a dense counter counts at least, and of how many there are it counts one at least."""
Weigh = Callable[[PlacedPod], float]
"""A weight for a pod of a signature; it may read nothing that pods of one signature differ in."""


class PodCounter:
    """One sum a row."""

    __slots__ = ("__weakref__", "_dense", "_weigh", "column", "effort", "facets", "reads", "version", "weights")

    def __init__(self, column: Column, weigh: Weigh, terms: int = 1) -> None:
        self.column = column
        self._weigh = weigh
        self.effort = max(1, terms // TERMS)
        """What weighing a signature takes beside a counter of one term."""
        self.weights: dict[int, float] = {}
        """What a pod weighs, by signature; signatures that weigh nothing are left out. Empty in a dense counter."""
        self._dense: NDArray[Any] | None = None
        self.reads: tuple[object, ...] = ()
        """What it was weighed by, held for the next counter that asks the same."""
        self.facets = 0
        """How many things that pods are looked up by lead to it."""
        self.version = 0
        """Moves when any row's sum does."""

    @property
    def counts(self) -> NDArray[Any]:
        """The sums by row, rows that hold no node included; the array is not to be changed or kept.

        Shapes: (capacity,), int64 or float64.
        """
        return self.column.data

    @property
    def fractions(self) -> bool:
        """Whether the sums are other than whole numbers of 64 bits."""
        return self.column.data.dtype != np.int64

    def weight_of(self, placed: PlacedPod) -> float:
        """Return what a pod weighs, or would weigh, one of a signature that is not placed anywhere included."""
        return self.of_signature(placed.signature) if placed.signature >= 0 else self._weigh(placed)

    def of_signature(self, signature: int) -> float:
        """Return what a pod of a signature weighs."""
        if self._dense is None:
            return self.weights.get(signature, 0)
        weight: float = self._dense.item(signature) if signature < self._dense.size else 0
        return weight

    def counts_signature(self, signature: int) -> bool:
        """Return whether pods of a signature weigh anything."""
        return self._dense is None or bool(self.of_signature(signature))

    @property
    def is_dense(self) -> bool:
        """Whether it counts so many signatures that it is asked about every pod."""
        return self._dense is not None

    @property
    def signatures_nbytes(self) -> int:
        """The memory of the weights of signatures. Units: bytes."""
        return BYTES_PER_SIGNATURE * len(self.weights) + (0 if self._dense is None else self._dense.nbytes)

    @property
    def nbytes(self) -> int:
        """The memory that it takes, with what knows it by signature. Units: bytes."""
        dense = 0 if self._dense is None else self._dense.nbytes
        found_by = BYTES_PER_FACET * max(0, self.facets - FACETS_INCLUDED) + BYTES_PER_SIGNATURE * len(self.weights)
        own = self.column.nbytes + BYTES_PER_COUNTER + found_by + dense
        return own + parts_of(self.reads) if self.reads else own

    def weigh(self, signature: int, placed: PlacedPod, like: float | None = None) -> bool:
        """Weigh a signature, or take the weight of one like it; tell whether its pods count."""
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
        """Take the weights of signatures, and return those whose pods count, none where it is dense now.

        Args:
            signatures: Different signatures.
            weights: What each weighs.
            size: How many signatures there are, free ones included.

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
        """Become dense where it counts many of so many signatures by now; return those it was found by until then."""
        if self._dense is not None or not _are_many(len(self.weights), size):
            return []
        found_by = [*self.weights]
        self._dense = np.zeros(size, self.column.data.dtype)
        self._dense[found_by] = list(self.weights.values())
        self.weights.clear()
        return found_by

    def forget(self, signature: int) -> None:
        """Forget the weight of a signature."""
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
        """Sum up all placed pods.

        Cost: O(placed pods) array work; with fractions a loop over the pods that count.
        """
        if self._dense is None and len(self.weights) <= FEW and self.column.data.dtype == np.int64:
            self._fill_few(pods)
            return
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

    def _fill_few(self, pods: PodTable) -> None:
        """Sum up the pods of a few signatures, each looked for by itself: that is several times as fast."""
        for signature, weight in self.weights.items():
            rows = pods.rows[pods.signatures == signature]
            np.add.at(self.column.data, rows[rows >= 0], int(weight))

    def add(self, placed: PlacedPod, sign: int, pods: PodTable) -> None:
        """Add a pod that came to its row, or with -1 take off one that left it."""
        self.version += 1
        if self.column.data.dtype == np.int64:
            data, row = self.column.data, placed.row
            data[row] = wrap(data.item(row) + sign * int(self.of_signature(placed.signature)))
        else:
            self._sum(placed.row, pods)

    def move(self, before: PlacedPod, after: PlacedPod, pods: PodTable) -> None:
        """Count a version of a pod in place of the one before."""
        was, now = self.of_signature(before.signature), self.of_signature(after.signature)
        if was == now:
            return
        self.version += 1
        if self.column.data.dtype == np.int64:
            data, row = self.column.data, after.row
            data[row] = wrap(data.item(row) + int(now) - int(was))
        else:
            self._sum(after.row, pods)

    def _sum(self, row: int, pods: PodTable) -> None:
        self.column.data[row] = math.fsum(self.of_signature(one.signature) for one in pods.on_row(row))


def _are_many(count: int, size: int) -> bool:
    return count >= LEAST_DENSE and count * DENSE_SHARE >= size
