"""The real clock, implementing `Clock`: the only place that reads time for decisions and records."""

from __future__ import annotations

import time
from datetime import UTC, datetime


class SystemClock:
    """Wall clock and monotonic clock of the machine."""

    def now(self) -> datetime:
        """Return the wall clock, UTC."""
        return datetime.now(UTC)

    processor = staticmethod(time.thread_time)
    """The processor time that the thread which asks has taken. Units: seconds."""

    monotonic = staticmethod(time.monotonic)
    """Seconds that never go back; the function itself, because it is asked several times a decision."""
