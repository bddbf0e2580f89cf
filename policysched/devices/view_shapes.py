"""`ViewShape`: the kinds of the devices of a slice or pool, and which devices fit each requirement, as bit sets.

In a bit set, bit n is the device at place n of the slice or pool.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from itertools import chain

import numpy as np
from numpy.typing import NDArray

from policysched.devices.requests.requirements import DeviceKind, Suitability

_FEW = 64
"""Number of devices of a kind up to which their bit set is computed at each use instead of stored."""


class ViewShape:
    """The kinds of a slice's devices, and the devices that fit each requirement; slices with equal kinds share it.

    Attributes:
        kinds: The kind of each device.
        able: For each requirement, the devices that its selectors match and that have the capacities.
        fit: For each requirement, the able devices whose taints are tolerated.
        failing: For each requirement, the devices on which a selector fails with an error.
        exceeding: For each requirement, the devices whose capacities cannot be computed, an error where the device is
            reached.
    """

    __slots__ = ("_equal", "_places", "able", "exceeding", "failing", "fit", "kinds")

    def __init__(self, kinds: Sequence[DeviceKind], known: Sequence[Mapping[int, Suitability]]) -> None:
        self.kinds = kinds
        places: dict[int, int] = {}
        of = np.fromiter((places.setdefault(one.number, len(places)) for one in kinds), np.int64, len(kinds))
        answers = [[suitabilities[number] for number in places] for suitabilities in known]
        self.able = [bit_set((one.is_able for one in each), of) for each in answers]
        self.fit = [bit_set((one.is_able and one.is_tolerated for one in each), of) for each in answers]
        self.failing = [bit_set((one.selector_failed for one in each), of) for each in answers]
        self.exceeding = [bit_set((one.capacity_failed for one in each), of) for each in answers]
        self._equal: dict[int, int] = {}
        self._places: dict[int, list[int]] | None = None

    def equal(self, kind: DeviceKind) -> int:
        """Return all devices of a kind as a bit set."""
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
    """The shape of a pool, joined from the shapes of its slices."""

    __slots__ = ("_parts",)

    def __init__(self, parts: Sequence[ViewShape], requirements: int) -> None:
        self.kinds = list(chain.from_iterable([one.kinds for one in parts]))
        self.able, self.fit, self.failing = [0] * requirements, [0] * requirements, [0] * requirements
        self.exceeding = [0] * requirements
        self._parts = parts
        at = 0
        for one in parts:
            for place in range(requirements):
                self.able[place] |= one.able[place] << at
                self.fit[place] |= one.fit[place] << at
                self.failing[place] |= one.failing[place] << at
                self.exceeding[place] |= one.exceeding[place] << at
            at += len(one.kinds)

    def equal(self, kind: DeviceKind) -> int:
        """Return all devices of a kind as a bit set."""
        bits = at = 0
        for one in self._parts:
            bits |= one.equal(kind) << at
            at += len(one.kinds)
        return bits


def bit_set(values: Iterable[bool], of: NDArray[np.int64] | None = None) -> int:
    """Return the indices of true values as a bit set, in linear time.

    Args:
        values: A value for each place, or for each number in `of`.
        of: The number of each place in `values`, None if `values` has one value for each place.
    """
    bits = np.fromiter(values, np.bool_)
    return int.from_bytes(np.packbits(bits if of is None else bits[of], bitorder="little").tobytes(), "little")
