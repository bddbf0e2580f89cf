"""Functions of the time: `clock`, `hour` and `weekday`; local time in a time zone.

Their arguments are constants. So an unknown zone is an error at compile time, and the next change of a value is known
without evaluating other expressions. Zones come from files of the machine or, if absent, from the tzdata package. This
module reads no clock.
"""

from __future__ import annotations

import functools
import re
from collections.abc import Mapping
from datetime import datetime
from typing import Final
from zoneinfo import ZoneInfo, available_timezones

from policysched.language.functions.signatures import Checker, Function, constant_text, strings
from policysched.language.ir.graph import Op, Typed, make
from policysched.language.ir.tree import Call
from policysched.language.ir.types import BOOL, NUMBER, STRING, Unit
from policysched.language.messages.suggestions import did_you_mean, shown

_TIME: Final = re.compile(r"([01][0-9]|2[0-3]):[0-5][0-9]")
UTC: Final = "UTC"
MINUTE: Final = 60.0
DAY: Final = 86400.0
"""The length of a day. Units: seconds."""
DAYS: Final = ("mon", "tue", "wed", "thu", "fri", "sat", "sun")


@functools.lru_cache(maxsize=64)
def is_zone(name: str) -> bool:
    """Return whether a time zone with the given name exists."""
    try:
        ZoneInfo(name)
    except (KeyError, ValueError, OSError):
        # An invalid file name raises ValueError, a folder of zones OSError.
        return False
    return True


@functools.cache
def zones_by_letter() -> dict[str, tuple[str, ...]]:
    """Return the names of all time zones by first letter; reading them from disk takes about ten milliseconds."""
    known: dict[str, list[str]] = {}
    for name in available_timezones():
        known.setdefault(name[0].casefold(), []).append(name)
    return {letter: tuple(sorted(names)) for letter, names in known.items()}


def local_time(now: float, zone: str) -> datetime:
    """Return the local time in a time zone at a point in time.

    Args:
        now: Seconds since 1970, UTC.
        zone: Name of an existing zone.
    """
    return datetime.fromtimestamp(now, ZoneInfo(zone))


def minutes(text: str) -> int:
    """Return the minutes since midnight of a time such as "22:00"."""
    return int(text[:2]) * 60 + int(text[3:])


def in_span(local: datetime, start: int, end: int) -> bool:
    """Return whether a local time is between two minutes of the day; the span may contain midnight.

    The start is in the span, the end is not.
    """
    minute = local.hour * 60 + local.minute
    return start <= minute < end if start < end else minute >= start or minute < end


def _clock(checker: Checker, call: Call, _: Unit | None) -> Typed | None:
    texts = _constants(checker, call)
    if texts is None:
        return None
    times = [_time(checker, call, index, texts[index]) for index in (0, 1)]
    zone = _zone(checker, call, texts, 2)
    if not all(times) or zone is None:
        return None
    if texts[0] == texts[1]:
        return checker.report("E0312", call.span, "clock")
    return make(Op.CLOCK, (), BOOL, (texts[0], texts[1], zone))


def _reading(checker: Checker, call: Call, _: Unit | None) -> Typed | None:
    """Return the compiled call of `hour` or `weekday`; report errors."""
    texts = _constants(checker, call)
    zone = None if texts is None else _zone(checker, call, texts, 0)
    op = call.function.dotted
    return None if zone is None else make(op, (), NUMBER if op == Op.HOUR else STRING, (zone,))


def _constants(checker: Checker, call: Call) -> list[str] | None:
    nodes = strings(checker, call)
    if nodes is None:
        return None
    fit = [constant_text(checker, call, index, node) for index, node in enumerate(nodes)]
    return [str(node.data) for node in nodes] if all(fit) else None


def _time(checker: Checker, call: Call, index: int, text: str) -> bool:
    if _TIME.fullmatch(text):
        return True
    checker.report("E0312", call.arguments[index].span, "time", found=shown(text), help=_right_time(text))
    return False


def _right_time(text: str) -> str:
    if text.startswith("24:"):
        return 'write midnight as "00:00"'
    return f'write "0{text}"' if _TIME.fullmatch(f"0{text}") else 'times are "00:00" to "23:59"'


def _zone(checker: Checker, call: Call, texts: list[str], index: int) -> str | None:
    if index >= len(texts):
        return UTC
    zone = texts[index]
    if is_zone(zone):
        return zone
    meant = (
        did_you_mean(zone, zones_by_letter().get(zone[:1].casefold(), ())) or 'write its name, as in "Europe/Berlin"'
    )
    checker.report("E0312", call.arguments[index].span, "zone", found=shown(zone), suggestion=meant)
    return None


TIMES: Final[Mapping[str, Function]] = {
    "clock": Function(
        _clock,
        2,
        3,
        "from, to[, zone]",
        "true from the time `from` until before `to`; the span may include midnight",
        example='clock("22:00", "06:00", "Europe/Berlin")',
    ),
    "hour": Function(_reading, 0, 1, "[zone]", "hour of the day, 0 to 23", example='hour("America/New_York") < 9'),
    "weekday": Function(
        _reading,
        0,
        1,
        "[zone]",
        'day of the week: "mon", "tue", "wed", "thu", "fri", "sat" or "sun"',
        example='weekday() in ["sat", "sun"]',
    ),
}
