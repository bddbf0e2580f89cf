"""`Reach`: what selectors and names say of the slices of a pool, and of their devices."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from policysched.devices.inventory.slices import DeviceNodes, KeptSlice
from policysched.model.selection.node_selectors import NodeSelectorMatcher

COUNTS: Final = 1
"""What a slice's number has in a `Reach` where a selector says that the slice counts, or that it counts everywhere."""


class Reach:
    """What selectors and names say of the slices of a pool, and of their devices, that are not tied to a node by name.

    A slice's number has `COUNTS` where the slice counts on a node, and above it a bit for each device that says by
    itself that the node reaches it. A slice without a selector counts where a device is reached, too.

    Args:
        selective: the slices that labels, or devices, say of which nodes reach them.
        common: those that count on every node.

    Attributes:
        slices: The slices; numbers are told by the places here.
        selectors: What nodes are asked.
        of_selectors: By selector the place of a slice, and what the selector adds to its number.
        by_name: The same by the names of nodes.
    """

    __slots__ = ("_always", "by_name", "of_selectors", "selectors", "slices")

    def __init__(self, selective: Sequence[KeptSlice], common: Sequence[KeptSlice]) -> None:
        self.slices = [*selective, *common]
        self.selectors: list[NodeSelectorMatcher] = []
        self.of_selectors: list[tuple[int, int]] = []
        self.by_name: dict[str, list[tuple[int, int]]] = {}
        self._always: dict[int, int] = {}
        for place, one in enumerate(self.slices):
            if one.everywhere:
                self._always[place] = COUNTS
            elif one.selector is not None:
                self._ask(one.selector, place, COUNTS)
            if one.device_nodes is not None:
                self._add_devices(place, one.device_nodes)

    def _add_devices(self, place: int, devices: DeviceNodes) -> None:
        if devices.everywhere:
            self._always[place] = self._always.get(place, 0) | devices.everywhere << 1
        for selector, reached in devices.selectors.items():
            self._ask(selector, place, reached << 1)
        for name, reached in devices.by_name.items():
            self.by_name.setdefault(name, []).append((place, reached << 1))

    def _ask(self, selector: NodeSelectorMatcher, place: int, adds: int) -> None:
        self.selectors.append(selector)
        self.of_selectors.append((place, adds))

    def told(self, selectors: Sequence[int]) -> Mapping[int, int]:
        """Return the numbers of slices, by their places, of nodes that some selectors select, by their places."""
        return self._turned(self._always, [*map(self.of_selectors.__getitem__, selectors)])

    def reached(self, told: Mapping[int, int]) -> dict[KeptSlice, int]:
        """Return the slices that count by what is told of a node, each with the devices that it reaches there."""
        return {
            self.slices[place]: told[place] >> 1
            for place in sorted(told)
            if told[place] & COUNTS or self.slices[place].selector is None
        }

    def otherwise(self, told: Mapping[int, int], selectors: Sequence[int], name: str = "") -> Mapping[int, int]:
        """Return the numbers of a node of which some selectors say the opposite."""
        named = self.by_name.get(name, ()) if name else ()
        if not selectors and not named:
            return told
        return self._turned(told, [*map(self.of_selectors.__getitem__, selectors), *named])

    @staticmethod
    def _turned(told: Mapping[int, int], changes: Sequence[tuple[int, int]]) -> Mapping[int, int]:
        """Put bits into numbers that are not there, and take those out that are: each bit is of one selector alone."""
        turned = dict(told)
        for place, bits in changes:
            turned[place] = turned.get(place, 0) ^ bits
            if not turned[place]:
                del turned[place]
        return turned
