"""Pools of devices as nodes see them: the newest generation of what a node can reach, complete or not, valid or not.

A node sees the slices of a pool that it can reach, and of these the ones of the highest generation. Nodes that see the
same slices share one view.

Source: k8s.io/dynamic-resource-allocation v0.36 structured/internal/incubating/pools_incubating.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from typing import NamedTuple

import numpy as np

from policysched.devices.inventory.allocated import PoolId, Taken
from policysched.devices.inventory.amounts import Number
from policysched.devices.inventory.columns import NOBODY, Codes, DeviceColumns
from policysched.devices.inventory.slices import DeviceNodes, KeptSlice, LabelValue
from policysched.model.selection.node_selectors import NodeSelectorMatcher

CounterName = tuple[str, str]
"""A counter set and one of its counters."""
COUNTS = 1
"""What a slice's number has in a `Reach` where a selector says that the slice counts, or that it counts everywhere."""
_UNSIGNED = -1
_FEW = 16
"""Up to how many devices, or pools, one is looked for without an index of their names."""


class PoolView:
    """A pool as some nodes see it; its devices are in the order of the search.

    Bits stand for the devices, the lowest for the first one.
    """

    __slots__ = (
        "_columns", "_consumers", "_places", "available", "consumed", "counters", "devices", "groups", "is_incomplete",
        "is_invalid", "is_usable", "key", "order", "pool", "rows", "signature", "signed", "slices", "used",
    )  # fmt: skip

    def __init__(self, pool: PoolId, key: Hashable, columns: DeviceColumns) -> None:
        self.pool = pool
        self.key = key
        self._columns = columns
        self.order = (False, pool)
        """Pools with binding conditions come after all others."""
        self.is_incomplete = False
        self.is_invalid = False
        self.is_usable = False
        """Whether devices may be allocated from it."""
        self.slices: Sequence[KeptSlice] = ()
        """The slices with devices, by name."""
        self.devices: Sequence[str] = ()
        self.rows: Codes = np.zeros(0, np.int32)
        self.groups: set[NodeGroup] = set()
        """The nodes that see the pool so."""
        self.used = 0
        """The devices that are allocated as a whole."""
        self.consumed: dict[int, Mapping[str, Number]] = {}
        """By device, what allocated shares of it consume in all; only of those that consume anything."""
        self.signature: Hashable = None
        """A value that is equal where equal amounts are left of equal counters, and devices consumed alike."""
        self.signed = _UNSIGNED
        """The code that its devices have in the column of signatures."""
        self.counters: Mapping[CounterName, Number] = {}
        self.available: Mapping[CounterName, Number] = {}
        """What of each counter no allocated device of the pool takes, on whatever node; it may be below 0."""
        self._consumers: Mapping[str, Sequence[tuple[CounterName, Number]]] = {}
        self._places: dict[str, int] | None = None

    @property
    def is_of_one_node(self) -> bool:
        """Whether it can be used, and its slices with devices are tied to a node by name."""
        return self.is_usable and all(one.local_to for one in self.slices)

    @property
    def is_silent(self) -> bool:
        """Whether it neither has devices nor any trouble: no search would notice it."""
        return self.is_usable and not self.devices

    def place(self, device: str) -> int | None:
        """Return the place of a device in the order of the search, None where it is not in the view."""
        devices = self.devices
        if len(devices) <= _FEW:
            return devices.index(device) if device in devices else None
        if self._places is None:
            self._places = {name: place for place, name in enumerate(self.devices)}
        return self._places.get(device)

    def slice_of(self, place: int) -> tuple[KeptSlice, int]:
        """Return the slice of a device, and its place there."""
        for one in self.slices:
            if place < len(one.devices):
                return one, place
            place -= len(one.devices)
        raise IndexError(place)

    def fill(self, slices: Sequence[KeptSlice], others: Sequence[KeptSlice]) -> None:
        """Work out the devices and counters.

        Args:
            slices: those that the nodes can reach.
            others: the pool's other ones of the generation.
        """
        columns = self._columns
        in_order = sorted(slices, key=lambda one: one.name)
        with_devices = [one for one in in_order if not one.counter_sets]
        names = [name for one in with_devices for name in one.devices]
        counters = _counters(in_order)
        consuming = [one for one in (*in_order, *others) if one.counts]
        if len(set(names)) < len(names) or counters is None or not _are_known(consuming, counters, columns):
            self.is_invalid = True
            return
        self.is_usable = not self.is_incomplete
        self.slices, self.devices = with_devices, with_devices[0].devices if len(with_devices) == 1 else names
        self.order = (any(one.has_binding_conditions for one in with_devices), self.pool)
        self.rows = _rows(with_devices)
        self.counters = {(name, each): amount for name, amounts in counters.items() for each, amount in amounts.items()}
        self._consumers = _consumers([one for one in consuming if not one.counter_sets], columns) if counters else {}

    def take(self, taken: Taken) -> None:
        """Take over what is allocated of the pool."""
        self.used = 0
        self._columns.used[self.rows] = self._columns.consumed[self.rows] = False
        self.consumed = {}
        for device in (*taken.dedicated, *taken.consumed):
            self._take_one(device, taken)
        self._count_available(taken)
        self._sign()

    def retake(self, device: str, taken: Taken) -> None:
        """Take over what is allocated of the pool, after it changed for one device."""
        self._take_one(device, taken)
        if device in self._consumers:
            self._count_available(taken)
        if self.counters or self.consumed or self.signature is not None:
            self._sign()

    def _take_one(self, device: str, taken: Taken) -> None:
        place = self.place(device)
        if place is None:
            return
        bit, row = 1 << place, self.rows[place]
        is_used = device in taken.dedicated
        self.used = self.used | bit if is_used else self.used & ~bit
        self._columns.used[row] = is_used
        consumed = taken.consumed.get(device)
        if consumed is not None:
            self._columns.consumed[row] = True
            self.consumed[place] = consumed
        elif place in self.consumed:
            self._columns.consumed[row] = False
            del self.consumed[place]

    def _sign(self) -> None:
        if not self.counters and not self.consumed:
            self.signature = None
        else:
            consumed = sorted((device, tuple(sorted(amounts.items()))) for device, amounts in self.consumed.items())
            self.signature = tuple(self.available.items()), tuple(consumed)
        signed = self._columns.signature(self.signature)
        if signed != self.signed:
            self.signed = self._columns.signed[self.rows] = signed

    def _count_available(self, taken: Taken) -> None:
        if not self.counters:
            return
        available = dict(self.counters)
        for device in {*taken.dedicated, *taken.shares}:
            for name, amount in self._consumers.get(device, ()):
                available[name] -= amount
        self.available = available


