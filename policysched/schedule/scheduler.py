"""`Scheduler`: applies changes to the cluster, pops pending pods, assumes each on its node, starts its binding.

Everything happens on one event loop. A cycle is synchronous, so nothing changes under it; between cycles the loop gets
its turn, at the latest every few milliseconds, and applies what arrived. It never talks to the network but through the
`Client` it was given.

Source: pkg/scheduler/scheduler.go, schedule_one.go (ScheduleOne, handleSchedulingFailure), eventhandlers.go.
"""

from __future__ import annotations

import asyncio
import logging
import random
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from functools import partial
from typing import Any, Final

from policysched.framework import (
    Action,
    AssumedPod,
    Change,
    Client,
    Clock,
    Event,
    MetricAnswer,
    RejectionListener,
    Resource,
)
from policysched.framework.out_of_tree.watch import PluginWatch
from policysched.framework.profile import Profile
from policysched.klog import V3
from policysched.model.kinds import FINISHED
from policysched.model.objects import Node, Pod
from policysched.model.pod_requirements import pod_priority
from policysched.pausing import Pausing, finished
from policysched.rules.policy_set.policy_set import PolicySet
from policysched.schedule.binding import Binder, Failure
from policysched.schedule.cycle import with_extenders
from policysched.schedule.cycle.decision import Decision
from policysched.schedule.cycle.engine import Engine
from policysched.schedule.cycle.post_filter import FailedCycle, Turn, message_of, run_post_filters
from policysched.schedule.cycle.record import Record
from policysched.schedule.live_dry_run import LiveState, dry_run
from policysched.schedule.observer import LOG_LINES, AttemptResult, Observers, tell
from policysched.schedule.queue.hints import Interests, label
from policysched.schedule.queue.queue import Queue, Waiter
from policysched.schedule.queue.queued_pod import QueuedPod, Stage
from policysched.schedule.shadow_guards import ShadowGuards
from policysched.schedule.timing import CYCLE_POINTS, POST_FILTER, Timing, at_point
from policysched.state.cluster import Cluster
from policysched.state.cluster_events import departure
from policysched.state.nominations import Nomination
from policysched.state.placed.pods import pod_id

log = logging.getLogger(__name__)
TURN = 0.003
"""How long cycles may follow each other before the loop gets its turn. Units: seconds."""
MAX_BINDINGS = 512
"""How many bindings may be under way before the next pod has to wait; those that wait for plugins do not count."""
AFTER_FAILURE = 1.0
"""How long no pod is tried after a failure that belongs to none. Units: seconds."""
NOTHING: Final = Change(Resource.OTHER, Action.NONE)
PENDING_ADDED: Final = Change(Resource.PENDING_POD, Action.ADD)
PENDING_UPDATED: Final = Change(Resource.PENDING_POD, Action.UPDATE_OTHER)
PENDING_DELETED: Final = Change(Resource.PENDING_POD, Action.DELETE)
LAST_WORDS: Final = 10.0
"""`Scheduler.last_words` of a process that ends in peace. Units: seconds."""


