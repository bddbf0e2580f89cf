"""Parses durations and timestamps as Go's library does; time zones of timestamps.

Source: the Go library's time.ParseDuration and time.Parse with RFC3339; cel-go v0.26 common/stdlib (inTimeZone).
"""

from __future__ import annotations

import calendar
import re
from datetime import date, datetime, timedelta, timezone
from functools import lru_cache
from typing import Final
from zoneinfo import ZoneInfo

from policysched.cel.values.quoting import quoted
from policysched.cel.values.scalars import INT_MAX, INT_MIN, SECOND, Duration, Error, Timestamp

_UNITS: Final = {
    "ns": 1, "us": 1000, "µs": 1000, "μs": 1000, "ms": 10**6, "s": SECOND, "m": 60 * SECOND, "h": 3600 * SECOND,
}  # fmt: skip
_PART: Final = re.compile(r"([0-9]*)(?:\.([0-9]*))?(ns|us|µs|μs|ms|s|m|h)")
_RFC3339: Final = re.compile(
    r"([0-9]{4})-([0-9]{2})-([0-9]{2})T([0-9]{1,2}):([0-9]{2}):([0-9]{2})(?:[.,]([0-9]+))?(?:Z|([+-])([0-9]{2}):([0-9]{2}))"
)
_ZONE: Final = re.compile(r"[+-]?[0-9]+")
_EPOCH: Final = datetime(1970, 1, 1, tzinfo=timezone.utc)  # noqa: UP017 - the name below is a variable elsewhere


def duration_of(text: str) -> Duration | None:
    """Parse a duration such as `1h2.5m`; None if it is invalid."""
    negative = text.startswith("-")
    rest = text[1:] if text[:1] in {"+", "-"} else text
    if rest == "0":
        return Duration(0)
    total, at = 0, 0
    while at < len(rest):
        match = _PART.match(rest, at)
        if match is None or not (match[1] or match[2]):
            return None
        unit = _UNITS[match[3]]
        digits = (match[2] or "")[:30]
        total += int(match[1] or 0) * unit + int(digits or 0) * unit // 10 ** len(digits)
        at = match.end()
    if not rest or total > INT_MAX + negative:
        return None
    return Duration(-total if negative else total)


def timestamp_of(text: str) -> Timestamp | None:
    """Parse a timestamp of RFC 3339; None if it is invalid."""
    match = _RFC3339.fullmatch(text)
    if match is None:
        return None
    year, month, day, hour, minute, second = map(int, match.groups()[:6])
    if not (1 <= month <= 12 and 1 <= day <= _days(year, month) and hour < 24 and minute < 60 and second < 60):
        return None
    zone_hours, zone_minutes = int(match[9] or 0), int(match[10] or 0)
    if zone_hours > 24 or zone_minutes >= 60:
        return None
    offset = (zone_hours * 60 + zone_minutes) * 60 * (-1 if match[8] == "-" else 1)
    days = _days_before(year) + (date(2000 if calendar.isleap(year) else 2001, month, day).timetuple().tm_yday - 1)
    seconds = ((days * 24 + hour) * 60 + minute) * 60 + second - offset
    fraction = int((match[7] or "0")[:9].ljust(9, "0"))
    return Timestamp(seconds * SECOND + fraction, offset)


def _days(year: int, month: int) -> int:
    return 29 if month == 2 and calendar.isleap(year) else (31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31)[month - 1]


def _days_before(year: int) -> int:
    """Return the number of days from 1970 to the beginning of a year; year 0 is allowed."""
    before = year - 1
    return before * 365 + before // 4 - before // 100 + before // 400 - 719162


def in_zone(value: Timestamp, zone: str) -> datetime | Error:
    """Return a timestamp in a time zone, given as a name of the zone database or as hours and minutes."""
    if ":" in zone:
        offset = _hours_and_minutes(zone)
        if isinstance(offset, Error):
            return offset
        delta = timedelta(minutes=offset)
    else:
        if ".." in zone or zone[:1] in {"/", "\\"}:
            return Error("time: invalid location name")
        found = _zone(zone)
        if found is None:
            return Error(f"unknown time zone {zone}")
        at = _utc(value)
        delta = at.astimezone(found).utcoffset() or timedelta() if 1 < at.year < 9999 else timedelta()
    try:
        return _utc(value) + delta
    except OverflowError:
        return Error("timestamp overflow")


def _utc(value: Timestamp) -> datetime:
    seconds, rest = divmod(value.nanoseconds, SECOND)
    return _EPOCH + timedelta(seconds=seconds, microseconds=rest // 1000)


def _hours_and_minutes(text: str) -> int | Error:
    hours, _, minutes = text.partition(":")
    for one in (hours, minutes):
        if not _ZONE.fullmatch(one):
            return Error(f"strconv.Atoi: parsing {quoted(one)}: invalid syntax")
        if not INT_MIN <= int(one[:30]) <= INT_MAX:
            return Error(f"strconv.Atoi: parsing {quoted(one)}: value out of range")
    total = int(hours) * 60 + int(minutes) * (-1 if text[0] == "-" else 1)
    return max(min(total, 10**8), -(10**8))


@lru_cache(maxsize=64)
def _zone(name: str) -> ZoneInfo | None:
    if name in {"", "UTC"}:
        return ZoneInfo("UTC")
    try:
        return ZoneInfo(name)
    except (ValueError, OSError, KeyError):
        return None
