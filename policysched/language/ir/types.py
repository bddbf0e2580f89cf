"""Types of expressions: kind, unit, shape, and whether a value may be missing.

A type says what a value is, in which unit it counts, whether it differs between nodes and whether it may be missing.
It knows nothing of names or trees. Why a value may be missing is kept too: what only a division by zero or a score
without `else` can leave open is no reason to warn anybody.
"""

from __future__ import annotations

import enum
from collections.abc import Mapping
from dataclasses import dataclass, replace
from decimal import Decimal
from typing import Final


class Kind(enum.Enum):
    """What a value is."""

    BOOL = "condition"
    STRING = "string"
    VERSION = "version"
    QUANTITY = "quantity"
    LIST = "list"


class Unit(enum.Enum):
    """What a quantity counts; held in millicores, bytes, seconds and as it is."""

    NUMBER = "number"
    CPU = "cpu"
    BYTES = "bytes"
    DURATION = "duration"


class Shape(enum.IntEnum):
    """Whether a value is one for all, one a node, or one a placed pod."""

    SCALAR = 0
    NODES = 1
    PODS = 2


class Gap(enum.IntEnum):
    """Why a value may be missing: not at all, by the expression's own doing, or because an input is missing."""

    NONE = 0
    OWN = 1
    INPUT = 2


@dataclass(frozen=True, slots=True)
class Type:
    """The type of an expression.

    Attributes:
        kind: What it is.
        unit: The unit of a quantity, or of a list's items where those are quantities.
        shape: One value, one a node, or one a placed pod.
        gap: Whether and why it may be missing (a condition: unknown).
    """

    kind: Kind
    unit: Unit | None = None
    shape: Shape = Shape.SCALAR
    gap: Gap = Gap.NONE

    @property
    def optional(self) -> bool:
        """Whether a value of this type may be missing."""
        return self.gap is not Gap.NONE

    @property
    def is_number(self) -> bool:
        """Whether it is a quantity without a unit."""
        return self.unit is Unit.NUMBER and self.kind is Kind.QUANTITY

    def like(self, other: Type) -> bool:
        """Whether two values can be compared for being equal."""
        return self.kind is other.kind and self.unit is other.unit

    def over(self, *others: Type) -> Type:
        """Return this type with the largest shape and gap of itself and the others."""
        shape = max(self.shape, *(other.shape for other in others))
        return replace(self, shape=shape, gap=max(self.gap, *(other.gap for other in others)))

    def filled(self, gap: Gap = Gap.NONE) -> Type:
        """Return this type with another gap."""
        return replace(self, gap=gap)

    def __str__(self) -> str:
        if self.kind is Kind.QUANTITY and self.unit is not None:
            return self.unit.value
        return self.kind.value

    @property
    def item(self) -> str:
        """What a list's items are called."""
        return _ITEMS[self.unit]


_ITEMS = {None: "strings", Unit.NUMBER: "numbers", Unit.CPU: "cpu", Unit.BYTES: "bytes", Unit.DURATION: "durations"}
BOOL = Type(Kind.BOOL)
STRING = Type(Kind.STRING)
VERSION = Type(Kind.VERSION)
NUMBER = Type(Kind.QUANTITY, Unit.NUMBER)
CPU = Type(Kind.QUANTITY, Unit.CPU)
BYTES = Type(Kind.QUANTITY, Unit.BYTES)
DURATION = Type(Kind.QUANTITY, Unit.DURATION)

# What the suffixes of literals multiply by, in seconds, and in bytes, cores or as it is.
_DECIMAL: Final[Mapping[str, Decimal]] = {
    suffix: Decimal(1000) ** power for power, suffix in enumerate("kMGTPE", start=1)
}
_BINARY: Final[Mapping[str, Decimal]] = {
    suffix: Decimal(1024) ** power for power, suffix in enumerate(("Ki", "Mi", "Gi", "Ti", "Pi", "Ei"), start=1)
}
SECONDS: Final[Mapping[str, Decimal]] = {
    "ms": Decimal("0.001"),
    "s": Decimal(1),
    "min": Decimal(60),
    "h": Decimal(3600),
    "d": Decimal(86400),
}
FACTORS: Final[Mapping[str, Decimal]] = {
    "": Decimal(1), "%": Decimal("0.01"), "m": Decimal("0.001"), **_DECIMAL, **_BINARY,
}  # fmt: skip


def quantity(unit: Unit) -> Type:
    """Return the scalar type of a unit."""
    return Type(Kind.QUANTITY, unit)


def list_of(item: Type) -> Type:
    """Return the type of a list of such items."""
    return Type(Kind.LIST, item.unit)
