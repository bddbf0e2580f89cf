"""Formats CEL values for messages, and numbers, quoted strings, times and durations as Go prints them.

Source: the Go library's fmt, strconv and time; cel-go v0.26 common/types (String of each type).
"""

from __future__ import annotations

import math
from datetime import datetime, timedelta
from typing import Any, Final

from policysched.cel.types import CelType
from policysched.cel.values.kinds import LISTS, MAPS
from policysched.cel.values.kubernetes import CelQuantity
from policysched.cel.values.scalars import SECOND, Duration, Optional, Timestamp

_EPOCH: Final = datetime(1970, 1, 1)


def double_text(value: float, largest: int = 21) -> str:
    """Format a number in its shortest form; from 10^largest on with an exponent, as Go's %v (21) and %g (6)."""
    if not math.isfinite(value):
        return "NaN" if math.isnan(value) else ("+Inf" if value > 0 else "-Inf")
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    sign = "-" if value < 0 else ""
    digits, exponent = _shortest(abs(value))
    limit = len(digits) if len(digits) > largest and len(digits) >= exponent + 1 else largest
    if largest == 21:
        limit = 21
    if exponent < -4 or exponent >= limit:
        point = f".{digits[1:]}" if len(digits) > 1 else ""
        return f"{sign}{digits[0]}{point}e{'-' if exponent < 0 else '+'}{abs(exponent):02d}"
    return sign + _positional(digits, exponent)


def plain_double_text(value: float) -> str:
    """Format a finite number in its shortest form without an exponent."""
    if value == 0:
        return "-0" if math.copysign(1, value) < 0 else "0"
    return ("-" if value < 0 else "") + _positional(*_shortest(abs(value)))


def _shortest(value: float) -> tuple[str, int]:
    """Return the shortest digits that identify a float, and the power of ten of the first digit."""
    mantissa, _, exponent = f"{value!r}".partition("e")
    whole, _, fraction = mantissa.partition(".")
    power = int(exponent or 0) + len(whole) - 1
    digits = whole + fraction
    stripped = digits.lstrip("0")
    power -= len(digits) - len(stripped)
    return stripped.rstrip("0") or "0", power


def _positional(digits: str, exponent: int) -> str:
    if exponent < 0:
        return "0." + "0" * (-exponent - 1) + digits
    if len(digits) <= exponent + 1:
        return digits + "0" * (exponent + 1 - len(digits))
    return f"{digits[: exponent + 1]}.{digits[exponent + 1 :]}"


def duration_text(value: Duration) -> str:
    """Format a duration in seconds, as CEL's `string()` does."""
    whole = abs(value.nanoseconds) // SECOND
    seconds = whole + (abs(value.nanoseconds) % SECOND) / 1e9
    return ("-" if value.nanoseconds < 0 else "") + plain_double_text(float(seconds)) + "s"


def go_duration_text(value: Duration) -> str:
    """Format a duration as Go's `Duration.String` does."""
    left = abs(value.nanoseconds)
    if left == 0:
        return "0s"
    sign = "-" if value.nanoseconds < 0 else ""
    for size, unit in ((1, "ns"), (1000, "µs"), (10**6, "ms")):
        if left < size * 1000:
            return f"{sign}{_decimal(left, size)}{unit}"
    minutes, rest = divmod(left, 60 * SECOND)
    hours, minutes = divmod(minutes, 60)
    said = f"{_decimal(rest, SECOND)}s"
    if hours or minutes:
        said = f"{minutes}m{said}"
    return f"{sign}{hours}h{said}" if hours else sign + said


def _decimal(value: int, unit: int) -> str:
    whole, rest = divmod(value, unit)
    if not rest:
        return str(whole)
    return f"{whole}.{rest:0{len(str(unit)) - 1}d}".rstrip("0")


def timestamp_text(value: Timestamp) -> str:
    """Format a timestamp as RFC 3339 with its original offset."""
    seconds, rest = divmod(value.nanoseconds, SECOND)
    moment = _EPOCH + timedelta(seconds=seconds + value.offset)
    fraction = f".{rest:09d}".rstrip("0") if rest else ""
    return f"{moment.year:04d}-{moment:%m-%dT%H:%M:%S}{fraction}{_offset(value.offset)}"


def _offset(seconds: int) -> str:
    if not seconds:
        return "Z"
    minutes = abs(seconds) // 60
    return f"{'-' if seconds < 0 else '+'}{minutes // 60:02d}:{minutes % 60:02d}"


def _go_timestamp_text(value: Timestamp) -> str:
    text = timestamp_text(value)
    date, _, rest = text.partition("T")
    zone = "+0000 UTC"
    clock = rest.removesuffix("Z")
    if value.offset:
        clock, zone = rest[:-6], rest[-6:].replace(":", "")
        zone = f"{zone} {zone}"
    return f"{date} {clock} {zone}"


def shown(value: Any) -> str:
    """Format a value for a message, like Go's %v."""
    kind = type(value)
    if kind is str:
        return str(value)
    if kind in LISTS:
        return f"[{', '.join(map(shown, value))}]"
    if kind in MAPS:
        return "{" + ", ".join(f"{shown(key)}: {shown(value.find(key))}" for key in value.keys()) + "}"  # noqa: SIM118
    writer = _SHOWN.get(kind)
    return writer(value) if writer else str(value)


def _shown_optional(value: Optional) -> str:
    return f"optional({shown(value.value)})" if value.present else "optional.none()"


def _shown_bytes(value: bytes) -> str:
    return f"[{' '.join(map(str, value))}]"


_SHOWN: Final[dict[type, Any]] = {
    bool: lambda value: "true" if value else "false",
    float: double_text,
    type(None): lambda _: "NULL_VALUE",
    bytes: _shown_bytes,
    Optional: _shown_optional,
    Duration: go_duration_text,
    Timestamp: _go_timestamp_text,
    CelType: str,
    CelQuantity: lambda value: value.amount.text(),
}
