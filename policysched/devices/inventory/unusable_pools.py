"""Pools with slices that count on every node and that no node can use: incomplete or invalid ones.

Such slices are those with shared counters. While a driver writes a pool anew, every node sees a pool that is
incomplete, and that is of no account but to claims for all devices: so nodes are not asked again for it one by one.
"""

from __future__ import annotations

from bisect import insort

from policysched.devices.inventory.allocated import PoolId
from policysched.devices.inventory.pool_views import NodeGroup, SeenPool


class UnusablePools:
    """The pools, in the order of the search.

    Attributes:
        revision: A number that grows with each change.
        invalid_revision: A number that grows with each change of which pools are invalid.
    """

    def __init__(self) -> None:
        self.revision = 0
        self.invalid_revision = 0
        self._seen: dict[PoolId, SeenPool] = {}
        self._order: list[PoolId] = []
        self._invalid: set[PoolId] = set()

    def __bool__(self) -> bool:
        return bool(self._order)

    def __contains__(self, pool: PoolId) -> bool:
        return pool in self._seen

    def set(self, pool: PoolId, seen: SeenPool | None) -> None:
        """Say how nodes see a pool; None where they do not, or can use it."""
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
            self.revision += 1
        if (seen is not None and seen.view.is_invalid) is not (pool in self._invalid):
            self._invalid ^= {pool}
            self.invalid_revision += 1

    @property
    def are_invalid(self) -> bool:
        """Whether some are invalid."""
        return bool(self._invalid)

    def first(self, group: NodeGroup) -> SeenPool | None:
        """Return the first one that nodes do not see in another way."""
        if not self._order:
            return None
        own = {seen.view.pool for seen in group.pools}
        return next((self._seen[pool] for pool in self._order if pool not in own), None)

    def has_invalid(self, group: NodeGroup) -> bool:
        """Whether an invalid one is there that nodes do not see in another way."""
        if not self._invalid:
            return False
        return len(self._invalid) > sum(seen.view.pool in self._invalid for seen in group.pools)
