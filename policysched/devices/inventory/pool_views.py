"""`PoolView`: a device pool as some nodes see it. `NodeGroup`: the nodes that see the same pools.

A view refers to slices and has no data of single devices, because each of many nodes can see slices of its own.

Source: k8s.io/dynamic-resource-allocation v0.36 structured/internal/incubating/pools_incubating.go.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping, Sequence
from itertools import count
from typing import Final, NamedTuple

import numpy as np

from policysched.devices.inventory.allocated import PoolId
from policysched.devices.inventory.amounts import Number
from policysched.devices.inventory.columns import NO_SIGNATURE, Codes
from policysched.devices.inventory.pool_counters import PoolCounters
from policysched.devices.inventory.slices import CounterName, KeptSlice

_NO_AMOUNTS: Final[Mapping[CounterName, Number]] = {}
_NUMBERS: Final = count()
_NO_ROWS: Final[Codes] = np.zeros(0, np.int32)


class SliceTaken(NamedTuple):
    """The allocated devices of a slice as bit sets; bit n is the device with index n in the slice.

    Attributes:
        used: The devices that are allocated as a whole, as a bit set.
        consumed: By device, the sum of what its shares consume; in Kubernetes 1.36 without devices of which shares
            consume nothing.
    """

    used: int
    consumed: Mapping[int, Mapping[str, Number]]


class PoolView:
    """The slices of a device pool that are available to a group of nodes, and their devices in search order.

    Bit n of a bit set is the device with index n in this order.

    Args:
        pool: The pool.
        key: A key that is unique among the views of the pool.
        slices: The slices with devices, by name; empty if the pool is unusable.
        charges: The counters that the devices share, None if there are none.
        is_incomplete: Whether slices of the pool are missing.
        is_invalid: Whether slices contradict each other.

    Attributes:
        order: The sort key of the search; pools with binding conditions come last.
        size: Number of devices.
        groups: The groups of nodes that see this view.
        number: A number that no other view ever has.
        used: The devices that are allocated as a whole, as a bit set.
        consumed: By device, the sum of what its shares consume; without devices of which shares consume nothing.
        signature: A value that is equal only if the available counters and the consumed capacities are equal.
    """

    __slots__ = (
        "_rows", "charges", "consumed", "groups", "is_incomplete", "is_invalid", "key", "number", "order", "pool",
        "signature", "size", "slices", "used",
    )  # fmt: skip

    def __init__(
        self,
        pool: PoolId,
        key: Hashable,
        slices: Sequence[KeptSlice] = (),
        charges: PoolCounters | None = None,
        *,
        is_incomplete: bool = False,
        is_invalid: bool = False,
    ) -> None:
        self.pool, self.key = pool, key
        self.slices, self.charges = slices, charges
        self.is_incomplete, self.is_invalid = is_incomplete, is_invalid
        self.order = (any(one.has_binding_conditions for one in slices), pool)
        self.size = sum([len(one.devices) for one in slices])
        self.groups: set[NodeGroup] = set()
        self.number = next(_NUMBERS)
        self.used = 0
        self.consumed: Mapping[int, Mapping[str, Number]] = {}
        self.signature: Hashable = None
        self._rows: Codes | None = None

    @property
    def is_usable(self) -> bool:
        """Whether devices can be allocated from the pool."""
        return not (self.is_incomplete or self.is_invalid)

    @property
    def is_silent(self) -> bool:
        """Whether the pool is usable but has no devices, so that searches skip it."""
        return self.is_usable and not self.size

    @property
    def counters(self) -> Mapping[CounterName, Number]:
        """The total amount of each shared counter of the pool."""
        return _NO_AMOUNTS if self.charges is None else self.charges.amounts

    @property
    def available(self) -> Mapping[CounterName, Number]:
        """The available amount of each shared counter of the pool; it may be negative."""
        return _NO_AMOUNTS if self.charges is None else self.charges.available

    @property
    def rows(self) -> Codes:
        """The row numbers of the pool's devices in the device columns. Shapes: (D,)."""
        if self._rows is not None:
            return self._rows
        spans = [one.rows for one in self.slices]
        rows = np.concatenate(spans) if spans else _NO_ROWS
        if len(spans) <= 1:
            self._rows = rows
        return rows

    def parts(self) -> Iterator[tuple[int, KeptSlice]]:
        """Yield the slices that have devices, each with the index in the pool of its first device."""
        at = 0
        for one in self.slices:
            yield at, one
            at += len(one.devices)

    def slice_of(self, place: int) -> tuple[KeptSlice, int]:
        """Return the slice that contains a device of the pool, and the index of the device in the slice."""
        for at, one in self.parts():
            if place < at + len(one.devices):
                return one, place - at
        raise IndexError(place)

    def device(self, place: int) -> str:
        """Return the name of the device with the given index in the pool."""
        one, at = self.slice_of(place)
        return one.devices[at]

    def reached(self, reached: Mapping[KeptSlice, int]) -> int | None:
        """Return the devices that a node can use as a bit set; None if no slice limits single devices to nodes.

        Args:
            reached: The devices of each slice that the node reaches.
        """
        if all(one.device_nodes is None for one in self.slices):
            return None
        bits = 0
        for at, one in self.parts():
            bits |= ((1 << len(one.devices)) - 1 if one.device_nodes is None else reached[one]) << at
        return bits

    def let_go(self) -> None:
        """Release the references to slices, because no node group has this view any more."""
        self.key, self.slices, self.charges, self._rows = None, (), None, None

    def take(self, taken: Mapping[KeptSlice, SliceTaken]) -> None:
        """Set the allocated devices, given for each slice."""
        self.used = 0
        self.consumed = {}
        if taken:
            consumed: dict[int, Mapping[str, Number]] = {}
            for at, one in self.parts():
                of_slice = taken.get(one)
                if of_slice is not None:
                    self.used |= of_slice.used << at
                    consumed.update((at + place, amounts) for place, amounts in of_slice.consumed.items())
            self.consumed = consumed
        if self.charges is None and not self.consumed:
            self.signature = None
        else:
            shares = sorted((device, tuple(sorted(amounts.items()))) for device, amounts in self.consumed.items())
            self.signature = NO_SIGNATURE if self.charges is None else self.charges.signature, tuple(shares)


