"""`PluginWatch`: which out-of-tree plugin runs inside a scheduling cycle, since when, and what each has taken.

A cycle waits for its plugins, and nothing can stop one. So one that takes long is logged and counted, and a thread of
the application asks now and then which one is running: see `policysched.app.running.watchdog`.
"""

from __future__ import annotations

import logging
import threading
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

log = logging.getLogger(__name__)
LONG: Final = 1.0
"""What a plugin may take at one point of a cycle without a word. Units: seconds."""


@dataclass(slots=True)
class Spent:
    """What a plugin took at a point."""

    calls: int = 0
    """How many pods it was asked about."""
    seconds: float = 0.0
    long: int = 0
    """How often it took longer than `LONG`."""


@dataclass(frozen=True, slots=True)
class Running:
    """A plugin that has been asked and has not answered."""

    plugin: str
    point: str
    since: float
    """Units: seconds of the monotonic clock."""
    thread: int


class PluginWatch:
    """What plugins take; without a clock nothing is noted."""

    def __init__(self, monotonic: Callable[[], float] | None = None) -> None:
        self.monotonic = monotonic
        self.spent: dict[tuple[str, str], Spent] = {}
        """By plugin and point."""
        self.running: Running | None = None
        """The plugin that runs just now; it may be read from any thread."""

    def begin(self, plugin: str, point: str) -> None:
        """Note that a plugin is asked."""
        if self.monotonic is not None:
            self.running = Running(plugin, point, self.monotonic(), threading.get_ident())

    def end(self) -> None:
        """Note that it has answered."""
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
