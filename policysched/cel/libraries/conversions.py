"""CEL functions that convert values between types, such as `int()` and `string()`.

Source: cel-go v0.26 common/types (ConvertToType of each type), common/types/overflow.go.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from typing import Any, Final

from policysched.cel.types import CelType
from policysched.cel.values.kinds import KINDS
from policysched.cel.values.scalars import (
    INT_MAX,
    INT_MIN,
    INT_OVERFLOW,
    MAX_TIME,
    MIN_TIME,
    SECOND,
    TIME_OVERFLOW,
    UINT_MAX,
    UINT_OVERFLOW,
    Duration,
    Error,
    Timestamp,
    Uint,
    float_of,
)
from policysched.cel.values.texts import double_text, duration_text, timestamp_text
from policysched.cel.values.times import duration_of, timestamp_of

_INT: Final = re.compile(r"[+-]?[0-9]+")
_UINT: Final = re.compile(r"[0-9]+")
_TRUE: Final = frozenset({"1", "t", "T", "TRUE", "true", "True"})
_FALSE: Final = frozenset({"0", "f", "F", "FALSE", "false", "False"})
_LONGEST: Final = 400


def refused(value: Any, name: str) -> Error:
    """Return the error that a conversion function gives for a value that it does not accept."""
    return Error(f"type conversion error from '{KINDS[type(value)]}' to '{name}'")


def _identity(value: Any) -> Any:
    return value


def _bool_of_text(text: str) -> Any:
    if text in _TRUE or text in _FALSE:
        return text in _TRUE
    return refused(text, "bool")


def _bytes_of_text(text: str) -> bytes:
    return text.encode(errors="surrogateescape")


def _number_of_text(pattern: re.Pattern[str], low: int, high: int, make: type[int]) -> Callable[[str], Any]:
    def convert(text: str) -> Any:
        digits = text.lstrip("+-").lstrip("0")
        if not pattern.fullmatch(text) or len(digits) > _LONGEST:
            return refused(text, "int" if make is int else "uint")
        value = int(text)
        return make(value) if low <= value <= high else refused(text, "int" if make is int else "uint")

    return convert


def _double_of_text(text: str) -> Any:
    value = float_of(text)
    return refused(text, "double") if value is None else value


def _int_of_double(value: float) -> Any:
    if not math.isfinite(value) or value <= INT_MIN or value >= float(INT_MAX):
        return INT_OVERFLOW
    return int(value)


def _uint_of_double(value: float) -> Any:
    return Uint(value) if math.isfinite(value) and 0 <= value < 2.0**64 else UINT_OVERFLOW


def _int_of_uint(value: Uint) -> Any:
    return int(value) if value <= INT_MAX else INT_OVERFLOW


def _uint_of_int(value: int) -> Any:
    return Uint(value) if value >= 0 else UINT_OVERFLOW


def _int_of_timestamp(value: Timestamp) -> int:
    return value.nanoseconds // SECOND


def _duration_of_text(text: str) -> Any:
    value = duration_of(text)
    return refused(text, "google.protobuf.Duration") if value is None else value


def _timestamp_of_text(text: str) -> Any:
    value = timestamp_of(text)
    if value is None:
        return refused(text, "google.protobuf.Timestamp")
    return value if MIN_TIME <= value.nanoseconds // SECOND <= MAX_TIME else TIME_OVERFLOW


def _timestamp_of_int(value: int) -> Any:
    return Timestamp(value * SECOND) if MIN_TIME <= value <= MAX_TIME else TIME_OVERFLOW


def _duration_of_int(value: int) -> Any:
    return refused(value, "google.protobuf.Duration")


def text_of_bytes(value: bytes) -> Any:
    """Return bytes decoded as UTF-8, for `string(bytes)`."""
    try:
        return value.decode()
    except UnicodeDecodeError:
        return Error("invalid UTF-8 in bytes, cannot convert to string")


TEXTS: Final[dict[type, Callable[[Any], Any]]] = {
    str: _identity,
    bool: lambda value: "true" if value else "false",
    bytes: text_of_bytes,
    float: lambda value: double_text(value, 6),
    Duration: duration_text,
    int: str,
    Timestamp: timestamp_text,
    Uint: lambda value: str(int(value)),
    type(None): lambda _: "null",
    CelType: lambda value: value.name,
}
"""The functions that implement `string()`, by the Python class of the argument."""

OVERLOADS: Final[dict[str, Callable[..., Any]]] = {
    **dict.fromkeys(
        (
            "bool_to_bool", "bytes_to_bytes", "double_to_double", "duration_to_duration", "int64_to_int64",
            "string_to_string", "timestamp_to_timestamp", "uint64_to_uint64",
        ),
        _identity,
    ),
    "string_to_bool": _bool_of_text,
    "string_to_bytes": _bytes_of_text,
    "string_to_double": _double_of_text,
    "int64_to_double": float,
    "uint64_to_double": float,
    "int64_to_duration": _duration_of_int,
    "string_to_duration": _duration_of_text,
    "double_to_int64": _int_of_double,
    "duration_to_int64": lambda value: value.nanoseconds,
    "string_to_int64": _number_of_text(_INT, INT_MIN, INT_MAX, int),
    "timestamp_to_int64": _int_of_timestamp,
    "uint64_to_int64": _int_of_uint,
    "double_to_uint64": _uint_of_double,
    "int64_to_uint64": _uint_of_int,
    "string_to_uint64": _number_of_text(_UINT, 0, UINT_MAX, Uint),
    "int64_to_timestamp": _timestamp_of_int,
    "string_to_timestamp": _timestamp_of_text,
    "bool_to_string": TEXTS[bool],
    "bytes_to_string": TEXTS[bytes],
    "double_to_string": TEXTS[float],
    "duration_to_string": TEXTS[Duration],
    "int64_to_string": TEXTS[int],
    "timestamp_to_string": TEXTS[Timestamp],
    "uint64_to_string": TEXTS[Uint],
}  # fmt: skip
