"""Types of CEL's type checker, with their texts in messages.

A type can be part of another type twice, which is part of a third type twice, and so on. Walks through such types
visit 2, 4, 8, … parts, so every walk spends a budget.

Source: cel-go v0.26 common/types/types.go, checker/format.go.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from policysched.budget import Budget


@dataclass(frozen=True, slots=True, eq=False)
class CelType:
    """A CEL type: its kind, its name at run time, and its type parameters.

    `==` compares identity; `same_types` compares the parts.
    """

    kind: str
    name: str
    parameters: tuple[CelType, ...] = ()
    is_open: bool = field(init=False, repr=False)
    """Whether the type is or contains a type parameter, which another type can replace."""

    def __post_init__(self) -> None:
        """Compute `is_open` once, because types can be nested deeply."""
        object.__setattr__(self, "is_open", self.kind == "param" or any(one.is_open for one in self.parameters))

    def __str__(self) -> str:
        """Return the type as `string(type(x))` shows it: inner types are without their type parameters."""
        return f"{self.name}({', '.join(one.name for one in self.parameters)})" if self.parameters else self.name

    def shown(self, work: Budget) -> str:
        """Return the text of the type in messages about the result type of an expression."""
        work.spend(len(self.parameters))
        return f"{self.name}({', '.join(one.shown(work) for one in self.parameters)})" if self.parameters else self.name

    def formatted(self, work: Budget) -> str:
        """Return the text of the type in messages of the checker."""
        if self.kind in SHORT_NAMES:
            return SHORT_NAMES[self.kind]
        if not self.parameters:
            return self.name
        work.spend(len(self.parameters))
        return f"{self.name}({', '.join(one.formatted(work) for one in self.parameters)})"

    @property
    def is_dynamic(self) -> bool:
        """Whether values of any type are allowed where this type is required."""
        return self.kind in {"dyn", "any"}


SHORT_NAMES: Final = {
    "any": "any",
    "duration": "duration",
    "error": "!error!",
    "null": "null",
    "timestamp": "timestamp",
}
"""Names of types in messages of the checker, where they differ from the names at run time."""
BOOL: Final = CelType("bool", "bool")
BYTES: Final = CelType("bytes", "bytes")
DOUBLE: Final = CelType("double", "double")
INT: Final = CelType("int", "int")
UINT: Final = CelType("uint", "uint")
STRING: Final = CelType("string", "string")
NULL: Final = CelType("null", "null_type")
DYN: Final = CelType("dyn", "dyn")
ANY: Final = CelType("any", "google.protobuf.Any")
ERROR: Final = CelType("error", "error")
DURATION: Final = CelType("duration", "google.protobuf.Duration")
TIMESTAMP: Final = CelType("timestamp", "google.protobuf.Timestamp")
TYPE: Final = CelType("type", "type")
OPTIONAL: Final = CelType("opaque", "optional_type")
QUANTITY: Final = CelType("struct", "kubernetes.Quantity")
SEMVER: Final = CelType("struct", "kubernetes.Semver")
URL: Final = CelType("struct", "kubernetes.URL")
FORMAT: Final = CelType("struct", "kubernetes.NamedFormat")
DEVICE: Final = CelType("struct", "kubernetes.DRADevice")
IP: Final = CelType("opaque", "net.IP")
CIDR: Final = CelType("opaque", "net.CIDR")


def same_types(first: CelType, second: CelType, work: Budget) -> bool:
    """Return whether two types are equal in all their parts.

    Raises:
        BudgetExceededError: the types have too many parts.
    """
    if first is second:
        return True
    if first.kind != second.kind or first.name != second.name or len(first.parameters) != len(second.parameters):
        return False
    work.spend(len(first.parameters))
    return all(same_types(one, other, work) for one, other in zip(first.parameters, second.parameters, strict=True))


def list_of(element: CelType) -> CelType:
    """Return the type of lists with a given element type."""
    return CelType("list", "list", (element,))


def map_of(key: CelType, value: CelType) -> CelType:
    """Return the type of maps with given key and value types."""
    return CelType("map", "map", (key, value))


def optional_of(value: CelType) -> CelType:
    """Return the type of optional values with a given inner type."""
    return CelType("opaque", OPTIONAL.name, (value,))


def type_of(one: CelType) -> CelType:
    """Return the type whose value is the given type."""
    return CelType("type", "type", (one,))


LIST: Final = list_of(DYN)
MAP: Final = map_of(DYN, DYN)
