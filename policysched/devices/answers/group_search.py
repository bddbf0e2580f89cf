"""`GroupSearch`: searches devices for claims with equal specs on a group of nodes, with a cache of the outcomes."""

from __future__ import annotations

from collections.abc import Hashable, Sequence
from contextlib import suppress
from typing import Final

from policysched.budget import Budget, BudgetExceededError
from policysched.devices.inventory.pool_views import NodeGroup, PoolView, SeenPool
from policysched.devices.inventory.slices import KeptSlice
from policysched.devices.inventory.tables import DeviceTables
from policysched.devices.outcomes import BYTES_AN_OUTCOME, INVALID_POOLS, OUT_OF_STEPS, AllocationAnswer, Outcome
from policysched.devices.refusals import Refusals, refusals_of
from policysched.devices.requests.kinds import Kinds
from policysched.devices.requests.plans import Plans
from policysched.devices.requests.requirements import Suitability, evaluate_kinds
from policysched.devices.search import DeviceSearch
from policysched.devices.search_space import SearchSpace
from policysched.devices.view_shapes import JoinedShape, ViewShape

_STEPS_A_SEARCH: Final = 32
"""Cost of each search, besides its requirements, pools and devices. Units: steps of about a microsecond."""
_DEVICES_A_STEP: Final = 64
_SLICES_A_STEP: Final = 2
_MOST_BYTES: Final = 32 << 20
"""Maximum memory of the cached outcomes, and of the cached shapes; beyond it, that cache is emptied. Units: bytes."""
_MOST_STATES: Final = 20_000
"""Maximum number of cached pool states and slice shapes; beyond it, both caches are emptied."""
_MOST_SPACES: Final = 64
"""Maximum number of node groups with a cached search space; beyond it, the least recently used is dropped."""
_BYTES_A_KIND: Final = 600
_BYTES_A_SUITABILITY: Final = 300
_BYTES_A_POOL: Final = 300
_BYTES_A_SHAPE: Final = 1500
_BYTES_A_DEVICE: Final = 16
_BYTES_A_STATE: Final = 8
_INCOMPLETE: Final = -1
_INVALID: Final = -2


