"""Errors, numbers, durations, points in time, optional values and maps.

Source: cel-go v0.26 common/types; the Go library's strconv and time.
"""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

INT_MAX: Final = (1 << 63) - 1
INT_MIN: Final = -(1 << 63)
UINT_MAX: Final = (1 << 64) - 1
SECOND: Final = 10**9
"""Number of nanoseconds in a second."""
MIN_TIME, MAX_TIME = -62135596800, 253402300799
"""The first second of year 1 and the last second of year 9999. Units: seconds since 1970."""


@dataclass(frozen=True, slots=True)
class Error:
    """An evaluation error as a CEL value."""

    message: str


class InternalError(Exception):
    """Raised if the whole evaluation fails, where cel-go panics; `&&`, `||` and `?:` do not absorb it."""


NO_OVERLOAD: Final = Error("no such overload")
INT_OVERFLOW: Final = Error("integer overflow")
UINT_OVERFLOW: Final = Error("unsigned integer overflow")
TIME_OVERFLOW: Final = Error("timestamp overflow")


class Uint(int):
    """An unsigned 64-bit integer."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class Duration:
    """A duration. Units: nanoseconds, 64 bits."""

    nanoseconds: int


@dataclass(frozen=True, slots=True)
class Timestamp:
    """A timestamp in nanoseconds since 1970, with its time zone offset in seconds."""

    nanoseconds: int
    offset: int = 0


@dataclass(frozen=True, slots=True)
class Optional:
    """A CEL optional value."""

    present: bool
    value: Any = None


NONE: Final = Optional(present=False)


class GrowingList(list[Any]):
    """The result list of a loop; `+` extends it in place."""

    __slots__ = ()


class JoinedList(list[Any]):
    """Concatenation of two lists; comparing it returns an error among its elements, unlike for other lists."""

    __slots__ = ()


class Map:
    """A CEL map. Numbers of different types are different keys, but lookups also find an equal number.

    Args:
        entries: Values by the form of their keys.
        of_strings: Whether Go has a `map[string]` for it, which it searches for strings only.
    """

    __slots__ = ("entries", "of_strings")

    def __init__(self, entries: dict[Any, Any] | None = None, *, of_strings: bool = False) -> None:
        self.of_strings = of_strings
        self.entries: dict[Any, Any] = {} if entries is None else entries
        """The values by dictionary key; `key_form` converts a map key to its dictionary key."""

    def find(self, key: Any) -> Any:
        """Return the value of a key; `ABSENT` if the map does not contain the key."""
        if type(key) is str:
            return self.entries.get(key, ABSENT)
        form = key_form(key)
        if form in self.entries:
            return self.entries[form]
        for other in equal_keys(key):
            if key_form(other) in self.entries:
                return self.entries[key_form(other)]
        return ABSENT

    def contains(self, key: Any) -> bool:
        """Return whether the map contains a key."""
        return Map.find(self, key) is not ABSENT

    def keys(self) -> Iterator[Any]:
        """Return the keys of the map as CEL values."""
        return (form if type(form) is str else _key(form[1]) for form in self.entries)

    def __len__(self) -> int:
        return len(self.entries)


class DefaultMap(Map):
    """A CEL map that returns an empty map for a missing key, although it does not contain the key."""

    __slots__ = ()

    def find(self, key: Any) -> Any:
        """Return the value of a key; an empty map if this map does not contain the key."""
        found = Map.find(self, key)
        return _EMPTY if found is ABSENT else found


class _Absent:
    """Class of `ABSENT`, the result of looking up a missing key."""


ABSENT: Final = _Absent()
_EMPTY: Final = Map()


class _Held:
    """Wrapper of a map key that is compared by identity."""

    __slots__ = ("key",)

    def __init__(self, key: Any) -> None:
        self.key = key

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Held) and self.key is other.key

    def __hash__(self) -> int:
        return id(self.key)


def _key(held: Any) -> Any:
    return held.key if type(held) is _Held else held


def key_form(key: Any) -> Any:
    """Return the dictionary key for a map key: a string itself, otherwise the type paired with the value."""
    if type(key) is str:
        return key
    kind = type(key)
    if kind in {bool, int, Uint, float, bytes, type(None), Duration}:
        return kind, key
    return id(key), _Held(key)


def equal_keys(key: Any) -> Iterator[Any]:
    """Return the map keys of other types that equal a number, such as `1u` for `1`."""
    kind = type(key)
    if kind is float:
        if math.isfinite(key) and key.is_integer():
            if INT_MIN < key < INT_MAX:
                yield int(key)
            if 0 <= key < 1 << 64:
                yield Uint(key)
    elif kind is int and key >= 0:
        yield Uint(key)
    elif kind is Uint and key <= INT_MAX:
        yield int(key)


_FLOAT: Final = re.compile(
    r"[+-]?(?:(?:[0-9]++(?:\.[0-9]*+)?|\.[0-9]++)(?:[eE][+-]?[0-9]++)?|(?i:inf(?:inity)?))|(?i:nan)"
)
_HEX: Final = re.compile(r"[+-]?0[xX](?:[0-9a-fA-F]++(?:\.[0-9a-fA-F]*+)?|\.[0-9a-fA-F]++)[pP][+-]?[0-9]++")
_SEPARATOR: Final = re.compile(r"(?<=[0-9])_(?=[0-9])")
_HEX_SEPARATOR: Final = re.compile(r"(?<=[0-9a-fA-FxX])_(?=[0-9a-fA-F])")


def float_of(text: str) -> float | None:
    """Parse a number like Go's ParseFloat; None if it is invalid."""
    if "_" in text:
        text = (_HEX_SEPARATOR if "x" in text or "X" in text else _SEPARATOR).sub("", text)
    if _FLOAT.fullmatch(text):
        value = float(text)
    elif _HEX.fullmatch(text):
        try:
            value = float.fromhex(text)
        except OverflowError:
            return None
    else:
        return None
    if math.isinf(value) and text[-1] not in "fFyY":
        return None
    return value
