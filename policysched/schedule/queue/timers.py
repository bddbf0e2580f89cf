"""When time alone may help a waiting pod: a rule turned it away that reads a clock, an age or a measurement.

One moment for all such pods, the earliest; when it has come they are judged as after any other change. It is looked at
again after a minute at the latest, because wall clocks are set and machines sleep.
"""

from __future__ import annotations

import math
from collections.abc import Iterable

from policysched.framework import Clock, Cluster, Watching
from policysched.model.objects import Pod

MARGIN = 0.05
"""How long after a moment it counts as past, whatever rounding did to it. Units: seconds."""
LONGEST = 60.0
"""Units: seconds."""


class Alarms:
    """The next moment at which waiting pods are judged again."""

    __slots__ = ("_clock", "_cluster", "due")

    def __init__(self, clock: Clock, cluster: Cluster) -> None:
        self._clock = clock
        self._cluster = cluster
        self.due = math.inf
        """Units: seconds of the monotonic clock."""

    def set(self, pod: Pod, filters: Iterable[Watching]) -> None:
        """See to it that a pod is judged when one of the filters that turned it away can change its mind."""
        for plugin in filters:
            moment = plugin.retry_at(pod, self._cluster)
            if moment is not None:
                wait = min(max(moment - self._cluster.moment.seconds, 0.0) + MARGIN, LONGEST)
                self.due = min(self.due, self._clock.monotonic() + wait)

    def ring(self) -> bool:
        """Tell whether the moment has come; the cluster is at the present then, and the next one is to be set."""
        if self._clock.monotonic() < self.due:
            return False
        self.due = math.inf
        self._cluster.moment.move(self._clock.now().timestamp())
        return True
