"""CEL functions for the fields of timestamps and durations, such as `getFullYear()`.

Source: cel-go v0.26 common/stdlib/standard.go, common/types/timestamp.go, common/types/duration.go.
"""

from __future__ import annotations

from collections.abc import Callable
from datetime import datetime
from typing import Any, Final

from policysched.cel.values.scalars import SECOND, Duration, Error, Timestamp
from policysched.cel.values.times import in_zone

_READS: Final[dict[str, Callable[[datetime], int]]] = {
    "timestamp_to_year": lambda at: at.year,
    "timestamp_to_month": lambda at: at.month - 1,
    "timestamp_to_day_of_year": lambda at: at.timetuple().tm_yday - 1,
    "timestamp_to_day_of_month": lambda at: at.day - 1,
    "timestamp_to_day_of_month_1_based": lambda at: at.day,
    "timestamp_to_day_of_week": lambda at: at.isoweekday() % 7,
    "timestamp_to_hours": lambda at: at.hour,
    "timestamp_to_minutes": lambda at: at.minute,
    "timestamp_to_seconds": lambda at: at.second,
    "timestamp_to_milliseconds": lambda at: at.microsecond // 1000,
}


def _reading(read: Callable[[datetime], int]) -> Callable[..., Any]:
    def get(value: Timestamp, zone: str = "UTC") -> Any:
        at = in_zone(value, zone)
        return at if isinstance(at, Error) else read(at)

    return get


def _whole(unit: int) -> Callable[[Duration], int]:
    def get(value: Duration) -> int:
        whole = abs(value.nanoseconds) // unit
        return whole if value.nanoseconds >= 0 else -whole

    return get


OVERLOADS: Final[dict[str, Callable[..., Any]]] = {
    **{name: _reading(read) for name, read in _READS.items()},
    **{f"{name}_with_tz": _reading(read) for name, read in _READS.items()},
    "timestamp_to_seconds_tz": _reading(_READS["timestamp_to_seconds"]),
    "duration_to_hours": _whole(3600 * SECOND),
    "duration_to_minutes": _whole(60 * SECOND),
    "duration_to_seconds": _whole(SECOND),
    "duration_to_milliseconds": _whole(10**6),
}
