"""`Watchdog`: a thread that sees plugins which hang in a scheduling cycle, and logs where.

Nothing can stop such a plugin, and the loop stands still with it; so the look comes from a thread of its own. What it
finds is there for health checks, too.
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
"""How long a plugin may run in a cycle before it counts as hanging. Units: seconds."""
EVERY: Final = 1.0
"""How often is looked. Units: seconds."""


class Watchdog:
    """Looks at what plugins do.

    Args:
        watches: Gives what says so, by profile; it is asked at every look.
    """

    def __init__(self, watches: Callable[[], Mapping[str, PluginWatch]]) -> None:
        self._watches = watches
        self._stop = threading.Event()
        self._told: Running | None = None

    @property
    def hanging(self) -> Running | None:
        """The plugin that hangs, None where none does; a process with one is not alive."""
        for watch in self._watches().values():
            running = watch.running
            if running is not None and watch.monotonic is not None and watch.monotonic() - running.since > HANGING:
                return running
        return None

    def start(self) -> None:
        """Begin to look."""
        threading.Thread(target=self._run, name="watchdog", daemon=True).start()

    def stop(self) -> None:
        """Look no longer."""
        self._stop.set()

    def look(self) -> None:
        """Log the stack of a plugin that hangs, once."""
        running = self.hanging
        if running is None or running is self._told:
            return
        self._told = running
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
            self.look()
