"""Whether what happens may help pods that wait, or that were being tried meanwhile, as the hints of their plugins say.

Source: pkg/scheduler/backend/queue/scheduling_queue.go (isPodWorthRequeuing, determineSchedulingHintForInFlightPod).
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from policysched.framework import Action, Change, Clock, Cluster, Resource, RetryControl
from policysched.schedule.queue.hints import NO_INTERESTS, HintBudget, Interests, QueueingStrategy, judge
from policysched.schedule.queue.in_flight import Flight, InFlight, Occurrence
from policysched.schedule.queue.queued_pod import QueuedPod
from policysched.schedule.queue.subqueues import PodQueues
from policysched.schedule.timing import Timing

TIME_PASSES = Change(Resource.TIME, Action.UPDATE_OTHER)


class Judging:
    """Asks the hints of pods' profiles, as much as there is time for.

    Args:
        clock: The time that asking takes.
        cluster: What the hints look at, as it is now.
        queues: Knows the profiles.
        in_flight: The attempts under way, and what is kept for them.
    """

    def __init__(self, clock: Clock, cluster: Cluster, queues: PodQueues, in_flight: InFlight) -> None:
        self.timing: Timing | None = None
        """What is told how long hints take."""
        self._clock, self._cluster = clock, cluster
        self._queues, self._in_flight = queues, in_flight
        self._budget = HintBudget(clock)

    def interests(self, queued: QueuedPod) -> Interests:
        """Return what the profile of a pod wants to know of."""
        return self._queues.profiles.get(queued.profile, NO_INTERESTS)

    def listening(self, queued: QueuedPod, plugins: frozenset[str]) -> frozenset[str]:
        """Return those of some plugins that hear which pods they rejected, under the pod's profile."""
        return plugins & self.interests(queued).listeners.keys()

    def listeners(self, queued: QueuedPod) -> list[RetryControl]:
        """Return what hears of a pod among the plugins that rejected it."""
        known = self.interests(queued).listeners
        return [known[plugin] for plugin in queued.rejectors if plugin in known] if known else []

    def waiting(
        self, change: Change, concerned: Iterable[QueuedPod]
    ) -> Iterator[tuple[QueuedPod, QueueingStrategy | None]]:
        """Say of pods that wait what is to be done as a change comes.

        Missing: None where time has come for a pod and nobody could be asked.
        """
        self._budget.start(change)
        for queued in concerned:
            matching = self.interests(queued).matching(change)
            asks = self._budget.permits(queued)
            if change is TIME_PASSES and not asks and self._budget.is_spent:
                yield queued, None
            else:
                yield queued, judge(queued, change, matching, self._cluster, asks=asks, timing=self.timing)
        self._budget.stop()

    def missed(self, flight: Flight) -> QueueingStrategy:
        """Say what is to be done with a pod that is rejected now, for what happened while it was in flight."""
        queued = flight.queued
        if flight.since < 0 or not (queued.rejectors or queued.pending):
            return QueueingStrategy.AFTER_BACKOFF
        if flight.due is not None and flight.due <= self._cluster.time.seconds:
            self._in_flight.record(Occurrence(TIME_PASSES, only=queued.identity))
        best = QueueingStrategy.SKIP
        for occurrence in self._in_flight.missed(flight):
            match self._of_missed(queued, occurrence):
                case QueueingStrategy.IMMEDIATELY:
                    return QueueingStrategy.IMMEDIATELY
                case QueueingStrategy.AFTER_BACKOFF:
                    best = QueueingStrategy.AFTER_BACKOFF
                    if not queued.pending:
                        return best
                case QueueingStrategy.SKIP:
                    pass
        return best

    def _of_missed(self, queued: QueuedPod, occurrence: Occurrence) -> QueueingStrategy:
        """Judge what happened while a pod was in flight.

        A plugin that compares with what it noted of rejected pods has been asked meanwhile about others that are alike,
        and had noted nothing of this one: whatever it names as of interest helps. That may be much, so the pod waits
        for the end of its backoff even where nothing else is to be done.
        """
        if occurrence.change is None:
            pushes = occurrence.only or occurrence.pushes_all
            helps = pushes or occurrence.plugins & (queued.rejectors | queued.pending)
            return QueueingStrategy.AFTER_BACKOFF if helps else QueueingStrategy.SKIP
        matching = self.interests(queued).matching(occurrence.change)
        if self.listening(queued, queued.rejectors) & matching.keys():
            queued.rests_until = max(queued.rests_until, self._clock.monotonic())
            return QueueingStrategy.AFTER_BACKOFF
        self._budget.start(occurrence.change)
        asks = self._budget.permits(queued)
        verdict = judge(queued, occurrence.change, matching, self._cluster, asks=asks, timing=self.timing)
        self._budget.stop()
        return verdict
