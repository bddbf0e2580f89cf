"""Parsing of the time of a decision on the command line."""

from __future__ import annotations

import re
from datetime import UTC, datetime, time
from typing import Final

from policysched.app.clock import SystemClock
from policysched.app.dry_run.dry_run import seconds_at
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
