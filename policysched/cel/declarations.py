"""Names that a CEL expression can use: functions with their overloads, types, and the variable `device`.

functions.txt lists the functions, one overload per line: the name, with a leading dot for a method, the name of the
overload, the types of its arguments and of its result.

Source: cel-go v0.26 and v0.29 common/stdlib, ext, cel/library.go; k8s.io/apiserver v0.36 pkg/cel/library,
pkg/cel/environment; k8s.io/dynamic-resource-allocation v0.36 and v0.37 cel/compile.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from functools import lru_cache
from importlib import resources
from typing import Final

from policysched.cel import types
from policysched.cel.types import CelType, list_of, map_of, type_of


@dataclass(frozen=True, slots=True)
class Overload:
    """One signature of a CEL function: argument types and result type."""

    name: str
    member: bool
    arguments: tuple[CelType, ...]
    result: CelType
    parameters: tuple[str, ...]
    """The type parameters (such as `T` in `list(T)`) in the arguments and the result."""


_NAMED: Final = {
    types.SHORT_NAMES.get(one.kind, one.name): one
    for one in (
        *(types.BOOL, types.BYTES, types.DOUBLE, types.INT, types.UINT, types.STRING, types.NULL, types.DYN),
        *(types.DURATION, types.TIMESTAMP, types.TYPE, types.IP, types.CIDR),
    )
}


ONLY_STORED: Final = frozenset(("includes",))
"""Functions that an API server with default feature gates allows in stored expressions, but not in new ones."""
_REMOVED: Final = frozenset(("int64_to_duration",))
"""The overloads that earlier versions have, but cel-go 0.29 does not."""
_CHANGED: Final = frozenset(("lists_range", "string_index_of_string_int", "string_last_index_of_string_int"))
"""The overloads that cel-go 0.29 evaluates differently than earlier versions."""


@lru_cache(maxsize=2)
def functions(*, cel_0_29: bool = False) -> dict[str, tuple[Overload, ...]]:
    """Return all CEL functions of a cel-go version, each with its overloads in order of precedence."""
    if cel_0_29:
        return {name: tuple(_in_0_29(overloads)) for name, overloads in functions().items()}
    text = resources.files("policysched.cel").joinpath("functions.txt").read_text(encoding="utf-8")
    found: dict[str, list[Overload]] = {}
    for line in text.splitlines():
        name, overload, arguments, result = line.split("\t")
        takes = tuple(_parsed(one) for one in arguments.split("; ")) if arguments else ()
        gives = _parsed(result)
        parameters = tuple(sorted({one for part in (*takes, gives) for one in _parameters(part)}))
        found.setdefault(name.lstrip("."), []).append(
            Overload(overload, name.startswith("."), takes, gives, parameters)
        )
    return {name: tuple(overloads) for name, overloads in found.items()}


def _in_0_29(overloads: Iterable[Overload]) -> Iterator[Overload]:
    for one in overloads:
        if one.name in _CHANGED:
            yield replace(one, name=f"{one.name}_0_29")
        elif one.name not in _REMOVED:
            yield one


def _parsed(text: str) -> CelType:
    if text in _NAMED:
        return _NAMED[text]
    if len(text) == 1:
        return CelType("param", text)
    if not text.endswith(")"):
        return CelType("struct", text)
    name, _, inside = text[:-1].partition("(")
    parts = [_parsed(part) for part in _split(inside)]
    kind = name if name in {"list", "map", "type"} else "opaque"
    return CelType(kind, name, tuple(parts))


def _split(text: str) -> list[str]:
    parts, depth, start = [], 0, 0
    for place, character in enumerate(text):
        depth += {"(": 1, ")": -1}.get(character, 0)
        if character == "," and not depth:
            parts.append(text[start:place])
            start = place + 2
    return [*parts, text[start:]]


def _parameters(one: CelType) -> set[str]:
    if one.kind == "param":
        return {one.name}
    return {name for part in one.parameters for name in _parameters(part)}


_ANYTHING: Final = CelType("param", "A")
TYPE_NAMES: Final[dict[str, CelType]] = {
    "bool": types.BOOL,
    "bytes": types.BYTES,
    "double": types.DOUBLE,
    "google.protobuf.Duration": types.DURATION,
    "google.protobuf.Timestamp": types.TIMESTAMP,
    "int": types.INT,
    "list": list_of(_ANYTHING),
    "map": map_of(_ANYTHING, CelType("param", "B")),
    "null_type": types.NULL,
    "string": types.STRING,
    "type": types.TYPE,
    "uint": types.UINT,
    "net.IP": types.IP,
    "net.CIDR": types.CIDR,
    "optional_type": types.OPTIONAL,
    "kubernetes.DRADevice": types.DEVICE,
    "duration": types.DURATION,
    "timestamp": types.TIMESTAMP,
}
"""The types that an expression can name."""
_TYPES_0_29: Final = {**TYPE_NAMES, "list": list_of(types.DYN), "map": map_of(types.DYN, types.DYN)}
RUNTIME_TYPES: Final = {
    name: of for name, of in TYPE_NAMES.items() if name not in {types.DEVICE.name, "duration", "timestamp"}
}
"""The types that an expression can use as values."""
FIELDS: Final[dict[str, CelType]] = {
    "driver": types.STRING,
    "allowMultipleAllocations": types.BOOL,
    "attributes": map_of(types.STRING, map_of(types.STRING, types.ANY)),
    "capacity": map_of(types.STRING, map_of(types.STRING, types.QUANTITY)),
}
"""The types of the fields of `device`, if each attribute has a single value."""
FIELDS_WITH_LISTS: Final = {**FIELDS, "attributes": map_of(types.STRING, map_of(types.STRING, types.DYN))}
"""The types of the fields of `device`, if an attribute can have a list of values."""
VARIABLE: Final = "device"


def declared(name: str, *, cel_0_29: bool) -> CelType | None:
    """Return the type of a name that expressions can use; None for an unknown name."""
    if name == VARIABLE:
        return types.DEVICE
    found = _TYPES_0_29.get(name) if cel_0_29 else TYPE_NAMES.get(name)
    return None if found is None else type_of(found)
