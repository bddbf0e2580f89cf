"""`Pool`: a device pool's slices, and the pool as each node sees it: its newest generation, complete and valid or not.

A node sees the slices of a pool that it reaches, and of them the ones of the highest generation. Nodes that see the
same slices share one view.

Source: k8s.io/dynamic-resource-allocation v0.36 and v0.37 structured/internal/incubating/pools_incubating.go.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Hashable, Iterable, Mapping, Sequence
from operator import attrgetter
from typing import Final

from policysched.devices.inventory.allocated import PoolId, Taken
from policysched.devices.inventory.amounts import Number
from policysched.devices.inventory.columns import DeviceColumns
from policysched.devices.inventory.pool_counters import PoolCounters
from policysched.devices.inventory.pool_views import PoolView, SeenPool, SliceTaken
from policysched.devices.inventory.reach import Reach
from policysched.devices.inventory.row_bits import rows_of
from policysched.devices.inventory.slices import KeptSlice, LabelValue

_NAME: Final = attrgetter("name")
_NOTHING_TAKEN: Final = SliceTaken(0, {})
_NO_AMOUNTS: Final[Mapping[str, Number]] = {}
_NO_NAMES: Final[frozenset[str]] = frozenset()


class Pool:
    """All resource slices of a device pool, in every generation.

    Args:
        pool: The identity of the pool.
        columns: The devices.
        empty_shares_count: Whether a device is in use if its shares consume nothing.
    """

    def __init__(self, pool: PoolId, columns: DeviceColumns, *, empty_shares_count: bool) -> None:
        self._id = pool
        self._empty_shares_count = empty_shares_count
        self._columns = columns
        self._slices: dict[str, KeptSlice] = {}
        self._common: list[KeptSlice] = []
        self._local: dict[str, list[KeptSlice]] = {}
        self._selective: list[KeptSlice] = []
        self._generations: Counter[int] = Counter()
        self._ignored: Counter[int] = Counter()
        """The number of slices that the Kubernetes release ignores, by generation."""
        self._with_counters = 0
        self.views: dict[Hashable, PoolView] = {}
        self._reach: Reach | None = None
        self._taken: dict[KeptSlice, SliceTaken] = {}
        """The allocated devices of each slice that has any."""
        self._counters: dict[Hashable, PoolCounters] = {}
        """The shared counters, by the slices that define them and that consume them; cached until a slice changes."""
        self._repeated: Mapping[KeptSlice, set[str]] | None = None

    def __bool__(self) -> bool:
        return bool(self._slices)

    @property
    def nodes(self) -> Collection[str]:
        """The names of the nodes in `nodeName` of the pool's slices."""
        return self._local.keys()

    @property
    def has_counters(self) -> bool:
        """Whether slices of the pool define shared counters, so that slices depend on each other."""
        return self._with_counters > 0

    def add(self, one: KeptSlice, taken: Taken) -> None:
        """Add a slice or replace the slice of the same name; `taken` has the allocated devices of the pool."""
        self.remove(one.name)
        self._drop_caches()
        self._slices[one.name] = one
        self._take_over(one, taken)
        self._generations[one.generation] += 1
        if one.is_ignored:
            self._ignored[one.generation] += 1
        self._with_counters += bool(one.counts or one.counter_sets)
        where = self._place_of(one)
        if where is not None:
            where.append(one)

    def remove(self, name: str) -> None:
        """Remove a slice of the pool, if the pool has a slice of this name."""
        one = self._slices.pop(name, None)
        if one is None:
            return
        self._drop_caches()
        self._taken.pop(one, None)
        self._generations[one.generation] -= 1
        if one.is_ignored:
            self._ignored -= Counter((one.generation,))  # drops generations without ignored slices
        self._generations += Counter()  # drops generations without slices
        self._with_counters -= bool(one.counts or one.counter_sets)
        where = self._place_of(one)
        if where is not None:
            where.remove(one)
            if one.local_to and not where:
                del self._local[one.local_to]

    def _drop_caches(self) -> None:
        """Drop all values that were computed from the slices, because a slice changed."""
        self._reach = self._repeated = None
        self._counters = {}

    def _place_of(self, one: KeptSlice) -> list[KeptSlice] | None:
        if one.everywhere:
            return self._common
        if one.local_to:
            return self._local.setdefault(one.local_to, [])
        return None if one.says_nothing else self._selective

    @property
    def depends_on_nodes(self) -> bool:
        """Whether node selectors, of slices or of single devices, decide which nodes can use the pool."""
        return bool(self._selective)

    @property
    def demands(self) -> set[LabelValue] | None:
        """Label values of which a node has one if it can use a slice by node selector; None if there are none."""
        found: set[LabelValue] = set()
        for one in self._selective:
            demanded = one.demands
            if demanded is None:
                return None
            found.update(demanded)
        return found

    def seen_from_elsewhere(self, taken: Taken) -> SeenPool | None:
        """Return the pool as it is seen by nodes that no slice names in `nodeName`."""
        return self.seen_from("", {}, taken)

    def seen_from(self, name: str, labels: Mapping[str, str], taken: Taken) -> SeenPool | None:
        """Return the pool as a node sees it; None if searches on the node ignore the pool."""
        slices = (*self._selective, *self._local.get(name, ()), *self._common)
        reach = ((one, one.reached_from(name, labels)) for one in slices)
        return self._seen({one: reached for one, reached in reach if reached is not None}, taken)

    @property
    def reach(self) -> Reach:
        """The slices and devices that nodes can use by node selector or node name; cached."""
        if self._reach is None:
            self._reach = Reach(self._selective, self._common)
        return self._reach

    def seen_as(
        self, numbers: Mapping[int, int], name: str, labels: Mapping[str, str], taken: Taken
    ) -> SeenPool | None:
        """Return the pool as a node sees it, given the numbers of slices and devices that `Reach` has for the node."""
        reached = self.reach.reached(numbers)
        local = {one: one.reached_from(name, labels) or 0 for one in self._local.get(name, ())}
        if local:
            common = {one: reached.pop(one) for one in self._common if one in reached}
            reached |= local | common
        return self._seen(reached, taken)

    def _seen(self, reached: Mapping[KeptSlice, int], taken: Taken) -> SeenPool | None:
        if not reached:
            return None
        generation = max([one.generation for one in reached])
        view = self._view([one for one in reached if one.generation == generation], generation, taken)
        return None if view is None or view.is_silent else SeenPool(view, view.reached(reached))

    def unnoticed(self, taken: Taken) -> SeenPool:
        """Return a usable view of the pool without devices, for nodes on which searches ignore the pool."""
        return SeenPool(self._complete("unnoticed", [], [], taken), None)

    def _view(self, slices: list[KeptSlice], generation: int, taken: Taken) -> PoolView | None:
        others: list[KeptSlice] = []
        count = min(slices, key=_NAME).slice_count  # a malformed pool has several
        if len(slices) != count:
            if max(self._generations) > generation:
                return None  # the pool is being replaced, and the node reaches no slice of the new generation yet
            if self._generations[generation] - self._ignored[generation] != count:
                return self._incomplete()
            if self.has_counters:
                seen = {one.name for one in slices}
                others = [one for one in self._slices.values() if one.generation == generation and one.name not in seen]
        return self._complete("complete", slices, others, taken)

    def _incomplete(self) -> PoolView:
        view = self.views.get("incomplete")
        if view is None:
            view = self.views["incomplete"] = PoolView(self._id, "incomplete", is_incomplete=True)
        return view

    def _complete(self, state: str, slices: list[KeptSlice], others: list[KeptSlice], taken: Taken) -> PoolView:
        """Return the view of a complete set of slices, cached.

        Args:
            state: A part of the key that distinguishes views of the same slices.
            slices: The slices that the nodes reach.
            others: The pool's other slices of the generation, if the pool has counters.
            taken: The allocated devices of the pool.
        """
        if len(slices) > 1:
            slices = sorted(slices, key=_NAME)
        key = state, tuple(slices), tuple(others)
        view = self.views.get(key)
        if view is None:
            view = self.views[key] = self._made(key, slices, others, taken)
            view.take(self._taken)
        return view

    def _made(self, key: Hashable, slices: list[KeptSlice], others: list[KeptSlice], taken: Taken) -> PoolView:
        """Return a new view of the given sorted slices; the view is invalid if the slices contradict each other."""
        with_devices, charges = slices, None
        if self.has_counters:
            with_devices = [one for one in slices if not one.counter_sets]
            charges = self._counters_of(slices, others, taken)
        if self._repeats(with_devices) or (charges is not None and not charges.are_valid):
            return PoolView(self._id, key, is_invalid=True)
        return PoolView(self._id, key, with_devices, charges if charges is not None and charges.amounts else None)

    def _counters_of(self, slices: Sequence[KeptSlice], others: Sequence[KeptSlice], taken: Taken) -> PoolCounters:
        having = tuple([one for one in (*slices, *others) if one.counter_sets])
        taking = tuple([one for one in (*slices, *others) if one.counts])
        found = self._counters.get((having, taking))
        if found is None:
            found = self._counters[having, taking] = PoolCounters(having, taking, taken, self._columns)
        return found

    @property
    def _repeated_names(self) -> Mapping[KeptSlice, set[str]]:
        if self._repeated is None:
            self._repeated = _repeated(self._slices.values())
        return self._repeated

    def _repeats(self, slices: Sequence[KeptSlice]) -> bool:
        """Return whether slices have two devices of the same name."""
        repeated = self._repeated_names
        if not repeated:
            return False
        seen: set[str] = set()
        for one in slices:
            names = repeated.get(one, _NO_NAMES)
            if one.repeats_names or not seen.isdisjoint(names):
                return True
            seen |= names
        return False

    # Allocated devices

    def take(self, taken: Taken) -> None:
        """Update all views of the pool from the pool's allocated devices."""
        for one in self._slices.values():
            self._take_over(one, taken)
        for charges in self._used_counters():
            charges.take(taken)
        for view in self.views.values():
            view.take(self._taken)

    def retake(self, devices: Collection[str], taken: Taken) -> list[PoolView]:
        """Update the views of the pool after some of its devices were allocated or released.

        Returns:
            The views that changed.
        """
        slices = self._slices.values()
        changed = {one for one in slices for device in devices if one.place(device) is not None}
        for one in changed:
            self._take_over(one, taken)
        charged = {each for each in self._used_counters() if any(map(each.are_taken_by, devices))}
        for charges in charged:
            charges.take(taken)
        views = [one for one in self.views.values() if one.charges in charged or not changed.isdisjoint(one.slices)]
        for view in views:
            view.take(self._taken)
        return views

    def _used_counters(self) -> set[PoolCounters]:
        if not self.has_counters:
            return set()
        return {*self._counters.values(), *(one.charges for one in self.views.values() if one.charges is not None)}

    def _take_over(self, one: KeptSlice, taken: Taken) -> None:
        """Update the allocated devices of one slice from the pool's allocated devices."""
        before = self._taken.pop(one, None)
        if before is None and not taken:
            return
        before = before or _NOTHING_TAKEN
        used = 0
        consumed: dict[int, Mapping[str, Number]] = {}
        for place, device in enumerate(one.devices) if taken else ():
            if device in taken.dedicated:
                used |= 1 << place
            amounts = self._consumed(device, taken)
            if amounts is not None:
                consumed[place] = amounts
        if used or consumed:
            self._taken[one] = SliceTaken(used, consumed)
        for place in rows_of(before.used ^ used):
            self._columns.used[one.start + place] ^= True
        for place in before.consumed.keys() ^ consumed.keys():
            self._columns.consumed[one.start + place] ^= True

    def _consumed(self, device: str, taken: Taken) -> Mapping[str, Number] | None:
        """Return the capacity that shares of a device consume; None if no share has to be counted."""
        if self._empty_shares_count and device in taken.shares:
            return taken.consumed.get(device, _NO_AMOUNTS)
        return taken.consumed.get(device)

    def forget(self, view: PoolView) -> None:
        """Drop a view of the pool that no node group has any more."""
        self.views.pop(view.key, None)
        if view.charges is not None:
            self._counters = {}
        view.let_go()


def _repeated(slices: Iterable[KeptSlice]) -> Mapping[KeptSlice, set[str]]:
    """Return, for each slice, its device names that occur more than once in slices of the same generation."""
    counts: Counter[tuple[int, str]] = Counter()
    having = [one for one in slices if one.devices]
    if len(having) == 1 and not having[0].repeats_names:
        return {}
    for one in having:
        counts.update([(one.generation, name) for name in one.devices])
    if counts.total() == len(counts):
        return {}
    found = ((one, {name for name in one.devices if counts[one.generation, name] > 1}) for one in having)
    return {one: names for one, names in found if names}
