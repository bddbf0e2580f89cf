"""`Consumption`: the amounts of a device's capacities that a request consumes, rounded by the driver's policies.

Source: k8s.io/dynamic-resource-allocation v0.36 structured/internal/incubating/consumable_capacity.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import NamedTuple

from policysched.devices.inventory.amounts import FormattedQuantity, Number, number_of, read, whole_binary
from policysched.model.objects import CapacityRange, CapacityRequestPolicy, CapacityRequirements, DeviceCapacity


class Consumption(NamedTuple):
    """The amounts that one request takes of a device's capacities.

    Attributes:
        amounts: The amount by capacity.
        limits: The value of each capacity, which the sum of all consumed amounts must not exceed.
    """

    amounts: Mapping[str, FormattedQuantity]
    limits: Mapping[str, Number]

    def fits(self, *consumed: Mapping[str, Number] | None) -> bool:
        """Return whether the amounts fit beside amounts that are consumed already."""
        for name, amount in self.amounts.items():
            total = amount.number
            for each in consumed:
                if each is not None:
                    total += each.get(name, 0)
            if total > self.limits[name]:
                return False
        return True


def consumption(required: CapacityRequirements | None, capacities: Mapping[str, DeviceCapacity]) -> Consumption | None:
    """Return what a request takes of each capacity of a device.

    Returns:
        The consumption, None if the device lacks a requested capacity, or a policy does not allow the amount.
    """
    requests = required.requests if required is not None else {}
    if any(name not in capacities for name in requests):
        return None
    amounts: dict[str, FormattedQuantity] = {}
    for name, capacity in capacities.items():
        amount = _amount(read(requests[name]) if name in requests else None, capacity)
        if amount is None:
            return None
        amounts[name] = amount
    return Consumption(amounts, {name: number_of(one.value) for name, one in capacities.items()})


def _amount(requested: FormattedQuantity | None, capacity: DeviceCapacity) -> FormattedQuantity | None:
    policy = capacity.request_policy
    if requested is None:
        default = policy.default if policy is not None else None
        amount = read(default if default is not None else capacity.value)
    elif policy is None:
        return requested
    else:
        amount = _rounded(requested, policy)
    return amount if policy is None or _is_allowed(amount, policy) else None


def _rounded(requested: FormattedQuantity, policy: CapacityRequestPolicy) -> FormattedQuantity:
    if policy.valid_range is not None and policy.valid_range.min is not None:
        return _rounded_to_step(requested, read(policy.valid_range.min), policy.valid_range)
    valid = map(read, policy.valid_values)
    return next((one for one in valid if requested.number <= one.number), requested)


def _rounded_to_step(
    requested: FormattedQuantity, least: FormattedQuantity, allowed: CapacityRange
) -> FormattedQuantity:
    if requested.number < least.number:
        return least
    if allowed.step is None:
        return requested
    step = read(allowed.step).whole
    if step == 0:
        return requested
    added = requested.whole - least.whole
    return whole_binary(least.whole + step * -(-added // step))


def _is_allowed(amount: FormattedQuantity, policy: CapacityRequestPolicy) -> bool:
    if policy.default is not None and amount.is_identical(read(policy.default)):
        return True
    if policy.valid_range is not None:
        return _is_in_range(amount, policy.valid_range)
    if policy.valid_values:
        return any(amount.number == number_of(one) for one in policy.valid_values)
    return True


def _is_in_range(amount: FormattedQuantity, allowed: CapacityRange) -> bool:
    if allowed.max is not None and amount.number > number_of(allowed.max):
        return False
    step = read(allowed.step).whole if allowed.step is not None else 0
    if step == 0:
        return True
    least = read(allowed.min).whole if allowed.min is not None else 0
    return (amount.whole - least) % step == 0
