"""Reason codes of NodeResourcesFit: they state which requested resources are insufficient on a node.

For a pod with few resources, a code has one bit for each resource. For a pod with many, each combination of short
resources has a number. A resource that no node has is short on all rows and needs no operation by row.

Source: plugins/noderesources/fit.go (fitsRequest), v1.36.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Hashable, Iterator, Mapping
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np

from policysched.framework import NO_ROWS, ChangedRows, Cluster, Codes, Mask, RowNumbers, Rows
from policysched.model.quantity import wrap
from policysched.plugins.node_resources.answer_cache import CachedAnswers
from policysched.state.tables.amounts import Amounts, are_ordinary, at
from policysched.state.tables.nodes import NodeTable

PODS, UNRESOLVABLE = 1, 1 << 30
"""Bits of reason codes: too many pods on the node; and a resource that is insufficient even on the empty node."""
MOST_BITS: Final = 29
"""Maximum number of requested resources that have a bit each in reason codes; beyond it, combinations get numbers."""
FEW_NUMBERS: Final = 256
"""Number of numbered combinations from which numbers of unused combinations are reused."""


@dataclass(frozen=True, slots=True)
class Shortage:
    """The requested resources that are insufficient on a node."""

    pods: bool
    resources: tuple[int, ...]
    """The indices, among the requested resources, of the insufficient resources."""
    unresolvable: bool


class ShortageTest:
    """Computes reason codes for a pod's requests of few resources: one bit for each insufficient resource.

    Delegated resources have a device class: on a node without the resource, devices are evaluated instead.
    Shapes: k resources; amounts and delegated are (k, 1).
    """

    def __init__(self, nodes: NodeTable, wanted: Mapping[str, int], delegated: frozenset[str]) -> None:
        self.nodes = nodes
        self.resources = tuple(wanted)
        self.amounts: Amounts = np.array(list(wanted.values()), np.int64).reshape(-1, 1)
        self._plain_amounts = tuple(wanted.values())
        self._delegated = delegated
        self._mask: Mask | None = None
        if delegated:
            self._mask = np.array([[name in delegated] for name in wanted], np.bool_)

    @property
    def key(self) -> Hashable:
        """A key that is equal for objects that test equal requests."""
        return self.resources, self._plain_amounts, self._delegated

    def keep(self, cluster: Cluster) -> CachedAnswers:
        """Return a cache for the reason codes of all nodes."""
        return CachedAnswers(cluster, self.codes, self.code, np.int32)

    def codes(self, rows: Rows) -> Codes:
        """Return for each node the reason code of insufficient resources; 0 if the pod fits.

        Shapes: (R,).
        """
        nodes, tables = self.nodes, self.nodes.amounts
        codes = (nodes.pods_count.data[rows] >= nodes.pods_allowed.data[rows]).astype(np.int32)
        places = tables.places(self.resources)
        allocatable = at(tables.allocatable, places, rows)
        short = self.amounts > allocatable - at(tables.requested, places, rows)
        if np.count_nonzero(short):
            if self._mask is not None:
                short &= ~(self._mask & (allocatable <= 0))
            for position, missing in enumerate(short.astype(np.int32)):
                codes |= missing << (position + 1)
            codes[(short & (self.amounts > allocatable)).any(axis=0)] |= UNRESOLVABLE
        if tables.owing:
            for index, row in self.owing(rows):
                codes[index] = self._code_of(self._as_it_is(row))
        return codes

    def codes_changed(self, changed: ChangedRows) -> Codes | None:
        """Return the reason codes (0 accepts) of simulated nodes; None if nodes can only be evaluated one by one.

        Shapes: (R,).
        """
        nodes, tables, rows = self.nodes, self.nodes.amounts, changed.rows
        full = nodes.pods_count.data[rows] + changed.more_pods() >= nodes.pods_allowed.data[rows]
        codes: Codes = full.astype(np.int32)
        for position, (resource, amount) in enumerate(zip(self.resources, self._plain_amounts, strict=True)):
            place = tables.place(resource)
            capacity = tables.allocatable[place, rows]
            short = amount > capacity - (tables.requested_of(resource, rows) + changed.more(resource))
            if resource in self._delegated:
                short &= capacity > 0
            codes[short] |= PODS << (position + 1)
            codes[short & (amount > capacity)] |= UNRESOLVABLE
        return codes

    def code(self, row: int) -> int:
        """Return the reason code of one node, computed without arrays."""
        nodes, tables = self.nodes, self.nodes.amounts
        places = tables.places(self.resources)
        have, taken = tables.allocatable[places, row].tolist(), tables.requested[places, row].tolist()
        if row in tables.owing or (tables.odd and not are_ordinary((*have, *taken))):
            return self._code_of(self._as_it_is(row))
        code = PODS if nodes.pods_count.data[row] >= nodes.pods_allowed.data[row] else 0
        for position, amount in enumerate(self._plain_amounts):
            capacity = have[position]
            if amount > capacity - taken[position] and not self._delegates(position, capacity):
                code |= PODS << (position + 1) | (UNRESOLVABLE if amount > capacity else 0)
        return code

    def shortage(self, code: int) -> Shortage:
        """Return the insufficient resources that a reason code stands for."""
        positions = (one for one in range(len(self.resources)) if code & PODS << (one + 1))
        return Shortage(bool(code & PODS), tuple(positions), bool(code & UNRESOLVABLE))

    def on_row(self, row: int, taken: Callable[[str], int], pods: int) -> Shortage:
        """Return the insufficient resources of a node, if its pods request given amounts."""
        tables = self.nodes.amounts
        short, unresolvable = [], False
        for position, (resource, amount) in enumerate(zip(self.resources, self._plain_amounts, strict=True)):
            capacity = tables.allocatable.item(tables.place(resource), row)
            if amount > wrap(capacity - taken(resource)) and not self._delegates(position, capacity):
                short.append(position)
                unresolvable |= amount > capacity
        return Shortage(pods >= self.nodes.pods_allowed.data.item(row), tuple(short), unresolvable)

    def _as_it_is(self, row: int) -> Shortage:
        taken = partial(self.nodes.amounts.requested_on, row)
        return self.on_row(row, taken, self.nodes.pods_count.data.item(row))

    def owing(self, rows: Rows) -> Iterator[tuple[int, int]]:
        """Yield index and row number of nodes whose pods request a negative amount of a resource that no node has."""
        owing = self.nodes.amounts.owing
        numbers = np.arange(self.nodes.columns.capacity)[rows].tolist() if owing else ()
        return ((index, row) for index, row in enumerate(numbers) if row in owing)

    def _delegates(self, position: int, capacity: int) -> bool:
        """Return whether devices instead of the node provide a resource, given the node's allocatable amount."""
        return bool(self._delegated) and capacity <= 0 and self.resources[position] in self._delegated

    @staticmethod
    def _code_of(shortage: Shortage) -> int:
        code = PODS * shortage.pods | UNRESOLVABLE * shortage.unresolvable
        for position in shortage.resources:
            code |= PODS << (position + 1)
        return code


