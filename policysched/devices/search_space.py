"""`SearchSpace`: the devices of a node's pools in search order, as bit sets, with their allocations.

In a bit set, bit n is the n-th device of the node. Incomplete and invalid pools have no devices here.
"""

from __future__ import annotations

from collections.abc import Hashable, Mapping, Sequence
from itertools import compress, count
from operator import ne
from typing import Final

from policysched.budget import Budget
from policysched.devices.inventory.amounts import Number
from policysched.devices.inventory.pool_views import PoolView, SeenPool
from policysched.devices.inventory.slices import CounterName
from policysched.devices.requests.requirements import DeviceKind, Suitability
from policysched.devices.view_shapes import ViewShape

_COUNTERS_A_STEP: Final = 2


class SearchSpace:
    """The devices of a node in search order; a refresh reads only the pools whose allocations changed.

    Devices that can never be taken are lacking, so that a search does not try them: other claims left too little of
    their capacities or of the counters of their pool, and a search does not take back devices of other claims.

    Args:
        pools: The node's pools in search order.
        shapes: The shape of each pool, None for an unusable pool.
        known: For each requirement, the suitability of each kind of device by its number.

    Attributes:
        used: The devices that are allocated as a whole.
        able: For each requirement, the devices that its selectors match, that the node reaches and that have the
            capacities.
        fit: For each requirement, the able devices whose taints are tolerated.
        failing: For each requirement, the devices on which a selector or the computation of capacities fails.
        lacking: For each requirement, the lacking devices.
        consumed: By device, the amounts that allocated shares of it consume.
        shared: The devices of which shares consume anything.
        kinds: The kind of each device.
        pools: The pools, usable or not, each with the place of its first device.
        available: For each pool, the amounts of its counters that no allocated device takes.
        overdrawn: The places of the pools of which allocated devices take more of a counter than there is.
    """

    __slots__ = (
        "_known", "_shapes", "_states", "_views", "able", "available", "consumed", "failing", "fit", "kinds", "lacking",
        "overdrawn", "pools", "shared", "used",
    )  # fmt: skip

    def __init__(
        self, pools: Sequence[SeenPool], shapes: Sequence[ViewShape | None], known: Sequence[Mapping[int, Suitability]]
    ) -> None:
        requirements = len(known)
        self.used = self.shared = 0
        self.able, self.fit, self.failing = [0] * requirements, [0] * requirements, [0] * requirements
        self.lacking = [0] * requirements
        self.consumed: dict[int, Mapping[str, Number]] = {}
        self.kinds: list[DeviceKind] = []
        self.pools: list[tuple[int, PoolView]] = []
        self.available: list[Mapping[CounterName, Number]] = [{}] * len(pools)
        self.overdrawn: set[int] = set()
        self._views: list[int] = []
        self._known, self._shapes = known, shapes
        self._states: list[Hashable] = [None] * len(pools)
        """For each pool, its state (a value that differs if its allocations differ) when the allocations were read."""
        for place, ((view, reached), shape) in enumerate(zip(pools, shapes, strict=True)):
            at = len(self.kinds)
            self.pools.append((at, view))
            if shape is None:
                continue
            for requirement in range(requirements):
                able, fit, exceeding = shape.able[requirement], shape.fit[requirement], shape.exceeding[requirement]
                if reached is not None:
                    able, fit, exceeding = able & reached, fit & reached, exceeding & reached
                self.able[requirement] |= able << at
                self.fit[requirement] |= fit << at
                self.failing[requirement] |= (shape.failing[requirement] | exceeding) << at
            self.kinds += shape.kinds
            self._views += [place] * len(shape.kinds)

    def refresh(self, states: Sequence[Hashable], steps: Budget) -> None:
        """Read the allocations of the pools whose state changed since the last refresh.

        Args:
            states: For each pool, a value that is equal only if its allocations are equal.
            steps: The budget.

        Raises:
            BudgetExceededError: The budget is used up; the next refresh continues.
        """
        for place in [*compress(count(), map(ne, states, self._states))]:
            steps.spend()
            self._read(place, steps)
            self._states[place] = states[place]

    def _read(self, place: int, steps: Budget) -> None:
        """Read the allocations of the pool with the given index."""
        (at, view), shape = self.pools[place], self._shapes[place]
        self.available[place] = view.available
        if shape is None:
            return
        others = ~(((1 << view.size) - 1) << at)
        self.used = self.used & others | view.used << at
        for device in range(at, at + view.size) if self.consumed else ():
            self.consumed.pop(device, None)
        self.consumed.update((at + device, amounts) for device, amounts in view.consumed.items())
        self.shared = self.shared & others | sum(1 << device for device in view.consumed) << at
        if view.consumed or view.counters or any(self.lacking):
            lacking = self._lacking_in(place, view, shape, steps)
            self.lacking = [before & others | now << at for before, now in zip(self.lacking, lacking, strict=True)]

    def _lacking_in(self, place: int, view: PoolView, shape: ViewShape, steps: Budget) -> list[int]:
        """Return for each requirement the devices of a pool that lack capacity or counters, as a bit set."""
        bits = [0] * len(self._known)
        for device, consumed in view.consumed.items():
            for number, suitabilities in enumerate(self._known):
                takes = suitabilities[shape.kinds[device].number].consumption
                if takes is None or not takes.fits(consumed):
                    bits[number] |= 1 << device
        steps.left -= len(self._known) * len(view.consumed)
        without = self._without_counters(place, view, shape.kinds, steps) if view.counters else 0
        return [one | without for one in bits]

    def _without_counters(self, place: int, view: PoolView, kinds: Sequence[DeviceKind], steps: Budget) -> int:
        """Return the devices for which the pool's counters are insufficient, as a bit set.

        In an overdrawn pool, no device that names a counter set can be taken.
        """
        bits, compared = 0, len(view.available)
        self.overdrawn.discard(place)
        if any(amount < 0 for amount in view.available.values()):
            self.overdrawn.add(place)
        for device, kind in enumerate(kinds):
            if not kind.traits.counter_sets or device in view.consumed:  # further shares of a device take no counters
                continue
            compared += len(kind.traits.counters)
            if place in self.overdrawn or not _suffices(view, kind):
                bits |= 1 << device
        steps.left -= compared // _COUNTERS_A_STEP
        return bits

    def pool_of(self, device: int) -> int:
        """Return the index of the pool that has a device."""
        return self._views[device]

    def place_in_pool(self, device: int) -> int:
        """Return the index of a device in its pool."""
        return device - self.pools[self._views[device]][0]

    def equal(self, device: int) -> int:
        """Return the equivalent devices as a bit set: those of the same kind; with counters, also of the same pool."""
        kind = self.kinds[device]
        if kind.traits.counter_sets:
            shape = self._shapes[self._views[device]]
            return shape.equal(kind) << self.pools[self._views[device]][0] if shape is not None else 1 << device
        bits = 0
        for (at, _), shape in zip(self.pools, self._shapes, strict=True):
            if shape is not None:
                bits |= shape.equal(kind) << at
        return bits

    @property
    def has_invalid_pools(self) -> bool:
        """Whether any pool of the node is invalid."""
        return any(view.is_invalid for _, view in self.pools)


def _suffices(view: PoolView, kind: DeviceKind) -> bool:
    """Return whether the pool's available counters suffice for a device of some kind."""
    takes: dict[CounterName, Number] = {}
    for name, each, amount in kind.traits.counters:
        takes[name, each] = takes.get((name, each), 0) + amount
    return all(amount <= view.available.get(one, amount) for one, amount in takes.items())
