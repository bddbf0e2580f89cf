"""The time that decisions see: told from outside once a cycle, and the same for everything in it.

Nothing here reads a clock. Columns whose values time alone changes (ages, measurements that become too old) say when
the next of them does; until then a new time costs one comparison. They live as long as somebody holds them.
"""

from __future__ import annotations

import math
import weakref
from typing import Protocol


class Timed(Protocol):
    """Something that time changes. It can be referred to weakly."""

    def advance(self, seconds: float) -> float:
        """Bring it to a time, later or earlier than the last; give the time of its next change."""


class ClusterTime:
    """The present. Units: seconds since 1970, UTC."""

    __slots__ = ("_due", "_timed", "seconds")

    def __init__(self) -> None:
        self.seconds = 0.0
        self._due = math.inf
        self._timed: weakref.WeakSet[Timed] = weakref.WeakSet()

    def move(self, seconds: float) -> None:
        """Let it be another time; a clock may have been set back."""
        earlier = seconds < self.seconds
        self.seconds = seconds
        if seconds >= self._due or earlier:
            self._due = min((one.advance(seconds) for one in self._timed), default=math.inf)

    def include(self, timed: Timed) -> None:
        """Keep something at the present from now on."""
        self._timed.add(timed)
        self.expect(timed.advance(self.seconds))

    def expect(self, seconds: float) -> None:
        """Take note that something included changes at a time, perhaps sooner than it said."""
        self._due = min(self._due, seconds)
