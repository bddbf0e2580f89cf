"""Types of CEL values at run time, and checks whether a value fits a parameter type.

Source: cel-go v0.26 common/types/types.go (defaultIsAssignableRuntimeType).
"""

from __future__ import annotations

from typing import Any, Final

from policysched.cel import types
from policysched.cel.types import CelType
from policysched.cel.values.kubernetes import Address, CelQuantity, Format, Locator, Prefix, Semver
from policysched.cel.values.scalars import (
    DefaultMap,
    Duration,
    GrowingList,
    InternalError,
    JoinedList,
    Map,
    Optional,
    Timestamp,
    Uint,
)

KINDS: Final[dict[type, CelType]] = {
    bool: types.BOOL,
    bytes: types.BYTES,
    float: types.DOUBLE,
    int: types.INT,
    Uint: types.UINT,
    str: types.STRING,
    type(None): types.NULL,
    list: types.LIST,
    GrowingList: types.LIST,
    JoinedList: types.LIST,
    Map: types.MAP,
    DefaultMap: types.MAP,
    Duration: types.DURATION,
    Timestamp: types.TIMESTAMP,
    Optional: types.OPTIONAL,
    CelType: types.TYPE,
    CelQuantity: types.QUANTITY,
    Semver: types.SEMVER,
    Locator: types.URL,
    Format: types.FORMAT,
    Address: types.IP,
    Prefix: types.CIDR,
}
"""The CEL type of values of each Python class."""
LISTS: Final = frozenset({list, GrowingList, JoinedList})
MAPS: Final = frozenset({Map, DefaultMap})
GO_NAMES: Final[dict[type, str]] = {
    bool: "types.Bool",
    bytes: "types.Bytes",
    float: "types.Double",
    int: "types.Int",
    Uint: "types.Uint",
    str: "types.String",
    type(None): "types.Null",
    list: "*types.baseList",
    GrowingList: "*types.mutableList",
    JoinedList: "*types.concatList",
    Map: "*types.baseMap",
    DefaultMap: "cel.mapper",
    Duration: "types.Duration",
    Timestamp: "types.Timestamp",
    Optional: "*types.Optional",
    CelType: "*types.Type",
    CelQuantity: "cel.Quantity",
    Semver: "cel.Semver",
    Locator: "cel.URL",
    Format: "cel.Format",
    Address: "cel.IP",
    Prefix: "cel.CIDR",
}
"""The names of Go types, for error messages, by Python class."""


_UNHASHABLE: Final = frozenset({bytes, Semver, Format})


def require_hashable(key: Any) -> None:
    """Fail the evaluation if the key of a map lookup is one that Go cannot hash.

    Raises:
        InternalError: Go cannot hash the key.
    """
    if type(key) in _UNHASHABLE:
        raise InternalError(f"internal error: runtime error: hash of unhashable type {GO_NAMES[type(key)]}")


def fits(wanted: CelType, value: Any) -> bool:
    """Return whether a value fits a parameter type; of a list or map, only the first element is checked."""
    kind = wanted.kind
    if kind in {"dyn", "any", "param"}:
        return True
    if wanted.name != KINDS[type(value)].name:
        return False
    if kind == "list" and value:
        return fits(wanted.parameters[0], value[0])
    if kind == "map" and len(value):
        key = next(value.keys())
        return fits(wanted.parameters[0], key) and fits(wanted.parameters[1], value.find(key))
    return True
