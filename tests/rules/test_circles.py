"""What the rules worked out is freed as soon as nobody holds it: no part of it holds itself.

A process that leaves what it knows out of its garbage collections depends on that
(`policysched.app.running.garbage_collection`).
"""

from __future__ import annotations

import gc

import pytest

from tests.schedule.year import Year

pytestmark = pytest.mark.usefixtures("others_apart")
DAYS = 6


def test_policies_that_were_edited_leave_no_circles_but_small_ones() -> None:
    year = Year(2500, 4 * 364, 16)
    year.live(DAYS)
    gc.collect()
    gc.disable()
    gc.set_debug(gc.DEBUG_SAVEALL)
    try:
        year.live(DAYS)
        gc.collect()
        found = [type(one) for one in gc.garbage]
    finally:
        gc.set_debug(0)
        gc.garbage.clear()
        gc.enable()
    results = {kind.__name__ for kind in found if kind.__module__.startswith("policysched.rules.results")}
    assert not results, results
    # graphs of expressions remember parts of themselves
    assert len(found) < 100 * DAYS
