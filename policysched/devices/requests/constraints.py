"""`AttributeConstraint`: an attribute that must be equal, or different, on the devices of several requests.

The state of constraints during a search is that of kube-scheduler's. In Kubernetes 1.36, the constraint for distinct
values stores one value for each request, that of the latest device, and drops it when any device of the request is
removed.

Source: k8s.io/dynamic-resource-allocation v0.36 and v0.37 structured/internal/incubating/allocator_incubating.go
(matchAttributeConstraint, lookupAttribute), constraint.go (distinctAttributeConstraint).
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Mapping
from typing import Final, Protocol

from policysched.devices.inventory.columns import LISTS, AttributeValue, typed
from policysched.model.objects import DeviceAttribute, DeviceConstraint


class NamedRequest(Protocol):
    """The name of a request and, if the request has alternatives, of the alternative."""

    @property
    def request(self) -> str:
        """Name of the request, without its alternative."""

    @property
    def full_name(self) -> str:
        """Name of the request; `request/alternative` for an alternative."""


class AttributeConstraint(Protocol):
    """A claim constraint on an attribute, with the devices that a search has chosen so far."""

    def add(self, of: NamedRequest, value: AttributeValue | None) -> bool:
        """Add a device, given by its attribute value or None; return False if the constraint is then violated."""

    def remove(self, of: NamedRequest) -> None:
        """Remove the device that was added last for a request."""


class _Affecting:
    """Base of constraints: decides for which requests a constraint applies; without names, for all."""

    __slots__ = ("_names",)

    def __init__(self, names: Iterable[str]) -> None:
        self._names: Final = frozenset(names)

    def affects(self, of: NamedRequest) -> bool:
        return not self._names or of.request in self._names or of.full_name in self._names


class EqualAttribute(_Affecting):
    """The constraint `matchAttribute`: all devices must have the same attribute value."""

    __slots__ = ("_count", "_value")

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__(names)
        self._value: AttributeValue | None = None
        self._count = 0

    def add(self, of: NamedRequest, value: AttributeValue | None) -> bool:
        """Add a device; return False unless its value equals the value of the first device."""
        if not self.affects(of):
            return True
        if value is None:
            return False
        if self._count == 0:
            self._value = value
        elif value != self._value or value[1] is None:
            return False
        self._count += 1
        return True

    def remove(self, of: NamedRequest) -> None:
        """Remove a device, given by the request for which it was added."""
        if self.affects(of):
            self._count -= 1


class DistinctAttribute(_Affecting):
    """The constraint `distinctAttribute`: all devices must have different attribute values."""

    __slots__ = ("_values",)

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__(names)
        self._values: list[AttributeValue] = []

    def add(self, of: NamedRequest, value: AttributeValue | None) -> bool:
        """Add a device; return False if its value equals the value of another device."""
        if not self.affects(of):
            return True
        if value is None or _repeats(value, self._values):
            return False
        self._values.append(value)
        return True

    def remove(self, of: NamedRequest) -> None:
        """Remove the device that was added last."""
        if self.affects(of):
            self._values.pop()


class DistinctAmongRequests(_Affecting):
    """The constraint `distinctAttribute` in releases that compare only the latest device of each request."""

    __slots__ = ("_count", "_values")

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__(names)
        self._values: dict[str, AttributeValue] = {}
        self._count = 0

    def add(self, of: NamedRequest, value: AttributeValue | None) -> bool:
        """Add a device; its value replaces the value stored for the request."""
        if not self.affects(of):
            return True
        if value is None or (self._count and _repeats(value, self._values.values())):
            return False
        self._values[of.request] = value
        self._count += 1
        return True

    def remove(self, of: NamedRequest) -> None:
        """Remove a device and the value stored for its request."""
        if self.affects(of):
            self._values.pop(of.request, None)
            self._count -= 1


def _repeats(value: AttributeValue, known: Collection[AttributeValue]) -> bool:
    """Return whether a value equals any known value; a value of unknown type equals every value."""
    return value in known or (value[1] is None and bool(known))


def fresh(constraint: DeviceConstraint, *, compares_all: bool) -> AttributeConstraint:
    """Return a claim's constraint, without devices, for a new search.

    Args:
        constraint: The constraint.
        compares_all: Whether distinct values must be distinct within a request too.
    """
    if constraint.match_attribute is not None:
        return EqualAttribute(constraint.requests)
    return (DistinctAttribute if compares_all else DistinctAmongRequests)(constraint.requests)


def attribute_of(constraint: DeviceConstraint) -> str | None:
    """Return the full name of the attribute that a constraint compares; None if it names no attribute."""
    return constraint.match_attribute if constraint.match_attribute is not None else constraint.distinct_attribute


def value_of(attributes: Mapping[str, DeviceAttribute], driver: str, name: str) -> AttributeValue | None:
    """Return type and value of a device's attribute, given by its full name; None if the device lacks it.

    `attributes` may omit the domain of the driver. The value is None if the attribute has no single value.
    """
    found = attributes.get(name)
    if found is None:
        domain, slash, identifier = name.partition("/")
        found = attributes.get(identifier) if slash and domain == driver else None
    if found is None:
        return None
    kind, value = typed(found)
    return kind, None if kind is LISTS else value
