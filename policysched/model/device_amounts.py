"""The quantities in resource slices, claims and claim templates, with the paths of their fields.

A slice has thousands of quantities, few of them different and nearly none malformed. Paths are computed only for
messages.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TypeAlias

from policysched.model.objects import (
    Amount,
    CapacityRequirements,
    Counter,
    CounterConsumption,
    DeviceCapacity,
    ResourceClaim,
    ResourceClaimSpec,
    ResourceClaimTemplate,
    ResourceSlice,
    ResourceSliceSpec,
)

Place: TypeAlias = tuple[str | int, ...]
Placed: TypeAlias = tuple[Place, Amount | None]


def distinct_amounts(made: object) -> set[Amount | None]:
    """Return the different quantities in an object; None is among them if an optional quantity is absent."""
    if isinstance(made, ResourceSlice):
        return _distinct_of_slice(made.spec)
    return {amount for _, amount in placed_amounts(made)}


def _distinct_of_slice(spec: ResourceSliceSpec) -> set[Amount | None]:
    capacities = [one for device in spec.devices for one in device.capacity.values()]
    policies = [one.request_policy for one in capacities if one.request_policy is not None]
    ranges = [one.valid_range for one in policies if one.valid_range is not None]
    counted = [one.counters for one in spec.shared_counters]
    counted += [one.counters for device in spec.devices for one in device.consumes_counters]
    return {
        *[one.value for one in capacities],
        *[one.default for one in policies],
        *[amount for one in policies for amount in one.valid_values],
        *[amount for one in ranges for amount in (one.min, one.max, one.step)],
        *[counter.value for counters in counted for counter in counters.values()],
    }


def placed_amounts(made: object) -> Iterator[Placed]:
    """Yield each quantity in an object about devices, with the parts of its field path; nothing for other kinds."""
    if isinstance(made, ResourceSlice):
        return _slice_amounts(made)
    if isinstance(made, ResourceClaim):
        return _claim_amounts(made)
    if isinstance(made, ResourceClaimTemplate):
        return _request_amounts(made.spec.spec, "spec.spec.")
    return iter(())


def _slice_amounts(made: ResourceSlice) -> Iterator[Placed]:
    for index, one in enumerate(made.spec.shared_counters):
        yield from _counters(one.counters, ("spec.sharedCounters[", index, "]"))
    for index, device in enumerate(made.spec.devices):
        for name, capacity in device.capacity.items():
            yield from _capacity(capacity, ("spec.devices[", index, "].capacity.", name))
        if device.consumes_counters:
            yield from _consumed(device.consumes_counters, index)


def _consumed(consumed: Iterable[CounterConsumption], device: int) -> Iterator[Placed]:
    for index, one in enumerate(consumed):
        yield from _counters(one.counters, ("spec.devices[", device, "].consumesCounters[", index, "]"))


def _counters(counters: Mapping[str, Counter], place: Place) -> Iterator[Placed]:
    for name, counter in counters.items():
        yield (*place, ".counters.", name, ".value"), counter.value


def _capacity(capacity: DeviceCapacity, place: Place) -> Iterator[Placed]:
    yield (*place, ".value"), capacity.value
    policy = capacity.request_policy
    if policy is None:
        return
    yield (*place, ".requestPolicy.default"), policy.default
    for index, amount in enumerate(policy.valid_values):
        yield (*place, ".requestPolicy.validValues[", index, "]"), amount
    if policy.valid_range is not None:
        valid = policy.valid_range
        for name, limit in (("min", valid.min), ("max", valid.max), ("step", valid.step)):
            yield (*place, ".requestPolicy.validRange.", name), limit


def _claim_amounts(made: ResourceClaim) -> Iterator[Placed]:
    yield from _request_amounts(made.spec, "spec.")
    if made.status.allocation is None:
        return
    for index, result in enumerate(made.status.allocation.devices.results):
        for name, amount in result.consumed_capacity.items():
            yield ("status.allocation.devices.results[", index, "].consumedCapacity.", name), amount


def _request_amounts(spec: ResourceClaimSpec, inside: str) -> Iterator[Placed]:
    for index, request in enumerate(spec.devices.requests):
        place = (inside, "devices.requests[", index, "]")
        if request.exactly is not None:
            yield from _required(request.exactly.capacity, (*place, ".exactly"))
        for number, one in enumerate(request.first_available):
            yield from _required(one.capacity, (*place, ".firstAvailable[", number, "]"))


def _required(capacity: CapacityRequirements | None, place: Place) -> Iterator[Placed]:
    if capacity is not None:
        for name, amount in capacity.requests.items():
            yield (*place, ".capacity.requests.", name), amount
