"""Durations in Go's format, such as `1h15m30.5s`."""

from __future__ import annotations

import re
from typing import Final

SECOND: Final = 1_000_000_000
"""One second, in nanoseconds."""
_UNITS: Final = {
    "ns": 1,
    "us": 10**3,
    "µs": 10**3,
    "μs": 10**3,
    "ms": 10**6,
    "s": SECOND,
    "m": 60 * SECOND,
    "h": 3600 * SECOND,
}
_PART: Final = re.compile(r"(?<![0-9.])([0-9]++(?:\.[0-9]*+)?+|\.[0-9]++)(ns|us|µs|μs|ms|s|m|h)")
_DURATION: Final = re.compile(rf"[-+]?(?:0|(?:{_PART.pattern})+)")
_LONGEST: Final = 2**63 - 1
"""Longest duration of Go; a longer duration is invalid. Units: nanoseconds."""


def nanoseconds(text: str) -> int | None:
    """Parse a duration in Go's format, such as `1h15m30.5s`, into nanoseconds; None if invalid."""
    if not _DURATION.fullmatch(text):
        return None
    total = sum(_scaled(number, _UNITS[unit]) for number, unit in _PART.findall(text))
    if total > _LONGEST:
        return None
    return -total if text.startswith("-") else total


def go_duration(text: str) -> str:
    """Format a duration as Go prints it, such as `1h0m0.5s` for `60m500ms`; an invalid text is returned unchanged."""
    length = nanoseconds(text)
    if length is None:
        return text
    sign, rest = "-" * (length < 0), abs(length)
    if rest < SECOND:
        for unit in ("ms", "µs", "ns"):
            if rest >= _UNITS[unit]:
                return f"{sign}{_decimal(rest, _UNITS[unit])}{unit}"
        return "0s"
    minutes, rest = divmod(rest, _UNITS["m"])
    hours, minutes = divmod(minutes, 60)
    before = f"{hours}h{minutes}m" if hours else f"{minutes}m" if minutes else ""
    return f"{sign}{before}{_decimal(rest, SECOND)}s"


def _decimal(number: int, unit: int) -> str:
    whole, rest = divmod(number, unit)
    digits = f"{rest:0{len(str(unit)) - 1}d}".rstrip("0")
    return f"{whole}.{digits}" if rest else str(whole)


def _scaled(number: str, unit: int) -> int:
    whole, _, fraction = number.partition(".")
    return int(whole or 0) * unit + (int(fraction or 0) * unit // 10 ** len(fraction) if fraction else 0)