class SeenPool(NamedTuple):
    """A pool that a node sees, and which of its devices the node can reach; None for all of them."""

    view: PoolView
    reached: int | None


class NodeGroup:
    """Nodes that see the same pools, in the order of the search."""

    __slots__ = ("_by_pool", "alone", "bits", "pools", "rows")

    def __init__(self, pools: tuple[SeenPool, ...]) -> None:
        self.pools = pools
        self._by_pool: dict[PoolId, SeenPool] | None = None
        self.rows: set[int] = set()
        self.bits = 0
        """The rows as a number."""
        self.alone = NOBODY
        """The row of the only node, once its devices have it as their owner."""

    @property
    def is_of_one_node(self) -> bool:
        """Whether all its pools are usable, and have devices of one node alone."""
        return bool(self.pools) and all(view.is_of_one_node and reached is None for view, reached in self.pools)

    def seen(self, pool: PoolId) -> SeenPool | None:
        """Return a pool as the nodes see it."""
        if len(self.pools) <= _FEW:
            return next((one for one in self.pools if one.view.pool == pool), None)
        if self._by_pool is None:
            self._by_pool = {one.view.pool: one for one in self.pools}
        return self._by_pool.get(pool)

    def with_pools(self, changed: Mapping[PoolId, SeenPool | None]) -> tuple[SeenPool, ...]:
        """Return the pools that nodes see who see some pools otherwise."""
        others = [one for one in self.pools if one.view.pool not in changed]
        added = [one for one in changed.values() if one is not None]
        if added:
            others += added
            others.sort(key=lambda one: one.view.order)
        return tuple(others)


