"""The real clocks, implementing `Clock`: the only place that reads time for decisions, records and leases."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Final


class SystemClock:
    """Wall clock and monotonic clock of the machine."""

    def now(self) -> datetime:
        """Return the wall clock, UTC."""
        return datetime.now(UTC)

    processor = staticmethod(time.thread_time)
    """The processor time that the thread which asks has taken. Units: seconds."""

    monotonic = staticmethod(time.monotonic)
    """Seconds that never go back; the function itself, because it is asked several times a decision."""


class LeaseClock(SystemClock):
    """The same for a lease, which runs out while the machine is suspended, too: its monotonic clock counts that."""

    @staticmethod
    def monotonic() -> float:
        """Return seconds that never go back."""
        return time.clock_gettime(_SINCE_BOOT)


_SINCE_BOOT: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