class Scheduler:
    """Schedules the pods of some profiles over one cluster."""

    last_words: float = LAST_WORDS
    """How long bindings under way may take to end after the last cycle. Units: seconds."""

    def __init__(  # noqa: PLR0913, PLR0917 - what is around it comes in
        self,
        profiles: Mapping[str, Profile],
        client: Client,
        clock: Clock,
        rng: random.Random,
        observers: Observers = LOG_LINES,
        timing: Timing | None = None,
        cluster: Cluster | None = None,
        processor: Callable[[], float] = lambda: 0.0,
    ) -> None:
        """Wire it up.

        Args:
            profiles: What decides, by name.
            client: Writes to the API server.
            clock: The time.
            rng: What draws among equals.
            observers: Who hears of decisions.
            timing: What measures, if anything.
            cluster: The cluster to schedule over; one of its own otherwise.
            processor: The processor time that the loop's thread has taken, by which costly attempts are known.
        """
        self.cluster = Cluster() if cluster is None else cluster
        self._timing = timing
        self._profiles = dict(profiles)
        self._client = client
        self._clock = clock
        self._processor = processor
        self._went_on_at = 0.0
        """The processor time at which the attempt under way began, or went on after a turn of the loop."""
        self._rng = rng
        self._engines = {name: Engine(self.cluster, profile, rng, timing) for name, profile in profiles.items()}
        sort = next(iter(profiles.values())).queue_sort
        self._observers = observers
        self.shadows = ShadowGuards()
        """What policies in Shadow mode would have kept from being victims."""
        self.queue = Queue(clock, sort, self.cluster, profiles=_interests(self._profiles))
        self.queue.measure_with(timing)
        if observers:
            self.queue.report_to(partial(_tell_queued, observers))
        self._waiter = Waiter(self.queue, clock)
        self._binder = Binder(self.cluster, self.queue, client, clock, self._changed, observers)
        self._binder.timing = timing
        self._connect_plugins()
        self._heard = NOTHING
        """The change that the object at hand came to."""
        self._changes = 0
        """How many changes of the cluster it has heard of."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._room = asyncio.Semaphore(MAX_BINDINGS)

    def use_policies(self, policies: PolicySet, changed: frozenset[str]) -> int:
        """Swap the policy set between two cycles and try the pods again that changed policies had rejected.

        Args:
            policies: The new set.
            changed: The plugin names of the policies that were changed or removed.

        Returns:
            How many pods were requeued.
        """
        return finished(self.using_policies(policies, changed))

    def using_policies(self, policies: PolicySet, changed: frozenset[str], *, ahead: bool = True) -> Pausing[int]:
        """Do what `use_policies` does, pausing now and then.

        What policies say of nodes without a pod is worked out before the swap, which takes force at once for all
        profiles; after it pods are moved and what was known is freed. Before the swap nothing is changed.

        Args:
            policies: The new set.
            changed: The plugin names of the policies that were changed or removed.
            ahead: Whether that is worked out before; else the first decision does it.
        """
        if ahead:
            active = yield from self.joining(policies)
        else:
            active = {name: policies.join(profile) for name, profile in self._profiles.items()}
        return (yield from self._taking_force(active, policies, changed))

    def using_profiles(
        self, profiles: Mapping[str, Profile], policies: PolicySet, changed: frozenset[str]
    ) -> Pausing[int]:
        """Put profiles in the place of those of their names, pausing now and then; the others go on as they are.

        Args:
            profiles: The new profiles, which sort the queue as the old ones.
            policies: The policies in force.
            changed: The names of the plugins that were changed or removed: pods that they had rejected are tried again.

        Returns:
            How many pods were requeued.
        """
        active = yield from self._joining(policies, profiles)
        for name, profile in profiles.items():
            profile.take_over(self._profiles[name])
        self._profiles = {**self._profiles, **profiles}
        self._connect_plugins()
        return (yield from self._taking_force(active, policies, changed, "ConfigurationUpdate"))

    def _taking_force(
        self,
        active: Mapping[str, Profile],
        policies: PolicySet,
        changed: frozenset[str],
        event: str = "SchedulingPolicyUpdate",
    ) -> Pausing[int]:
        interests = {**self.queue.profiles, **_interests(active)}
        old = [self._engines[name].use(profile) for name, profile in active.items()]
        self.queue.profiles = interests
        if self._observers:
            tell(self._observers, lambda one: one.on_swap(active, policies))
        moved = yield from self.queue.moving_rejected_by(changed, event)
        for evaluations in old:
            while evaluations:
                evaluations.pop()
                yield
        return moved

    def joining(self, policies: PolicySet) -> Pausing[dict[str, Profile]]:
        """Return the profiles with policies, worked out as far as nothing takes force."""
        return (yield from self._joining(policies, self._profiles))

    def _joining(self, policies: PolicySet, profiles: Mapping[str, Profile]) -> Pausing[dict[str, Profile]]:
        active = {}
        for name, profile in profiles.items():
            active[name] = yield from policies.joining(profile, self.cluster)
        return active

    def _connect_plugins(self) -> None:
        for profile in self._profiles.values():
            if profile.handle is not None:
                profile.handle.connect(self.cluster, self._binder.handle)

    async def dry_run(self, pod: Pod, policies: PolicySet, rng: random.Random) -> Record:
        """Say where a pod would go now, and why: the decision record; nothing is changed and nothing kept.

        Args:
            pod: A pod of one of the profiles.
            policies: The policies in force.
            rng: What draws among equals.

        Raises:
            UsageError: a pod of its name is on a node.
        """
        engine = self._engines[pod.spec.scheduler_name].beside(rng)
        live = LiveState(
            self._clock.monotonic, self._tell_time, partial(self._state_of, engine), partial(self._turns, engine)
        )
        return await dry_run(engine, pod, policies, rng, live)

    def plugin_watches(self) -> dict[str, PluginWatch]:
        """Return what out-of-tree plugins take, by profile; it may be asked from any thread."""
        return {name: profile.handle.watch for name, profile in self._profiles.items() if profile.handle is not None}

    def profiles_in_force(self) -> dict[str, Profile]:
        """Return the profiles by name, with the policies that act in them."""
        return {name: engine.profile for name, engine in self._engines.items()}

    @property
    def binding_count(self) -> int:
        """How many pods are being bound; it may be asked from any thread."""
        return self._binder.under_way

    @property
    def kept_bytes(self) -> int:
        """The memory of what is kept of pod classes. Units: bytes."""
        return sum(engine.kept_bytes for engine in self._engines.values())

    @property
    def object_count(self) -> int:
        """How many nodes and pods there are."""
        return self.cluster.nodes.count + len(self.cluster.pods) + sum(self.queue.counts())

    def set_node(self, node: Node) -> None:
        """Take a node as it is now."""
        self._changed(self.cluster.set_node(node))

    def remove_node(self, name: str) -> None:
        """Record that a node is gone."""
        self._changed(self.cluster.remove_node(name))

    def set_pod(self, pod: Pod) -> None:
        """Take a pod as it is now, placed or pending."""
        identity = pod_id(pod)
        if pod.spec.node_name:
            self.cluster.nominations.discard(identity)
            self.queue.delete(identity)
            if self.cluster.is_elsewhere(pod):
                self._changed(self.cluster.remove_pod(identity))
            self._changed(self.cluster.set_pod(pod))
            self._binder.reject_waiting(identity, "the pod was bound by another client")
        elif pod.status.phase in FINISHED:
            self.remove_pod(identity)
        elif self.cluster.is_assumed(identity):
            if pod.spec.scheduler_name not in self._profiles:
                self.queue.delete(identity)
            else:
                self.queue.renew(pod)
            if pod.metadata.deletion_timestamp is not None:
                self._changed(self.cluster.forget(identity))
                self._binder.reject_waiting(identity, "the pod is being deleted")
        else:
            self._set_pending(pod, identity)

    def _set_pending(self, pod: Pod, identity: str) -> None:
        if identity in self.cluster.pods.by_id:  # it had a node, which no pod loses as long as it lives
            self._changed(self.cluster.remove_pod(identity))
        freed = self.cluster.nominations.update(pod) or self._nominated_before(pod, identity)
        if pod.spec.scheduler_name in self._profiles:
            self._heard = PENDING_ADDED if self.queue.get(identity) is None else PENDING_UPDATED
            self.queue.add(pod)
        else:
            self.queue.delete(identity)
        self._nomination_ended(freed)

    def _nominated_before(self, pod: Pod, identity: str) -> Nomination | None:
        """Return the nomination of a pod's last attempt that its new version took away."""
        queued = self.queue.get(identity)
        if queued is None:
            return None
        old = self.queue.latest(queued)
        node = old.status.nominated_node_name
        return Nomination(old, node) if node and node != pod.status.nominated_node_name else None

    def _nomination_ended(self, freed: Nomination | None) -> None:
        """Have pods tried again for which a place may be free that is not kept any more, that pod's own attempt too."""
        if freed is not None:
            change = departure(freed.pod, freed.node, self.cluster.nodes.row_of.get(freed.node, -1))
            self._tell_time()
            self.queue.move(change, at_most=pod_priority(freed.pod))

    def remove_pod(self, identity: str) -> None:
        """Record that a pod is gone."""
        if self.queue.delete(identity):
            self._heard = PENDING_DELETED
        self._nomination_ended(self.cluster.nominations.discard(identity))
        self._changed(self.cluster.remove_pod(identity))
        self._binder.reject_waiting(identity, "the pod is gone")

    def take(self, obj: Any) -> None:
        """Take an object of any kind of `policysched.model.kinds` as it is now."""
        self._handle(self._take, obj)

    def _take(self, obj: Any) -> None:
        if isinstance(obj, Pod):
            self.set_pod(obj)
        else:
            self._changed(self.cluster.take(obj))

    def drop(self, obj: Any) -> None:
        """Record that an object of any of the kinds is gone."""
        self._handle(self._drop, obj)

    def _drop(self, obj: Any) -> None:
        if isinstance(obj, Pod):
            self.remove_pod(pod_id(obj))
        else:
            self._changed(self.cluster.drop(obj))

    def _handle(self, act: Callable[[Any], None], obj: Any) -> None:
        """Do what an object asks for, and say how long that took where it changed anything."""
        timing = self._timing
        if timing is None:
            act(obj)
            return
        self._heard, began = NOTHING, timing.now()
        act(obj)
        if self._heard is not NOTHING:
            timing.change(label(self._heard), timing.now() - began)

    def set_metric(self, answer: MetricAnswer) -> None:
        """Take what a metrics source says of a metric."""
        self._tell_time()
        self._changed(self.cluster.metrics.take(answer))

    @property
    def is_busy(self) -> bool:
        """Whether pods wait for a cycle, or bindings and conditions are under way; it may be asked from any thread."""
        return bool(self.queue.counts().active or self._tasks)

    async def run(self) -> None:
        """Try pending pods until cancelled, then let the bindings under way end."""
        self._connect_plugins()
        try:
            while True:
                try:
                    await self._try_pods()
                except Exception:  # whoever ends here would end the process
                    log.exception("trying pods failed: going on after a pause")
                    await asyncio.sleep(AFTER_FAILURE)
        finally:
            await self._finish()

    async def _count_attached(self) -> None:
        """Count the volumes attached to nodes where that changed, which the next pod would have to wait for."""
        turn_ends = self._clock.monotonic() + TURN
        for _ in self.cluster.attachments.refreshing():
            if self._clock.monotonic() >= turn_ends:
                await asyncio.sleep(0)
                turn_ends = self._clock.monotonic() + TURN

    async def _try_pods(self) -> None:
        """Try pods for a turn, or wait for one."""
        if self.cluster.attachments.is_stale:
            await self._count_attached()
        turn_ends, decided = self._clock.monotonic() + TURN, None
        while (queued := self.queue.pop()) is not None:
            await self._attempt(queued)
            if self._clock.monotonic() >= turn_ends:
                await asyncio.sleep(0)
                return
            decided = self._engines.get(queued.profile)
        if decided is not None:
            await asyncio.sleep(0)  # the pod's binding is sent first
            decided.keep_up()
        await self._waiter.wait()

    async def _finish(self) -> None:
        """Let what is under way end, and drop what takes too long: who ends the process may not wait."""
        self._binder.stop_waiting()
        if not self._tasks:
            return
        _, late = await asyncio.wait(self._tasks, timeout=self.last_words)
        for task in late:
            task.cancel()
        if late:
            log.warning("bindings and conditions without an answer at the end: count=%d", len(late))
            await asyncio.gather(*late, return_exceptions=True)

    async def _attempt(self, queued: QueuedPod) -> None:
        pod = queued.pod
        try:
            if not self._is_tried_now(queued):
                return
            self._tell_time()
            self._went_on_at = self._processor()
            decided = await self._decide(queued)
            if decided is None:
                self.queue.done(queued)
                return
            decision, anew = decided
            if self._observers:
                tell(self._observers, lambda one: one.on_decision(queued, decision))
            if self._timing is not None:
                self._tell_times(self._timing, queued.profile, decision)
            if decision.row < 0:
                self._note_work(queued)
                await self._decided_against(queued, decision, anew)
            else:
                await self._place(queued, decision)
        except Exception as error:
            log.exception("the cycle of pod=%s failed", pod.key)
            self.cluster.forget(queued.identity)  # its binding did not begin
            if queued.stage is Stage.IN_FLIGHT:
                self._fail(queued, Failure(AttemptResult.ERROR, f"the scheduling cycle failed: {error!r}"))

    async def _decide(self, queued: QueuedPod) -> tuple[Decision, Callable[[], Decision]] | None:
        """Run a scheduling cycle; return also what decides anew, None where the pod went meanwhile."""
        pod, engine = queued.pod, self._engines[queued.profile]
        if log.isEnabledFor(V3):
            log.log(V3, "Attempting to schedule pod", {"pod": pod.key})
        if not await self._work_ahead(queued):
            return None
        extenders = self._profiles[queued.profile].extending(pod)
        if not extenders:
            return engine.decide(pod), partial(engine.decide, pod)
        before = self._state_of(engine)
        answers = await with_extenders.ask(engine, pod, extenders)
        self._went_on_at = self._processor()
        if self.queue.get(queued.identity) is not queued or queued.identity in self.cluster.pods.by_id:
            return None
        self._tell_time()
        choose = partial(with_extenders.choose, engine, pod, answers)
        return choose(moved=self._state_of(engine) != before), partial(choose, moved=True)

    async def _work_ahead(self, queued: QueuedPod) -> bool:
        """Have plugins find out what takes long, the loop having its turn after each piece; False if the pod goes."""
        for _ in self._engines[queued.profile].working_ahead(queued.pod):
            self._note_work(queued)
            await asyncio.sleep(0)
            if self.queue.get(queued.identity) is not queued or queued.identity in self.cluster.pods.by_id:
                return False
            self._tell_time()
            self._went_on_at = self._processor()
        return True

    def _note_work(self, queued: QueuedPod) -> None:
        """Count what an attempt took of the processor since it began or went on."""
        queued.took += self._processor() - self._went_on_at

    def _state_of(self, engine: Engine) -> tuple[int, int, Profile]:
        """Return what differs once anything has changed that a decision depends on."""
        return self._changes, self.cluster.nominations.generation, engine.profile

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
        assumed = AssumedPod(pod, decision.node, self.cluster, decision.state)
        self.cluster.assume(pod, decision.row, decision.evaluation.pod_resources)
        failure = self._binder.admit(queued, assumed, profile)
        self._note_work(queued)
        if failure is not None:
            self._fail(queued, failure)
            return
        if self._binder.will_wait(queued, assumed, profile):
            self._start(pod, self._binder.bind(queued, assumed, profile))
            return
        self.queue.release(queued)
        await self._room.acquire()
        self._start(pod, self._bind(queued, assumed, profile))

    def _is_tried_now(self, queued: QueuedPod) -> bool:
        """Return whether an attempt goes on: that of a pod that need not be tried ends, and one may be put off."""
        if self._skips(queued):
            self.queue.done(queued)
            return False
        if not queued.is_put_off and (plugin := self._profiles[queued.profile].put_off_by(queued.pod, self.cluster)):
            self.queue.put_off(queued, plugin)
            return False
        queued.is_put_off = False
        return True

    def _skips(self, queued: QueuedPod) -> bool:
        """Return whether a pod need not be tried: it is being deleted, or counted on a node already."""
        pod = queued.pod
        if pod.metadata.deletion_timestamp is None:
            return queued.identity in self.cluster.pods.by_id
        note = f"skip schedule deleting pod: {pod.key}"
        self._client.record(Event(pod, "Warning", "FailedScheduling", "Scheduling", note, self._clock.now()))
        return True

    async def _bind(self, queued: QueuedPod, assumed: AssumedPod, profile: Profile) -> None:
        try:
            await self._binder.bind(queued, assumed, profile)
        finally:
            self._room.release()

    def _fail(self, queued: QueuedPod, failure: Failure) -> None:
        self._binder.take_back(queued, failure)
        self._start(queued.pod, self._binder.report_failure(queued.pod, failure))

    async def _decided_against(self, queued: QueuedPod, decision: Decision, anew: Callable[[], Decision]) -> None:
        """End an attempt without a feasible node, after PostFilter has looked for a way."""
        if decision.failed:
            self._fail(queued, Failure(AttemptResult.ERROR, decision.error()))
            return
        profile = self._profiles[queued.profile]
        pod = self.queue.latest(queued)
        fit_error, rejectors, pending = decision.fit_error(), decision.rejectors(), decision.pending()
        engine, extenders = self._engines[queued.profile], profile.extending(pod)
        turn = self._turns(engine, anew)
        failed = FailedCycle(decision, self._rng, extenders, lambda: engine.profile.victim_guards, turn)
        finding = run_post_filters(profile.post_filters, pod, failed, self._timing)
        result = await at_point(self._timing, POST_FILTER, queued.profile, finding)
        if self.queue.get(queued.identity) is not queued:
            self.queue.done(queued)  # it went away while extenders were asked, and nobody has to make room for it
            return
        message = message_of(fit_error, result)
        failure = Failure(
            AttemptResult.UNSCHEDULABLE, message, rejectors | result.rejectors, pending, nominated=result.nominated_node
        )
        if result.victims:
            self.shadows.look(engine.profile.shadow_guards, pod, self.cluster, result.victims)
        if self._observers and result.victims:
            tell(self._observers, lambda one: one.on_preemption(queued, result))
        if result.act is not None:
            self._start(pod, self._making_room(result.act(self._binder.handle)))
        if result.nominated_node:
            queued.took = 0.0  # it waits for its victims to go, which is not to take longer
        for clean_up in result.cleanups:
            self._start(pod, clean_up(self._binder.handle))
        self._fail(queued, failure)

    async def _making_room(self, work: Awaitable[bool | None]) -> None:
        timing, succeeded = self._timing, False
        began = 0.0 if timing is None else timing.now()
        try:
            succeeded = await work is not False
        finally:
            if timing is not None:
                timing.preempted(timing.now() - began, succeeded=succeeded)

    def _turns(self, engine: Engine, anew: Callable[[], Decision]) -> Turn:
        """Return what gives the loop its turn when it is time, and decides anew where anything changed meanwhile.

        A slice is as long as deciding anew took at least, so that this is half of the work at most.
        """
        ends, before = self._clock.monotonic() + TURN, self._state_of(engine)

        async def turn() -> Decision | None:
            nonlocal ends, before
            if self._clock.monotonic() < ends:
                return None
            await asyncio.sleep(0)
            begin, seen, decision = self._clock.monotonic(), before, None
            before = self._state_of(engine)
            if before != seen:
                self._tell_time()
                decision = anew()
            now = self._clock.monotonic()
            ends = now + max(TURN, now - begin)
            return decision

        return turn

    def _changed(self, change: Change, but: str = "") -> None:
        self._changes += 1
        if change.nothing:
            return
        self._heard = change
        if self.queue.hears:
            self._tell_time()
            self.queue.move(change, but)

    def _tell_time(self) -> None:
        """Let the cluster be at the present: a cycle, and whether a change helps, see one time."""
        self.cluster.time.move(self._clock.now().timestamp())

    def _start(self, pod: Pod, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work, name=pod.key)
        self._tasks.add(task)
        task.add_done_callback(self._ended)

    def _ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        if not task.cancelled() and (error := task.exception()) is not None:
            log.error("what was to be done for pod=%s failed", task.get_name(), exc_info=error)


def _tell_queued(observers: Observers, queued: QueuedPod, queue: str, event: str) -> None:
    tell(observers, lambda one: one.on_queued(queued, queue, event))


def _interests(profiles: Mapping[str, Profile]) -> dict[str, Interests]:
    return {
        name: Interests(
            profile.pre_enqueue,
            profile.hints,
            {plugin.name: plugin for plugin in profile.filters if isinstance(plugin, RejectionListener)},
        )
        for name, profile in profiles.items()
    }
