"""What a search looks at: the devices of all pools of a node in one order, as bits, one mask for each requirement.

The lowest bit stands for the first device. Pools that are incomplete or invalid have no devices here.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from policysched.budget import Budget
from policysched.devices.inventory.amounts import Number
from policysched.devices.inventory.pool_views import PoolView, SeenPool
from policysched.devices.requests.requirements import DeviceKind, DeviceRequirement, Suitability

_FEW = 64
"""Of a kind with more devices than these the set of them is kept."""


class ViewShape:
    """The devices of a slice as kinds, and what each requirement says of them; slices of equal kinds share one.

    Attributes:
        able: For each requirement the devices that are selected and have the capacities.
        fit: Those of them whose taints are tolerated.
        failing: For each requirement the devices of which a selector says an error.
        is_plain: Whether no selector fails and no device takes counters or can be shared.
        is_disjoint: Whether no device fits two requirements.
    """

    __slots__ = ("_equal", "_places", "able", "failing", "fit", "is_disjoint", "is_plain", "kinds")

    def __init__(self, kinds: Sequence[DeviceKind], known: Sequence[Mapping[int, Suitability]]) -> None:
        self.kinds = kinds
        places: dict[int, int] = {}
        of = np.fromiter((places.setdefault(one.number, len(places)) for one in kinds), np.int64, len(kinds))
        answers = [[remembered[number] for number in places] for remembered in known]
        self.able = [bit_set((one.is_able for one in each), of) for each in answers]
        self.fit = [bit_set((one.is_able and one.is_tolerated for one in each), of) for each in answers]
        self.failing = [bit_set((one.failure is not None for one in each), of) for each in answers]
        uses = any(one.traits.counter_sets or one.traits.shareable for one in dict.fromkeys(kinds))
        self.is_plain = not uses and not any(self.failing)
        self.is_disjoint = _are_disjoint(self.fit)
        self._equal: dict[int, int] = {}
        self._places: dict[int, list[int]] | None = None

    @property
    def parts(self) -> tuple[ViewShape, ...]:
        """The shapes of the single slices, in order."""
        return (self,)

    def equal(self, kind: DeviceKind) -> int:
        """Return all devices of a kind; a set for each of very many kinds would take the square of their number."""
        if self._places is None:
            self._places = {}
            for place, one in enumerate(self.kinds):
                self._places.setdefault(one.number, []).append(place)
        places = self._places.get(kind.number, [])
        if len(places) <= _FEW:
            return sum(1 << place for place in places)
        if kind.number not in self._equal:
            self._equal[kind.number] = bit_set(one is kind for one in self.kinds)
        return self._equal[kind.number]


class JoinedShape(ViewShape):
    """The shapes of several slices, one after the other."""

    __slots__ = ("_parts",)

    def __init__(self, shapes: Sequence[ViewShape], requirements: int) -> None:
        self.kinds = list(chain.from_iterable([one.kinds for one in shapes]))
        self.able, self.fit, self.failing = [0] * requirements, [0] * requirements, [0] * requirements
        self._parts = tuple(shapes)
        at = 0
        for one in shapes:
            for place in range(requirements):
                self.able[place] |= one.able[place] << at
                self.fit[place] |= one.fit[place] << at
                self.failing[place] |= one.failing[place] << at
            at += len(one.kinds)
        self.is_plain = all(one.is_plain for one in shapes)
        self.is_disjoint = all(one.is_disjoint for one in shapes)

    @property
    def parts(self) -> tuple[ViewShape, ...]:
        """The shapes of the single slices, in order."""
        return self._parts

    def equal(self, kind: DeviceKind) -> int:
        """Return all devices of a kind."""
        bits = at = 0
        for one in self._parts:
            bits |= one.equal(kind) << at
            at += len(one.kinds)
        return bits


class SearchSpace:
    """The devices of a node for one search.

    Attributes:
        used: The devices that are allocated as a whole.
        able: For each requirement the devices that are selected, can be reached and have the capacities.
        fit: Those of them whose taints are tolerated.
        failing: For each requirement the devices of which a selector says an error.
        lacking: For each requirement devices of which others left too little; not all of them need be there.
        consumed: By device, what allocated shares of it consume.
        shared: The devices of which anything is consumed.
        pools: The node's pools, usable or not, each with the place of its first device.
        available: For each pool, what of each counter no allocated device takes. As all else it is as it was when the
            space was made, or looked at again: a search that goes on later must not meet what moved meanwhile.
    """

    __slots__ = (
        "_shapes", "_views", "able", "available", "consumed", "failing", "fit", "kinds", "lacking", "pools", "shared",
        "used",
    )  # fmt: skip

    def __init__(self, pools: Sequence[SeenPool], shapes: Sequence[ViewShape | None], requirements: int) -> None:
        self.used = 0
        self.able, self.fit, self.failing = [0] * requirements, [0] * requirements, [0] * requirements
        self.lacking = [0] * requirements
        self.consumed: dict[int, Mapping[str, Number]] = {}
        self.kinds: list[DeviceKind] = []
        self.pools: list[tuple[int, PoolView]] = []
        self._views: list[int] = []
        self._shapes = shapes
        self.available = [view.available for view, _ in pools]
        for place, ((view, reached), shape) in enumerate(zip(pools, shapes, strict=True)):
            at = len(self.kinds)
            self.pools.append((at, view))
            if shape is None:
                continue
            self.used |= view.used << at
            for requirement in range(requirements):
                able, fit = shape.able[requirement], shape.fit[requirement]
                if reached is not None:
                    able, fit = able & reached, fit & reached
                self.able[requirement] |= able << at
                self.fit[requirement] |= fit << at
                self.failing[requirement] |= shape.failing[requirement] << at
            self.consumed.update((at + device, amounts) for device, amounts in view.consumed.items())
            self.kinds += shape.kinds
            self._views += [place] * len(shape.kinds)
        self.shared = bit_set(device in self.consumed for device in range(len(self.kinds))) if self.consumed else 0

    def look_again(self, place: int, lacking: Sequence[int]) -> None:
        """Take over what is allocated of a usable pool now.

        Args:
            place: the pool's place.
            lacking: for each requirement the pool's devices of which others left too little.
        """
        at, view = self.pools[place]
        self.available[place] = view.available
        others = ~(((1 << view.size) - 1) << at)
        self.used = self.used & others | view.used << at
        for device in range(at, at + view.size) if self.consumed else ():
            self.consumed.pop(device, None)
        self.consumed.update((at + device, amounts) for device, amounts in view.consumed.items())
        self.shared = self.shared & others | sum(1 << device for device in view.consumed) << at
        self.lacking = [before & others | now << at for before, now in zip(self.lacking, lacking, strict=True)]

    def pool_of(self, device: int) -> int:
        """Return the place of a device's pool."""
        return self._views[device]

    def place_in_pool(self, device: int) -> int:
        """Return a device's place in its pool."""
        return device - self.pools[self._views[device]][0]

    def equal(self, device: int) -> int:
        """Return the devices that are like one in all that a search reads; of other pools where no counters matter."""
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
        """Whether some pool is invalid."""
        return any(view.is_invalid for _, view in self.pools)