class GroupSearch:
    """Searches devices for claims with equal specs on groups of nodes that can use the same device pools.

    The outcome of a search is cached by the states of the pools that the nodes see. The state of a pool is a number
    that stands for the kinds of its devices and for what is allocated of them.

    Args:
        tables: The devices.
        plans: The compiled claims.

    Attributes:
        plans: The compiled claims.
        kinds: The kinds of devices, as these claims distinguish them.
        known: For each requirement, the suitability of each kind by its number.
    """

    def __init__(self, tables: DeviceTables, plans: Plans) -> None:
        self._tables = tables
        self.plans = plans
        self.kinds = Kinds(tables.columns, plans.names_read())
        self.known: list[dict[int, Suitability]] = [{} for _ in plans.requirements]
        self._shapes: dict[Hashable, ViewShape] = {}
        """Cached `ViewShape`s (the devices that fit each requirement) of slices, by kinds of devices, and of pools."""
        self._shape_of_slice: dict[int, ViewShape] = {}
        self._shape_bytes = 0
        self._state_of_view: dict[int, int] = {}
        """The state of each `PoolView` by its number; equal kinds of devices and allocations give the same state."""
        self._states: dict[Hashable, int] = {}
        """The numbers of pool states, by the kinds of the pool's devices and the allocations."""
        self._last_state = 0
        self._outcomes: dict[Hashable, Outcome] = {}
        self._outcome_bytes = 0
        self._spaces: dict[NodeGroup, SearchSpace] = {}
        self._begun: tuple[Hashable, DeviceSearch] | None = None
        """The search that ran out of steps, with its pools' states; the next search in equal pools continues it."""

    @property
    def size(self) -> int:
        """The estimated memory of all caches. Units: bytes."""
        of_kinds = len(self.kinds.kinds) * (_BYTES_A_KIND + _BYTES_A_SUITABILITY * len(self.known))
        entries = len(self._state_of_view) + len(self._shape_of_slice)
        pools = sum(len(one.pools) for one in self._spaces.values())
        return of_kinds + self._outcome_bytes + self._shape_bytes + (entries + pools) * _BYTES_A_POOL

    def refresh(self) -> None:
        """Drop cached data of deleted devices and of node groups without nodes."""
        self.kinds.refresh()
        for group in [one for one in self._spaces if not one.rows]:
            del self._spaces[group]

    def note_all(self) -> None:
        """Drop the cached states of all pools, because any pool may have changed."""
        self._state_of_view.clear()

    def note(self, view: PoolView) -> None:
        """Drop the cached state of one pool, because the pool changed."""
        self._state_of_view.pop(view.number, None)

    def pools(self, group: NodeGroup) -> Sequence[SeenPool]:
        """Return the pools that the nodes of a group can use, in search order."""
        first = self._tables.unusable.first(group) if self.plans.asks_for_all else None
        return group.pools if first is None else sorted((*group.pools, first), key=lambda one: one.view.order)

    def outcome(self, group: NodeGroup, steps: Budget) -> Outcome:
        """Return the outcome of the claims on a group of nodes, cached for pools with equal devices and allocations.

        Raises:
            BudgetExceededError: The budget is used up; the next call continues.
        """
        if self.plans.failure is not None:
            return Outcome(AllocationAnswer.ERROR, self.plans.failure)
        pools = self.pools(group)
        states = self._states_of(group, pools, steps)
        outcome = self._outcomes.get(states)
        if outcome is None:
            outcome = self._searched(group, pools, states, steps)
            self._outcome_bytes += BYTES_AN_OUTCOME + _BYTES_A_STATE * len(states)
            if self._outcome_bytes > _MOST_BYTES:
                self._outcomes.clear()
                self._outcome_bytes = 0
            self._outcomes[states] = outcome
        is_invalid = outcome.answer is AllocationAnswer.NO and self._tables.unusable.has_invalid(group)
        return INVALID_POOLS if is_invalid else outcome

    def outcome_within(self, group: NodeGroup, steps: int) -> Outcome:
        """Return the outcome of the claims on a group of nodes; OUT_OF_STEPS if the search needs more than `steps`."""
        try:
            return self.outcome(group, Budget(steps))
        except BudgetExceededError:
            return OUT_OF_STEPS

    def refusals(self, group: NodeGroup, steps: int) -> list[Refusals]:
        """Return for each request and alternative why the devices of a group of nodes do not fit.

        If the budget is used up, only the first requests are in the result.

        Raises:
            BudgetExceededError: The budget does not suffice to evaluate the selectors; the next call continues.
        """
        pools, plans = self.pools(group), self.plans
        left = Budget(steps)
        space = SearchSpace(pools, self._shapes_of(pools, left), self.known)
        space.refresh(range(len(pools)), left)
        asks = (ask for claim in plans.claims for ask in claim.asks() if ask.failure is None)
        found: list[Refusals] = []
        with suppress(BudgetExceededError):
            for ask in asks:
                found.append(refusals_of(ask, plans.requirements[ask.requirement], space, left))  # noqa: PERF401
        return found

    def _searched(
        self, group: NodeGroup, pools: Sequence[SeenPool], states: Sequence[Hashable], steps: Budget
    ) -> Outcome:
        """Search devices in the pools of a group of nodes; continue a search in equal pools that ran out of steps."""
        begun, self._begun = self._begun, None
        if begun is not None and begun[0] == states:
            search = begun[1]
        else:
            steps.spend(_STEPS_A_SEARCH)
            search = DeviceSearch(self.plans, self._space(group, pools, states, steps), self.known)
        try:
            return search.run(steps)
        except BudgetExceededError:
            self._begun = states, search
            raise

    def _space(
        self, group: NodeGroup, pools: Sequence[SeenPool], states: Sequence[Hashable], steps: Budget
    ) -> SearchSpace:
        """Return the search space of a group of nodes: its devices in search order, with the current allocations."""
        space = None if self.plans.asks_for_all else self._spaces.pop(group, None)
        if space is None:
            devices = sum([one.view.size for one in pools])
            steps.spend(len(self.known) * len(pools) + devices // 16)
            space = SearchSpace(pools, self._shapes_of(pools, steps), self.known)
            if len(self._spaces) >= _MOST_SPACES:
                del self._spaces[next(iter(self._spaces))]
        if not self.plans.asks_for_all:  # then the pools of a group are always the same
            self._spaces[group] = space
        space.refresh(states, steps)
        return space

    # States and shapes of pools

    def _states_of(self, group: NodeGroup, pools: Sequence[SeenPool], steps: Budget) -> tuple[Hashable, ...]:
        """Return the state number of each pool; pools with equal numbers give equal search results."""
        if max(len(self._states), len(self._state_of_view)) > _MOST_STATES:
            self._states.clear()
            self._state_of_view.clear()
        numbers = group.numbers if pools is group.pools else [seen.view.number for seen in pools]
        states: list[Hashable] = [*map(self._state_of_view.get, numbers)]
        if None in states:
            for place, seen in enumerate(pools):
                if states[place] is None:
                    states[place] = self._state_of_view[seen.view.number] = self._state(seen.view, steps)
        return tuple(states) if group.reaches_all else tuple(zip(states, [seen.reached for seen in pools], strict=True))

    def _state(self, view: PoolView, steps: Budget) -> int:
        if not view.is_usable:
            return _INCOMPLETE if view.is_incomplete else _INVALID
        content = self._shape(view, steps), view.used, view.signature
        state = self._states.get(content)
        if state is None:
            self._last_state += 1
            state = self._states[content] = self._last_state
        return state

    def _shapes_of(self, pools: Sequence[SeenPool], steps: Budget) -> list[ViewShape | None]:
        return [self._shape(seen.view, steps) if seen.view.is_usable else None for seen in pools]

    def _shape(self, view: PoolView, steps: Budget) -> ViewShape:
        if self._shape_bytes > _MOST_BYTES or len(self._shape_of_slice) > _MOST_STATES:
            self._shapes.clear()
            self._shape_of_slice.clear()
            self._shape_bytes = 0
        known = self._shape_of_slice
        parts = tuple([known.get(one.number) or self._shape_of(one, steps) for one in view.slices])
        if len(parts) == 1:
            return parts[0]
        shape = self._shapes.get(parts)
        if shape is None:
            shape = self._keep(parts, JoinedShape(parts, len(self.known)))
            steps.left -= view.size // _DEVICES_A_STEP + len(parts) // _SLICES_A_STEP
        return shape

    def _shape_of(self, one: KeptSlice, steps: Budget) -> ViewShape:
        start, stop = one.start, one.start + len(one.devices)
        shape = self._shapes.get(self.kinds.codes(start, stop))
        if shape is None:
            kinds = [self.kinds.kinds[number] for number in self.kinds.of(one.rows, steps).tolist()]
            evaluate_kinds(self.plans.requirements, list(dict.fromkeys(kinds)), self.known, steps)
            shape = self._keep(self.kinds.codes(start, stop), ViewShape(kinds, self.known))
        self._shape_of_slice[one.number] = shape
        return shape

    def _keep(self, key: Hashable, shape: ViewShape) -> ViewShape:
        self._shapes[key] = shape
        self._shape_bytes += _BYTES_A_SHAPE + _BYTES_A_DEVICE * len(shape.kinds)
        return shape
