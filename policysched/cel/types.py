"""Types as the checker has them and as messages name them.

One that is a part of another twice, and that of a third twice, is walked 2, 4, 8, … times: whatever goes into parts
spends work for it.

Source: cel-go v0.26 common/types/types.go, checker/format.go.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

from policysched.cel.work import WORK


@dataclass(frozen=True, slots=True)
class CelType:
    """A type: its kind, the name that values of it have at run time, and its parameters."""

    kind: str
    name: str
    parameters: tuple[CelType, ...] = ()
    is_open: bool = field(init=False, compare=False, repr=False)
    """Whether it is or has a type parameter, for which another type may be put."""

    def __post_init__(self) -> None:
        """Look at the parameters once: types may be nested deep."""
        object.__setattr__(self, "is_open", self.kind == "param" or any(one.is_open for one in self.parameters))

    def __eq__(self, other: object) -> bool:
        """Return whether another type is the same."""
        if self is other:
            return True
        if not isinstance(other, CelType):
            return NotImplemented
        if self.kind != other.kind or self.name != other.name or len(self.parameters) != len(other.parameters):
            return False
        WORK.spend(len(self.parameters))
        return self.parameters == other.parameters

    def __hash__(self) -> int:
        """Return what equal types have in common, without their parameters."""
        return hash((self.kind, self.name, len(self.parameters)))

    def __str__(self) -> str:
        """Write the type as messages about results have it."""
        WORK.spend(len(self.parameters))
        return f"{self.name}({', '.join(map(str, self.parameters))})" if self.parameters else self.name

    def formatted(self) -> str:
        """Write the type as messages of the checker have it."""
        if self.kind in _SHORT:
            return _SHORT[self.kind]
        if not self.parameters:
            return self.name
        WORK.spend(len(self.parameters))
        return f"{self.name}({', '.join(one.formatted() for one in self.parameters)})"

    @property
    def is_dynamic(self) -> bool:
        """Whether anything may stand where this is asked for."""
        return self.kind in {"dyn", "any"}


_SHORT: Final = {"any": "any", "duration": "duration", "error": "!error!", "null": "null", "timestamp": "timestamp"}
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


def list_of(element: CelType) -> CelType:
    """Return the type of lists."""
    return CelType("list", "list", (element,))


def map_of(key: CelType, value: CelType) -> CelType:
    """Return the type of maps."""
    return CelType("map", "map", (key, value))


def optional_of(value: CelType) -> CelType:
    """Return the type of optional values."""
    return CelType("opaque", OPTIONAL.name, (value,))


def type_of(one: CelType) -> CelType:
    """Return the type of a type."""
    return CelType("type", "type", (one,))


LIST: Final = list_of(DYN)
MAP: Final = map_of(DYN, DYN)
