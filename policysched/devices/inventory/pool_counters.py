"""`PoolCounters`: counters that devices of a pool share (KEP-4815), with the available amounts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from policysched.devices.inventory.allocated import Taken
from policysched.devices.inventory.amounts import Number
from policysched.devices.inventory.columns import NO_SIGNATURE, DeviceColumns
from policysched.devices.inventory.slices import CounterName, KeptSlice


class PoolCounters:
    """The counters that some slices of a pool define, and how much the devices of other slices consume.

    Args:
        having: The slices that have counters.
        taking: The slices whose devices take counters.
        taken: The allocated devices of the pool.
        columns: All devices.

    Attributes:
        are_valid: Whether no set is defined twice, and devices take existing counters only.
        amounts: The amount of each counter.
        available: The amount of each counter that no allocated device takes, on any node; it can be negative.
        signature: A code that is equal only if equal amounts of equal counters are available.
    """

    __slots__ = ("_columns", "_taking", "amounts", "are_valid", "available", "signature")

    def __init__(
        self, having: Iterable[KeptSlice], taking: Sequence[KeptSlice], taken: Taken, columns: DeviceColumns
    ) -> None:
        sets: set[str] = set()
        self.amounts: dict[CounterName, Number] = {}
        self.are_valid = True
        for one in having:
            for name, counters in one.counter_sets:
                self.are_valid = self.are_valid and name not in sets
                sets.add(name)
                self.amounts.update(((name, each), amount) for each, amount in counters.items())
        known = self.amounts.keys()
        for one in taking:
            self.are_valid = self.are_valid and one.charges.sets <= sets and one.charges.counters <= known
        self._taking = [one for one in taking if not one.counter_sets] if self.are_valid else []
        self.available: Mapping[CounterName, Number] = self.amounts
        self.signature = NO_SIGNATURE
        self._columns = columns
        self.take(taken)

    def are_taken_by(self, device: str) -> bool:
        """Return whether a device consumes any of these counters."""
        return any(device in one.charges.by_device for one in self._taking)

    def take(self, taken: Taken) -> None:
        """Compute the available amounts from the allocated devices of the pool."""
        if not self.amounts:
            return
        available = dict(self.amounts)
        for one in self._taking:
            by_device = one.charges.by_device
            for device in by_device.keys() & (taken.dedicated.keys() | taken.shares.keys()) if taken else ():
                for name, amount in by_device[device]:
                    available[name] -= amount
        self.available = available
        self.signature = self._columns.signature(tuple(available.items()))
