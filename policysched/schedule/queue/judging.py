"""`Judging`: evaluates the queueing hints of rejectors for waiting pods and pods in flight.

Source: pkg/scheduler/backend/queue/scheduling_queue.go (isPodWorthRequeuing, determineSchedulingHintForInFlightPod).
"""

from __future__ import annotations

from policysched.framework import Action, Change, Clock, Cluster, Resource, RetryControl
from policysched.schedule.queue.hints import NO_INTERESTS, Interests, QueueingStrategy, judge
from policysched.schedule.queue.in_flight import Flight, InFlight, Occurrence
from policysched.schedule.queue.moves import CHUNK
from policysched.schedule.queue.queued_pod import QueuedPod
from policysched.schedule.queue.subqueues import PodQueues
from policysched.schedule.timing import Timing

TIME_PASSES = Change(Resource.TIME, Action.UPDATE_OTHER)


class Judging:
    """Calls queueing hints for waiting pods, and for pods whose attempt is running."""

    def __init__(self, clock: Clock, cluster: Cluster, queues: PodQueues, in_flight: InFlight) -> None:
        """Create the evaluator of queueing hints.

        Args:
            clock: Limits the time for the changes that an attempt missed.
            cluster: The cluster that hints read.
            queues: Has the profiles.
            in_flight: The running attempts, with the changes since they began.
        """
        self.timing: Timing | None = None
        """Records the durations of queueing hints; None if no durations are recorded."""
        self._clock, self._cluster = clock, cluster
        self._queues, self._in_flight = queues, in_flight

    def interests(self, queued: QueuedPod) -> Interests:
        """Return the PreEnqueue plugins and queueing hints of a pod's profile."""
        return self._queues.profiles.get(queued.profile, NO_INTERESTS)

    def listening(self, queued: QueuedPod, plugins: frozenset[str]) -> frozenset[str]:
        """Return the given plugins that decide themselves when a rejected pod is retried (`RetryControl`)."""
        return plugins & self.interests(queued).listeners.keys()

    def listeners(self, queued: QueuedPod) -> list[RetryControl]:
        """Return the plugins that rejected the pod and decide themselves when it is retried (`RetryControl`)."""
        known = self.interests(queued).listeners
        return [known[plugin] for plugin in queued.rejectors if plugin in known] if known else []

    def of_change(self, queued: QueuedPod, change: Change) -> QueueingStrategy:
        """Return whether and when a change requeues a waiting pod."""
        return judge(queued, change, self.interests(queued).matching(change), self._cluster, self.timing)

    def missed(self, flight: Flight) -> QueueingStrategy:
        """Return whether and when the changes that happened during a pod's failed attempt requeue the pod.

        If their hints take longer than `CHUNK`, the answer is yes.
        """
        queued = flight.queued
        if flight.since < 0 or not (queued.rejectors or queued.pending):
            return QueueingStrategy.AFTER_BACKOFF
        if flight.due is not None and flight.due <= self._cluster.time.seconds:
            self._in_flight.record(Occurrence(TIME_PASSES, only=queued.identity))
        best, ends = QueueingStrategy.SKIP, self._clock.monotonic() + CHUNK
        for occurrence in self._in_flight.missed(flight):
            verdict = self._of_missed(queued, occurrence)
            if verdict is not QueueingStrategy.SKIP:
                best = verdict
            if verdict is QueueingStrategy.IMMEDIATELY or (best is not QueueingStrategy.SKIP and not queued.pending):
                break
            if self._clock.monotonic() >= ends:
                return QueueingStrategy.AFTER_BACKOFF
        return best

    def _of_missed(self, queued: QueuedPod, occurrence: Occurrence) -> QueueingStrategy:
        """Return whether and when one change, or forced retry, during a pod's failed attempt requeues the pod.

        A `RetryControl` compares a change with its notes about rejected pods. It had no note about a pod in
        flight, so every change that its hints match counts as helpful. Such changes may be frequent, so the pod stays
        in backoff until the end.
        """
        if occurrence.change is None:
            pushes = occurrence.only or occurrence.pushes_all
            helps = pushes or occurrence.plugins & (queued.rejectors | queued.pending)
            return QueueingStrategy.AFTER_BACKOFF if helps else QueueingStrategy.SKIP
        matching = self.interests(queued).matching(occurrence.change)
        if self.listening(queued, queued.rejectors) & matching.keys():
            queued.completes_backoff = True
            return QueueingStrategy.AFTER_BACKOFF
        return judge(queued, occurrence.change, matching, self._cluster, self.timing)
