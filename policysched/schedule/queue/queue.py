"""`Queue`: the scheduling queue, kube-scheduler's PriorityQueue.

A pending pod is active (ready, in the order of the QueueSort plugin), in backoff (waits after a failed attempt),
unschedulable (waits for a change that a rejecting plugin accepts), gated (kept out by a PreEnqueue plugin) or in flight
(its attempt is running). The queue has no task of its own: `pop` also ends backoffs and handles timers and changes.

If no pod is active, backoffs end early, except after errors and expensive attempts. Pods that are retried only because
they waited for the maximum time enter backoff too, so that thousands of them do not delay new pods.

Source: pkg/scheduler/backend/queue/scheduling_queue.go, KEP-5142.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from typing import Final

from policysched.framework import Action, Change, Clock, Cluster, QueueSortPlugin, Resource
from policysched.model.objects import Pod
from policysched.model.pod_requirements import pod_priority
from policysched.schedule.queue.hints import Interests, QueueingStrategy, index_of, label
from policysched.schedule.queue.in_flight import Flight, InFlight, Occurrence
from policysched.schedule.queue.judging import TIME_PASSES, Judging
from policysched.schedule.queue.moves import CHUNK, Moves
from policysched.schedule.queue.queued_pod import NO_PLUGINS, QueuedPod, Stage
from policysched.schedule.queue.subqueues import WINDOW, Backoff, OnQueued, PodQueues, QueueCounts
from policysched.schedule.queue.timers import Timers
from policysched.schedule.timing import Timing
from policysched.state.cluster_events import pod_difference
from policysched.state.placed.pods import pod_id

POD_POPPED: Final = "PodPopped"
"""Event name, in kube-scheduler's metric of events in flight, for the start of an attempt."""
SWEEP: Final = 30.0
"""Interval at which pods that waited for the maximum time are searched. Units: seconds."""


