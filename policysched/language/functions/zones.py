"""Time zones by name, and what local clocks show at a moment.

It reads the zone files of the machine or, where there are none, those of the tzdata package; never a clock.
"""

from __future__ import annotations

import functools
import zoneinfo
from datetime import datetime
from typing import Final

UTC: Final = "UTC"
MINUTE: Final = 60.0
DAY: Final = 86400.0
"""Units: seconds."""
DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


@functools.lru_cache(maxsize=64)
def is_zone(name: str) -> bool:
    """Whether there is a time zone of this name."""
    try:
        zoneinfo.ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        # What is no file name at all is a ValueError, a folder of zones an OSError.
        return False
    return True


def zones_like(name: str) -> tuple[str, ...]:
    """The names of the zones that begin with the same letter as a name."""
    return _by_first_letter().get(name[:1].casefold(), ())


@functools.cache
def _by_first_letter() -> dict[str, tuple[str, ...]]:
    """All zones; reading their folder takes some ten milliseconds."""
    known: dict[str, list[str]] = {}
    for name in zoneinfo.available_timezones():
        known.setdefault(name[0].casefold(), []).append(name)
    return {letter: tuple(sorted(names)) for letter, names in known.items()}


def local_time(now: float, zone: str) -> datetime:
    """Return what the clocks of a zone show.

    Args:
        now: Seconds since 1970, UTC.
        zone: The name of a zone that exists.
    """
    return datetime.fromtimestamp(now, zoneinfo.ZoneInfo(zone))


def minutes(text: str) -> int:
    """Return the minutes since midnight of a time like "22:00"."""
    return int(text[:2]) * 60 + int(text[3:])


def in_span(local: datetime, start: int, end: int) -> bool:
    """Whether a local time is inside a span of minutes since midnight, which may pass midnight.

    The start belongs to the span, the end does not.
    """
    minute = local.hour * 60 + local.minute
    return start <= minute < end if start < end else minute >= start or minute < end
