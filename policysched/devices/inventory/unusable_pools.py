"""`UnusablePools`: incomplete or invalid pools that every node sees because of slices with shared counters.

While a driver rewrites a pool, every node sees an incomplete pool. Only claims for all devices depend on it, so nodes
are not evaluated again because of it.
"""

from __future__ import annotations

from bisect import insort

from policysched.devices.inventory.allocated import PoolId
from policysched.devices.inventory.pool_views import NodeGroup, SeenPool


class UnusablePools:
    """The incomplete or invalid pools that every node sees, in search order.

    Attributes:
        stamp: A number that grows with each change.
        invalid_stamp: A number that grows when the set of invalid pools changes.
    """

    def __init__(self) -> None:
        self.stamp = 0
        self.invalid_stamp = 0
        self._seen: dict[PoolId, SeenPool] = {}
        self._order: list[PoolId] = []
        self._invalid: set[PoolId] = set()

    def __bool__(self) -> bool:
        return bool(self._order)

    def __contains__(self, pool: PoolId) -> bool:
        return pool in self._seen

    def set(self, pool: PoolId, seen: SeenPool | None) -> None:
        """Set how nodes see an incomplete or invalid pool; None removes the pool, because it is usable or not seen."""
        before = self._seen.get(pool)
        if before is not None and seen is not None and before.view.is_invalid == seen.view.is_invalid:
            return
        if before is not None:
            del self._seen[pool]
            self._order.remove(pool)
        if seen is not None:
            self._seen[pool] = seen
            insort(self._order, pool)
        if before is not None or seen is not None:
            self.stamp += 1
        if (seen is not None and seen.view.is_invalid) is not (pool in self._invalid):
            self._invalid ^= {pool}
            self.invalid_stamp += 1

    @property
    def are_invalid(self) -> bool:
        """Whether any of the pools is invalid instead of incomplete."""
        return bool(self._invalid)

    def first(self, group: NodeGroup) -> SeenPool | None:
        """Return the first of these pools that a node group does not see differently; None if there is none."""
        if not self._order:
            return None
        own = {seen.view.pool for seen in group.pools}
        return next((self._seen[pool] for pool in self._order if pool not in own), None)

    def has_invalid(self, group: NodeGroup) -> bool:
        """Return whether one of these pools is invalid and is not seen differently by a node group."""
        if not self._invalid:
            return False
        return len(self._invalid) > sum(seen.view.pool in self._invalid for seen in group.pools)
