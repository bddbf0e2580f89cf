"""`Reach`: the slices and devices of a pool that nodes can use because of node selectors or node names."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Final

from policysched.devices.inventory.slices import DeviceNodes, KeptSlice
from policysched.model.selection.node_selectors import NodeSelectorMatcher

COUNTS: Final = 1
"""Bit in the number of a slice: whether the node can use the slice itself, not only some of its devices."""


class Reach:
    """The slices of a pool that do not name a single node, with the nodes that can use them and their devices.

    For a node, a slice has a number: bit `COUNTS` if the node reaches the slice, and above it one bit for each device
    that states by itself that the node reaches it. A slice without a selector is also reached if a device is.

    Args:
        selective: The slices with node selectors, or with nodes per device.
        common: The slices that every node reaches.

    Attributes:
        slices: The slices.
        selectors: The node selectors.
        of_selectors: For each selector, the place of its slice, and the bits that it adds to the slice's number.
        by_name: By node name, the same for devices that name their node.
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

    def numbers(self, selectors: Sequence[int]) -> Mapping[int, int]:
        """Return for each slice a number that encodes its usable devices, for nodes that match given node selectors."""
        return self._turned(self._always, [*map(self.of_selectors.__getitem__, selectors)])

    def reached(self, numbers: Mapping[int, int]) -> dict[KeptSlice, int]:
        """Return the slices that a node can use, each with a bit set of its devices with own node selection."""
        return {
            self.slices[place]: numbers[place] >> 1
            for place in sorted(numbers)
            if numbers[place] & COUNTS or self.slices[place].selector is None
        }

    def otherwise(self, numbers: Mapping[int, int], selectors: Sequence[int], name: str = "") -> Mapping[int, int]:
        """Return the numbers of the slices for a node that matches the given node selectors unlike most nodes."""
        named = self.by_name.get(name, ()) if name else ()
        if not selectors and not named:
            return numbers
        return self._turned(numbers, [*map(self.of_selectors.__getitem__, selectors), *named])

    @staticmethod
    def _turned(numbers: Mapping[int, int], changes: Sequence[tuple[int, int]]) -> Mapping[int, int]:
        """Return the numbers of the slices with some bits inverted; each bit belongs to one node selector."""
        turned = dict(numbers)
        for place, bits in changes:
            turned[place] = turned.get(place, 0) ^ bits
            if not turned[place]:
                del turned[place]
        return turned
