"""The placed pods: which pod sits on which row, what it takes there, and whether it is only assumed.

Finished pods are not here: they hold nothing. The order of a row's pods is that of their arrival.
"""

from __future__ import annotations

from dataclasses import dataclass

from policysched.model.objects import Pod
from policysched.state.footprint import Footprint


@dataclass(slots=True)
class PlacedPod:
    """A pod on a row."""

    pod: Pod
    row: int
    footprint: Footprint
    assumed: bool


def pod_id(pod: Pod) -> str:
    """Give what identifies the pod over its life: its UID, or `namespace/name` for objects without one."""
    return pod.metadata.uid or pod.key


class PodTable:
    """Placed pods by identity and by row."""

    __slots__ = ("_by_row", "by_id")

    def __init__(self) -> None:
        self.by_id: dict[str, PlacedPod] = {}
        self._by_row: dict[int, dict[str, PlacedPod]] = {}

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

    def remove(self, identity: str) -> PlacedPod:
        """Take a pod off its row."""
        placed = self.by_id.pop(identity)
        pods = self._by_row[placed.row]
        del pods[identity]
        if not pods:
            del self._by_row[placed.row]
        return placed

    def __len__(self) -> int:
        return len(self.by_id)
