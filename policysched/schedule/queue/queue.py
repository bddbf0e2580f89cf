"""`Queue`, the whole scheduling queue (kube-scheduler's PriorityQueue), over its parts.

Four places: active (ready, in the order of the QueueSort plugin), backoff (had its turn, waits a while),
unschedulable (until a change that a rejecting plugin says can help), and gated (kept out by a PreEnqueue plugin).
Time comes in as a clock; the queue neither sleeps nor runs by itself, so `pop` moves along what has become ready.
While active is empty, pods are taken from backoff early: an idle scheduler has nothing better to do. After errors they
are not, because an API server in trouble has, nor after costly attempts, because a loop to which events come has. Those
that come back only because they waited for so long go through backoff, too, so that thousands of them do not keep a new
pod waiting.

Source: pkg/scheduler/backend/queue/scheduling_queue.go, KEP-5142.
"""

from __future__ import annotations

import asyncio
import contextlib
import math
from collections import Counter
from collections.abc import Callable, Iterable, Mapping, Sequence
from functools import partial

from policysched.framework import Action, Change, Clock, Cluster, QueueSortPlugin, Resource
from policysched.model.objects import Pod
from policysched.model.pod_requirements import pod_priority
from policysched.schedule.queue.costly_attempts import CostlyAttempts
from policysched.schedule.queue.hints import Interests, QueueingStrategy, index_of, label
from policysched.schedule.queue.in_flight import Flight, InFlight, Occurrence
from policysched.schedule.queue.judging import TIME_PASSES, Judging
from policysched.schedule.queue.queued_pod import NO_PLUGINS, QueuedPod, Stage
from policysched.schedule.queue.subqueues import WINDOW, Backoff, OnQueued, PodQueues, QueueCounts
from policysched.schedule.queue.timers import Timers
from policysched.schedule.queue.unschedulable import PORTION, Moves, portion
from policysched.schedule.timing import Timing
from policysched.state.cluster_events import pod_difference
from policysched.state.placed.pods import pod_id

POD_POPPED = "PodPopped"
"""What kube-scheduler calls an attempt among the events that are kept."""
SWEEP = 30.0
"""How often pods that have waited too long are looked for. Units: seconds."""


