"""Types as the checker has them and as messages name them.

Source: cel-go v0.26 common/types/types.go, checker/format.go.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True)
class Type:
    """A type: its kind, the name that values of it have at run time, and its parameters."""

    kind: str
    name: str
    parameters: tuple[Type, ...] = ()

    def __str__(self) -> str:
        """Write the type as messages about results have it."""
        return f"{self.name}({', '.join(map(str, self.parameters))})" if self.parameters else self.name

    def formatted(self) -> str:
        """Write the type as messages of the checker have it."""
        if self.kind in _SHORT:
            return _SHORT[self.kind]
        if not self.parameters:
            return self.name
        return f"{self.name}({', '.join(one.formatted() for one in self.parameters)})"

    @property
    def is_dynamic(self) -> bool:
        """Whether anything may stand where this is asked for."""
        return self.kind in {"dyn", "any"}


_SHORT: Final = {"any": "any", "duration": "duration", "error": "!error!", "null": "null", "timestamp": "timestamp"}
BOOL: Final = Type("bool", "bool")
BYTES: Final = Type("bytes", "bytes")
DOUBLE: Final = Type("double", "double")
INT: Final = Type("int", "int")
UINT: Final = Type("uint", "uint")
STRING: Final = Type("string", "string")
NULL: Final = Type("null", "null_type")
DYN: Final = Type("dyn", "dyn")
ANY: Final = Type("any", "google.protobuf.Any")
ERROR: Final = Type("error", "error")
DURATION: Final = Type("duration", "google.protobuf.Duration")
TIMESTAMP: Final = Type("timestamp", "google.protobuf.Timestamp")
TYPE: Final = Type("type", "type")
OPTIONAL: Final = Type("opaque", "optional_type")
QUANTITY: Final = Type("struct", "kubernetes.Quantity")
SEMVER: Final = Type("struct", "kubernetes.Semver")
URL: Final = Type("struct", "kubernetes.URL")
FORMAT: Final = Type("struct", "kubernetes.NamedFormat")
DEVICE: Final = Type("struct", "kubernetes.DRADevice")
IP: Final = Type("opaque", "net.IP")
CIDR: Final = Type("opaque", "net.CIDR")


def list_of(element: Type) -> Type:
    """Return the type of lists."""
    return Type("list", "list", (element,))


def map_of(key: Type, value: Type) -> Type:
    """Return the type of maps."""
    return Type("map", "map", (key, value))


def optional_of(value: Type) -> Type:
    """Return the type of optional values."""
    return Type("opaque", OPTIONAL.name, (value,))


def type_of(one: Type) -> Type:
    """Return the type of a type."""
    return Type("type", "type", (one,))


LIST: Final = list_of(DYN)
MAP: Final = map_of(DYN, DYN)
