"""Strict decoding of built-in kinds: drops unknown fields and reports them, refuses values of a wrong type.

It knows the field table and no defaults. It changes the object it is given, because that object was just
decoded from a request and nobody else holds it.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from policysched.sandbox.objects.errors import ApiError
from policysched.sandbox.objects.fieldtypes import fields

if TYPE_CHECKING:
    from policysched.sandbox.objects.fieldtypes import Type

_QUANTITY = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+|[numkMGTPE]|[KMGTPE]i)?")
_QUANTITY_TEXT = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"
_INDEX = re.compile(r"\[\d+\]")
_CONTAINERS: dict[str, Any] = {"struct": dict, "map": dict, "list": list}
_ACCEPTED: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "bool": (bool,),
    "int": (int,),
    "float": (int, float),
    "bytes": (str,),
    "quantity": (str, int, float),
    "time": (str,),
    "microtime": (str,),
    "duration": (str,),
    "intorstring": (int, str),
}
_GO = {"string": "string", "bool": "bool", "int": "int32", "float": "float64", "bytes": "[]uint8"}


@dataclass(slots=True)
class _Walk:
    """What a walk over an object finds, and the struct it is in."""

    unknown: list[str]
    struct: str = ""

    def refuse(self, value: object, path: str, kind: Type) -> ApiError:
        place = f"{self.struct.partition('.')[2]}.{_INDEX.sub('', path)}"
        text = f"json: cannot unmarshal {_json_name(value)} into Go struct field {place} of type {_go(kind)}"
        return ApiError(400, text)


def prune(value: dict[str, Any], kind: Type) -> list[str]:
    """Drop what the type does not have and return the paths dropped, `spec.nodName`."""
    walk = _Walk([])
    _struct(value, kind.name, "", walk)
    return walk.unknown


def _struct(value: dict[str, Any], struct: str, path: str, walk: _Walk) -> None:
    table = fields(struct)
    for name in list(value):
        place = f"{path}.{name}" if path else name
        row = table.get(name)
        if row is None:
            walk.unknown.append(place)
            del value[name]
        elif value[name] is None:
            # The Go decoder reads null as "not set".
            del value[name]
        else:
            walk.struct = struct
            _value(value, name, row.type, place, walk)


def _value(holder: Any, at: Any, kind: Type, path: str, walk: _Walk) -> None:
    value: Any = holder[at]
    wanted = _CONTAINERS.get(kind.shape)
    if wanted is None:
        _scalar(holder, at, kind, path, walk)
        return
    if not isinstance(value, wanted):
        raise walk.refuse(value, path, kind)
    if kind.item is None:
        _struct(value, kind.name, path, walk)
        return
    for key in range(len(value)) if isinstance(value, list) else value:
        place = f"{path}[{key}]" if isinstance(value, list) else _member(path, key, kind.item)
        _value(value, key, kind.item, place, walk)


def _member(path: str, key: Any, item: Type) -> str:
    """Name a map's value: scalars are reported under the map, as the Go decoder does."""
    return f"{path}.{key}" if item.shape in _CONTAINERS else path


def _scalar(holder: Any, at: Any, kind: Type, path: str, walk: _Walk) -> None:
    value, accepted = holder[at], _ACCEPTED.get(kind.shape)
    if accepted is None:
        return
    if not isinstance(value, accepted) or (isinstance(value, bool) and bool not in accepted):
        raise walk.refuse(value, path, kind)
    if kind.shape == "quantity":
        holder[at] = str(value)
        if not _QUANTITY.fullmatch(str(value)):
            raise ApiError(400, f"quantities must match the regular expression '{_QUANTITY_TEXT}'")


def _go(kind: Type) -> str:
    match kind.shape:
        case "list" if kind.item:
            return f"[]{_go(kind.item)}"
        case "map" if kind.item:
            return f"map[string]{_go(kind.item)}"
        case "struct":
            return f"v1.{kind.name.partition('.')[2]}"
    return _GO.get(kind.shape, kind.shape)


def _json_name(value: object) -> str:
    match value:
        case bool():
            return "bool"
        case str():
            return "string"
        case int() | float():
            return "number"
        case list():
            return "array"
    return "object"
