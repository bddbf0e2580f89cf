"""`Attempts`: one pod at a time is decided, assumed on its node and on its way to be bound, or turned away.

An attempt awaits extenders only and, where very many bindings are under way, the end of one.

Source: pkg/scheduler/schedule_one.go (ScheduleOne, schedulingCycle, handleSchedulingFailure).
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Mapping, Sequence
from typing import Any, Final

from policysched.framework import AssumedPod, Client, Clock, Event
from policysched.framework.binding import Undo
from policysched.framework.profile import Profile
from policysched.klog import V3
from policysched.model.objects import Pod
from policysched.schedule.binding import Binder, Failure
from policysched.schedule.cluster_changes import ClusterChanges
from policysched.schedule.cycle.decision import Decision
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.post_filter import FailedCycle, message_of, run_post_filters
from policysched.schedule.observer import AttemptResult, Observers, tell
from policysched.schedule.queue.queue import Queue
from policysched.schedule.queue.queued_pod import QueuedPod, Stage
from policysched.schedule.shadow_guards import ShadowGuards
from policysched.schedule.timing import CYCLE_POINTS, POST_FILTER, Timing, at_point
from policysched.state.cluster import Cluster

log = logging.getLogger(__name__)
TURN: Final = 0.003
"""How long cycles may follow each other before the loop gets its turn. Units: seconds."""
LISTENING: Final = 10.0
"""How long changes are kept for a pod while something is taken back outside. Units: seconds."""
MAX_BINDINGS: Final = 512
"""How many bindings may be under way before the next pod has to wait; those that wait for plugins, or for an extender
that binds, do not count."""


class Attempts:
    """Makes the scheduling attempts of some profiles.

    Attributes:
        tasks: Bindings and other writes that are under way.
        shadows: What policies in Shadow mode would have kept from being victims.
    """

    def __init__(  # noqa: PLR0913, PLR0917 - what is around it comes in
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
        processor: Callable[[], float],
        observers: Observers,
        timing: Timing | None,
    ) -> None:
        """Wire it up.

        Args:
            cluster: Where pods are assumed.
            queue: Where pods that are turned away wait.
            profiles: What decides, by name.
            engines: What runs the cycles, by profile.
            binder: Takes decided pods to their nodes.
            changes: The changes that the scheduler hears of.
            client: Writes to the API server.
            clock: The time.
            rng: What draws among equals.
            processor: The processor time that the loop's thread has taken, by which costly attempts are known.
            observers: Who hears of decisions.
            timing: What measures, if anything.
        """
        self._cluster, self._queue = cluster, queue
        self._profiles, self._engines = profiles, engines
        self._binder, self._changes, self._client = binder, changes, client
        self._clock, self._rng, self._processor = clock, rng, processor
        self._observers, self._timing = observers, timing
        self.shadows = ShadowGuards()
        self._went_on_at = 0.0
        """The processor time at which the attempt under way began, or went on after extenders had answered."""
        self.tasks: set[asyncio.Task[None]] = set()
        self._room = asyncio.Semaphore(MAX_BINDINGS)

    async def make(self, queued: QueuedPod) -> None:
        """Try a pod that was popped: run its cycle, and start its binding or take it back."""
        pod = queued.pod
        try:
            if not self._is_tried_now(queued):
                return
            self._changes.tell_time()
            self._went_on_at = self._processor()
            decision = await self._decide(queued)
            if decision is None:
                self._queue.done(queued)
                return
            if self._observers:
                tell(self._observers, lambda one: one.on_decision(queued, decision))
            if self._timing is not None:
                self._tell_times(self._timing, queued.profile, decision)
            if decision.row < 0:
                self._note_work(queued)
                await self._decided_against(queued, decision)
            else:
                await self._place(queued, decision)
        except Exception as error:
            log.exception('the scheduling cycle of pod "%s" failed; the pod is retried', pod.key)
            self._cluster.forget(queued.identity)  # its binding did not begin
            if queued.stage is Stage.IN_FLIGHT:
                self.fail(queued, Failure(AttemptResult.ERROR, f"the scheduling cycle failed: {error!r}"))

    def fail(self, queued: QueuedPod, failure: Failure, before: Sequence[Undo] = ()) -> None:
        """End an attempt that failed: the pod waits, and the API server is told why.

        Args:
            queued: The pod.
            failure: Why.
            before: What is to be done outside before the pod may be tried again: it could count on what goes then.
        """
        outside = (*failure.undo, *before)
        if outside:
            failure = self._binder.turn_away(queued, failure)
            self._start(queued.pod, self._fail_after(queued, failure, outside))
            return
        self._binder.take_back(queued, failure)
        self._start(queued.pod, self._binder.report_failure(queued.pod, failure))

    async def _fail_after(self, queued: QueuedPod, failure: Failure, outside: Iterable[Undo]) -> None:
        """Do what is to be done outside first; where that takes long the pod comes back whatever changes meanwhile."""
        release = asyncio.get_running_loop().call_later(LISTENING, self._queue.release, queued)
        try:
            await self._binder.take_back_outside(queued.pod, outside)
        finally:
            release.cancel()
        if self._queue.get(queued.identity) is not queued or queued.identity in self._cluster.pods.by_id:
            self._queue.done(queued)
        elif self._binder.take_back(queued, failure):
            await self._binder.report_failure(queued.pod, failure)

    async def finish(self, seconds: float) -> None:
        """Let what is under way end, and drop what takes too long: who ends the process may not wait.

        Args:
            seconds: how long it may take.
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
        """Return what differs once anything has changed that a decision depends on."""
        return self._changes.count, self._cluster.nominations.generation, engine.profile

    def _is_tried_now(self, queued: QueuedPod) -> bool:
        """Return whether an attempt goes on: that of a pod that need not be tried ends, and one may be put off."""
        if self._skips(queued):
            self._queue.done(queued)
            return False
        if not queued.is_put_off and (plugin := self._profiles[queued.profile].put_off_by(queued.pod, self._cluster)):
            self._queue.put_off(queued, plugin)
            return False
        queued.is_put_off = False
        return True

    def _skips(self, queued: QueuedPod) -> bool:
        """Return whether a pod need not be tried: it is being deleted, or counted on a node already."""
        pod = queued.pod
        if pod.metadata.deletion_timestamp is None:
            return queued.identity in self._cluster.pods.by_id
        note = f"skip schedule deleting pod: {pod.key}"
        self._client.record(Event(pod, "Warning", "FailedScheduling", "Scheduling", note, self._clock.now()))
        return True

    async def _decide(self, queued: QueuedPod) -> Decision | None:
        """Run a scheduling cycle; return None where the pod went while extenders were asked."""
        pod, engine = queued.pod, self._engines[queued.profile]
        if log.isEnabledFor(V3):
            log.log(V3, "Attempting to schedule pod", {"pod": pod.key})
        extenders = self._profiles[queued.profile].extending(pod)
        if not extenders:
            return engine.decide(pod)
        from policysched.schedule.cycle import with_extenders  # noqa: PLC0415 - clusters without extenders need none

        before = self._state_of(engine)
        answers = await with_extenders.ask(engine, pod, extenders)
        self._went_on_at = self._processor()
        if self._queue.get(queued.identity) is not queued or queued.identity in self._cluster.pods.by_id:
            return None
        self._changes.tell_time()
        return with_extenders.choose(engine, pod, answers, moved=self._state_of(engine) != before)

    def _note_work(self, queued: QueuedPod) -> None:
        """Count what an attempt took of the processor since it began or went on."""
        queued.took += self._processor() - self._went_on_at

    def _tell_times(self, timing: Timing, profile: str, decision: Decision) -> None:
        """Say what the points of a decision took."""
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
        """Count a pod on its node and start its binding, unless a plugin objects."""
        pod, profile = queued.pod, self._profiles[queued.profile]
        assumed = AssumedPod(pod, decision.node, self._cluster, decision.state)
        self._cluster.assume(pod, decision.row, decision.evaluation.pod_resources)
        failure = self._binder.admit(queued, assumed, profile)
        self._note_work(queued)
        if failure is not None:
            self.fail(queued, failure)
            return
        if self._binder.will_wait(queued, assumed, profile):
            self._start(pod, self._binder.bind(queued, assumed, profile))
            return
        self._queue.release(queued)
        if profile.extenders and any(one.binds for one in profile.extending(pod)):
            self._start(pod, self._binder.bind(queued, assumed, profile))
            return
        await self._room.acquire()
        self._start(pod, self._bind(queued, assumed, profile))

    async def _bind(self, queued: QueuedPod, assumed: AssumedPod, profile: Profile) -> None:
        try:
            await self._binder.bind(queued, assumed, profile)
        finally:
            self._room.release()

    async def _decided_against(self, queued: QueuedPod, decision: Decision) -> None:
        """End an attempt without a feasible node, after PostFilter has looked for a way."""
        if decision.failed:
            self.fail(queued, Failure(AttemptResult.ERROR, decision.error()))
            return
        profile = self._profiles[queued.profile]
        pod = self._queue.latest(queued)
        fit_error, rejectors, pending = decision.fit_error(), decision.rejectors(), decision.pending()
        self._queue.note_decision(queued, rejectors)
        engine, extenders = self._engines[queued.profile], profile.extending(pod)
        failed = FailedCycle(decision, self._rng, extenders, engine.profile.victim_guards)
        finding = run_post_filters(profile.post_filters, pod, failed, self._timing)
        result = await at_point(self._timing, POST_FILTER, queued.profile, finding)
        if result.victims:
            self.shadows.look(engine.profile.shadow_guards, pod, self._cluster, result.victims)
        if self._queue.get(queued.identity) is not queued:
            self._queue.done(queued)  # it went away while extenders were asked, and nobody has to make room for it
            return
        message = message_of(fit_error, result)
        rejectors |= result.rejectors | self._queue.listening(queued, result.rejecting_anyway)
        failure = Failure(AttemptResult.UNSCHEDULABLE, message, rejectors, pending, nominated=result.nominated_node)
        if self._observers and result.victims:
            tell(self._observers, lambda one: one.on_preemption(queued, result))
        if result.act is not None:
            self._start(pod, self._making_room(result.act(self._binder.handle)))
        if result.nominated_node:
            queued.took = 0.0  # it waits for its victims to go, which is not to take longer
        self.fail(queued, failure, result.cleanups)

    async def _making_room(self, work: Awaitable[bool | None]) -> None:
        timing, succeeded = self._timing, False
        began = 0.0 if timing is None else timing.now()
        try:
            succeeded = await work is not False
        finally:
            if timing is not None:
                timing.preempted(timing.now() - began, succeeded=succeeded)

    def _start(self, pod: Pod, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name=pod.key)
        self.tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self.tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error('the binding, preemption or status update of pod "%s" failed', task.get_name(), exc_info=error)
