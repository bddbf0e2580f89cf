"""`Watchdog`: a thread that detects plugins which hang in a scheduling cycle, and logs their stack.

A hanging plugin blocks the event loop and cannot be stopped, so the check runs in its own thread. Health checks use its
result, too.
"""

from __future__ import annotations

import logging
import sys
import threading
import traceback
from collections.abc import Callable, Mapping
from typing import Final

from policysched.framework.out_of_tree.watch import PluginWatch, Running

log = logging.getLogger(__name__)
HANGING: Final = 30.0
"""Run time above which a plugin in a scheduling cycle is treated as hanging. Units: seconds."""
EVERY: Final = 1.0
"""Interval between checks for hanging plugins. Units: seconds."""


class Watchdog:
    """A thread that detects plugins which hang in a scheduling cycle.

    Args:
        watches: Returns the running plugins by profile; called at every check.
    """

    def __init__(self, watches: Callable[[], Mapping[str, PluginWatch]]) -> None:
        self._watches = watches
        self._stop = threading.Event()
        self._reported: Running | None = None

    @property
    def hanging(self) -> Running | None:
        """The hanging plugin, or None; the liveness check fails while a plugin hangs."""
        for watch in self._watches().values():
            running = watch.running
            if running is not None and watch.monotonic is not None and watch.monotonic() - running.since > HANGING:
                return running
        return None

    def start(self) -> None:
        """Start the thread."""
        threading.Thread(target=self._run, name="watchdog", daemon=True).start()

    def stop(self) -> None:
        """Stop the thread."""
        self._stop.set()

    def check(self) -> None:
        """Log the stack of a hanging plugin, once."""
        running = self.hanging
        if running is None or running is self._reported:
            return
        self._reported = running
        frame = sys._current_frames().get(running.thread)
        stack = "".join(traceback.format_stack(frame)) if frame is not None else "(its thread has ended)\n"
        log.error(
            '%s plugin "%s" has blocked scheduling for %.0f s; its stack:\n%s',
            running.point,
            running.plugin,
            HANGING,
            stack,
        )

    def _run(self) -> None:
        while not self._stop.wait(EVERY):
            self.check()
