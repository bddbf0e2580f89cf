"""Application of OpenAPI schemas to values: unknown fields, defaults, validation, merge keys of lists.

Schemas are structural OpenAPI schemas, of custom resources or made from the field table. Pruning and defaulting change
the decoded object in place and come first, as in the API server, so validation sees the object that would be stored.
"""

from __future__ import annotations

import copy
import json
import re
from collections.abc import Callable, Iterator
from math import inf
from typing import Any

from policysched.apimachinery import Json
from policysched.apimachinery.errors import Cause, StatusError, required, shown, unsupported, wrong
from policysched.apimachinery.resources import DEFAULTS, GO_TYPE, STRUCT

_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "object": (dict,),
    "array": (list,),
}
_NESTED = (dict, list)
_SCALARS = {"string": str, "boolean": bool, "integer": int}
_NAMES = {bool: "boolean", int: "integer", float: "number", str: "string", list: "array"}
_GO_NAMES = _NAMES | {bool: "bool", int: "number"}
_KEEP = "x-kubernetes-preserve-unknown-fields"
_ROOT = frozenset({"apiVersion", "kind", "metadata"})
_QUANTITY = re.compile(r"[+-]?(\d+(\.\d*)?|\.\d+)([eE][+-]?\d+|[numkMGTPE]|[KMGTPE]i)?")
_QUANTITY_TEXT = "^([+-]?[0-9.]+)([eEinumkKMGTP]*[-+]?[0-9]*)$"
_INDEX = re.compile(r"\[\d+\]")
_ONE_CHARACTER = re.compile(r"\\.|\[\^?\]?(?:[^\]\\]|\\.?)*(?:\]|\Z)", re.DOTALL)
_REPEATED_GROUP = re.compile(r"\)[*+{]|\(\?\w*x")  # with the flag x, blanks may stand between them
_REPEAT = re.compile(r"[*+]|\{\d*,\d*\}")
_CHOICE = re.compile(r"(?<!\()\?|\|")
_MOST_WAYS = 100_000


def member(schema: Json, name: str) -> Json:
    """Return the schema of an object's field, or of a map's values; empty if the schema has no such field."""
    found = (schema.get("properties") or {}).get(name) or schema.get("additionalProperties")
    return found if isinstance(found, dict) else {}


def merge_keys(schema: Json) -> tuple[str, ...] | None:
    """Return the keys by which a list is merged; empty for a set, None if a patch replaces the list."""
    if schema.get("x-kubernetes-patch-strategy") == "merge":
        key = schema.get("x-kubernetes-patch-merge-key")
        return (key,) if key else ()
    if schema.get("x-kubernetes-list-type") in ("map", "set"):
        return tuple(schema.get("x-kubernetes-list-map-keys") or ())
    return None


def _conforms(value: Any, schema: Json) -> bool:
    """Return whether a value has the schema's type."""
    if schema.get("x-kubernetes-int-or-string"):
        return isinstance(value, int | str) and not isinstance(value, bool)
    if "type" not in schema:
        return "oneOf" not in schema or any(_conforms(value, each) for each in schema["oneOf"])
    wanted = _TYPES.get(schema["type"])
    return wanted is None or (isinstance(value, wanted) and (not isinstance(value, bool) or bool in wanted))


def prune(obj: Json, schema: Json) -> list[str]:
    """Remove the fields of an object that its schema does not have, and return their paths, such as `spec.nodName`.

    Built-in types are decoded as in Go: null means "not set", and a value of the wrong type is an error. The metadata
    of a custom object is left unchanged, because its schema does not describe it.

    Raises:
        StatusError: status 400, a value has the wrong type.
    """
    walk = _Pruning()
    if STRUCT in schema:
        walk.members(obj, schema, "")
        return walk.unknown
    body = {name: value for name, value in obj.items() if name not in _ROOT}
    walk.members(body, schema, "")
    for name in set(obj) - _ROOT - set(body):
        del obj[name]
    return walk.unknown


class _Pruning:
    """Walks an object and removes unknown fields."""

    def __init__(self) -> None:
        self.unknown: list[str] = []
        self._struct = ""

    def members(self, value: Json, schema: Json, path: str) -> None:
        """Remove unknown fields of an object, or unknown fields inside the values of a map."""
        known, more = schema.get("properties") or {}, schema.get("additionalProperties")
        for name in list(value):
            inner = known.get(name, more)
            if isinstance(inner, dict) and type(value[name]) is _SCALARS.get(inner.get("type", "")):
                continue
            place = f"{path}.{name}" if path else name
            if not isinstance(inner, dict):
                if more is not True and not schema.get(_KEEP):
                    self.unknown.append(place)
                    del value[name]
            elif STRUCT not in schema:
                # The Go decoder does not name the keys of maps of scalars.
                scalar = GO_TYPE in inner and inner.get("type") not in ("object", "array")
                self._value(value, name, inner, path if scalar else place)
            elif value[name] is None:
                del value[name]
            else:
                self._struct = schema[STRUCT]
                self._value(value, name, inner, place)

    def _value(self, holder: Any, at: Any, schema: Json, path: str) -> None:
        """Remove unknown fields inside one value of an object, map or list."""
        value = holder[at]
        if GO_TYPE in schema and not _conforms(value, schema):
            text = f"Go struct field {self._struct.partition('.')[2]}.{_INDEX.sub('', path)} of type {schema[GO_TYPE]}"
            raise StatusError(400, f"json: cannot unmarshal {_GO_NAMES.get(type(value), 'object')} into {text}")
        if isinstance(value, dict):
            self.members(value, schema, path)
        elif isinstance(value, list) and ("items" in schema or not schema.get(_KEEP)):
            for index in range(len(value)):
                self._value(value, index, schema.get("items") or {}, f"{path}[{index}]")
        elif schema.get(GO_TYPE) == "quantity":
            holder[at] = str(value)
            if not _QUANTITY.fullmatch(str(value)):
                raise StatusError(400, f"quantities must match the regular expression '{_QUANTITY_TEXT}'")


