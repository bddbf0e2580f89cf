from __future__ import annotations

import threading
from collections.abc import Callable

import pytest

from policysched.app.running.watchdog import Watchdog
from policysched.framework.out_of_tree.watch import PluginWatch


class Clock:
    at = 0.0

    def __call__(self) -> float:
        return self.at


def hanging_here(watch: PluginWatch, begun: threading.Event, go: threading.Event) -> None:
    watch.begin("Slow", "Filter")
    begun.set()
    go.wait(30)
    watch.end()


@pytest.fixture
def hung() -> tuple[PluginWatch, Clock, Callable[[], None]]:
    """A plugin that hangs in another thread, the time, and what lets it go."""
    clock = Clock()
    watch = PluginWatch(clock)
    begun, go = threading.Event(), threading.Event()
    thread = threading.Thread(target=hanging_here, args=(watch, begun, go))
    thread.start()
    assert begun.wait(30)

    def free() -> None:
        go.set()
        thread.join()

    return watch, clock, free


def test_stack_of_a_plugin_that_hangs_is_logged_once(
    hung: tuple[PluginWatch, Clock, Callable[[], None]], caplog: pytest.LogCaptureFixture
) -> None:
    watch, clock, free = hung
    watchdog = Watchdog(lambda: {"a": PluginWatch(), "b": watch})
    clock.at = 30.0
    watchdog.check()
    assert (watchdog.hanging, caplog.messages) == (None, [])
    clock.at = 30.5
    watchdog.check()
    watchdog.check()
    found = watchdog.hanging
    assert found is not None
    assert (found.plugin, found.point) == ("Slow", "Filter")
    [message] = caplog.messages
    assert message.startswith('Filter plugin "Slow" has blocked scheduling for 30 s; its stack:')
    assert "hanging_here" in message
    free()
    assert watchdog.hanging is None


def test_watchdog_looks_by_itself_until_it_is_stopped(
    hung: tuple[PluginWatch, Clock, Callable[[], None]],
    caplog: pytest.LogCaptureFixture,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("policysched.app.running.watchdog.EVERY", 0.001)
    watch, clock, free = hung
    clock.at = 31.0
    looked = threading.Event()
    watchdog = Watchdog(lambda: {"a": watch})
    look = watchdog.check

    def noted() -> None:
        look()
        looked.set()

    monkeypatch.setattr(watchdog, "check", noted)
    watchdog.start()
    assert looked.wait(30)
    watchdog.stop()
    assert len(caplog.messages) == 1
    free()
