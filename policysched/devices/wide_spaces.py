"""Search spaces of nodes that see many pools: kept between searches, and changed in those pools that moved.

Devices of which others left too little, of their capacities or of their pool's counters, are left out at once: a search
would try each of them, and a search takes nothing back that others took.
"""

from __future__ import annotations

from collections.abc import Callable, Hashable, Mapping, Sequence
from typing import Final

import numpy as np

from policysched.budget import Budget
from policysched.devices.inventory.amounts import Number
from policysched.devices.inventory.columns import Codes
from policysched.devices.inventory.pool_views import NodeGroup, PoolView, SeenPool
from policysched.devices.inventory.slices import CounterName
from policysched.devices.requests.requirements import DeviceKind, Suitability
from policysched.devices.search_space import SearchSpace, ViewShape

WIDE: Final = 16
"""From how many pools on that nodes see their search space is kept."""
_MOST_SPACES: Final = 64
"""Of how many groups of nodes they are kept."""
_MOST_STATES: Final = 20_000
_MOST_LACKING: Final = 20_000
"""For how many pools, as they were at some time, it is remembered which devices have too little left."""
_COUNTERS_A_STEP: Final = 2
Known = Sequence[Mapping[int, Suitability]]
"""For each requirement what is known of kinds of devices."""


class WideSpace:
    """The search space of one group of nodes.

    Attributes:
        moved: The places of the pools that moved since.
    """

    __slots__ = ("moved", "places", "shapes", "space", "states")

    def __init__(self, space: SearchSpace, shapes: Sequence[ViewShape | None], group: NodeGroup) -> None:
        self.space, self.shapes = space, shapes
        self.states: Codes = np.zeros(len(group.pools), np.int32)
        self.places = {seen.view: place for place, seen in enumerate(group.pools)}
        self.moved = dict.fromkeys(range(len(group.pools)))


class WideSpaces:
    """The search spaces that are kept for claims of equal specs.

    Args:
        known: for each requirement what is known of kinds of devices.
    """

    def __init__(self, known: Known) -> None:
        self._known = known
        self._spaces: dict[NodeGroup, WideSpace] = {}
        self._states: dict[Hashable, int] = {}
        self._lacking: dict[tuple[tuple[ViewShape, ...], int], list[int]] = {}
        self._numbers = 0
        """How many numbers were given to states."""
        self.looked_at = 0
        """How many pools were looked at, each time one moved."""

    def __len__(self) -> int:
        return len(self._spaces)

    @property
    def pool_count(self) -> int:
        """How many pools the groups see, each group by itself."""
        return sum(len(one.places) for one in self._spaces.values())

    def clear(self) -> None:
        """Forget all of it."""
        self._spaces.clear()

    def note(self, view: PoolView) -> None:
        """Note that a pool moved."""
        if not self._spaces:
            return
        for group in view.groups:
            kept = self._spaces.get(group)
            if kept is not None:
                kept.moved[kept.places[view]] = None

    def space_of(
        self,
        group: NodeGroup,
        shapes_of: Callable[[], Sequence[ViewShape | None]],
        state_of: Callable[[SeenPool], Hashable],
        steps: Budget,
    ) -> tuple[bytes, SearchSpace]:
        """Return what a search finds on the nodes of a group as a key, and their search space as it is now.

        The space is changed when it is asked for again after pools moved.

        Args:
            group: The group.
            shapes_of: Gives the shapes of its pools.
            state_of: Gives a value that is equal where a search finds the same in a pool as a node sees it.
            steps: What may be taken.

        Raises:
            BudgetExceededError: not all pools were looked at; the next question goes on.
        """
        kept = self._spaces.get(group)
        if kept is None:
            kept = self._kept(group, shapes_of(), steps)
        space = kept.space
        for place in list(kept.moved):
            self.looked_at += 1
            shape = kept.shapes[place]
            if shape is not None:
                space.look_again(place, self._lacking_in(group.pools[place].view, shape, steps))
            kept.states[place] = self._code(state_of(group.pools[place]))
            del kept.moved[place]
            steps.spend(1)
        return kept.states.tobytes(), space

    def _kept(self, group: NodeGroup, shapes: Sequence[ViewShape | None], steps: Budget) -> WideSpace:
        for other in [one for one in self._spaces if not one.rows]:
            del self._spaces[other]
        while len(self._spaces) >= _MOST_SPACES:
            del self._spaces[next(iter(self._spaces))]
        requirements = len(self._known)
        devices = sum([seen.view.size for seen in group.pools])
        steps.spend(requirements * len(group.pools) + devices // 16)
        kept = self._spaces[group] = WideSpace(SearchSpace(group.pools, shapes, requirements), shapes, group)
        return kept

    def _code(self, state: Hashable) -> int:
        """Return a number of a state that no other one has had."""
        found = self._states.get(state)
        if found is None:
            self._numbers += 1
            if len(self._states) > _MOST_STATES:
                self._states.clear()
            found = self._states[state] = self._numbers
        return found

    def _lacking_in(self, view: PoolView, shape: ViewShape, steps: Budget) -> list[int]:
        """Return for each requirement the devices of a pool of which others left too little."""
        if not view.counters and not view.consumed:
            return [0] * len(self._known)
        key = shape.parts, view.signed
        found = self._lacking.get(key)
        if found is None:
            if len(self._lacking) > _MOST_LACKING:
                self._lacking.clear()
            found = self._lacking[key] = self._look_for_lack(view, shape, steps)
        return found

    def _look_for_lack(self, view: PoolView, shape: ViewShape, steps: Budget) -> list[int]:
        bits = [0] * len(self._known)
        for device, consumed in view.consumed.items():
            for place, remembered in enumerate(self._known):
                takes = remembered[shape.kinds[device].number].consumption
                if takes is None or not takes.fits(consumed):
                    bits[place] |= 1 << device
        without = 0
        if view.counters:
            is_overdrawn = any(amount < 0 for amount in view.available.values())
            without = _lacking_counters(view, shape.kinds, is_overdrawn=is_overdrawn)
        counters = sum(len(one.traits.counters) for one in shape.kinds) if view.counters else 0
        effort = len(self._known) * len(view.consumed) + (counters + len(view.available)) // _COUNTERS_A_STEP
        steps.left -= effort  # what was found is remembered, so that it does not matter when they run out
        return [one | without for one in bits]


def _lacking_counters(view: PoolView, kinds: Sequence[DeviceKind], *, is_overdrawn: bool) -> int:
    """Return the devices that would charge counters of which others left too little, or any where one is overdrawn."""
    bits = 0
    for device, kind in enumerate(kinds):
        if not kind.traits.counter_sets or device in view.consumed:  # a share of a device that has one charges nothing
            continue
        if is_overdrawn or not _suffices(view, kind):
            bits |= 1 << device
    return bits


def _suffices(view: PoolView, kind: DeviceKind) -> bool:
    takes: dict[CounterName, Number] = {}
    for name, each, amount in kind.traits.counters:
        takes[name, each] = takes.get((name, each), 0) + amount
    return all(amount <= view.available.get(one, amount) for one, amount in takes.items())