class Queue:
    """All pods that wait for a node, and those whose attempt is under way."""

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
        self._queues = PodQueues(clock, sort, cluster, profiles, backoff or Backoff())
        self._in_flight = InFlight()
        self._timers = Timers(clock, cluster)
        self._judging = Judging(clock, cluster, self._queues, self._in_flight)
        self._moves = Moves(partial(self._requeue, "ManyChanges"))
        self._costly = CostlyAttempts()
        now = clock.monotonic()
        self._next_window, self._next_sweep = math.floor(now) + WINDOW, now + SWEEP

    def add(self, pod: Pod) -> None:
        """Take in a pending pod; one that is known is updated."""
        identity = pod_id(pod)
        if identity in self._pods:
            self.update(pod)
            return
        queued = self._pods[identity] = QueuedPod(pod, identity, self._clock.monotonic())
        self._queues.enter_active(queued, "UnschedulablePodAdd")

    def update(self, pod: Pod) -> None:
        """Take a new version of a pending pod; one that is not known is added."""
        queued = self._pods.get(pod_id(pod))
        if queued is None:
            self.add(pod)
            return
        flight = self._flight_of(queued)
        old = (flight.latest if flight else None) or queued.pod
        # kube-scheduler calls an update of a pending pod in which nothing matters, as its condition's, a general one.
        change = Change(Resource.PENDING_POD, pod_difference(old, pod) or Action.UPDATE_OTHER, old, pod)
        if flight is not None:
            flight.latest = pod
            if not change.nothing:
                self._in_flight.record(Occurrence(change, queued.identity))
            return
        queued.pod = pod
        if queued.stage is Stage.UNSCHEDULABLE:
            self._queues.list_anew(queued)
            if not change.nothing:
                self._judge_all(change, [queued])
        else:
            self._queues.reorder(queued)

    def renew(self, pod: Pod) -> None:
        """Take a new version of a pod that counts on its node while it is bound: nothing of it wakes anybody."""
        identity = pod_id(pod)
        flight = self._in_flight.get(identity)
        if flight is not None and self._pods.get(identity, flight.queued) is flight.queued:
            flight.latest = pod

    def delete(self, identity: str) -> bool:
        """Drop a pod wherever it is; an attempt under way ends without its coming back."""
        queued = self._pods.pop(identity, None)
        if queued is None:
            return False
        flight = self._in_flight.get(identity)
        if flight is not None:
            flight.deleted = True
        self._queues.leave(queued)
        return True

    def pop(self) -> QueuedPod | None:
        """Take the next pod to be tried, or None; one of `reject`, `fail` and `done` must follow."""
        now = self._clock.monotonic()
        if now >= min(self._next_window, self._next_sweep, self._timers.due):
            self.flush()
        self._moves.go_on()
        queued = self._queues.take_first()
        if queued is not None:
            queued.stage = Stage.IN_FLIGHT
            queued.attempts += 1
            queued.tried_at, queued.took = now, 0.0
            self._in_flight.begin(queued)
        return queued

    def note_decision(self, queued: QueuedPod, rejectors: frozenset[str]) -> None:
        """Note that a pod is decided against now: when time alone may change that is to be known from here on."""
        flight = self._flight_of(queued)
        known = self._judging.interests(queued).listeners
        if flight is not None and known:
            due = [self._timers.retry_at(known[one], queued) for one in rejectors if one in known]
            flight.due = min((at for at in due if at is not None), default=None)

    def listening(self, queued: QueuedPod, plugins: frozenset[str]) -> frozenset[str]:
        """Return those of some plugins that hear which pods they rejected, under the pod's profile."""
        return self._judging.listening(queued, plugins)

    def reject(self, queued: QueuedPod, rejectors: frozenset[str], pending: frozenset[str] = NO_PLUGINS) -> bool:
        """Take back a pod that plugins turned away, judging what happened meanwhile; return whether it still exists.

        Raises:
            ValueError: no attempt of this pod is under way.
        """
        flight = self._in_flight.get(queued.identity)
        if flight is None:
            raise ValueError(f"pod {queued.pod.key} is not in flight")
        if flight.deleted or flight.queued is not queued:
            self.done(queued)
            return False
        queued.pod = flight.latest or queued.pod
        queued.rejectors, queued.pending, queued.gated_by = rejectors, pending, ""
        now = self._clock.monotonic()
        queued.queued_at, queued.flushed, queued.yields_until = now, False, -math.inf
        queued.rests_until = self._costly.rests_until(queued.pod.metadata.namespace, queued.took, now)
        if rejectors or pending:
            queued.unschedulable_count += 1
            queued.consecutive_errors = 0
        else:
            queued.consecutive_errors += 1
        for plugin in self._judging.listeners(queued):
            plugin.on_rejected(queued.pod, self._cluster)
        verdict = self._judging.missed(flight)
        self._in_flight.end(queued.identity)
        self._queues.requeue(queued, verdict, "ScheduleAttemptFailure")
        self._timers.set(queued, self._judging.listeners(queued))
        return True

    def put_off(self, queued: QueuedPod, plugin: str) -> None:
        """Let a pod that was popped wait for a change that this plugin's hints name, as if it had not been tried.

        It keeps its place in the queue, and has no backoff then.
        """
        self._in_flight.end(queued.identity)
        queued.attempts -= 1
        queued.rejectors, queued.pending, queued.is_put_off = NO_PLUGINS, frozenset((plugin,)), True
        self._queues.wait(queued, "ScheduleAttemptFailure")

    def fail(self, queued: QueuedPod) -> bool:
        """Take back a pod whose attempt ended in an error: it is tried again after a backoff, without any event.

        Raises:
            ValueError: no attempt of this pod is under way.
        """
        return self.reject(queued, NO_PLUGINS)

    def release(self, queued: QueuedPod) -> None:
        """Say that no plugin will reject the pod any more, so that changes need not be kept for it."""
        self._in_flight.release(queued.identity)

    def done(self, queued: QueuedPod) -> None:
        """End an attempt whose pod does not come back; saying it twice does no harm."""
        if self._flight_of(queued) is None:
            return
        self._in_flight.end(queued.identity)
        queued.stage = Stage.NOWHERE
        if self._pods.get(queued.identity) is queued:
            del self._pods[queued.identity]

    def flush(self) -> None:
        """Make pods ready whose backoff is over, and try those again that time helps or that have waited too long."""
        now = self._clock.monotonic()
        if self._queues.end_backoffs(now, PORTION):
            self._next_window = math.floor(now) + WINDOW
        if due := self._timers.take_due():
            self._in_flight.record(Occurrence(TIME_PASSES))
            self._in_portions(due, partial(self._judge_all, TIME_PASSES))
        if now < self._next_sweep:
            return
        self._next_sweep += SWEEP * (1 + (now - self._next_sweep) // SWEEP)
        waiting = (queued for queued in self._queues.waiting if not queued.gated_by)
        late = [queued for queued in waiting if now - queued.queued_at > self.max_unschedulable]
        if late:
            # as in kube-scheduler, where it is an event that is meant for every pod
            self._in_flight.record(Occurrence(pushes_all=True))
        self._in_portions(late, self._try_again)

    def next_wake(self) -> float | None:
        """Return the monotonic time at which a pod may become poppable by the passing of time, or None."""
        if self._queues.poppable or self._moves:
            return self._clock.monotonic()
        waiting = self._queues.waiting
        sweep = min(self._next_sweep, self._timers.due) if len(waiting) > waiting.gated else math.inf
        earliest = min(sweep, self._queues.held_until)
        return None if earliest == math.inf else earliest

    @property
    def hears(self) -> bool:
        """Whether there is a pod that a change may help: one that waits for it, or that is being tried."""
        return self._in_flight.keeps or len(self._queues.waiting) > 0

    def move(self, change: Change, but: str = "", *, at_most: int | None = None) -> int:
        """Requeue the pods that a change may help, and keep it for those in flight; count the former.

        Of many pods the first are judged now, and the others while pods are popped. The pod `but` is left alone, and so
        are pods of a higher priority than `at_most` where one is given.
        """
        if change.nothing or not self.hears:
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
        return self._in_portions(list(concerned.values()), partial(self._judge_all, change))

    def move_rejected_by(self, plugins: frozenset[str], event: str = "SchedulingPolicyUpdate") -> int:
        """Requeue the pods that these plugins had rejected, because the plugins changed; count them.

        The first of many pods are requeued now, the others while pods are popped.

        Args:
            plugins: The names of the plugins.
            event: What logs and metrics call the change.
        """
        self._in_flight.record(Occurrence(plugins=plugins))
        concerned = {
            identity: queued
            for profile in self.profiles
            for plugin in plugins
            for identity, queued in self._queues.waiting.held_by(profile, plugin).items()
            if not plugins.isdisjoint(queued.rejectors | queued.pending)
        }
        self._in_portions(list(concerned.values()), partial(self._requeue, event))
        return len(concerned)

    def activate(self, identities: Iterable[str]) -> None:
        """Make pods ready at once, without backoff; one in flight is tried again if it is rejected."""
        for identity in identities:
            queued = self._pods.get(identity)
            if queued is None or queued.stage is Stage.ACTIVE:
                continue
            if queued.stage is Stage.IN_FLIGHT:
                self._in_flight.record(Occurrence(only=identity))
            else:
                self._queues.enter_active(queued, "ForceActivate")

    def latest(self, queued: QueuedPod) -> Pod:
        """Return a pod whose attempt is under way as it is known now."""
        flight = self._flight_of(queued)
        return (flight.latest if flight is not None else None) or queued.pod

    def _flight_of(self, queued: QueuedPod) -> Flight | None:
        """Return a pod's attempt that is under way: one of its UID may be that of a pod that went before it came."""
        flight = self._in_flight.get(queued.identity)
        return flight if flight is not None and flight.queued is queued else None

    def get(self, identity: str) -> QueuedPod | None:
        """Find a pod, queued or in flight."""
        return self._pods.get(identity)

    def counts(self) -> QueueCounts:
        """Count the pods in each place."""
        return self._queues.counts()

    @property
    def in_flight(self) -> tuple[int, int]:
        """How many attempts are under way, and how many occurrences are kept for them."""
        return len(self._in_flight), self._in_flight.occurrences

    @property
    def profiles(self) -> Mapping[str, Interests]:
        """Gates and hints by profile; replaced as a whole when plugins or policies change."""
        return self._queues.profiles

    @profiles.setter
    def profiles(self, profiles: Mapping[str, Interests]) -> None:
        self._queues.profiles = profiles

    def use_backoff(self, backoff: Backoff) -> None:
        """Let pods wait for other times from now on, those too that wait already."""
        self._queues.use_backoff(backoff)

    def wake_with(self, on_ready: Callable[[], None]) -> None:
        """Have a function called whenever a pod becomes poppable, or the passing of time may make it so."""
        self._queues.on_ready = on_ready

    def measure_with(self, timing: Timing | None) -> None:
        """Say from now on what hints and gates take; None for nobody."""
        self._judging.timing = self._queues.timing = timing

    def rejections(self) -> Counter[tuple[str, str]]:
        """Count the pods that wait for another attempt by each plugin that turned them away, and profile.

        It may be asked from any thread.
        """
        counts: Counter[tuple[str, str]] = Counter()
        for queued in tuple(self._pods.values()):
            if queued.stage is not Stage.IN_FLIGHT:
                counts.update((plugin, queued.profile) for plugin in queued.rejectors | queued.pending)
        return counts

    def events_in_flight(self) -> Counter[str]:
        """Count what is kept for attempts under way, by kube-scheduler's names; it may be asked from any thread."""
        counts = Counter(_event_of(one) for one in self._in_flight.kept())
        counts[POD_POPPED] = self._in_flight.listening
        return counts

    def report_to(self, on_queued: OnQueued) -> None:
        """Have a function called whenever a pod enters a queue."""
        self._queues.on_queued = on_queued

    def _in_portions(self, pods: Sequence[QueuedPod], act: Callable[[Sequence[QueuedPod]], int]) -> int:
        """Do something with pods that wait: now with the first of them, and with the others while pods are popped."""
        now = portion(pods)
        if len(pods) > now:
            self._moves.add(pods[now:], act, self._clock.monotonic())
        return act(pods[:now]) if pods else 0

    def _requeue(self, event: str, pods: Sequence[QueuedPod]) -> int:
        """Requeue pods without evaluating hints; count them. `event` is what logs and metrics call the change."""
        return sum(self._queues.requeue(queued, QueueingStrategy.AFTER_BACKOFF, event) for queued in pods)

    def _try_again(self, pods: Sequence[QueuedPod]) -> int:
        """Requeue pods that have waited too long, for a while behind all others."""
        until = self._clock.monotonic() + SWEEP
        for queued in pods:
            queued.flushed, queued.yields_until = True, until
            self._queues.requeue(queued, QueueingStrategy.AFTER_BACKOFF, "UnschedulableTimeout")
        return len(pods)

    def _judge_all(self, change: Change, concerned: Iterable[QueuedPod]) -> int:
        """Requeue the pods that a change may help, by their matching hints; count them.

        For those that it does not help time may do it now, such as the age of a new node.
        """
        moved, event = 0, label(change)
        for queued, verdict in self._judging.waiting(change, concerned):
            if verdict is None:
                self._timers.again(queued)
            elif verdict is QueueingStrategy.SKIP:
                self._timers.set(queued, self._judging.listeners(queued))
            else:
                moved += self._queues.requeue(queued, verdict, event)
        return moved


def _event_of(occurrence: Occurrence) -> str:
    if occurrence.change is not None:
        return label(occurrence.change)
    if occurrence.only:
        return "ForceActivate"
    return "UnschedulableTimeout" if occurrence.pushes_all else "SchedulingPolicyUpdate"


class Waiter:
    """Waits until a pod may be popped."""

    def __init__(self, queue: Queue, clock: Clock) -> None:
        self._queue, self._clock = queue, clock
        self._event = asyncio.Event()
        queue.wake_with(self._event.set)

    def wake(self) -> None:
        """End a wait for another reason, a shutdown say."""
        self._event.set()

    async def wait(self) -> None:
        """Return when `pop` may give a pod, or after `wake`; at once where that has happened since the last wait."""
        wake = self._queue.next_wake()
        delay = None if wake is None else wake - self._clock.monotonic()
        if delay is None or delay > 0:
            # Not wait_for: in Python 3.11 it swallows a cancellation that comes as the event does.
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(delay):
                    await self._event.wait()
        self._event.clear()
