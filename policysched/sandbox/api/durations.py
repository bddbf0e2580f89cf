"""Ages as kubectl shows them: `5s`, `2m30s`, `3h`, `4d`, `2y10d`.

It knows numbers of seconds only. Fewer digits are shown the longer the time is, so that columns stay narrow.
"""

from __future__ import annotations

from datetime import UTC, datetime

_DAY, _YEAR = 24 * 3600, 365 * 24 * 3600


def human(seconds: float) -> str:
    """Write a time span."""
    total = int(seconds)
    if total < 0:
        return "<invalid>" if total < -1 else "0s"
    if total < 120:
        return f"{total}s"
    for limit, unit, big, smaller, small in _STEPS:
        if total < limit:
            whole, rest = divmod(total, unit)
            part = rest // smaller if smaller else 0
            return f"{whole}{big}{part}{small}" if part else f"{whole}{big}"
    return f"{total // _YEAR}y"


# below this many seconds: the unit, its letter, the unit of the second part (0: none), its letter
_STEPS = (
    (10 * 60, 60, "m", 1, "s"),
    (3 * 3600, 60, "m", 0, ""),
    (8 * 3600, 3600, "h", 60, "m"),
    (2 * _DAY, 3600, "h", 0, ""),
    (8 * _DAY, _DAY, "d", 3600, "h"),
    (2 * _YEAR, _DAY, "d", 0, ""),
    (8 * _YEAR, _YEAR, "y", _DAY, "d"),
)


def since(timestamp: str | None, now: datetime) -> str:
    """Write how long ago a timestamp of an object was."""
    if not timestamp:
        return "<unknown>"
    return human((now - parse(timestamp)).total_seconds())


def parse(timestamp: str) -> datetime:
    """Read a timestamp of an object."""
    return datetime.fromisoformat(timestamp.replace("Z", "+00:00")).astimezone(UTC)
