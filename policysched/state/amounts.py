"""Amounts of resources by node: what there is, what is requested, and what counts for scores.

Each resource has a place, the same in all three tables; cpu and memory come first and side by side, so that what most
pods ask for is a slice. Place 0 stands for every resource that no node has and no pod requests.

Shapes: K places, C the capacity of the columns; tables are (K, C).
Units: cpu in millicores, other resources in their own unit.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

import numpy as np
from numpy.typing import NDArray

from policysched.state.columns import ColumnSet, Rows
from policysched.state.footprint import Footprint

Amounts = NDArray[np.int64]
Places = slice | NDArray[np.intp]
CPU: Final = 1
MEMORY: Final = 2
FIRST_PLACES: Final = 4
MOST_KNOWN: Final = 1024
"""Of how many lists of resources the places are kept: pods can name any."""


class AmountTables:
    """The three tables."""

    def __init__(self, columns: ColumnSet) -> None:
        self._columns = columns
        self._places = {"cpu": CPU, "memory": MEMORY}
        self._known: dict[tuple[str, ...], Places] = {}
        self._allocatable = columns.new(np.int64, depth=FIRST_PLACES)
        self._requested = columns.new(np.int64, depth=FIRST_PLACES)
        self._counted = columns.new(np.int64, depth=FIRST_PLACES)

    @property
    def allocatable(self) -> Amounts:
        """What nodes have; 0 where they do not know a resource."""
        return self._allocatable.data

    @property
    def requested(self) -> Amounts:
        """What placed and assumed pods request."""
        return self._requested.data

    @property
    def counted(self) -> Amounts:
        """The same, with what every pod counts for at least: NonZeroRequested."""
        return self._counted.data

    def place(self, resource: str) -> int:
        """Give a resource's place, 0 for an unknown one."""
        return self._places.get(resource, 0)

    def places(self, resources: tuple[str, ...]) -> Places:
        """Give the places of some resources: a slice where they are side by side. They hold until the next change."""
        found = self._known.get(resources)
        if found is None:
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            found = self._known[resources] = _together([self.place(one) for one in resources])
        return found

    def store(self, row: int, amounts: dict[str, int]) -> None:
        """Write what a node has."""
        places = [self._place_of(one) for one in amounts]
        column = self._allocatable.data[:, row]
        column[:] = 0
        column[places] = list(amounts.values())

    def take(self, row: int, footprint: Footprint, count: int) -> None:
        """Add a pod's footprint to its row, or take it off with a count of -1."""
        for resource, amount in footprint.amounts:
            place = self._place_of(resource)
            self._requested.data[place, row] += count * amount
            if place not in (CPU, MEMORY):
                self._counted.data[place, row] += count * amount
        counted = self._counted.data
        counted[CPU, row] += count * footprint.nonzero_cpu_millis
        counted[MEMORY, row] += count * footprint.nonzero_memory_bytes

    def _place_of(self, resource: str) -> int:
        """Give a resource's place, a new one if it has none."""
        place = self._places.get(resource)
        if place is None:
            place = self._places[resource] = len(self._places) + 1
            self._known.clear()
            for table in (self._allocatable, self._requested, self._counted):
                table.deepen(place + 1)
        return place


def at(table: Amounts, places: Places, rows: Rows) -> Amounts:
    """Give the amounts at some places on some rows; not to be written to.

    Shapes: k places, R rows -> (k, R).
    """
    if isinstance(places, slice):
        chosen = table[places]
        return chosen[:, rows] if isinstance(rows, slice) else chosen.take(rows, axis=1)
    return table[places, rows] if isinstance(rows, slice) else table[places[:, None], rows]


def _together(places: Sequence[int]) -> Places:
    if places and list(places) == list(range(places[0], places[0] + len(places))):
        return slice(places[0], places[0] + len(places))
    return np.array(places, np.intp)
