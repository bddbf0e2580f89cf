"""`AllocatedState`: the devices that claims have allocated, as a whole or in shares.

Devices that were allocated with admin access are not taken. For a claim in flight, both the scheduler's allocation and
the one in the API server apply, because another scheduler may have allocated the claim.

Source: plugins/dynamicresources/allocateddevices.go, dra_manager.go, v1.36;
k8s.io/dynamic-resource-allocation v0.36 structured/schedulerapi/types.go.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, NamedTuple

from policysched.devices.inventory.amounts import Number, number_of
from policysched.model.objects import AllocationResult, DeviceResult, ResourceClaim


class PoolId(NamedTuple):
    """The identity of a pool: its driver, and its name, which is unique for the driver."""

    driver: str
    name: str

    def __str__(self) -> str:
        return f"{self.driver}/{self.name}"


class Taken:
    """The allocated devices of a pool: whole devices, shares and consumed capacity.

    Attributes:
        dedicated: By device name, the number of results that allocate it as a whole.
        shares: By device name, the number of its allocated shares.
        consumed: By device name, the sum of what its shares consume of each capacity; without devices of which shares
            consume nothing.
    """

    __slots__ = ("_consuming", "consumed", "dedicated", "shares")

    def __init__(self) -> None:
        self.dedicated: dict[str, int] = {}
        self.shares: dict[str, int] = {}
        self.consumed: dict[str, dict[str, Number]] = {}
        self._consuming: dict[str, int] = {}

    def __bool__(self) -> bool:
        return bool(self.dedicated or self.shares)

    def count(self, result: DeviceResult, by: int) -> None:
        """Count an allocated device or share; `by=-1` removes it."""
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
    """Return the identity of an allocated device: driver, pool, name, and the share if the device is shared."""
    return result.driver, result.pool, result.device, result.share_id


def _results(in_flight: AllocationResult | None, stored: AllocationResult | None) -> Sequence[DeviceResult]:
    """Return the devices of a claim's stored allocation and its allocation in flight, without duplicates."""
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
"""Maximum number of changed devices in the log; beyond it, the older half is dropped."""


class AllocatedState:
    """The allocated devices of all pools.

    Attributes:
        stamp: Number of devices that were allocated or released so far; `changed_since` names them.
    """

    def __init__(self) -> None:
        self._pools: dict[PoolId, Taken] = {}
        self._allocated: dict[str, AllocationResult] = {}
        self._in_flight: dict[str, AllocationResult] = {}
        self._changed: list[tuple[PoolId, str]] = []
        self._dropped = 0
        self.stamp = 0

    def set_claim(self, claim: ResourceClaim) -> None:
        """Set the allocation that the API server has stored for a claim; None if the claim is not allocated."""
        self._set(self._allocated, claim.metadata.uid or claim.key, claim.status.allocation)

    def remove_claim(self, uid: str) -> None:
        """Remove a deleted claim, by its UID, or by `namespace/name` for a claim without a UID."""
        self._set(self._allocated, uid, None)

    def assume(self, uid: str, allocation: AllocationResult) -> None:
        """Add an allocation that is not stored yet (in flight), in addition to the claim's stored allocation."""
        self._set(self._in_flight, uid, allocation)

    def forget(self, uid: str) -> None:
        """Remove the in-flight allocation of a claim, which was stored or given up."""
        self._set(self._in_flight, uid, None)

    def results_of(self, uid: str) -> Sequence[DeviceResult]:
        """Return the allocated devices of the claim with the given UID."""
        return _results(self._in_flight.get(uid), self._allocated.get(uid))

    def of(self, pool: PoolId) -> Taken:
        """Return the allocated devices of a pool as a read-only object, which later changes replace."""
        return self._pools.get(pool, _NOTHING)

    def changed_since(self, stamp: int) -> Sequence[tuple[PoolId, str]] | None:
        """Return the devices allocated or released since a value of `stamp`; None if the log does not reach back."""
        return None if stamp < self._dropped else self._changed[stamp - self._dropped :]

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
            self.stamp += 1
        if len(self._changed) > _MOST_REMEMBERED:
            dropped = len(self._changed) - _MOST_REMEMBERED // 2
            del self._changed[:dropped]
            self._dropped += dropped
