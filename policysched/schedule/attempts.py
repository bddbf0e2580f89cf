"""`Attempts`: runs scheduling attempts, each of which decides about a pod, assumes the pod and starts its binding.

An attempt awaits nothing but extenders and, if `MAX_BINDINGS` bindings are running, the end of one of them.

Source: pkg/scheduler/schedule_one.go (ScheduleOne, schedulingCycle, handleSchedulingFailure).
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Final

from policysched.framework import AssumedPod, Client, Clock, Event, Handle, RowNumbers
from policysched.framework.binding import Undo
from policysched.framework.profile import Profile
from policysched.klog import V3
from policysched.schedule.binding import Binder, Failure
from policysched.schedule.cluster_changes import ClusterChanges
from policysched.schedule.cycle import with_extenders
from policysched.schedule.cycle.decision import Decision
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.post_filter import FailedCycle, message_of, run_post_filters
from policysched.schedule.observer import AttemptResult, Observers, notify
from policysched.schedule.queue.queue import Queue
from policysched.schedule.queue.queued_pod import QueuedPod, Stage
from policysched.schedule.shadow_guards import ShadowGuards
from policysched.schedule.timing import CYCLE_POINTS, POD, POST_FILTER, Timing, at_point
from policysched.state.cluster import Cluster

log = logging.getLogger(__name__)
TURN: Final = 0.003
"""Time for scheduling cycles in a row, after which the event loop runs other tasks. Units: seconds."""
LISTENING: Final = 10.0
"""Longest time for which cluster changes are recorded for a failed pod while its writes are undone. Units: seconds."""
MAX_BINDINGS: Final = 512
"""Maximum number of running bindings; at the maximum, the next attempt waits.

