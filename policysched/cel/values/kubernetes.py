"""CEL values of Kubernetes' libraries: quantities, versions, addresses, URLs and named formats.

Source: k8s.io/apiserver v0.36 pkg/cel; github.com/blang/semver v4.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Callable
from dataclasses import dataclass, field

from policysched.cel.values.urls import Url
from policysched.model import quantity as amounts


@dataclass(frozen=True, slots=True)
class CelQuantity:
    """A quantity; as in Kubernetes, a sum cannot be the right operand of `==`."""

    amount: amounts.Quantity
    summed: bool = False


@dataclass(frozen=True, slots=True)
class Semver:
    """A semantic version; comparisons ignore the build metadata."""

    major: int
    minor: int
    patch: int
    pre: tuple[int | str, ...] = ()
    build: tuple[str, ...] = field(default=(), compare=False)

    def __str__(self) -> str:
        said = f"{self.major}.{self.minor}.{self.patch}"
        said += f"-{'.'.join(map(str, self.pre))}" if self.pre else ""
        return said + (f"+{'.'.join(self.build)}" if self.build else "")

    def order(self, other: Semver) -> int:
        """Return -1, 0 or 1 if this version is lower than, equal to or higher than another version."""
        mine, others = (self.major, self.minor, self.patch), (other.major, other.minor, other.patch)
        if mine != others:
            return 1 if mine > others else -1
        if not (self.pre and other.pre):
            return bool(other.pre) - bool(self.pre)
        for one, another in zip(self.pre, other.pre, strict=False):
            if one != another:
                return _part_order(one, another)
        return (len(self.pre) > len(other.pre)) - (len(self.pre) < len(other.pre))


def _part_order(one: int | str, another: int | str) -> int:
    if isinstance(one, int) and isinstance(another, int):
        return 1 if one > another else -1
    if isinstance(one, int) or isinstance(another, int):
        return -1 if isinstance(one, int) else 1
    return 1 if one.encode() > another.encode() else -1


@dataclass(frozen=True, slots=True)
class Address:
    """An IP address."""

    address: ipaddress.IPv4Address | ipaddress.IPv6Address


@dataclass(frozen=True, slots=True)
class Prefix:
    """A CIDR; bits after the prefix are kept as written."""

    address: ipaddress.IPv4Address | ipaddress.IPv6Address
    bits: int


@dataclass(frozen=True, slots=True)
class Locator:
    """A URL."""

    url: Url


@dataclass(frozen=True, slots=True)
class Format:
    """A named format with its validation function."""

    name: str
    faults: Callable[[str], list[str]]
