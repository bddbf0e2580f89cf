"""The clock of a lease: it goes on while the machine is suspended, where the system has one that does."""

from __future__ import annotations

import time

import pytest

from policysched.app.clock import LeaseClock, SystemClock


def test_the_clock_of_a_lease_counts_the_time_that_the_machine_was_suspended(monkeypatch: pytest.MonkeyPatch) -> None:
    read = time.clock_gettime
    suspended = 3600.0
    monkeypatch.setattr(time, "clock_gettime", lambda which: read(which) + suspended * (which == time.CLOCK_BOOTTIME))
    before = read(time.CLOCK_BOOTTIME) + suspended
    assert before <= LeaseClock().monotonic() < before + 60
    assert SystemClock().monotonic() < before
