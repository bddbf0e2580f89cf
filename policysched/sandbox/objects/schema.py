"""Structural schemas of custom resources: pruning, defaults and validation.

It knows OpenAPI schemas and no resource. Pruning and defaulting change the freshly decoded object in place and
come first, as in the API server, so that validation sees what would be stored.
"""

from __future__ import annotations

import copy
import json
import re
from typing import TYPE_CHECKING, Any

from policysched.sandbox.objects.errors import Cause, required, shown, unsupported, wrong

if TYPE_CHECKING:
    from collections.abc import Iterator

Json = dict[str, Any]
_TYPES: dict[str, tuple[type, ...]] = {
    "string": (str,),
    "boolean": (bool,),
    "integer": (int,),
    "number": (int, float),
    "object": (dict,),
    "array": (list,),
}
_KEEP = "x-kubernetes-preserve-unknown-fields"
_ROOT = frozenset({"apiVersion", "kind", "metadata"})


def prune(obj: Json, schema: Json) -> list[str]:
    """Drop the fields that the schema does not have and return their paths."""
    unknown: list[str] = []
    body = {name: value for name, value in obj.items() if name not in _ROOT}
    _prune(body, schema, "", unknown)
    for name in set(obj) - _ROOT - set(body):
        del obj[name]
    return unknown


def _prune(value: Any, schema: Json, path: str, unknown: list[str]) -> None:
    if isinstance(value, list):
        for index, item in enumerate(value):
            _prune(item, schema.get("items") or {}, f"{path}[{index}]", unknown)
    elif isinstance(value, dict):
        _prune_object(value, schema, path, unknown)


def _prune_object(value: Json, schema: Json, path: str, unknown: list[str]) -> None:
    known, more = schema.get("properties") or {}, schema.get("additionalProperties")
    for name in list(value):
        place = f"{path}.{name}" if path else name
        if name in known:
            _prune(value[name], known[name], place, unknown)
        elif isinstance(more, dict):
            _prune(value[name], more, place, unknown)
        elif not schema.get(_KEEP) and more is not True:
            unknown.append(place)
            del value[name]


def default(value: Any, schema: Json) -> None:
    """Fill in the schema's defaults, at every depth where the parent is there."""
    if isinstance(value, list):
        for item in value:
            default(item, schema.get("items") or {})
    elif isinstance(value, dict):
        _default_object(value, schema)


def _default_object(value: Json, schema: Json) -> None:
    for name, inner in (schema.get("properties") or {}).items():
        if "default" in inner and value.get(name) is None:
            value[name] = copy.deepcopy(inner["default"])
        if name in value:
            default(value[name], inner)
    more = schema.get("additionalProperties")
    if isinstance(more, dict):
        for item in value.values():
            default(item, more)


def validate(value: Any, schema: Json, path: str = "") -> Iterator[Cause]:
    """Check a value; only the first fault of each field is reported."""
    if value is None:
        if schema.get("nullable"):
            return
        yield wrong(path, "null", f'{path} in body must be of type {schema.get("type")}: "null"')
        return
    fault = _type_fault(value, schema, path)
    if fault:
        yield fault
        return
    yield from _value_faults(value, schema, path)
    if isinstance(value, dict):
        yield from _object(value, schema, path)
    elif isinstance(value, list):
        yield from _array(value, schema, path)


def _type_fault(value: Any, schema: Json, path: str) -> Cause | None:
    if schema.get("x-kubernetes-int-or-string"):
        right = isinstance(value, int | str) and not isinstance(value, bool)
        name = "integer,string"
    else:
        name = schema.get("type", "")
        wanted = _TYPES.get(name)
        right = wanted is None or (isinstance(value, wanted) and (not isinstance(value, bool) or bool in wanted))
    if right:
        return None
    found = _name(value)
    text = f'Invalid value: "{found}": {path} in body must be of type {name}: "{found}"'
    return Cause(path, "FieldValueTypeInvalid", text)


def _name(value: object) -> str:
    match value:
        case bool():
            return "boolean"
        case int():
            return "integer"
        case float():
            return "number"
        case str():
            return "string"
        case list():
            return "array"
    return "object"


def _value_faults(value: Any, schema: Json, path: str) -> Iterator[Cause]:
    if "enum" in schema and value not in schema["enum"]:
        yield unsupported(path, value, schema["enum"])
    if isinstance(value, str):
        yield from _string(value, schema, path)
    elif isinstance(value, int | float) and not isinstance(value, bool):
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
    if pattern is not None and not re.search(pattern, value):
        yield wrong(path, value, f"{path} in body should match '{pattern}'")


def _object(value: Json, schema: Json, path: str) -> Iterator[Cause]:
    for name in schema.get("required") or ():
        if name not in value:
            yield required(f"{path}.{name}" if path else name)
    known, more = schema.get("properties") or {}, schema.get("additionalProperties")
    for name, item in value.items():
        place = f"{path}.{name}" if path else name
        inner = known.get(name, more)
        if isinstance(inner, dict) and (path or name not in _ROOT):
            yield from validate(item, inner, place)


def _array(value: list[Any], schema: Json, path: str) -> Iterator[Cause]:
    most, least = schema.get("maxItems"), schema.get("minItems")
    if most is not None and len(value) > most:
        text = f"Too many: {len(value)}: must have at most {most} items"
        yield Cause(path, "FieldValueTooMany", text)
    if least is not None and len(value) < least:
        yield wrong(path, len(value), f"{path} in body should have at least {least} items")
    for index, item in enumerate(value):
        yield from validate(item, schema.get("items") or {}, f"{path}[{index}]")
    yield from _duplicates(value, schema, path)


def _duplicates(value: list[Any], schema: Json, path: str) -> Iterator[Cause]:
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
