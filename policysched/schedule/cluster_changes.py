"""`ClusterChanges`: receives each change of the cluster, and requeues the pods that the change may help."""

from __future__ import annotations

from typing import Final

from policysched.framework import Action, Change, Clock, Resource
from policysched.schedule.queue.queue import Queue
from policysched.state.cluster import Cluster

NOTHING: Final = Change(Resource.OTHER, Action.NONE)


class ClusterChanges:
    """Receives the changes of a cluster and requeues pods.

    Attributes:
        count: Number of changes so far.
        latest: The last change with an effect. Set it to NOTHING to learn whether an object had an effect.
    """

    def __init__(self, cluster: Cluster, queue: Queue, clock: Clock) -> None:
        self._cluster, self._queue, self._clock = cluster, queue, clock
        self.count = 0
        self.latest = NOTHING

    def publish(self, change: Change, but: str = "") -> None:
        """Record a change, and requeue the pods that the change may help, except the pod whose identity is `but`."""
        self.count += 1
        if change.nothing:
            return
        self.latest = change
        if self._queue.needs_changes:
            self.update_time()
            self._queue.move(change, but)

    def update_time(self) -> None:
        """Set the cluster's clock to the current time, before a cycle or queueing hints read it."""
        self._cluster.time.move(self._clock.now().timestamp())
