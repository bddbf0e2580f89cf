"""Which devices are taken, wholly or in shares, by claims that are allocated or just being allocated.

Devices that were allocated with admin access are not taken. Of a claim that is in flight both count: what the scheduler
decided, and what the API server says that it has, for others may have allocated it meanwhile.

Source: plugins/dynamicresources/allocateddevices.go, dra_manager.go, v1.36;
k8s.io/dynamic-resource-allocation v0.36 structured/schedulerapi/types.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from policysched.devices.inventory.amounts import Number, number_of
from policysched.model.objects import AllocationResult, DeviceResult, ResourceClaim


class PoolId(NamedTuple):
    """A pool: names of pools are those of a driver."""

    driver: str
    name: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.name}"


class Taken:
    """What is taken of a pool's devices."""

    __slots__ = ("_consuming", "consumed", "dedicated", "shares")

    def __init__(self) -> None:
        self.dedicated: dict[str, int] = {}
        """By the device's name, in how many results it is allocated as a whole."""
        self.shares: dict[str, int] = {}
        """By the device's name, how many shares of it are allocated."""
        self.consumed: dict[str, dict[str, Number]] = {}
        """By the device's name, what its shares consume of each capacity in all; those that consume nothing are not
        there."""
        self._consuming: dict[str, int] = {}

    def __bool__(self) -> bool:
        return bool(self.dedicated or self.shares)

    def count(self, result: DeviceResult, by: int) -> None:
        """Count a result in or out."""
        if result.share_id is None:
            _add(self.dedicated, result.device, by)
            return
        _add(self.shares, result.device, by)
        if not result.consumed_capacity:
            return
        _add(self._consuming, result.device, by)
        if result.device not in self._consuming:
            del self.consumed[result.device]
            return
        amounts = dict(self.consumed.get(result.device, {}))
        for name, amount in result.consumed_capacity.items():
            amounts[name] = amounts.get(name, 0) + by * number_of(amount)
        self.consumed[result.device] = amounts


def device_or_share(result: DeviceResult) -> tuple[str, str, str, str | None]:
    """Return what tells results apart: the device, and which share of it where it is shared."""
    return result.driver, result.pool, result.device, result.share_id


def _results(in_flight: AllocationResult | None, stored: AllocationResult | None) -> Sequence[DeviceResult]:
    """Return the results of both, each device or share once."""
    if in_flight is None:
        return () if stored is None else stored.devices.results
    results = in_flight.devices.results
    if stored is None or stored.devices.results == results:
        return results
    known = {(device_or_share(one), bool(one.admin_access)) for one in results}
    others = (one for one in stored.devices.results if (device_or_share(one), bool(one.admin_access)) not in known)
    return [*results, *others]


def _add(counts: dict[str, int], name: str, by: int) -> None:
    counts[name] = counts.get(name, 0) + by
    if not counts[name]:
        del counts[name]


_NOTHING: Final = Taken()
_MOST_REMEMBERED: Final = 20_000
"""How many changes are remembered one by one. Units: devices."""


class AllocatedState:
    """What is taken of all pools, kept up to date claim by claim.

    `revision` grows with each device that is taken or given back; `changed_since` names those devices.
    """

    def __init__(self) -> None:
        self._pools: dict[PoolId, Taken] = {}
        self._allocated: dict[str, AllocationResult] = {}
        self._in_flight: dict[str, AllocationResult] = {}
        self._changed: list[tuple[PoolId, str]] = []
        self._dropped = 0
        self.revision = 0
        """A number that grows with each change of what is taken."""

    def set_claim(self, claim: ResourceClaim) -> None:
        """Take over what the API server says of a claim, whether it is allocated or not."""
        self._set(self._allocated, claim.metadata.uid or claim.key, claim.status.allocation)

    def remove_claim(self, uid: str) -> None:
        """Forget a claim that was deleted, by its UID, or by `namespace/name` where it had none."""
        self._set(self._allocated, uid, None)

    def assume(self, uid: str, allocation: AllocationResult) -> None:
        """Count what a claim in flight gets, besides what the API server says of it."""
        self._set(self._in_flight, uid, allocation)

    def forget(self, uid: str) -> None:
        """Go by the API server again: the claim is not in flight any more."""
        self._set(self._in_flight, uid, None)

    def results_of(self, uid: str) -> Sequence[DeviceResult]:
        """Return what counts for a claim."""
        return _results(self._in_flight.get(uid), self._allocated.get(uid))

    def of(self, pool: PoolId) -> Taken:
        """Return what is taken of a pool; it is not to be changed, and no longer true after the next change."""
        return self._pools.get(pool, _NOTHING)

    def changed_since(self, revision: int) -> Sequence[tuple[PoolId, str]] | None:
        """Name the devices that were taken or given back since a revision, None where that is too long ago."""
        return None if revision < self._dropped else self._changed[revision - self._dropped :]

    def _set(self, claims: dict[str, AllocationResult], uid: str, allocation: AllocationResult | None) -> None:
        before = claims.pop(uid, None)
        if allocation is not None:
            claims[uid] = allocation
        if before is allocation:
            return
        if claims is self._in_flight:
            stored = self._allocated.get(uid)
            gone, come = _results(before, stored), _results(allocation, stored)
        else:
            in_flight = self._in_flight.get(uid)
            gone, come = _results(in_flight, before), _results(in_flight, allocation)
        if gone == come:
            return
        if gone:
            self._count(gone, -1)
        if come:
            self._count(come, 1)

    def _count(self, results: Sequence[DeviceResult], by: int) -> None:
        for result in results:
            if result.admin_access:
                continue
            pool = PoolId(result.driver, result.pool)
            taken = self._pools.get(pool)
            if taken is None:
                taken = self._pools[pool] = Taken()
            taken.count(result, by)
            if not (taken.dedicated or taken.shares):
                del self._pools[pool]
            self._changed.append((pool, result.device))
            self.revision += 1
        if len(self._changed) > _MOST_REMEMBERED:
            dropped = len(self._changed) - _MOST_REMEMBERED // 2
            del self._changed[:dropped]
            self._dropped += dropped