class Reach:
    """What selectors and names say of the slices of a pool, and of their devices, that are not tied to a node by name.

    A slice's number has `COUNTS` where the slice counts on a node, and above it a bit for each device that says by
    itself that the node reaches it. A slice without a selector counts where a device is reached, too.

    Args:
        selective: the slices that labels, or devices, say of which nodes reach them.
        common: those that count on every node.

    Attributes:
        slices: The slices, and whether each counts on every node; numbers are told by the places here.
        selectors: What nodes are asked.
        of_selectors: By selector the place of a slice, and what the selector adds to its number.
        by_name: The same by the names of nodes.
    """

    __slots__ = ("_always", "by_name", "of_selectors", "selectors", "slices")

    def __init__(self, selective: Sequence[KeptSlice], common: Sequence[KeptSlice]) -> None:
        self.slices = [*((one, False) for one in selective), *((one, True) for one in common)]
        self.selectors: list[NodeSelectorMatcher] = []
        self.of_selectors: list[tuple[int, int]] = []
        self.by_name: dict[str, list[tuple[int, int]]] = {}
        self._always: dict[int, int] = {}
        for place, (one, is_common) in enumerate(self.slices):
            if is_common:
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


class Pool:
    """All slices of a pool, of every generation."""

    def __init__(self, pool: PoolId, columns: DeviceColumns) -> None:
        self._id = pool
        self._columns = columns
        self._slices: dict[str, KeptSlice] = {}
        self._common: list[KeptSlice] = []
        self._local: dict[str, list[KeptSlice]] = {}
        self._selective: list[KeptSlice] = []
        self._generations: Counter[int] = Counter()
        self._with_counters = 0
        self.views: dict[Hashable, PoolView] = {}
        self._reach: Reach | None = None

    def __bool__(self) -> bool:
        return bool(self._slices)

    @property
    def nodes(self) -> Collection[str]:
        """The nodes that slices are tied to by name."""
        return self._local.keys()

    @property
    def has_counters(self) -> bool:
        """Whether its slices depend on each other beside their number and generation."""
        return self._with_counters > 0

    def add(self, one: KeptSlice) -> None:
        """Add a slice, or replace the one of its name."""
        self.remove(one.name)
        self._reach = None
        self._slices[one.name] = one
        self._generations[one.generation] += 1
        self._with_counters += bool(one.counts or one.counter_sets)
        where = self._place_of(one)
        if where is not None:
            where.append(one)

    def remove(self, name: str) -> None:
        """Take a slice away, if it is there."""
        one = self._slices.pop(name, None)
        if one is None:
            return
        self._reach = None
        self._generations[one.generation] -= 1
        self._generations += Counter()  # without those of which no slice is left
        self._with_counters -= bool(one.counts or one.counter_sets)
        where = self._place_of(one)
        if where is not None:
            where.remove(one)
            if one.local_to and not where:
                del self._local[one.local_to]

    def _place_of(self, one: KeptSlice) -> list[KeptSlice] | None:
        if one.everywhere:
            return self._common
        if one.local_to:
            return self._local.setdefault(one.local_to, [])
        return None if one.says_nothing else self._selective

    @property
    def depends_on_nodes(self) -> bool:
        """Whether labels or devices say which nodes can reach it."""
        return bool(self._selective)

    @property
    def demands(self) -> set[LabelValue] | None:
        """Label values of which a node must have one for its labels to matter; None where other labels may matter."""
        found: set[LabelValue] = set()
        for one in self._selective:
            demanded = one.demands
            if demanded is None:
                return None
            found.update(demanded)
        return found

    def seen_from_elsewhere(self, taken: Taken) -> SeenPool | None:
        """Return the pool as nodes see it that no slice is tied to by name."""
        return self.seen_from("", {}, taken)

    def seen_from(self, name: str, labels: Mapping[str, str], taken: Taken) -> SeenPool | None:
        """Return the pool as a node sees it, None where no search on the node would notice it."""
        slices = (*self._selective, *self._local.get(name, ()), *self._common)
        asked = ((one, one.reached_from(name, labels)) for one in slices)
        return self._seen({one: reached for one, reached in asked if reached is not None}, taken)

    @property
    def reach(self) -> Reach:
        """What selectors and names say of which slices and devices nodes reach."""
        if self._reach is None:
            self._reach = Reach(self._selective, self._common)
        return self._reach

    def seen_as(self, told: Mapping[int, int], name: str, labels: Mapping[str, str], taken: Taken) -> SeenPool | None:
        """Return the pool as a node sees it, by what its `reach` tells of the node."""
        reached: dict[KeptSlice, int] = {}
        common: dict[KeptSlice, int] = {}
        for place in sorted(told):
            one, is_common = self.reach.slices[place]
            if told[place] & COUNTS or one.selector is None:
                (common if is_common else reached)[one] = told[place] >> 1
        for one in self._local.get(name, ()):
            reached[one] = one.reached_from(name, labels) or 0
        return self._seen(reached | common, taken)

    def _seen(self, reached: Mapping[KeptSlice, int], taken: Taken) -> SeenPool | None:
        if not reached:
            return None
        generation = max(one.generation for one in reached)
        view = self._view([one for one in reached if one.generation == generation], generation, taken)
        if view is None or view.is_silent:
            return None
        return SeenPool(view, _reached_devices(view, reached))

    def unnoticed(self, taken: Taken) -> SeenPool:
        """Return the pool without devices or trouble, as a node sees it that no search there would notice."""
        return SeenPool(self._kept("unnoticed", [], [], taken), None)

    def _view(self, slices: list[KeptSlice], generation: int, taken: Taken) -> PoolView | None:
        others: list[KeptSlice] = []
        if len(slices) != slices[0].slice_count:
            if max(self._generations) > generation:
                return None  # it is being replaced, and the node reaches nothing of the new generation yet
            if self._generations[generation] != slices[0].slice_count:
                return self._kept("incomplete", slices[:0], others, taken)
            if self.has_counters:
                seen = {one.name for one in slices}
                others = [one for one in self._slices.values() if one.generation == generation and one.name not in seen]
        return self._kept("complete", slices, others, taken)

    def _kept(self, state: str, slices: list[KeptSlice], others: list[KeptSlice], taken: Taken) -> PoolView:
        key = (state, frozenset(slices), frozenset(others))
        view = self.views.get(key)
        if view is None:
            view = self.views[key] = PoolView(self._id, key, self._columns)
            view.is_incomplete = state == "incomplete"
            view.fill(slices, others)
            view.take(taken)
        return view

    def forget(self, view: PoolView) -> None:
        """Drop a view that no node has any more."""
        self.views.pop(view.key, None)


