"""Threads that compute beside the scheduler's keep it waiting for a short while only."""

from __future__ import annotations

import sys

import pytest

from policysched.app.running.thread_turns import TURN, short_turns


def test_turns_are_short_as_long_as_a_scheduler_runs() -> None:
    before = sys.getswitchinterval()
    with pytest.raises(RuntimeError, match="its end"), short_turns():
        assert sys.getswitchinterval() == pytest.approx(TURN)
        assert sys.getswitchinterval() < before
        raise RuntimeError("its end")
    assert sys.getswitchinterval() == pytest.approx(before)