class ManyResourcesTest(ShortageTest):
    """Computes reason codes for a pod's requests of many resources: a number for each combination that is insufficient.

    The number of a combination that no row has can be reused. So cached codes must be refreshed before they are read.
    """

    def __init__(self, nodes: NodeTable, wanted: Mapping[str, int], delegated: frozenset[str]) -> None:
        super().__init__(nodes, wanted, delegated)
        self._kept: Callable[[], CachedAnswers | None] = lambda: None
        self._numbers: dict[bytes, int] = {}
        self._answers: list[bytes] = [b""]
        """For each number its combination, as bits: too many pods, unresolvable, and each insufficient resource."""
        self._free: list[int] = []
        self._stamp = -1
        self._offered: RowNumbers = NO_ROWS
        self._hidden: RowNumbers = NO_ROWS

    def keep(self, cluster: Cluster) -> CachedAnswers:
        """Return a cache for the reason codes of all nodes; the cache shows which numbers are in use."""
        kept = CachedAnswers(cluster, self.codes, None, np.int32)
        self._kept = weakref.ref(kept)
        return kept

    def codes(self, rows: Rows) -> Codes:
        """Return for each node the reason code of insufficient resources; 0 if the pod fits.

        Shapes: (R,).
        Cost: O(resources that nodes have) for each row, O(requested resources) for each distinct combination.
        """
        self._collect()
        self._split()
        nodes, tables = self.nodes, self.nodes.amounts
        chosen = self._offered
        places = np.array([tables.place(self.resources[one]) for one in chosen.tolist()], np.intp)
        amounts, allocatable = self.amounts[chosen], at(tables.allocatable, places, rows)
        short = amounts > allocatable - at(tables.requested, places, rows)
        if self._mask is not None:
            short &= ~(self._mask[chosen] & (allocatable <= 0))
        full = nodes.pods_count.data[rows] >= nodes.pods_allowed.data[rows]
        unresolvable = (short & (amounts > allocatable)).any(axis=0)
        packed, of_row = np.unique(np.packbits([full, unresolvable, *short], axis=0), axis=1, return_inverse=True)
        found = np.unpackbits(packed, axis=0, count=2 + chosen.size).astype(np.bool_).T
        codes: Codes = np.array([self._number(self._widened(one)) for one in found], np.int32)[of_row.reshape(-1)]
        for index, row in self.owing(rows):
            codes[index] = self.code(row)
        return codes

    def code(self, row: int) -> int:
        """Return the reason code of one node, computed without arrays."""
        shortage = self._as_it_is(row)
        bits = np.zeros(2 + len(self.resources), np.bool_)
        bits[0], bits[1] = shortage.pods, shortage.unresolvable
        bits[[2 + position for position in shortage.resources]] = True
        return self._number(bits)

    def codes_changed(self, changed: ChangedRows) -> Codes | None:  # noqa: ARG002 - no number belongs to such a row
        """Return None: only combinations on real nodes get numbers, so simulated nodes are evaluated one by one."""
        return None

    def shortage(self, code: int) -> Shortage:
        """Return the insufficient resources that a reason code stands for."""
        bits = np.unpackbits(np.frombuffer(self._answers[code], np.uint8), count=2 + len(self.resources))
        return Shortage(bool(bits[0]), tuple(bits[2:].nonzero()[0].tolist()), bool(bits[1]))

    def _split(self) -> None:
        """Divide the requested resources into those that some node has, and those insufficient on all nodes."""
        tables = self.nodes.amounts
        if self._stamp == tables.stamp:
            return
        placed = np.array([tables.place(one) > 0 for one in self.resources], np.bool_)
        self._stamp = tables.stamp
        left = np.array([one in self._delegated for one in self.resources], np.bool_)
        self._offered, self._hidden = placed.nonzero()[0], (~placed & ~left).nonzero()[0]

    def _widened(self, bits: Mask) -> Mask:
        """Add to a combination of insufficient resources those that are insufficient on all nodes.

        Shapes: (2 + offered,) -> (2 + k,).
        """
        made = np.zeros(2 + len(self.resources), np.bool_)
        made[:2] = bits[:2]
        made[2 + self._offered] = bits[2:]
        made[2 + self._hidden] = True
        made[1] |= self._hidden.size > 0
        return made

    def _number(self, bits: Mask) -> int:
        if not bits[0] and not bits[2:].any():
            return 0
        answer = np.packbits(bits).tobytes()
        number = self._numbers.get(answer)
        if number is None:
            if not self._free:
                self._free.append(len(self._answers))
                self._answers.append(b"")
            number = self._numbers[answer] = self._free.pop()
            self._answers[number] = answer
        return number

    def _collect(self) -> None:
        """If many combinations are numbered, free the numbers that no node uses."""
        kept = self._kept()
        if kept is None or len(self._numbers) < FEW_NUMBERS:
            return
        used = set(kept.distinct())
        if len(self._numbers) < 2 * len(used):
            return
        for answer, number in [one for one in self._numbers.items() if one[1] not in used]:
            del self._numbers[answer]
            self._answers[number] = b""
            self._free.append(number)


def shortage_test(nodes: NodeTable, wanted: Mapping[str, int], delegated: frozenset[str]) -> ShortageTest:
    """Return the `ShortageTest` for few requested resources, or the `ManyResourcesTest` for many."""
    return (ShortageTest if len(wanted) <= MOST_BITS else ManyResourcesTest)(nodes, wanted, delegated)
