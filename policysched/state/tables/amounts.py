"""`AmountTables`: allocatable and requested resources of nodes. `PortTable`: host ports in use on nodes.

A resource has a place, the same in all three tables, from its first use until no node has any of it. The resources of
`ALWAYS` keep their places; cpu and memory are adjacent, so that most pods read a slice. Place 0 means all other
resources: their amounts are stored by row and name, and move to the tables at the first use. Pods and kubelets can name
any resource, so a name alone takes no memory per row.

Sums are int64 and wrap around, as in kube-scheduler: removing a pod restores the sum exactly.

The amounts of a pod (`PodResources`) are computed once for all pods with equal requests, by the release's rule.

Shapes: K places, C the capacity of the columns; tables are (K, C).
Units: cpu in millicores, other resources in their own unit.

The address 0.0.0.0 conflicts with every address, other addresses conflict with themselves and 0.0.0.0.

Source: pkg/scheduler/framework/types.go (PodInfo.calculateResource, NodeInfo.update); k8s.io/kube-scheduler/framework
HostPortInfo.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Final

import numpy as np
from numpy.typing import NDArray

from policysched.model.objects import Pod
from policysched.model.pod_requirements import host_ports
from policysched.model.quantity import wrap
from policysched.model.requests import (
    AmountsInUse,
    counted_parts,
    largest_of_containers,
    largest_of_sums,
    placed_nonzero,
    placed_requests,
)
from policysched.model.selection.pod_part_cache import PodPartCache
from policysched.state.tables.columns import Column, ColumnSet, Rows

Amounts = NDArray[np.int64]
Places = slice | NDArray[np.intp]
CPU: Final = 1
MEMORY: Final = 2
ALWAYS: Final = ("cpu", "memory", "ephemeral-storage")
"""The resources that have a row in the matrices of amounts even if no node has them."""
FIRST_PLACES: Final = 1 + len(ALWAYS)
WIDEST: Final = 2**56 - 1
"""Largest amount, 64Pi bytes, of which percentages fit into 64 bits, so that fast arithmetic is exact."""
MOST_KNOWN: Final = 64
"""Maximum number of lists of resources whose matrix rows are cached; beyond it, the cache is emptied."""
NOTHING: Final[Mapping[str, int]] = {}
ANY_ADDRESS = "0.0.0.0"  # noqa: S104 - a wildcard to compare with, nothing is bound to it
HostPort = tuple[str, str, int]
"""A host port: address and protocol, which are never empty, and port number, which is never 0."""
Port = tuple[str, int]
"""A host port without its address: protocol and port number."""
FEW = 8
"""Number of nodes up to which host ports are compared node by node instead of with arrays."""


class AmountTables:
    """Allocatable and requested amounts as matrices: a row for each resource (its place), a column for each node."""

    def __init__(self, columns: ColumnSet) -> None:
        self.stamp = 0
        """A number that changes if a node gets a resource that no node had, or a resource changes its matrix row."""
        self.odd = False
        """Whether any amount was ever negative or above `WIDEST`, so that fast arithmetic may be wrong."""
        self._columns = columns
        self._names = ["", *ALWAYS]
        self._places = {name: place for place, name in enumerate(self._names) if place}
        self._offers = [0] * FIRST_PLACES
        """For each matrix row (place of a resource), the number of nodes that have the resource."""
        self._known: dict[tuple[str, ...], Places] = {}
        """For each queried list of resources, their places in the matrices, cached until `stamp` changes."""
        self._idle: dict[int, dict[str, int]] = {}
        """By node's row, the allocatable amounts of resources that were never queried and have no matrix row."""
        self._idle_on: Counter[str] = Counter()
        """For each resource without a matrix row, the number of nodes that have the resource."""
        self._unplaced: dict[int, dict[str, int]] = {}
        """By node's row, the requested amounts (other than 0) of resources without a matrix row."""
        self._owing: dict[int, int] = {}
        """By node's row, the number of negative amounts in `_unplaced`, from sums that exceeded 64 bits."""
        self._allocatable = columns.new(np.int64, depth=FIRST_PLACES)
        self._requested = columns.new(np.int64, depth=FIRST_PLACES)
        self._counted = columns.new(np.int64, depth=FIRST_PLACES)

    @property
    def allocatable(self) -> Amounts:
        """The allocatable amounts by resource and node; 0 for a resource that a node does not have."""
        return self._allocatable.data

    @property
    def requested(self) -> Amounts:
        """The requested amounts by resource and node: sums over placed and assumed pods."""
        return self._requested.data

    @property
    def counted(self) -> Amounts:
        """The requested amounts by resource and node, with kube-scheduler's minimum per pod (NonZeroRequested)."""
        return self._counted.data

    @property
    def owing(self) -> Mapping[int, int]:
        """The rows of nodes with a negative requested amount (after an overflow) of a resource that no node has."""
        return self._owing

    def place(self, resource: str) -> int:
        """Return the matrix row (place) of a resource, 0 if no node has it; the call may replace the matrices."""
        return self._places.get(resource) or (self._add(resource) if resource in self._idle_on else 0)

    def places(self, resources: tuple[str, ...]) -> Places:
        """Return the matrix rows of resources, as a slice if they are adjacent; valid until the next change."""
        found = self._known.get(resources)
        if found is None:
            found = _together([self.place(one) for one in resources])
            if len(self._known) >= MOST_KNOWN:
                self._known.clear()
            self._known[resources] = found
        return found

    def unplaced(self, row: int) -> Mapping[str, int]:
        """Return the requested amounts, on the node of a row, of resources without a matrix row."""
        return self._unplaced.get(row, NOTHING)

    def requested_on(self, row: int, resource: str) -> int:
        """Return the amount of a resource that the pods on one node request."""
        place = self.place(resource)
        return self._requested.data.item(place, row) if place else self.unplaced(row).get(resource, 0)

    def requested_of(self, resource: str, rows: Rows) -> Amounts:
        """Return the amounts of a resource that the pods on each of some nodes request. Read-only.

        Shapes: R rows -> (R,).
        """
        place = self.place(resource)
        found: Amounts = self._requested.data[place, rows]
        if place or not self._unplaced:
            return found
        numbers = np.arange(self._columns.capacity)[rows].tolist()
        return np.array([self.unplaced(row).get(resource, 0) for row in numbers], np.int64)

    def store(self, row: int, amounts: Mapping[str, int]) -> None:
        """Set the allocatable amounts of the node in a row."""
        allocatable, places = self._allocatable.data, self._places
        had = [self._names[place] for place in allocatable[:, row].nonzero()[0].tolist()]
        has = {name: amount for name, amount in amounts.items() if amount and name in places}
        self._keep_idle(row, {name: amount for name, amount in amounts.items() if amount and name not in has})
        if had:
            allocatable[:, row] = 0
        for name, amount in has.items():
            self._offers[places[name]] += 1
            allocatable[places[name], row] = amount
        self.odd |= not are_ordinary(amounts.values())
        for name in had:
            place = self._places[name]
            self._offers[place] -= 1
            if not self._offers[place] and place >= FIRST_PLACES:
                self._remove(name)

    def take(self, row: int, pod_resources: PodResources, count: int) -> None:
        """Add a pod's requests to the requested amounts of its node; `count` -1 subtracts them."""
        requested, counted = self._requested.data, self._counted.data
        for resource, amount in pod_resources.amounts:
            place = self._places.get(resource)
            if place is None:
                self._put(row, resource, wrap(self.unplaced(row).get(resource, 0) + count * amount))
                continue
            total = requested.item(place, row) + count * amount
            requested[place, row] = total = total if 0 <= total <= WIDEST else self._sum(total)
            if place > MEMORY:
                counted[place, row] = total
        cpu = counted.item(CPU, row) + count * pod_resources.nonzero_cpu_millis
        memory = counted.item(MEMORY, row) + count * pod_resources.nonzero_memory_bytes
        counted[CPU, row] = cpu if 0 <= cpu <= WIDEST else self._sum(cpu)
        counted[MEMORY, row] = memory if 0 <= memory <= WIDEST else self._sum(memory)

    def _sum(self, total: int) -> int:
        """Return a requested amount wrapped to 64 bits; if it is negative or above `WIDEST`, set `odd`."""
        if 0 <= total <= WIDEST:
            return total
        self.odd = True
        return wrap(total)

    def _keep_idle(self, row: int, amounts: dict[str, int]) -> None:
        """Store a node's allocatable amounts of resources that have no matrix row yet."""
        for name in self._idle.pop(row, NOTHING):
            self._idle_on[name] -= 1
            if not self._idle_on[name]:
                del self._idle_on[name]
        if amounts:
            if not amounts.keys() <= self._idle_on.keys():
                self._changed()
            self._idle[row] = amounts
            self._idle_on.update(amounts.keys())

    def _add(self, name: str) -> int:
        """Give a resource a matrix row with its allocatable and requested amounts; return the row."""
        place = self._places[name] = len(self._names)
        self._names.append(name)
        self._offers.append(self._idle_on.pop(name))
        if place >= len(self.allocatable):
            self._resize(2 * place)
        for row in [row for row, amounts in self._idle.items() if name in amounts]:
            self._allocatable.data[place, row] = self._idle[row].pop(name)
            if not self._idle[row]:
                del self._idle[row]
        for row in [row for row, amounts in self._unplaced.items() if name in amounts]:
            amount = self._unplaced[row][name]
            self._put(row, name, 0)
            self._requested.data[place, row] = self._counted.data[place, row] = self._sum(amount)
        self._changed()
        return place

    def _remove(self, name: str) -> None:
        """Remove the matrix row of a resource; the last resource gets the freed row."""
        place, last = self._places.pop(name), len(self._names) - 1
        requested = self._requested.data[place]
        for row in requested.nonzero()[0].tolist():
            self._put(row, name, requested.item(row))
        for column in self._tables():
            column.data[place] = column.data[last]
            column.data[last] = 0
        moved, self._offers[place] = self._names[last], self._offers[last]
        if place != last:
            self._names[place], self._places[moved] = moved, place
        self._names.pop()
        self._offers.pop()
        if last <= len(self.allocatable) // 4 or last <= FIRST_PLACES:
            self._resize(last)
        self._changed()

    def _changed(self) -> None:
        """Change `stamp` and drop cached places, because resources or their matrix rows changed."""
        self._known.clear()
        self.stamp += 1

    def _put(self, row: int, resource: str, amount: int) -> None:
        """Set the requested amount, on the node of a row, of a resource without a matrix row."""
        amounts = self._unplaced.setdefault(row, {})
        before = amounts.pop(resource, 0)
        if amount:
            amounts[resource] = amount
        if (amount < 0) != (before < 0):
            self._owing[row] = self._owing.get(row, 0) + (1 if amount < 0 else -1)
            if not self._owing[row]:
                del self._owing[row]
        if not amounts:
            del self._unplaced[row]

    def _tables(self) -> tuple[Column, ...]:
        return self._allocatable, self._requested, self._counted

    def _resize(self, depth: int) -> None:
        for column in self._tables():
            column.resize(depth)