class Queue:
    """The queue of all pending pods, including pods whose attempt is running."""

    _make_queues: type[PodQueues] = PodQueues

    def __init__(
        self,
        clock: Clock,
        sort: QueueSortPlugin,
        cluster: Cluster,
        *,
        profiles: Mapping[str, Interests],
        backoff: Backoff | None = None,
        max_unschedulable: float = 300.0,
    ) -> None:
        self._clock, self._cluster = clock, cluster
        self.max_unschedulable = max_unschedulable
        self._pods: dict[str, QueuedPod] = {}
        self._queues = self._make_queues(clock, sort, cluster, profiles, backoff or Backoff())
        self._in_flight = InFlight()
        self._timers = Timers(clock, cluster)
        self._judging = Judging(clock, cluster, self._queues, self._in_flight)
        self._moves = Moves(clock, partial(self._requeue, "ManyChanges"))
        now = clock.monotonic()
        self._next_window, self._next_sweep = math.floor(now) + WINDOW, now + SWEEP

    def add(self, pod: Pod) -> None:
        """Add a pending pod, or update a pod that is already in the queue."""
        identity = pod_id(pod)
        if identity in self._pods:
            self.update(pod)
            return
        queued = self._pods[identity] = QueuedPod(pod, identity, self._clock.monotonic())
        self._queues.enter_active(queued, "UnschedulablePodAdd")

    def update(self, pod: Pod) -> None:
        """Store a new version of a pending pod; add the pod if it is unknown."""
        queued = self._pods.get(pod_id(pod))
        if queued is None:
            self.add(pod)
            return
        flight = self._flight_of(queued)
        old = (flight.latest if flight else None) or queued.pod
        # As in kube-scheduler, an update without scheduling fields, of a condition say, has a generic action.
        change = Change(
            Resource.PENDING_POD,
            pod_difference(old, pod, self._cluster.amounts_in_use) or Action.UPDATE_OTHER,
            old,
            pod,
        )
        if flight is not None:
            flight.latest = pod
            if not change.nothing:
                self._in_flight.record(Occurrence(change, queued.identity))
            return
        queued.pod = pod
        if queued.stage is Stage.UNSCHEDULABLE:
            self._queues.list_anew(queued)
            if not change.nothing:
                self._judge(change, queued)
        else:
            self._queues.reorder(queued)

    def renew(self, pod: Pod) -> None:
        """Store a new version of a pod that is being bound, without requeueing other pods."""
        identity = pod_id(pod)
        flight = self._in_flight.get(identity)
        if flight is not None and self._pods.get(identity, flight.queued) is flight.queued:
            flight.latest = pod

    def delete(self, identity: str) -> bool:
        """Remove a pod; a pod whose attempt is running does not return to the queue."""
        queued = self._pods.pop(identity, None)
        if queued is None:
            return False
        flight = self._in_flight.get(identity)
        if flight is not None:
            flight.deleted = True
        self._queues.leave(queued)
        return True

    def pop(self) -> QueuedPod | None:
        """Remove and return the next pod, and start its scheduling attempt, which `reject`, `fail` or `done` ends."""
        now = self._clock.monotonic()
        if now >= min(self._next_window, self._next_sweep, self._timers.due):
            self.flush()
        self._moves.run_chunk()
        queued = self._queues.take_first()
        if queued is not None:
            queued.stage = Stage.IN_FLIGHT
            queued.attempts += 1
            queued.tried_at, queued.completes_backoff = now, False
            self._in_flight.begin(queued)
        return queued

    def note_decision(self, queued: QueuedPod, rejectors: frozenset[str]) -> None:
        """Record that the pod's cycle rejected it, so that elapsed time can requeue it even during the attempt."""
        flight = self._flight_of(queued)
        known = self._judging.interests(queued).listeners
        if flight is not None and known:
            due = [self._timers.retry_at(known[one], queued) for one in rejectors if one in known]
            flight.due = min((at for at in due if at is not None), default=None)

    def listening(self, queued: QueuedPod, plugins: frozenset[str]) -> frozenset[str]:
        """Return the given plugins that decide themselves when a rejected pod is retried (`RetryControl`)."""
        return self._judging.listening(queued, plugins)

    def reject(self, queued: QueuedPod, rejectors: frozenset[str], pending: frozenset[str] = NO_PLUGINS) -> bool:
        """End an attempt that failed, and requeue its pod; return whether the pod still exists.

        Args:
            queued: The pod.
            rejectors: The plugins that rejected the pod; empty after an error.
            pending: The plugins that returned Pending.

        Raises:
            ValueError: No attempt of this pod is running.
        """
        flight = self._note_failure(queued, rejectors, pending)
        if flight is None:
            return False
        for plugin in self._judging.listeners(queued):
            plugin.on_rejected(queued.pod, self._cluster)
        verdict = self._judging.missed(flight)
        self._in_flight.end(queued.identity)
        self._queues.requeue(queued, verdict, "ScheduleAttemptFailure")
        self._timers.set(queued, self._judging.listeners(queued))
        return True

    def _note_failure(
        self, queued: QueuedPod, rejectors: frozenset[str], pending: frozenset[str] = NO_PLUGINS
    ) -> Flight | None:
        """Record a failure in the failed pod, and return its running attempt; None if the pod no longer exists.

        Raises:
            ValueError: No attempt of this pod is running.
        """
        flight = self._in_flight.get(queued.identity)
        if flight is None:
            raise ValueError(f"pod {queued.pod.key} is not in flight")
        if flight.deleted or flight.queued is not queued:
            self.done(queued)
            return None
        queued.pod = flight.latest or queued.pod
        queued.rejectors, queued.pending, queued.gated_by = rejectors, pending, ""
        queued.queued_at, queued.flushed, queued.yields_until = self._clock.monotonic(), False, -math.inf
        if rejectors or pending:
            queued.unschedulable_count += 1
            queued.consecutive_errors = 0
        else:
            queued.consecutive_errors += 1
        return flight

    def put_off(self, queued: QueuedPod, plugin: str) -> None:
        """End an attempt before its cycle, because a plugin delays the pod; the plugin's hints then retry the pod.

        The attempt does not count: the pod has no backoff and keeps its place in the queue.
        """
        self._in_flight.end(queued.identity)
        queued.attempts -= 1
        queued.rejectors, queued.pending, queued.is_put_off = NO_PLUGINS, frozenset((plugin,)), True
        self._queues.wait(queued, "ScheduleAttemptFailure")

    def fail(self, queued: QueuedPod) -> bool:
        """End an attempt that failed with an error; the pod is retried after a backoff.

        Raises:
            ValueError: No attempt of this pod is running.
        """
        return self.reject(queued, NO_PLUGINS)

    def release(self, queued: QueuedPod) -> None:
        """Stop recording cluster changes for a pod in flight, because no plugin can reject the pod any more."""
        self._in_flight.release(queued.identity)

    def done(self, queued: QueuedPod) -> None:
        """End an attempt whose pod does not return to the queue; do nothing if no attempt is running."""
        if self._flight_of(queued) is None:
            return
        self._in_flight.end(queued.identity)
        queued.stage = Stage.NOWHERE
        if self._pods.get(queued.identity) is queued:
            del self._pods[queued.identity]

    def flush(self) -> None:
        """Activate pods whose backoff is over, call the hints of due timers, and retry pods after the maximum wait."""
        now = self._clock.monotonic()
        if self._queues.end_backoffs(now, CHUNK):
            self._next_window = math.floor(now) + WINDOW
        if due := self._timers.take_due():
            self._in_flight.record(Occurrence(TIME_PASSES))
            self._moves.run(due, partial(self._judge, TIME_PASSES))
        if now < self._next_sweep:
            return
        self._next_sweep += SWEEP * (1 + (now - self._next_sweep) // SWEEP)
        waiting = self._queues.waiting
        late = [one for one in waiting if now - max(one.queued_at, one.flushed_at) > self.max_unschedulable]
        for queued in late:
            queued.flushed_at = now
        if late:
            # As in kube-scheduler: the event concerns every pod.
            self._in_flight.record(Occurrence(pushes_all=True))
        self._moves.run(late, partial(self._try_again, self._clock.monotonic() + SWEEP))

    def next_wake(self) -> float | None:
        """Return the monotonic time at which `pop` may return a pod without any cluster change; None if never."""
        if self._queues.poppable or self._moves:
            return self._clock.monotonic()
        sweep = min(self._next_sweep, self._timers.due) if len(self._queues.waiting) else math.inf
        earliest = min(sweep, self._queues.completing_until)
        return None if earliest == math.inf else earliest

    @property
    def needs_changes(self) -> bool:
        """Whether the queue must be informed of cluster changes (`move`), because pods wait or are in flight."""
        return self._in_flight.is_recording or len(self._queues.waiting) > 0

    def move(self, change: Change, but: str = "", *, at_most: int | None = None) -> int:
        """Requeue the waiting pods that a change may help, and record the change for pods in flight.

        Args:
            change: The change.
            but: Identity of a pod that is skipped.
            at_most: Highest priority of pods that are requeued; None for no limit.

        Returns:
            How many pods were requeued at once. The other pods are judged later, before attempts.
        """
        if change.nothing or not self.needs_changes:
            return 0
        concerned: dict[str, QueuedPod] = {}
        interesting = False
        for profile, interests in self.profiles.items():
            matching = interests.matching(change)
            interesting = interesting or bool(matching)
            for plugin, hints in matching.items():
                concerned.update(self._queues.waiting.found_by(change, profile, plugin, index_of(hints)))
        concerned.pop(but, None)
        if at_most is not None:
            concerned = {
                identity: queued for identity, queued in concerned.items() if pod_priority(queued.pod) <= at_most
            }
        if interesting:
            self._in_flight.record(Occurrence(change))
        return self._moves.run(concerned.values(), partial(self._judge, change))

    def move_rejected_by(self, plugins: frozenset[str], event: str = "SchedulingPolicyUpdate") -> int:
        """Requeue the pods that given plugins rejected, because the plugins changed; return their number.

        Args:
            plugins: The names of the plugins.
            event: The change's name in logs and metrics.
        """
        self._in_flight.record(Occurrence(plugins=plugins))
        concerned = {
            identity: queued
            for profile in self.profiles
            for plugin in plugins
            for identity, queued in self._queues.waiting.held_by(profile, plugin).items()
            if not plugins.isdisjoint(queued.rejectors | queued.pending)
        }
        self._moves.run(concerned.values(), partial(self._requeue, event))
        return len(concerned)

    def activate(self, identities: Iterable[str]) -> None:
        """Make pods active without backoff; a pod in flight is retried if its attempt fails."""
        for identity in identities:
            queued = self._pods.get(identity)
            if queued is None or queued.stage is Stage.ACTIVE:
                continue
            if queued.stage is Stage.IN_FLIGHT:
                self._in_flight.record(Occurrence(only=identity))
            else:
                self._queues.enter_active(queued, "ForceActivate")

    def latest(self, queued: QueuedPod) -> Pod:
        """Return the newest version of a pod whose attempt is running."""
        flight = self._flight_of(queued)
        return (flight.latest if flight is not None else None) or queued.pod

    def _flight_of(self, queued: QueuedPod) -> Flight | None:
        """Return a pod's running attempt; None if the attempt belongs to a deleted earlier pod with the same UID."""
        flight = self._in_flight.get(queued.identity)
        return flight if flight is not None and flight.queued is queued else None

    def get(self, identity: str) -> QueuedPod | None:
        """Return a pod that is queued or in flight; None if it is neither."""
        return self._pods.get(identity)

    def counts(self) -> QueueCounts:
        """Return the number of pods in each queue (active, backoff, unschedulable, gated)."""
        return self._queues.counts()

    def entity_counts(self) -> Mapping[str, QueueCounts]:
        """Return the number of entities in each queue, by kind; an entity is a pod, or a pod group with its members."""
        return {"pod": self.counts()}

    def held_counts(self) -> Mapping[str, int]:
        """Return the number of pods that wait for their pod group and are in no queue, by reason."""
        return {"incomplete": 0, "pending": 0}

    @property
    def in_flight(self) -> tuple[int, int]:
        """The number of running attempts, and of cluster changes recorded for running attempts."""
        return len(self._in_flight), self._in_flight.occurrences

    @property
    def profiles(self) -> Mapping[str, Interests]:
        """For each profile, its PreEnqueue plugins and queueing hints; replaced when plugins or policies change."""
        return self._queues.profiles

    @profiles.setter
    def profiles(self, profiles: Mapping[str, Interests]) -> None:
        self._queues.profiles = profiles

    def use_backoff(self, backoff: Backoff) -> None:
        """Replace the backoff, also for pods that are in backoff now."""
        self._queues.use_backoff(backoff)

    def wake_with(self, on_ready: Callable[[], None]) -> None:
        """Set a function that is called when a pod becomes ready or `next_wake` may have changed."""
        self._queues.on_ready = on_ready

    def measure_with(self, timing: Timing | None) -> None:
        """Set the object that records durations of queueing hints and PreEnqueue plugins; None records none."""
        self._judging.timing = self._queues.timing = timing

    def rejections(self) -> Counter[tuple[str, str]]:
        """Return the number of waiting pods that each plugin rejected, by plugin and profile; thread-safe."""
        counts: Counter[tuple[str, str]] = Counter()
        for queued in tuple(self._pods.values()):
            if queued.stage is not Stage.IN_FLIGHT:
                counts.update((plugin, queued.profile) for plugin in queued.rejectors | queued.pending)
        return counts

    def events_in_flight(self) -> Counter[str]:
        """Return the number of changes recorded for running attempts, by kube-scheduler's event names; thread-safe."""
        counts = Counter(_event_of(one) for one in self._in_flight.kept())
        counts[POD_POPPED] = self._in_flight.listening
        return counts

    def report_to(self, on_queued: OnQueued) -> None:
        """Set the function to call when a pod enters a queue."""
        self._queues.on_queued = on_queued

    def _requeue(self, event: str, queued: QueuedPod) -> bool:
        """Requeue a waiting pod without calling queueing hints; `event` is the event name in logs and metrics."""
        return self._queues.retry(queued, QueueingStrategy.AFTER_BACKOFF, event)

    def _try_again(self, until: float, queued: QueuedPod) -> bool:
        """Requeue a pod that waited for the maximum time; until the time `until`, other ready pods precede it."""
        queued.yields_until = until
        queued.flushed = self._requeue("UnschedulableTimeout", queued)
        return queued.flushed

    def _judge(self, change: Change, queued: QueuedPod) -> bool:
        """Requeue a waiting pod if a change may help it; otherwise set a timer if elapsed time may help it."""
        verdict = self._judging.of_change(queued, change)
        if verdict is QueueingStrategy.SKIP:
            self._timers.set(queued, self._judging.listeners(queued))
            return False
        is_own = change.new is queued.pod
        return (self._queues.requeue if is_own else self._queues.retry)(queued, verdict, label(change))


def _event_of(occurrence: Occurrence) -> str:
    if occurrence.change is not None:
        return label(occurrence.change)
    if occurrence.only:
        return "ForceActivate"
    return "UnschedulableTimeout" if occurrence.pushes_all else "SchedulingPolicyUpdate"


class Waiter:
    """Waits until `Queue.pop` can return a pod."""

    def __init__(self, queue: Queue, clock: Clock) -> None:
        self._queue, self._clock = queue, clock
        self._event = asyncio.Event()
        queue.wake_with(self._event.set)

    def wake(self) -> None:
        """End the wait although no pod is ready, for example at shutdown."""
        self._event.set()

    async def wait(self) -> None:
        """Wait until `pop` can return a pod or `wake` is called; return at once if either is already true."""
        wake = self._queue.next_wake()
        delay = None if wake is None else wake - self._clock.monotonic()
        if delay is not None and delay <= 0:
            await asyncio.sleep(0)
        else:
            # Not wait_for: in Python 3.11 it swallows a cancellation that comes as the event does.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(delay):
                    await self._event.wait()
        self._event.clear()
