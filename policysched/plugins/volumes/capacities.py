"""`CapacityRows`: storage that a CSI driver can provision for a StorageClass on each node (CSIStorageCapacity).

If several objects of a class apply to a node, kube-scheduler takes any that is large enough; here it is the one that
allows the largest volume.

Shapes: N rows in use, K objects of the class.
Source: plugins/volumebinding/binder.go (hasEnoughCapacity, volumeLimit), v1.36 to v1.38.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable, Iterable
from fractions import Fraction
from operator import itemgetter
from typing import TypeAlias

import numpy as np
from numpy.typing import NDArray

from policysched.framework import Mask, RowNumbers
from policysched.model.objects import CSIStorageCapacity
from policysched.model.quantity import MAX, value

Size: TypeAlias = int | Fraction
"""The size of a volume in bytes, possibly with a fraction."""
Measure: TypeAlias = Callable[[str | float], Size]
"""Function from a quantity to a size in bytes."""


def volume_limit(capacity: CSIStorageCapacity, measure: Measure) -> Size | None:
    """Return the size of the largest volume that the driver can provision; None if unknown."""
    amount = capacity.capacity if capacity.maximum_volume_size is None else capacity.maximum_volume_size
    return None if amount is None else measure(amount)


class CapacityRows:
    """The storage that can be provisioned for one StorageClass on each node.

    Args:
        stated: The objects of the class, each with its rows.
        size: The number of rows.
        measure: Measures the sizes of volumes.
    """

    __slots__ = ("_limits", "_places", "amounts")

    def __init__(
        self, stated: Iterable[tuple[CSIStorageCapacity, RowNumbers]], size: int, measure: Measure = value
    ) -> None:
        limited = [
            (limit, 0 if one.capacity is None else min(math.ceil(measure(one.capacity)), MAX), rows)
            for one, rows in stated
            if (limit := volume_limit(one, measure)) is not None
        ]
        limited.sort(key=itemgetter(0, 1))
        self._limits = [limit for limit, _, _ in limited]
        self.amounts = np.array([*(amount for _, amount, _ in limited), 0], np.int64)
        """The capacity of each CSIStorageCapacity, 0 if unset; then 0 for nodes without an object. Shapes: (K + 1,)."""
        self._places = np.full(size, -1)
        """For each node, the index of its CSIStorageCapacity in the sorted limits; -1 for a node without an object."""
        for place, (_, _, rows) in enumerate(limited):
            self._places[rows] = place

    def enough_for(self, size: Size) -> Mask:
        """Return the nodes on which a volume of a given size can be provisioned. Shapes: (N,)."""
        enough: Mask = self._places >= bisect_left(self._limits, size)
        return enough

    def largest_everywhere(self, rows: Mask) -> Size | float:
        """Return the size of the largest volume that can be provisioned on every one of the given nodes.

        Shapes: (N,), at least one row.
        Missing: minus infinity if a row has no object.
        """
        place = int(self._places[rows].min())
        return -np.inf if place < 0 else self._limits[place]

    def on_rows(self, values: NDArray[np.int64]) -> NDArray[np.int64]:
        """Return a value for each node, given a value for each CSIStorageCapacity. Shapes: (K + 1,) -> (N,)."""
        return values.take(self._places)