Bindings that wait for plugins, or for an extender that binds, do not count.
"""
COSTLY: Final = 0.03
"""Duration from which a cycle is expensive: the pod, if rejected, then waits its whole backoff. Units: seconds."""


class Attempts:
    """Runs the scheduling attempts of the pods of all profiles.

    Attributes:
        rng: Random generator that chooses among equally good nodes.
        tasks: The bindings and other requests that are running.
        shadows: Counts the victims that policies in Shadow mode would have protected.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - dependencies are passed in
        self,
        cluster: Cluster,
        queue: Queue,
        profiles: Mapping[str, Profile],
        engines: Mapping[str, Engine],
        binder: Binder,
        changes: ClusterChanges,
        client: Client,
        clock: Clock,
        rng: random.Random,
        observers: Observers,
        timing: Timing | None,
    ) -> None:
        """Create the object that runs scheduling attempts.

        Args:
            cluster: The cluster, in which pods are assumed.
            queue: The queue, to which rejected pods return.
            profiles: The profiles by name.
            engines: The engines by profile name.
            binder: Runs the binding cycles.
            changes: Receives changes of the cluster.
            client: Writes to the API server.
            clock: The time.
            rng: Random generator that chooses among equally good nodes.
            observers: Receive the decisions.
            timing: Records durations; None if no durations are recorded.
        """
        self._cluster, self._queue = cluster, queue
        self._profiles, self._engines = profiles, engines
        self._binder, self._changes, self._client = binder, changes, client
        self._clock, self.rng = clock, rng
        self._observers, self._timing = observers, timing
        self.shadows = ShadowGuards()
        self._began_at = 0.0
        """Start of the running cycle, or of its continuation after extenders answered. Units: seconds, monotonic."""
        self.tasks: set[asyncio.Task[None]] = set()
        self._room = asyncio.Semaphore(MAX_BINDINGS)

    async def make(self, queued: QueuedPod) -> None:
        """Run the scheduling cycle of a popped pod, and start its binding or return the pod to the queue."""
        pod = queued.pod
        try:
            if not self._is_tried_now(queued):
                return
            self._changes.update_time()
            self._began_at = self._clock.monotonic()
            if log.isEnabledFor(V3):
                log.log(V3, "Attempting to schedule pod", {"pod": queued.pod.key})
            decision = await self.decide(queued)
            if decision is None:
                self._queue.done(queued)
                return
            queued.completes_backoff = self._clock.monotonic() - self._began_at >= COSTLY
            if decision.row < 0:
                await self._decided_against(queued, decision)
            else:
                await self._place(queued, decision)
        except Exception as error:
            log.exception('the scheduling cycle of pod "%s" failed; the pod is retried', pod.key)
            self._cluster.forget(queued.identity)  # its binding has not begun
            if queued.stage is Stage.IN_FLIGHT:
                self.fail(queued, Failure(AttemptResult.ERROR, f"the scheduling cycle failed: {error!r}"))

    def fail(self, queued: QueuedPod, failure: Failure, before: Sequence[Undo] = ()) -> None:
        """End an attempt that failed: return the pod to the queue and write the reason to the API server.

        Args:
            queued: The pod.
            failure: The reason.
            before: Requests to complete before the pod is retried, because the retry depends on them.
        """
        outside = (*failure.undo, *before)
        if outside:
            failure = self._binder.store_nomination(queued, failure)
            self.start(queued.pod.key, self._fail_after(queued, failure, outside))
            return
        self._binder.requeue(queued, failure)
        self.start(queued.pod.key, self._binder.report_failure(queued.pod, failure))

    async def _fail_after(self, queued: QueuedPod, failure: Failure, outside: Iterable[Undo]) -> None:
        """Undo the API writes of a failed attempt, then end the attempt; record changes for at most `LISTENING`."""
        release = asyncio.get_running_loop().call_later(LISTENING, self._queue.release, queued)
        try:
            await self._binder.undo(queued.pod, outside)
        finally:
            release.cancel()
        if self._queue.get(queued.identity) is not queued or queued.identity in self._cluster.pods.by_id:
            self._queue.done(queued)
        elif self._binder.requeue(queued, failure):
            await self._binder.report_failure(queued.pod, failure)

    async def finish(self, seconds: float) -> None:
        """Wait until running bindings and status writes have ended; cancel requests that still run after `seconds`.

        Args:
            seconds: Maximum time.
        """
        self._binder.stop_waiting()
        if not self.tasks:
            return
        _, late = await asyncio.wait(self.tasks, timeout=seconds)
        for task in late:
            task.cancel()
        if late:
            log.warning("stopped before the API server answered %d binding or status request(s)", len(late))
            await asyncio.gather(*late, return_exceptions=True)

    def _state_of(self, engine: Engine) -> tuple[int, int, Profile]:
        """Return a value that differs after any change of cluster, nominations or profile on which decisions depend."""
        return self._changes.count, self._cluster.nominations.stamp, engine.profile

    def _is_tried_now(self, queued: QueuedPod) -> bool:
        """Return whether the pod's cycle runs now; end the attempt if no cycle is needed or a plugin delays the pod."""
        if self.skips(queued):
            self._queue.done(queued)
            return False
        if not queued.is_put_off and (plugin := self._profiles[queued.profile].put_off_by(queued.pod, self._cluster)):
            self._queue.put_off(queued, plugin)
            return False
        queued.is_put_off = False
        return True

    def skips(self, queued: QueuedPod) -> bool:
        """Return whether a pod needs no attempt because it is being deleted or is already on a node."""
        pod = queued.pod
        if pod.metadata.deletion_timestamp is None:
            return queued.identity in self._cluster.pods.by_id
        note = f"skip schedule deleting pod: {pod.key}"
        self._client.record(Event(pod, "Warning", "FailedScheduling", "Scheduling", note, self._clock.now()))
        return True

    async def decide(self, queued: QueuedPod, placement: RowNumbers | None = None) -> Decision | None:
        """Run the filters and scores for a pod, call its extenders, and report the decision to observers.

        Args:
            queued: The pod.
            placement: The rows of the placement of the pod's group; None for all nodes.

        Returns:
            The decision, None if the pod was deleted or placed while extenders were called.
        """
        decision = await self._decided(queued, placement)
        if decision is None:
            return None
        if self._observers:
            notify(self._observers, lambda one: one.on_decision(queued, decision))
        if self._timing is not None:
            self._record_times(self._timing, queued.profile, decision)
        return decision

    async def _decided(self, queued: QueuedPod, placement: RowNumbers | None) -> Decision | None:
        pod, engine = queued.pod, self._engines[queued.profile]
        extenders = self._profiles[queued.profile].extending(pod)
        if not extenders:
            return engine.decide(pod, None, placement)
        before = self._state_of(engine)
        answers = await with_extenders.ask(engine, pod, extenders, placement)
        self._began_at = self._clock.monotonic()
        if self._queue.get(queued.identity) is not queued or queued.identity in self._cluster.pods.by_id:
            return None
        self._changes.update_time()
        moved = self._state_of(engine) != before
        return with_extenders.choose(engine, pod, answers, moved=moved, placement=placement)

    def _record_times(self, timing: Timing, profile: str, decision: Decision) -> None:
        """Record how long each extension point took in a decision."""
        times = self._engines[profile].times
        if times is None:
            return
        if decision.failure is None and decision.rejection is None:
            timing.decided(profile, times.seconds)
            return
        for point, seconds in zip(CYCLE_POINTS, times.seconds, strict=True):
            if seconds:
                timing.point(point, decision.code_at(point), profile, seconds)

    async def _place(self, queued: QueuedPod, decision: Decision) -> None:
        """Assume a pod on its node and start its binding, unless a Reserve or Permit plugin rejects the pod."""
        assumed = AssumedPod(queued.pod, decision.node, self._cluster, decision.state)
        self._cluster.assume(assumed.pod, decision.row, decision.evaluation.pod_resources)
        if self.admit(queued, assumed):
            await self.bind(queued, assumed)

    def admit(self, queued: QueuedPod, assumed: AssumedPod) -> bool:
        """Run Reserve and Permit for an assumed pod; if a plugin rejects the pod, end its attempt and return False."""
        failure = self._binder.admit(queued, assumed, self._profiles[queued.profile])
        if failure is not None:
            self.fail(queued, failure)
        return failure is None

    async def bind(self, queued: QueuedPod, assumed: AssumedPod) -> None:
        """Start the binding of an admitted pod; if `MAX_BINDINGS` are running, first wait until one ends."""
        pod, profile = assumed.pod, self._profiles[queued.profile]
        if self._binder.will_wait(queued, assumed, profile):
            self.start(pod.key, self._binder.bind(queued, assumed, profile))
            return
        self._queue.release(queued)
        if profile.extenders and any(one.binds for one in profile.extending(pod)):
            self.start(pod.key, self._binder.bind(queued, assumed, profile))
            return
        await self._room.acquire()
        self.start(pod.key, self._bind(queued, assumed, profile))

    async def _bind(self, queued: QueuedPod, assumed: AssumedPod, profile: Profile) -> None:
        try:
            await self._binder.bind(queued, assumed, profile)
        finally:
            self._room.release()

    async def _decided_against(self, queued: QueuedPod, decision: Decision) -> None:
        """Run the PostFilter plugins for a pod without a feasible node, then end its attempt."""
        if decision.failed:
            self.fail(queued, Failure(AttemptResult.ERROR, decision.error()))
            return
        profile = self._profiles[queued.profile]
        pod = self._queue.latest(queued)
        fit_error, rejectors, pending = decision.fit_error(), decision.rejectors(), decision.pending()
        self._queue.note_decision(queued, rejectors)
        engine = self._engines[queued.profile]
        finding = run_post_filters(profile.post_filters, pod, self.failed_cycle(queued, decision), self._timing)
        result = await at_point(self._timing, POST_FILTER, queued.profile, finding)
        if result.victims:
            self.shadows.look(engine.profile.shadow_guards, pod, self._cluster, result.victims)
        if self._queue.get(queued.identity) is not queued:
            self._queue.done(queued)  # deleted while extenders were called: no victim has to leave
            return
        message = message_of(fit_error, result)
        rejectors |= result.rejectors | self._queue.listening(queued, result.rejecting_anyway)
        failure = Failure(AttemptResult.UNSCHEDULABLE, message, rejectors, pending, nominated=result.nominated_node)
        if self._observers and result.victims:
            notify(self._observers, lambda one: one.on_preemption(queued, result))
        if result.act is not None:
            self.make_room(pod.key, POD, result.act)
        self.fail(queued, failure, result.cleanups)

    def failed_cycle(self, queued: QueuedPod, decision: Decision) -> FailedCycle:
        """Return the object through which PostFilter plugins read a decision without a feasible node."""
        extenders = self._profiles[queued.profile].extending(self._queue.latest(queued))
        return FailedCycle(decision, self.rng, extenders, self._engines[queued.profile].profile.victim_guards)

    def make_room(self, key: str, kind: str, act: Callable[[Handle], Awaitable[bool | None]]) -> None:
        """Start a task that evicts the victims of a preemption.

        Args:
            key: `namespace/name` of the preemptor.
            kind: The kind of the preemptor.
            act: Starts the evictions.
        """
        self.start(key, self._making_room(kind, act(self._binder.handle)))

    def engine_of(self, profile: str) -> Engine:
        """Return the engine that decides about the pods of a profile."""
        return self._engines[profile]

    async def _making_room(self, kind: str, work: Awaitable[bool | None]) -> None:
        timing, succeeded = self._timing, False
        began = 0.0 if timing is None else timing.now()
        try:
            succeeded = await work is not False
        finally:
            if timing is not None:
                timing.preempted(kind, timing.now() - began, succeeded=succeeded)

    def start(self, key: str, work: Coroutine[Any, Any, None]) -> None:
        """Start a task that sends requests for a pod; log its failure.

        Args:
            key: `namespace/name` of the pod.
            work: Sends the requests.
        """
        task = asyncio.create_task(work, name=key)
        self.tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error('the binding, preemption or status update of pod "%s" failed', task.get_name(), exc_info=error)
