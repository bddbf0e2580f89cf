"""Timers for rejected pods that time alone may help: by a rule that reads a clock, an age or a metric.

Each such pod has a time of its own; when it has come that pod is judged, as after any other change. It is looked at
after a minute at the latest, because wall clocks are set and machines sleep.
"""

from __future__ import annotations

import heapq
import logging
import math
from collections.abc import Iterable
from itertools import count

from policysched.framework import Clock, Cluster, RetryControl
from policysched.schedule.queue.queued_pod import QueuedPod, Stage

log = logging.getLogger(__name__)
MARGIN = 0.05
"""How long after a time it counts as past, whatever rounding did to it. Units: seconds."""
LONGEST = 60.0
"""Units: seconds."""
AGAIN = 1.0
"""After how long a pod is looked at whose time came while nobody could be asked. Units: seconds."""


class Timers:
    """The times at which waiting pods are judged again."""

    __slots__ = ("_clock", "_cluster", "_heap", "_numbers")

    def __init__(self, clock: Clock, cluster: Cluster) -> None:
        self._clock = clock
        self._cluster = cluster
        self._heap: list[tuple[float, int, QueuedPod]] = []
        """By time. A pod may be there several times: the time that it has itself is the one that counts."""
        self._numbers = count()

    @property
    def due(self) -> float:
        """The next time, infinite where there is none. Units: seconds of the monotonic clock."""
        while self._heap and not _counts(*self._heap[0]):
            self._take_first()
        return self._heap[0][0] if self._heap else math.inf

    def set(self, queued: QueuedPod, filters: Iterable[RetryControl]) -> None:
        """See to it that a pod is judged when one of the filters that turned it away can change its mind."""
        times = [self.retry_at(plugin, queued) for plugin in filters]
        time = min((one for one in times if one is not None), default=math.inf)
        if time < math.inf:
            self._set(queued, min(max(time - self._clock.now().timestamp(), 0.0) + MARGIN, LONGEST))

    def retry_at(self, plugin: RetryControl, queued: QueuedPod) -> float | None:
        """Ask a plugin when time alone may change its mind; after a while where it cannot tell.

        Units: seconds since the epoch.
        """
        try:
            return plugin.retry_at(queued.pod, self._cluster)
        except Exception:
            log.exception('cannot compute when pod "%s" may fit; checking again later', queued.pod.key)
            return self._clock.now().timestamp() + LONGEST

    def again(self, queued: QueuedPod) -> None:
        """See to it that a pod is judged soon, whose time came while nobody could be asked."""
        self._set(queued, AGAIN)

    def take_due(self) -> list[QueuedPod]:
        """Take the pods whose time has come; the cluster is at the present then, and they may have another one."""
        now, taken = self._clock.monotonic(), []
        while self.due <= now:
            taken.append(self._take_first())
        if taken:
            self._cluster.time.move(self._clock.now().timestamp())
        return taken

    def _take_first(self) -> QueuedPod:
        due, _, queued = heapq.heappop(self._heap)
        if queued.timer == due:
            queued.timer = math.inf
        return queued

    def _set(self, queued: QueuedPod, wait: float) -> None:
        """Set a pod's time, where it has none that comes about as early."""
        now = self._clock.monotonic()
        if not now <= queued.timer <= now + wait + MARGIN:
            queued.timer = now + wait
            heapq.heappush(self._heap, (queued.timer, next(self._numbers), queued))


def _counts(due: float, _: int, queued: QueuedPod) -> bool:
    """Return whether a pod still waits for a time."""
    return queued.timer == due and queued.stage is Stage.UNSCHEDULABLE