def _counters(slices: Iterable[KeptSlice]) -> dict[str, Mapping[str, Number]] | None:
    """Return all counter sets, None where a name is there twice."""
    found: dict[str, Mapping[str, Number]] = {}
    for one in slices:
        for name, counters in one.counter_sets:
            if name in found:
                return None
            found[name] = counters
    return found


def _are_known(
    slices: Iterable[KeptSlice], counters: Mapping[str, Mapping[str, Number]], columns: DeviceColumns
) -> bool:
    """Whether devices take nothing but counters of the pool."""
    for one in slices:
        for traits in one.traits(columns):
            if any(name not in counters for name in traits.counter_sets):
                return False
            if any(each not in counters[name] for name, each, _ in traits.counters):
                return False
    return True


def _consumers(slices: Iterable[KeptSlice], columns: DeviceColumns) -> dict[str, Sequence[tuple[CounterName, Number]]]:
    found: dict[str, list[tuple[CounterName, Number]]] = {}
    for one in slices:
        for device, traits in zip(one.devices, one.traits(columns), strict=True):
            for name, each, amount in traits.counters:
                found.setdefault(device, []).append(((name, each), amount))
    return dict(found)


def _rows(slices: Sequence[KeptSlice]) -> Codes:
    spans = [np.arange(one.start, one.start + len(one.devices), dtype=np.int32) for one in slices]
    return np.concatenate(spans) if spans else np.zeros(0, np.int32)


def _reached_devices(view: PoolView, reached: Mapping[KeptSlice, int]) -> int | None:
    """Return the devices that a node can reach, None where no device says so by itself."""
    if all(one.device_nodes is None for one in view.slices):
        return None
    bits, at = 0, 0
    for one in view.slices:
        own = (1 << len(one.devices)) - 1 if one.device_nodes is None else reached[one]
        bits |= own << at
        at += len(one.devices)
    return bits
