"""The real clocks that decisions, records and leases use."""

from __future__ import annotations

import time
from datetime import UTC, datetime
from typing import Final


class SystemClock:
    """Wall clock and monotonic clock of the machine."""

    def now(self) -> datetime:
        """Return the wall clock time in UTC."""
        return datetime.now(UTC)

    monotonic = staticmethod(time.monotonic)
    """Function that returns the monotonic time. Units: seconds."""


class LeaseClock(SystemClock):
    """Clock of a lease: its monotonic clock includes the time in which the machine is suspended."""

    @staticmethod
    def monotonic() -> float:
        """Return the seconds since boot, including suspension."""
        return time.clock_gettime(_SINCE_BOOT)


_SINCE_BOOT: Final = getattr(time, "CLOCK_BOOTTIME", time.CLOCK_MONOTONIC)
