"""`PluginWatch`: records which out-of-tree plugin is running now, and the total run time of each plugin.

A cycle waits for its plugins and cannot stop them. So long calls are logged and counted, and a thread checks which
plugin is running (`policysched.app.running.watchdog`).
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

log = logging.getLogger(__name__)
LONG: Final = 1.0
"""Duration of a plugin call from which the call is logged and counted as long. Units: seconds."""


@dataclass(slots=True)
class Spent:
    """The total run time of a plugin at one extension point, with the numbers of calls."""

    calls: int = 0
    """Number of calls of the plugin at the extension point."""
    seconds: float = 0.0
    long: int = 0
    """Number of calls that took longer than LONG."""


@dataclass(frozen=True, slots=True)
class Running:
    """A call of a plugin that has not returned yet."""

    plugin: str
    point: str
    since: float
    """The start of the call. Units: seconds of the monotonic clock."""
    thread: int


class PluginWatch:
    """Measures the calls of plugins; without a clock, it does nothing."""

    def __init__(self, monotonic: Callable[[], float] | None = None) -> None:
        self.monotonic = monotonic
        self.spent: dict[tuple[str, str], Spent] = {}
        """The run times by plugin and extension point."""
        self.running: Running | None = None
        """The call that has not returned yet, or None; any thread may read it."""

    def begin(self, plugin: str, point: str) -> None:
        """Record that a call of a plugin starts."""
        if self.monotonic is not None:
            self.running = Running(plugin, point, self.monotonic(), threading.get_ident())

    def end(self) -> None:
        """Record that the current call returned, and add its duration to the plugin's run time."""
        running, self.running = self.running, None
        if running is None or self.monotonic is None:
            return
        seconds = self.monotonic() - running.since
        spent = self.spent.setdefault((running.plugin, running.point), Spent())
        spent.calls += 1
        spent.seconds += seconds
        if seconds > LONG:
            spent.long += 1
            log.warning('%s plugin "%s" blocked scheduling for %.1f s', running.point, running.plugin, seconds)