class SeenPool(NamedTuple):
    """A pool view, with the devices that a node can use as a bit set; None for all devices."""

    view: PoolView
    reached: int | None


class NodeGroup:
    """The nodes that see the same device pools.

    Attributes:
        pools: The pools in search order.
        views: The views of the pools.
        numbers: The numbers of the views.
        reaches_all: Whether the nodes reach all devices of the pools.
        rows: The rows of the nodes.
        bits: The rows as a bit set.
    """

    __slots__ = ("_by_pool", "bits", "numbers", "pools", "reaches_all", "rows", "views")

    def __init__(self, pools: tuple[SeenPool, ...]) -> None:
        self.pools = pools
        self.views = tuple([seen.view for seen in pools])
        self.numbers = tuple([view.number for view in self.views])
        self.reaches_all = all(seen.reached is None for seen in pools)
        self._by_pool: dict[PoolId, SeenPool] | None = None
        self.rows: set[int] = set()
        self.bits = 0

    def let_go(self) -> None:
        """Release the references to pools, because the group has no nodes."""
        self.pools, self.views, self._by_pool = (), (), None

    def seen(self, pool: PoolId) -> SeenPool | None:
        """Return a pool as the group's nodes see it; None if they cannot use the pool."""
        if self._by_pool is None:
            self._by_pool = {one.view.pool: one for one in self.pools}
        return self._by_pool.get(pool)

    def with_pools(self, changed: Mapping[PoolId, SeenPool | None]) -> tuple[SeenPool, ...]:
        """Return the group's pools in search order, with the pools `changed` replaced, added or removed."""
        others = [one for one in self.pools if one.view.pool not in changed]
        added = [one for one in changed.values() if one is not None]
        if added:
            others += added
            others.sort(key=lambda one: one.view.order)
        return tuple(others)
