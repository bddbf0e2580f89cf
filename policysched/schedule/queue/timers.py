"""`Timers`: times at which elapsed time alone may help a rejected pod, for rules that read a clock, age or metric.

At its time, a pod is judged as after any other change. Wall clocks are set and machines sleep, so no timer is longer
than a minute.
"""

from __future__ import annotations

import heapq
import logging
import math
from collections.abc import Iterable
from itertools import count
from typing import Final

from policysched.framework import Clock, Cluster, RetryControl
from policysched.schedule.queue.queued_pod import QueuedPod, Stage

log = logging.getLogger(__name__)
MARGIN: Final = 0.05
"""Delay added to each timer, to compensate rounding errors. Units: seconds."""
LONGEST: Final = 60.0
"""Maximum duration of a timer; afterwards, the time is computed again. Units: seconds."""


class Timers:
    """The times at which the queueing hints of waiting pods are called although nothing changed."""

    __slots__ = ("_clock", "_cluster", "_heap", "_numbers")

    def __init__(self, clock: Clock, cluster: Cluster) -> None:
        self._clock = clock
        self._cluster = cluster
        self._heap: list[tuple[float, int, QueuedPod]] = []
        """Waiting pods ordered by time; an entry is valid only while its time equals the pod's `timer`."""
        self._numbers = count()

    @property
    def due(self) -> float:
        """The earliest time of all timers; infinite without timers. Units: seconds of the monotonic clock."""
        while self._heap and not _is_valid(*self._heap[0]):
            self._take_first()
        return self._heap[0][0] if self._heap else math.inf

    def set(self, queued: QueuedPod, filters: Iterable[RetryControl]) -> None:
        """Set a pod's timer to the earliest time at which a filter that rejected the pod may accept it."""
        times = [self.retry_at(plugin, queued) for plugin in filters]
        time = min((one for one in times if one is not None), default=math.inf)
        if time < math.inf:
            self._set(queued, min(max(time - self._clock.now().timestamp(), 0.0) + MARGIN, LONGEST))

    def retry_at(self, plugin: RetryControl, queued: QueuedPod) -> float | None:
        """Return when elapsed time alone may change a plugin's result; None for never; after an error, in a minute.

        Units: seconds since the epoch.
        """
        try:
            return plugin.retry_at(queued.pod, self._cluster)
        except Exception:
            log.exception('cannot compute when pod "%s" may fit; checking again later', queued.pod.key)
            return self._clock.now().timestamp() + LONGEST

    def take_due(self) -> list[QueuedPod]:
        """Remove and return the pods whose timer is due; set the cluster's clock to the current time."""
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
        """Set a pod's timer to `wait` seconds from now, unless its present timer ends earlier or about then."""
        now = self._clock.monotonic()
        if not now <= queued.timer <= now + wait + MARGIN:
            queued.timer = now + wait
            heapq.heappush(self._heap, (queued.timer, next(self._numbers), queued))


def _is_valid(due: float, _: int, queued: QueuedPod) -> bool:
    """Return whether an entry of the timers' heap is the current timer of a pod that is still waiting."""
    return queued.timer == due and queued.stage is Stage.UNSCHEDULABLE
