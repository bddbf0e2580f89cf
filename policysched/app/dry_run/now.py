"""Parsing of the time of a decision: of the flag `--now`, and of an argument of a Python function."""

from __future__ import annotations

import re
from datetime import UTC, datetime, time
from typing import Final

from policysched.app.clock import SystemClock
from policysched.errors import UsageError

_HOUR_AND_MINUTE: Final = re.compile(r"\d\d?:\d\d", re.ASCII)


def read_now(text: str | None) -> datetime | None:
    """Parse the value of `--now`: a date and time, or `HH:MM` of today in UTC; None if the flag is absent.

    Raises:
        UsageError: the text is not a time.
    """
    if text is None:
        return None
    try:
        if _HOUR_AND_MINUTE.fullmatch(text):
            return datetime.combine(SystemClock().now().astimezone(UTC), time.fromisoformat(text.zfill(5)), UTC)
        return datetime.fromtimestamp(seconds_at(text), UTC)
    except (ValueError, OverflowError, OSError, UsageError) as error:
        written = "write a time such as 2026-01-05T23:00:00+01:00, or 23:00 for today in UTC"
        raise UsageError(f'--now "{text:.40}" is not a time; {written}') from error


def seconds_at(now: datetime | str) -> float:
    """Convert a date and time into seconds since 1970.

    Raises:
        UsageError: the text is not a time.
    """
    if isinstance(now, str):
        try:
            now = datetime.fromisoformat(now)
        except ValueError as error:
            raise UsageError(f'now: expected a time such as 2026-01-05T23:00:00+01:00, got "{now:.40}"') from error
    if not isinstance(now, datetime):
        raise UsageError(f"now: expected a datetime or a text, got {type(now).__name__}")
    return (now if now.tzinfo is not None else now.replace(tzinfo=UTC)).timestamp()