def are_ordinary(amounts: Iterable[int]) -> bool:
    """Return whether all amounts are from 0 to `WIDEST`, so that fast arithmetic is exact."""
    together = 0
    for amount in amounts:
        together |= amount
    return 0 <= together <= WIDEST


def at(table: Amounts, places: Places, rows: Rows) -> Amounts:
    """Return the part of a matrix of amounts (resources by nodes) for some resources and nodes; read-only.

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


@dataclass(frozen=True, slots=True)
class PodResources:
    """The amounts and host ports that a pod requests; cpu is in millicores, other resources are in whole units."""

    amounts: tuple[tuple[str, int], ...]
    nonzero_cpu_millis: int
    nonzero_memory_bytes: int
    ports: tuple[HostPort, ...]


def _measure(pod: Pod, in_use: AmountsInUse) -> PodResources:
    requests = placed_requests(pod, in_use)
    named = (
        ("cpu", requests.cpu_millis),
        ("memory", requests.memory_bytes),
        ("ephemeral-storage", requests.ephemeral_bytes),
        *requests.scalars,
    )
    cpu_millis, memory_bytes = placed_nonzero(pod, in_use)
    return PodResources(
        amounts=tuple((name, amount) for name, amount in named if amount),
        nonzero_cpu_millis=cpu_millis,
        nonzero_memory_bytes=memory_bytes,
        ports=tuple(host_ports(pod)),
    )


_BY_RULE: Final[Mapping[AmountsInUse, PodPartCache[PodResources]]] = {
    rule: PodPartCache(partial(_measure, in_use=rule), counted_parts, PodResources((), 0, 0, ()))
    for rule in (largest_of_containers, largest_of_sums)
}


def pod_resources_by(in_use: AmountsInUse) -> PodPartCache[PodResources]:
    """Return the function that returns a pod's requests and host ports, cached for pods with equal requests."""
    return _BY_RULE[in_use]


