"""`ClusterChanges`: what the scheduler hears of changes of the cluster; pods that one may help are tried again."""

from __future__ import annotations

from typing import Final

from policysched.framework import Action, Change, Clock, Resource
from policysched.schedule.queue.queue import Queue
from policysched.state.cluster import Cluster

NOTHING: Final = Change(Resource.OTHER, Action.NONE)


class ClusterChanges:
    """The changes of a cluster.

    Attributes:
        count: How many it has heard of.
        latest: The last one that changed anything; who wants to know what an object came to sets it to NOTHING before.
    """

    def __init__(self, cluster: Cluster, queue: Queue, clock: Clock) -> None:
        self._cluster, self._queue, self._clock = cluster, queue, clock
        self.count = 0
        self.latest = NOTHING

    def hear(self, change: Change, but: str = "") -> None:
        """Have the pods tried again that a change may help, but one."""
        self.count += 1
        if change.nothing:
            return
        self.latest = change
        if self._queue.hears:
            self.tell_time()
            self._queue.move(change, but)

    def tell_time(self) -> None:
        """Let the cluster be at the present: a cycle, and whether a change helps, see one time."""
        self._cluster.time.move(self._clock.now().timestamp())
