"""Constraints of a claim: an attribute that must be equal, or different, on the devices of its requests.

They keep what was added, and forget on removal, just as kube-scheduler's do. The one about different values remembers a
value for each request only, and forgets that with the first device of the request that is taken back: of several
devices of one request only the last one counts.

Source: k8s.io/dynamic-resource-allocation v0.36 structured/internal/incubating/allocator_incubating.go
(matchAttributeConstraint, lookupAttribute), constraint.go (distinctAttributeConstraint).
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Final, Protocol

from policysched.devices.inventory.columns import AttributeValue, typed
from policysched.model.objects import DeviceAttribute, DeviceConstraint


class NamedRequest(Protocol):
    """A request as constraints know it."""

    @property
    def request(self) -> str:
        """The name of the claim's request."""

    @property
    def full_name(self) -> str:
        """The name with that of the alternative, where it is one: `request/alternative`."""


class AttributeConstraint(Protocol):
    """A constraint during one search."""

    def add(self, of: NamedRequest, value: AttributeValue | None) -> bool:
        """Add a device by its value of the attribute, None where it has none; False where it may not be taken."""

    def remove(self, of: NamedRequest) -> None:
        """Take back a device that was added for a request."""


class _Affecting:
    """The requests that a constraint is about."""

    __slots__ = ("_names",)

    def __init__(self, names: Iterable[str]) -> None:
        self._names: Final = frozenset(names)

    def affects(self, of: NamedRequest) -> bool:
        return not self._names or of.request in self._names or of.full_name in self._names


class EqualAttribute(_Affecting):
    """All devices have the same value."""

    __slots__ = ("_count", "_value")

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__(names)
        self._value: AttributeValue | None = None
        self._count = 0

    def add(self, of: NamedRequest, value: AttributeValue | None) -> bool:
        """Add a device; the first one says the value."""
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
        """Take back a device."""
        if self.affects(of):
            self._count -= 1


class DistinctAttribute(_Affecting):
    """No device has the value that is remembered for a request."""

    __slots__ = ("_count", "_values")

    def __init__(self, names: Iterable[str]) -> None:
        super().__init__(names)
        self._values: dict[str, AttributeValue] = {}
        self._count = 0

    def add(self, of: NamedRequest, value: AttributeValue | None) -> bool:
        """Add a device; its value takes the place of the one remembered for the request."""
        if not self.affects(of):
            return True
        if value is None or (self._count and self._repeats(value)):
            return False
        self._values[of.request] = value
        self._count += 1
        return True

    def _repeats(self, value: AttributeValue) -> bool:
        return value in self._values.values() or (value[1] is None and bool(self._values))

    def remove(self, of: NamedRequest) -> None:
        """Take back a device: what is remembered for the request is forgotten."""
        if self.affects(of):
            self._values.pop(of.request, None)
            self._count -= 1


def fresh(constraint: DeviceConstraint) -> AttributeConstraint:
    """Return a constraint to which nothing was added."""
    kind = EqualAttribute if constraint.match_attribute is not None else DistinctAttribute
    return kind(constraint.requests)


def attribute_of(constraint: DeviceConstraint) -> str | None:
    """Return the full name of a constraint's attribute, None where the constraint says nothing."""
    return constraint.match_attribute if constraint.match_attribute is not None else constraint.distinct_attribute


def value_of(attributes: Mapping[str, DeviceAttribute], driver: str, name: str) -> AttributeValue | None:
    """Find the value of an attribute by its full name; the driver's own may be there without a domain."""
    found = attributes.get(name)
    if found is None:
        domain, slash, identifier = name.partition("/")
        found = attributes.get(identifier) if slash and domain == driver else None
    return None if found is None else typed(found)
