"""`Consumption`: the capacity of a device that a request consumes, rounded by the policies of the driver.

Source: k8s.io/dynamic-resource-allocation v0.36, v0.37 and v0.38 structured/internal/incubating/consumable_capacity.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from types import MappingProxyType
from typing import Final, NamedTuple

from policysched.devices.inventory.amounts import BINARY, FormattedQuantity, Number, number_of, read, whole
from policysched.model.objects import (
    Amount,
    CapacityRange,
    CapacityRequestPolicy,
    CapacityRequirements,
    DeviceCapacity,
)
from policysched.model.quantity import MAX, MIN, Quantity, wrap
from policysched.model.release import Release

_NOT_REPRESENTABLE: Final = "capacity request cannot be represented in the device's range arithmetic"


class Consumption(NamedTuple):
    """The amounts of a device's capacities that one request consumes.

    Attributes:
        amounts: The amount by capacity.
        limits: The value of each capacity, which the sum of all consumed amounts must not exceed.
        other_names: By capacity, another name under which allocations consume it.
    """

    amounts: Mapping[str, FormattedQuantity]
    limits: Mapping[str, Number]
    other_names: Mapping[str, str] = MappingProxyType({})

    def fits(self, *consumed: Mapping[str, Number] | None) -> bool:
        """Return whether the device has enough capacity for the request besides what is already consumed."""
        for name, amount in self.amounts.items():
            total = amount.number
            other = self.other_names.get(name)
            for each in consumed:
                if each is not None:
                    total += each.get(name, 0) + (each.get(other, 0) if other is not None else 0)
            if total > self.limits[name]:
                return False
        return True


class CapacityError(Exception):
    """Raised if the amount to consume cannot be computed or is negative."""


def consumption(
    required: CapacityRequirements | None, capacities: Mapping[str, DeviceCapacity], driver: str, release: Release
) -> Consumption | None:
    """Return the amount of each capacity of a device that a request consumes.

    Args:
        required: The requested capacities.
        capacities: The capacities of the device.
        driver: The driver of the device.
        release: The Kubernetes release whose allocator is reproduced.

    Returns:
        The consumption, None if the device lacks a requested capacity, or a policy does not allow the amount.

    Raises:
        CapacityError: An amount fails the request, with a release in which that is an error.
    """
    requests: Mapping[str, Amount] = required.requests if required is not None else {}
    others: dict[str, str] = {}
    if release.qualifies_capacities:
        capacities = {name: one for name, one in capacities.items() if f"{driver}/{name}" not in capacities}
        others = {name: other for name in capacities if (other := _other_name(name, driver)) != name}
        requests = _of_device(requests, others)
    if any(name not in capacities for name in requests):
        return None
    shown = {name: max(name, others.get(name, ""), key=len) for name in capacities}
    amounts = {name: _checked(shown[name], requests.get(name), one, release) for name, one in capacities.items()}
    if not all(_is_allowed(amounts[name], one.request_policy, release) for name, one in capacities.items()):
        return None
    return Consumption(amounts, {name: number_of(one.value) for name, one in capacities.items()}, others)


def _other_name(name: str, driver: str) -> str:
    """Return a capacity's name without the driver's domain; if it has none, with the driver's domain.

    Names with another domain are returned unchanged.
    """
    return f"{driver}/{name}" if "/" not in name else name.removeprefix(f"{driver}/")


def _of_device(requests: Mapping[str, Amount], others: Mapping[str, str]) -> Mapping[str, Amount]:
    """Return the requested amounts by the capacity names that the device uses.

    Args:
        requests: The requested amounts.
        others: The other name of each capacity of the device.

    Raises:
        CapacityError: A capacity is requested by both names.
    """
    stated = {other: name for name, other in others.items()}
    for name, other in others.items():
        if name in requests and other in requests:
            short, long = sorted((name, other), key=len)
            raise CapacityError(f'capacity "{short}" requested both as "{short}" and as "{long}"')
    return {stated.get(name, name): amount for name, amount in requests.items()}


def _checked(name: str, requested: Amount | None, capacity: DeviceCapacity, release: Release) -> FormattedQuantity:
    """Return the amount to consume of a capacity: the request or a default, checked and rounded.

    Raises:
        CapacityError: The amount cannot be computed, or is negative.
    """
    try:
        amount = _amount(requested, capacity, release)
    except CapacityError as error:
        raise CapacityError(f'capacity "{name}": {error}') from None
    if release.capacity_errors_fail and amount.number < 0:
        raise CapacityError(f'capacity "{name}": capacity value is negative')
    return amount


def _amount(requested: Amount | None, capacity: DeviceCapacity, release: Release) -> FormattedQuantity:
    policy = capacity.request_policy
    if requested is None:
        default = policy.default if policy is not None else None
        return read(default if default is not None else capacity.value)
    return read(requested) if policy is None else _rounded(read(requested), policy, release)


def _rounded(requested: FormattedQuantity, policy: CapacityRequestPolicy, release: Release) -> FormattedQuantity:
    if policy.valid_range is not None and policy.valid_range.min is not None:
        return _rounded_to_step(requested, read(policy.valid_range.min), policy.valid_range, release)
    valid = map(read, policy.valid_values)
    return next((one for one in valid if requested.number <= one.number), requested)


def _rounded_to_step(
    requested: FormattedQuantity, least: FormattedQuantity, allowed: CapacityRange, release: Release
) -> FormattedQuantity:
    if requested.number < least.number:
        return least
    if allowed.step is None:
        return requested
    step = read(allowed.step)
    if release.capacities_are_fractional and _is_in_thousandths(allowed):
        return _rounded_to_thousandths(requested, least, step)
    if step.whole == 0:
        return requested
    if release.capacity_errors_fail and requested.number > MAX:
        raise CapacityError(f"{_NOT_REPRESENTABLE}: request {requested.text()} exceeds MaxInt64")
    steps = -(-(requested.whole - least.whole) // step.whole)
    amount = least.whole + step.whole * steps
    if release.capacity_errors_fail and least.number >= 0 and amount > MAX:
        raise CapacityError(_passing(requested, "MaxInt64"))
    return whole(wrap(amount), step.form if release.rounded_capacities_keep_form else BINARY)


def _rounded_to_thousandths(
    requested: FormattedQuantity, least: FormattedQuantity, step: FormattedQuantity
) -> FormattedQuantity:
    wanted = _thousandths(requested)
    if wanted is None:
        raise CapacityError(f"{_NOT_REPRESENTABLE}: request {requested.text()} is not a representable milli value")
    first, each = int(least.number * 1000), int(step.number * 1000)
    amount = first - (first - wanted) // each * each
    if amount > MAX:
        raise CapacityError(_passing(requested, "the milli-value range"))
    if amount % 1000 == 0:
        return whole(amount // 1000, step.form)
    return FormattedQuantity(Quantity(amount, -3), step.form)


def _passing(requested: FormattedQuantity, limit: str) -> str:
    return f"{_NOT_REPRESENTABLE}: rounding request {requested.text()} up to the next step passes {limit}"


def _thousandths(amount: FormattedQuantity) -> int | None:
    """Return an amount in thousandths; None if it exceeds an int64."""
    number = amount.number * 1000
    return int(number) if number == int(number) and MIN <= number <= MAX else None


def _is_in_thousandths(allowed: CapacityRange) -> bool:
    """Return whether a range can be computed in int64 thousandths: its bounds and its step, which is at least one."""
    amounts = [_thousandths(read(one)) for one in (allowed.min, allowed.max) if one is not None]
    step = _thousandths(read(allowed.step)) if allowed.step is not None else None
    return None not in amounts and step is not None and step >= 1


def _is_allowed(amount: FormattedQuantity, policy: CapacityRequestPolicy | None, release: Release) -> bool:
    if policy is None or (policy.default is not None and amount.is_identical(read(policy.default))):
        return True
    if policy.valid_range is not None:
        return _is_in_range(amount, policy.valid_range, release)
    if policy.valid_values:
        return any(amount.number == number_of(one) for one in policy.valid_values)
    return True


def _is_in_range(amount: FormattedQuantity, allowed: CapacityRange, release: Release) -> bool:
    if allowed.max is not None and amount.number > number_of(allowed.max):
        return False
    if release.capacities_are_fractional and _is_in_thousandths(allowed):
        return _is_multiple(amount, allowed)
    step = read(allowed.step).whole if allowed.step is not None else 0
    if step == 0:
        return True
    least = read(allowed.min).whole if allowed.min is not None else 0
    return wrap(amount.whole - least) % step == 0


def _is_multiple(amount: FormattedQuantity, allowed: CapacityRange) -> bool:
    """Return whether an amount is a range's minimum plus a multiple of the step; the amounts are in thousandths."""
    wanted = _thousandths(amount)
    step, least = number_of(allowed.step or 0), number_of(allowed.min or 0)
    return wanted is not None and (wanted - int(least * 1000)) % int(step * 1000) == 0
