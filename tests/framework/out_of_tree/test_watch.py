from __future__ import annotations

import pytest

from policysched.framework.out_of_tree.watch import PluginWatch, Spent


def test_what_plugins_take_is_added_up_and_long_calls_are_told(caplog: pytest.LogCaptureFixture) -> None:
    at = [0.0]
    watch = PluginWatch(lambda: at[0])
    for seconds in (0.5, 1.5, 0.25):
        watch.begin("A", "Filter")
        assert watch.running is not None
        at[0] += seconds
        watch.end()
    assert watch.running is None
    assert watch.spent == {("A", "Filter"): Spent(calls=3, seconds=2.25, long=1)}
    assert caplog.messages == ['Filter plugin "A" blocked scheduling for 1.5 s']


def test_without_a_clock_nothing_is_noted() -> None:
    watch = PluginWatch()
    watch.begin("A", "Filter")
    watch.end()
    assert (watch.running, watch.spent) == (None, {})