def suitabilities(
    requirements: Sequence[DeviceRequirement],
    kinds: Iterable[DeviceKind],
    known: Sequence[dict[int, Suitability]],
    steps: Budget,
) -> None:
    """Ask each requirement about each kind, unless that is known.

    Raises:
        BudgetExceededError: the selectors take too long; what was found out is known then.
    """
    for kind in kinds:
        for requirement, remembered in zip(requirements, known, strict=True):
            if kind.number not in remembered:
                found, effort = requirement.suitability(kind, steps.left)
                if found is not None:
                    remembered[kind.number] = found
                steps.spend(effort)
        kind.forget_variables()


def _are_disjoint(sets: Iterable[int]) -> bool:
    """Return whether nothing is in two sets."""
    seen = 0
    for one in sets:
        if seen & one:
            return False
        seen |= one
    return True


def bit_set(is_so: Iterable[bool], of: NDArray[np.int64] | None = None) -> int:
    """Return the set of the places where it is so, in time in proportion to all places.

    Args:
        is_so: whether it is so, for each place, or each of what places are of.
        of: of what each place is, None where there is one for each place.
    """
    bits = np.fromiter(is_so, np.bool_)
    return int.from_bytes(np.packbits(bits if of is None else bits[of], bitorder="little").tobytes(), "little")