class PortTable:
    """The host ports that pods use on each node."""

    __slots__ = ("_on_row", "_used")

    def __init__(self) -> None:
        self._used: dict[Port, dict[int, dict[str, int]]] = {}
        """For each port and node's row, how many pods use the port at each address."""
        self._on_row: dict[int, dict[Port, dict[str, int]]] = {}
        """The innermost dictionaries of `_used`, by node's row and port."""

    def taken(self, wanted: WantedPorts, rows: Rows, size: int) -> NDArray[np.bool_]:
        """Return a mask of the nodes on which a wanted host port conflicts with a port in use.

        Args:
            wanted: The ports.
            rows: The rows.
            size: Number of rows in use.

        Shapes: (R,).
        Cost: O(wanted ports + rows that use one of them); for a few rows, that of `uses` for each.
        """
        if not isinstance(rows, slice) and rows.size <= FEW:
            return np.array([self.uses(wanted, row) > 0 for row in rows.tolist()], np.bool_)
        found = np.zeros(size, np.bool_)
        for port, addresses in wanted.addresses.items():
            for row, used in self._used.get(port, {}).items():
                if _meets(addresses, used):
                    found[row] = True
        return found[rows]

    def uses(self, wanted: WantedPorts, row: int) -> int:
        """Return how many host ports in use on one node conflict with the wanted ports.

        Cost: O(ports of the row) or O(wanted ports), whichever is less.
        """
        there = self._on_row.get(row)
        if not there:
            return 0
        fewer = wanted.addresses if len(wanted.addresses) < len(there) else there
        return sum(
            count
            for port in fewer
            if port in there and port in wanted.addresses
            for address, count in there[port].items()
            if wanted.meets(address, port)
        )

    def add(self, row: int, ports: Iterable[HostPort], count: int = 1) -> None:
        """Record that a pod uses host ports on its node; `count` -1 records that it no longer uses them."""
        for address, protocol, number in ports:
            port = protocol, number
            addresses = self._used.setdefault(port, {}).setdefault(row, {})
            self._on_row.setdefault(row, {})[port] = addresses
            left = addresses[address] = addresses.get(address, 0) + count
            if left <= 0:
                self._give_back(address, port, row)

    def _give_back(self, address: str, port: Port, row: int) -> None:
        rows, there = self._used[port], self._on_row[row]
        del rows[row][address]
        if not rows[row]:
            del rows[row], there[port]
        if not rows:
            del self._used[port]
        if not there:
            del self._on_row[row]

    def __len__(self) -> int:
        """Return the number of different host ports that are in use on any node."""
        return len(self._used)


class WantedPorts:
    """The host ports that a pod requests, for comparison with ports in use."""

    __slots__ = ("__weakref__", "addresses")

    def __init__(self, ports: Iterable[HostPort]) -> None:
        self.addresses: dict[Port, set[str]] = {}
        """The requested addresses of each port."""
        for address, protocol, number in ports:
            self.addresses.setdefault((protocol, number), set()).add(address)

    def meets(self, address: str, port: Port) -> bool:
        """Return whether any requested port conflicts with a port in use at an address."""
        asked = self.addresses.get(port)
        return asked is not None and (address == ANY_ADDRESS or ANY_ADDRESS in asked or address in asked)

    def count(self, ports: Iterable[HostPort]) -> int:
        """Return how many host ports of another pod conflict with the requested ports."""
        return sum(self.meets(address, (protocol, number)) for address, protocol, number in ports)

    def __len__(self) -> int:
        return sum(map(len, self.addresses.values()))


def _meets(wanted: Collection[str], used: Collection[str]) -> bool:
    if ANY_ADDRESS in wanted or ANY_ADDRESS in used:
        return bool(used)
    return any(address in used for address in wanted)