def default(value: Any, schema: Json) -> None:
    """Set the defaults of a schema in a value, wherever the parent object exists."""
    if isinstance(value, list):
        for item in value:
            default(item, schema.get("items") or {})
    elif isinstance(value, dict):
        known, more = schema.get("properties") or {}, schema.get("additionalProperties")
        given = schema.get(DEFAULTS, {}) if STRUCT in schema else _defaults(known)
        for name, item in given.items():
            if value.get(name) is None:
                value[name] = copy.deepcopy(item) if isinstance(item, _NESTED) else item
        for name, item in value.items():
            inner = known.get(name, more) if isinstance(item, _NESTED) else None
            if isinstance(inner, dict):
                default(item, inner)


def _defaults(properties: Json) -> Json:
    return {name: inner["default"] for name, inner in properties.items() if "default" in inner}


def validate(value: Any, schema: Json, path: str = "") -> Iterator[Cause]:
    """Yield the validation errors of a value, at most one per field."""
    wanted = "integer,string" if schema.get("x-kubernetes-int-or-string") else schema.get("type")
    if value is None:
        if not schema.get("nullable"):
            yield wrong(path, "null", f'{path} in body must be of type {wanted}: "null"')
        return
    if not _conforms(value, schema):
        found = _NAMES.get(type(value), "object")
        text = f'Invalid value: "{found}": {path} in body must be of type {wanted}: "{found}"'
        yield Cause(path, "FieldValueTypeInvalid", text)
        return
    if "enum" in schema and value not in schema["enum"]:
        yield unsupported(path, value, schema["enum"])
    for kind, check in _CHECKS.items():
        if isinstance(value, kind) and not isinstance(value, bool):
            yield from check(value, schema, path)


def _number(value: float, schema: Json, path: str) -> Iterator[Cause]:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and value < low:
        yield wrong(path, value, f"{path} in body should be greater than or equal to {low}")
    if high is not None and value > high:
        yield wrong(path, value, f"{path} in body should be less than or equal to {high}")


def _string(value: str, schema: Json, path: str) -> Iterator[Cause]:
    longest, shortest, pattern = schema.get("maxLength"), schema.get("minLength"), schema.get("pattern")
    if longest is not None and len(value) > longest:
        yield Cause(path, "FieldValueTooLong", f"Too long: may not be more than {longest} bytes")
    if shortest is not None and len(value) < shortest:
        yield wrong(path, value, f"{path} in body should be at least {shortest} chars long")
    if pattern is not None and _ways(pattern, len(value)) <= _MOST_WAYS and not _found(pattern, value):
        yield wrong(path, value, f"{path} in body should match '{pattern}'")


def _ways(pattern: str, length: int) -> float:
    """Return an upper bound on the number of ways in which a regex can match a text of `length` characters.

    The API server's expressions run in linear time. Python's try one way after another, so `^(a+)+$` takes minutes for
    26 characters. Each place with a choice multiplies the ways; a repeated group makes them unbounded.
    """
    plain = _ONE_CHARACTER.sub("x", pattern)
    if _REPEATED_GROUP.search(plain):
        return inf
    repeats, choices = len(_REPEAT.findall(plain)) + (not plain.startswith("^")), len(_CHOICE.findall(plain))
    return (length + 1.0) ** repeats * 2.0**choices if repeats + choices < 30 else inf


def _found(pattern: str, value: str) -> bool:
    """Return whether a pattern matches a part of a text; True if Python cannot compile the pattern."""
    try:
        return re.search(pattern, value) is not None
    except re.error:
        return True


def _object(value: Json, schema: Json, path: str) -> Iterator[Cause]:
    for name in schema.get("required") or ():
        if name not in value:
            yield required(f"{path}.{name}" if path else name)
    known, more = schema.get("properties") or {}, schema.get("additionalProperties")
    for name, item in value.items():
        inner = known.get(name, more)
        if isinstance(inner, dict) and (path or name not in _ROOT):
            yield from validate(item, inner, f"{path}.{name}" if path else name)


def _array(value: list[Any], schema: Json, path: str) -> Iterator[Cause]:
    most, least = schema.get("maxItems"), schema.get("minItems")
    if most is not None and len(value) > most:
        yield Cause(path, "FieldValueTooMany", f"Too many: {len(value)}: must have at most {most} items")
    if least is not None and len(value) < least:
        yield wrong(path, len(value), f"{path} in body should have at least {least} items")
    for index, item in enumerate(value):
        yield from validate(item, schema.get("items") or {}, f"{path}[{index}]")
    kind, keys = schema.get("x-kubernetes-list-type"), schema.get("x-kubernetes-list-map-keys") or ()
    if kind not in ("map", "set"):
        return
    seen: set[str] = set()
    for index, item in enumerate(value):
        key = {name: item.get(name) for name in keys} if kind == "map" and isinstance(item, dict) else item
        written = json.dumps(key, sort_keys=True)
        if written in seen:
            yield Cause(f"{path}[{index}]", "FieldValueDuplicate", f"Duplicate value: {shown(key)}")
        seen.add(written)


_CHECKS: dict[type, Callable[[Any, Json, str], Iterator[Cause]]] = {
    str: _string,
    int: _number,
    float: _number,
    dict: _object,
    list: _array,
}
