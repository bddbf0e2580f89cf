"""The placed pods: which pod sits on which row, what it takes there, and whether it is only assumed.

Finished pods are not here: they hold nothing. The order of a row's pods is that of their arrival. Each pod has a slot
in two arrays, its row and its signature, for what is counted over all pods at once; freed slots are used again.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from policysched.model.objects import Pod
from policysched.state.tables.amounts import PodResources

FIRST_SLOTS = 64


@dataclass(slots=True)
class PlacedPod:
    """A pod on a row."""

    pod: Pod
    row: int
    pod_resources: PodResources
    assumed: bool
    signature: int = -1
    """What it is to the rules of other pods: see `policysched.state.placed.signatures`."""
    slot: int = -1
    """Its place in the columns of the pod table."""


def pod_id(pod: Pod) -> str:
    """Give what identifies the pod over its life: its UID, or `namespace/name` for objects without one."""
    return pod.metadata.uid or pod.key


class PodTable:
    """Placed pods by identity and by row.

    Shapes: `rows` and `signatures` (P,), one element a slot; a free slot has the row −1.
    """

    __slots__ = ("_by_row", "_free", "by_id", "rows", "signatures")

    def __init__(self) -> None:
        self.by_id: dict[str, PlacedPod] = {}
        self.rows: NDArray[np.int32] = np.full(FIRST_SLOTS, -1, np.int32)
        self.signatures: NDArray[np.int32] = np.zeros(FIRST_SLOTS, np.int32)
        self._by_row: dict[int, dict[str, PlacedPod]] = {}
        self._free = list(range(FIRST_SLOTS - 1, -1, -1))

    def on_row(self, row: int) -> list[PlacedPod]:
        """List the pods of a row."""
        return list(self._by_row.get(row, {}).values())

    def has_row(self, row: int) -> bool:
        """Tell whether any pod is on the row."""
        return row in self._by_row

    def insert(self, identity: str, placed: PlacedPod) -> None:
        """Put a pod on its row."""
        self.by_id[identity] = placed
        self._by_row.setdefault(placed.row, {})[identity] = placed
        if not self._free:
            self._grow()
        placed.slot = self._free.pop()
        self.rows[placed.slot], self.signatures[placed.slot] = placed.row, placed.signature

    def remove(self, identity: str) -> PlacedPod:
        """Take a pod off its row."""
        placed = self.by_id.pop(identity)
        self.rows[placed.slot] = -1
        self._free.append(placed.slot)
        pods = self._by_row[placed.row]
        del pods[identity]
        if not pods:
            del self._by_row[placed.row]
        return placed

    def __len__(self) -> int:
        return len(self.by_id)

    def _grow(self) -> None:
        size = self.rows.size
        self.rows = np.concatenate((self.rows, np.full(size, -1, np.int32)))
        self.signatures = np.concatenate((self.signatures, np.zeros(size, np.int32)))
        self._free = list(range(2 * size - 1, size - 1, -1))
