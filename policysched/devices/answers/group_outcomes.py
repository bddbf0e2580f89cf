"""`GroupOutcomes`: what claims of equal specs get on the nodes of a group, by counting free devices or by a search.

Groups that look alike to these claims get the same outcome. Claims that want nothing but enough devices of each kind
are answered by counting.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from contextlib import suppress
from functools import partial
from typing import Final

from policysched.budget import Budget, BudgetExceededError
from policysched.devices.inventory.pool_views import NodeGroup, PoolView, SeenPool
from policysched.devices.inventory.slices import KeptSlice
from policysched.devices.inventory.tables import DeviceTables
from policysched.devices.outcomes import (
    BYTES_AN_OUTCOME,
    INVALID_POOLS,
    NO,
    OUT_OF_STEPS,
    YES,
    AllocationAnswer,
    Outcome,
)
from policysched.devices.refusals import Refusals, refusals_of
from policysched.devices.requests.kinds import Kinds
from policysched.devices.requests.plans import Plans
from policysched.devices.requests.requirements import DeviceKind, Suitability
from policysched.devices.search import DeviceSearch
from policysched.devices.search_space import JoinedShape, SearchSpace, ViewShape, suitabilities
from policysched.devices.wide_spaces import WIDE, WideSpaces

POOLS_A_STEP: Final = 4
"""For how many pools that a group sees it is one step to look whether the answer is known."""
_STEPS_A_SEARCH: Final = 32
"""What it takes to begin with a search, besides a step for each requirement of each pool and for each 16 devices."""
_MOST_REMEMBERED: Final = 20_000
"""How many answers and shapes are remembered."""
_MOST_SLICES: Final = 8_000
"""Of how many slices, some of them perhaps gone, it is remembered which kinds of devices they have."""
_DEVICES_A_STEP: Final = 64
"""So many devices of several slices are put together in a step."""
_SLICES_A_STEP: Final = 2
"""So many slices of one pool are put together in a step."""
_MOST_WIDE_OUTCOMES: Final = 256
"""How many answers are remembered of nodes that see many pools: what is left there is hardly ever the same again."""
_BYTES_A_KIND: Final = 600
_BYTES_A_VERDICT: Final = 300
_BYTES_A_VIEW: Final = 300


class GroupOutcomes:
    """What claims of certain specs get on the nodes of a group.

    Args:
        tables: the devices.
        plans: what the claims ask for.

    Attributes:
        kinds: The kinds of devices, as these claims tell them apart.
        known: For each requirement what is known of kinds of devices.
        wanted: How many devices each requirement wants, for claims that are answered by counting.
    """

    def __init__(self, tables: DeviceTables, plans: Plans) -> None:
        self._tables = tables
        self.plans = plans
        self.kinds = Kinds(tables.columns, plans.names_read())
        self.known: list[dict[int, Suitability]] = [{} for _ in plans.requirements]
        self.wanted = _wanted_by_requirement(plans)
        self._shapes: dict[bytes, ViewShape] = {}
        self._by_slice: dict[int, bytes] = {}
        """By the numbers of slices, some of them perhaps gone, the kinds of their devices."""
        self._kinds_bytes = 0
        """How many bytes these are together."""
        self._outcomes: dict[Hashable, Outcome] = {}
        self._begun: tuple[Hashable, DeviceSearch] | None = None
        """The search that ran out of steps: it goes on where one in pools that look alike is wanted next."""
        self._wide = WideSpaces(self.known)
        self._wide_outcomes: dict[bytes, Outcome] = {}
        """What was found in search spaces that are kept."""

    @property
    def size(self) -> int:
        """About how much memory it takes. Units: bytes."""
        of_kinds = len(self.kinds.kinds) * (_BYTES_A_KIND + _BYTES_A_VERDICT * len(self.known))
        outcomes = len(self._outcomes) + len(self._wide_outcomes) + len(self._shapes)
        views = len(self._by_slice) + self._wide.pool_count
        return of_kinds + outcomes * BYTES_AN_OUTCOME + views * _BYTES_A_VIEW + self._kinds_bytes

    def note_all(self) -> None:
        """Note that any pool may have moved."""
        self._wide.clear()

    def note(self, view: PoolView) -> None:
        """Note that a pool moved."""
        self._wide.note(view)

    def pools(self, group: NodeGroup) -> Sequence[SeenPool]:
        """Return the pools that a search on the nodes of a group notices, in its order."""
        first = self._tables.unusable.first(group) if self.plans.asks_for_all else None
        return group.pools if first is None else sorted((*group.pools, first), key=lambda one: one.view.order)

    def outcome(self, group: NodeGroup, steps: Budget) -> Outcome:
        """Return what comes of asking about the nodes of a group; it need not name devices.

        Raises:
            BudgetExceededError: it takes more steps; the next question goes on.
        """
        if self.plans.failure is not None:
            outcome = Outcome(AllocationAnswer.ERROR, self.plans.failure)
        else:
            outcome = self._counted(group.pools, steps) or self._searched(group, steps)
        return self._settled(group, outcome)

    def outcome_of(self, states: tuple[Hashable, ...], pools: Sequence[SeenPool], steps: Budget) -> Outcome:
        """Return what a search finds in pools, unless one in pools of these states, see `state`, has been made.

        Raises:
            BudgetExceededError: it takes more steps; the next question goes on.
        """
        return self._outcomes.get(states) or self._search_once(states, pools, steps)

    def search(self, group: NodeGroup, steps: int) -> Outcome:
        """Return what a search finds on the nodes of a group as they were caught up with, with its devices."""
        try:
            return self._settled(group, self._searched(group, Budget(steps)))
        except BudgetExceededError:
            return OUT_OF_STEPS

    def refusals(self, group: NodeGroup, steps: int) -> list[Refusals]:
        """Say for each request and alternative what stands against the devices of a group's nodes.

        Only of the first ones where there are more than the steps allow.

        Raises:
            BudgetExceededError: not even the selectors could all be asked; some more are known now.
        """
        pools, plans = self.pools(group), self.plans
        left = Budget(steps)
        space = SearchSpace(pools, self._shapes_of(pools, left), len(plans.requirements))
        asks = (ask for claim in plans.claims for ask in claim.asks() if ask.failure is None)
        told: list[Refusals] = []
        with suppress(BudgetExceededError):
            for ask in asks:
                told.append(refusals_of(ask, plans.requirements[ask.requirement], space, left))  # noqa: PERF401
        return told

    def ask_about(self, kinds: Sequence[DeviceKind], steps: Budget) -> None:
        """Find out which requirements kinds of devices suit.

        Raises:
            BudgetExceededError: it takes more steps; what was found out is known then.
        """
        suitabilities(self.plans.requirements, kinds, self.known, steps)

    def _settled(self, group: NodeGroup, outcome: Outcome) -> Outcome:
        """Have pools that no node can use count where nothing was found."""
        is_invalid = outcome.answer is AllocationAnswer.NO and self._tables.unusable.has_invalid(group)
        return INVALID_POOLS if is_invalid else outcome

    # Counting

    def _counted(self, pools: Sequence[SeenPool], steps: Budget) -> Outcome | None:
        """Answer by counting free devices; None where it takes a search."""
        wanted = self.wanted
        if not wanted:
            return None
        totals = [0] * len(wanted)
        is_invalid = False
        for view, reached in pools:
            if not view.is_usable:
                is_invalid = is_invalid or view.is_invalid
                continue
            shape = self._shape(view, steps)
            if not shape.is_plain or view.consumed or (len(wanted) > 1 and not shape.is_disjoint):
                return None
            free = ~view.used if reached is None else reached & ~view.used
            for place, (requirement, _) in enumerate(wanted):
                totals[place] += (shape.fit[requirement] & free).bit_count()
        for total, (_, count) in zip(totals, wanted, strict=True):
            if total < count:
                return INVALID_POOLS if is_invalid else NO
        return YES

    # Searching

    def _searched(self, group: NodeGroup, steps: Budget) -> Outcome:
        """Search, unless a search in pools that look alike has been made."""
        if len(group.pools) >= WIDE and not self.plans.asks_for_all:
            return self._searched_widely(group, steps)
        pools = self.pools(group)
        return self.outcome_of(tuple([self._state_of(seen) for seen in pools]), pools, steps)

    def _searched_widely(self, group: NodeGroup, steps: Budget) -> Outcome:
        """Search in many pools, of which those are looked at that moved since the last search."""
        shapes_of = partial(self._shapes_of, group.pools, steps)
        key, space = self._wide.space_of(group, shapes_of, self._state_of, steps)
        outcome = self._wide_outcomes.get(key)
        if outcome is None:
            if len(self._wide_outcomes) > _MOST_WIDE_OUTCOMES:
                self._wide_outcomes.clear()
            begun, self._begun = self._begun, None
            if begun is not None and begun[0] == key and begun[1].is_in(space):
                search = begun[1]
            else:
                steps.spend(_STEPS_A_SEARCH)
                search = DeviceSearch(self.plans, space, self.known)
            outcome = self._wide_outcomes[key] = self._run(key, search, steps)
        return outcome

    def _search_once(self, key: Hashable, pools: Sequence[SeenPool], steps: Budget) -> Outcome:
        if len(self._outcomes) > _MOST_REMEMBERED:
            self._outcomes.clear()
        begun, self._begun = self._begun, None
        if begun is not None and begun[0] == key:
            search = begun[1]
        else:
            shapes, requirements = self._shapes_of(pools, steps), len(self.plans.requirements)
            steps.spend(_STEPS_A_SEARCH + requirements * len(pools) + sum([one.view.size for one in pools]) // 16)
            space = SearchSpace(pools, shapes, requirements)
            search = DeviceSearch(self.plans, space, self.known)
        outcome = self._outcomes[key] = self._run(key, search, steps)
        return outcome

    def _run(self, key: Hashable, search: DeviceSearch, steps: Budget) -> Outcome:
        try:
            return search.run(steps)
        except BudgetExceededError:
            self._begun = key, search
            raise

    # What a pool looks like

    def _state_of(self, seen: SeenPool) -> Hashable:
        """Return a value that is equal where a search finds the same in a pool as a node sees it."""
        view, reached = seen
        return state(self._kinds_in(view), view, reached) if view.is_usable else view.is_incomplete

    def _kinds_in(self, view: PoolView) -> Hashable:
        """Return the kinds of a view's devices, which never change."""
        slices = view.slices
        return self._kinds_of(slices[0]) if len(slices) == 1 else tuple([self._kinds_of(one) for one in slices])

    def _kinds_of(self, one: KeptSlice) -> bytes:
        known = self._by_slice.get(one.number)
        if known is None:
            if len(self._by_slice) > _MOST_SLICES:
                self._by_slice.clear()
                self._kinds_bytes = 0
            rows = one.rows
            known = self.kinds.known(rows).tobytes()
            if known not in self._shapes:  # some may not be known yet
                known = self.kinds.of(rows).tobytes()
            self._by_slice[one.number] = known
            self._kinds_bytes += len(known)
        return known

    def _shapes_of(self, pools: Sequence[SeenPool], steps: Budget) -> list[ViewShape | None]:
        return [self._shape(seen.view, steps) if seen.view.is_usable else None for seen in pools]

    def _shape(self, view: PoolView, steps: Budget) -> ViewShape:
        slices = view.slices
        if len(slices) == 1:
            return self._shape_of(slices[0], steps)
        steps.left -= view.size // _DEVICES_A_STEP + len(slices) // _SLICES_A_STEP
        return JoinedShape([self._shape_of(one, steps) for one in slices], len(self.plans.requirements))

    def _shape_of(self, one: KeptSlice, steps: Budget) -> ViewShape:
        key = self._kinds_of(one)
        shape = self._shapes.get(key)
        if shape is None:
            if len(self._shapes) > _MOST_REMEMBERED:
                self._shapes.clear()
            kinds = [self.kinds.kinds[number] for number in self.kinds.of(one.rows).tolist()]
            self.ask_about(list(dict.fromkeys(kinds)), steps)
            shape = self._shapes[key] = ViewShape(kinds, self.known)
        return shape


def state(kinds: Hashable, view: PoolView, reached: int | None) -> Hashable:
    """Return a value that is equal where a search finds the same in a usable pool.

    Args:
        kinds: the kinds of its devices.
        view: the pool.
        reached: which of its devices are reached, None for all of them.
    """
    return kinds, view.used, reached, view.signature


def _wanted_by_requirement(plans: Plans) -> list[tuple[int, int]]:
    """Return how many devices are wanted by each requirement, for claims that are answered by counting."""
    wanted: Counter[int] = Counter()
    if plans.failure is None and plans.is_simple:
        for claim in plans.claims:
            for ask in claim.asks():
                wanted[ask.requirement] += ask.count
    return list(wanted.items())
