"""Access to fields and elements of CEL values: plain, optional, and by `has()`.

Source: cel-go v0.26 interpreter/attributes.go (refQualify, applyQualifiers).
"""

from __future__ import annotations

from typing import Any, Final

from policysched.cel.values.kinds import KINDS, LISTS, MAPS
from policysched.cel.values.scalars import ABSENT, INT_MAX, INT_MIN, NONE, DefaultMap, Error, Map, Optional, Uint
from policysched.cel.values.texts import shown

_NOTHING: Final = object()


def look_up(value: Any, key: Any, *, chained: bool) -> Any:
    """Return a field of a map or an element of a list; an optional value if `value` is optional.

    Args:
        value: The value, which can be an error.
        key: A string, a number or a bool.
        chained: Whether the value is itself a field or an element.
    """
    kind = type(value)
    if kind is Map or kind is DefaultMap:
        found = value.find(key)
        return Error(f"no such key: {shown(key)}") if found is ABSENT else found
    if kind is Error:
        return value
    if kind is Optional:
        return look_up_optional(value, key, chained=chained)
    return _element(value, key)


def look_up_optional(value: Any, key: Any, *, chained: bool) -> Any:
    """Return a field or element as an optional value; `optional.none()` if it is missing."""
    value = _unwrapped(value, chained=chained)
    if value is NONE or type(value) is Error:
        return value
    found = _present(value, key)
    if type(found) is Error:
        return found
    return NONE if found is _NOTHING else Optional(present=True, value=found)


def has_field(value: Any, key: str, *, chained: bool) -> Any:
    """Return whether a value has a field, for `has()`."""
    value = _unwrapped(value, chained=chained)
    if type(value) is Error:
        return value
    if value is NONE:
        return False
    found = _present(value, key)
    return found if type(found) is Error else found is not _NOTHING


def _unwrapped(value: Any, *, chained: bool) -> Any:
    if type(value) is not Optional:
        return value
    if not value.present:
        return NONE
    inner = value.value
    return Map(inner.entries, of_strings=True) if type(inner) is DefaultMap and not chained else inner


def _present(value: Any, key: Any) -> Any:
    if type(value) in MAPS:
        found = value.find(key)
        return _NOTHING if found is ABSENT else found
    if type(value) not in LISTS:
        return _NOTHING
    place = _place(key)
    if isinstance(place, Error):
        return place
    return value[place] if 0 <= place < len(value) else _NOTHING


def _element(value: Any, key: Any) -> Any:
    if type(value) not in LISTS:
        return Error(f"no such key: {shown(key)}")
    place = _place(key)
    if isinstance(place, Error):
        return place
    return value[place] if 0 <= place < len(value) else Error(f"index out of bounds: {shown(key)}")


def _place(key: Any) -> int | Error:
    kind = type(key)
    if kind is int:
        return int(key)
    if kind is Uint and key <= INT_MAX:
        return int(key)
    if kind is float and key.is_integer() and INT_MIN < key < INT_MAX:
        return int(key)
    if kind in {Uint, float}:
        return Error(f"unsupported index value {shown(key)} in list")
    return Error(f"unsupported index type '{KINDS[kind]}' in list")
