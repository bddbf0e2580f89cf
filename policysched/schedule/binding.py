"""`Binder`: runs Reserve, Permit and the binding cycle, and reports failures (Unreserve, pod condition, Event).

Each binding cycle is a task, which runs while the next pods are decided. The pod is assumed; a failure forgets it at
once. An exception of a plugin fails only the pod's attempt.

Source: pkg/scheduler/schedule_one.go (schedulingCycle, bindingCycle, handleBindingCycleError, handleSchedulingFailure),
framework/runtime/framework.go (RunReservePlugins and those that follow).
"""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterable, Sequence
from dataclasses import dataclass
from dataclasses import replace as replace_field
from functools import partial
from types import MappingProxyType
from typing import Any, TypeVar

from msgspec.structs import replace

from policysched.framework import (
    BINDING_CYCLE,
    Action,
    AssumedPod,
    Change,
    Client,
    Clock,
    Code,
    Event,
    Handle,
    PermitPlugin,
    Plugin,
    PodInPreBind,
    PodStatusChange,
    PostBindPlugin,
    PreBindPlugin,
    Status,
    Wait,
    WaitingPod,
    pod_condition,
)
from policysched.framework.binding import Undo
from policysched.framework.profile import Profile
from policysched.model.objects import Pod, PodCondition
from policysched.model.pod_requirements import pod_priority
from policysched.schedule.binding_points import (
    answer_of,
    awaited_answer,
    bound_by,
    pre_bind_groups,
    reserve,
    unreserve,
)
from policysched.schedule.observer import Attempt, AttemptResult, Observers, notify
from policysched.schedule.pod_status_writes import ConditionWrites
from policysched.schedule.queue.queue import Queue
from policysched.schedule.queue.queued_pod import NO_PLUGINS, QueuedPod, Stage
from policysched.schedule.timing import (
    BIND,
    PERMIT,
    POST_BIND,
    PRE_BIND,
    RESERVE,
    UNRESERVE,
    Timing,
    at_point,
    awaited,
    code_of,
    measured,
)
from policysched.state.cluster import Cluster
from policysched.state.cluster_events import departure
from policysched.state.placed.pods import pod_id
from policysched.visible import cut_bytes, visible

log = logging.getLogger(__name__)
T = TypeVar("T")
NOTE_LIMIT = 1024
"""Maximum length of an Event's note. Units: bytes."""
CUT = " ..."
REASONS = {AttemptResult.UNSCHEDULABLE: "Unschedulable", AttemptResult.ERROR: "SchedulerError"}
"""The reason of the PodScheduled condition, by attempt result."""


@dataclass(frozen=True, slots=True)
class Failure:
    """The failure of a scheduling attempt: result, message, rejecting plugins and nomination."""

    result: AttemptResult
    message: str
    rejectors: frozenset[str] = NO_PLUGINS
    """The plugins that rejected the pod, whose queueing hints retry it; if empty, it is retried after a backoff."""
    pending: frozenset[str] = NO_PLUGINS
    """The plugins that returned Pending: a change that their hints accept retries the pod without a backoff."""
    node: str = ""
    """The name of the pod's node, if its binding failed."""
    nominated: str | None = ""
    """The name of the nominated node to store for the pod; an empty string clears the nomination, None keeps it."""
    undo: tuple[Undo, ...] = ()
    """Requests that undo the writes of plugins to the API server."""
    is_nomination_stored: bool = False
    """Whether the nomination is already stored in `Cluster.nominations`."""

    @classmethod
    def of(cls, status: Status, node: str = "") -> Failure:
        """Return the failure that a status describes; the pod is retried after a backoff."""
        return cls(AttemptResult.UNSCHEDULABLE if status.rejects else AttemptResult.ERROR, status.message, node=node)

    @classmethod
    def at_permit(cls, status: Status) -> Failure:
        """Return the failure that a status of Reserve or Permit describes; a rejection has kube-scheduler's message."""
        if not status.rejects:
            return cls.of(status)
        parts = sorted(f"{count} {reason}" for reason, count in Counter(status.reasons).items())
        message = "0/1 nodes are available:" + (f" {', '.join(parts)}." if parts else "")
        plugins = frozenset((status.plugin,))
        if status.code is Code.PENDING:
            return cls(AttemptResult.UNSCHEDULABLE, message, pending=plugins)
        return cls(AttemptResult.UNSCHEDULABLE, message, plugins)


class Binder:
    """Runs binding cycles and reports failed attempts."""

    timing: Timing | None = None
    """Records durations of extension points and plugins; None if durations are not measured."""

    def __init__(
        self,
        cluster: Cluster,
        queue: Queue,
        client: Client,
        clock: Clock,
        on_change: Callable[[Change, str], None],
        observers: Observers = (),
    ) -> None:
        self._cluster, self._queue, self._client, self._clock = cluster, queue, client, clock
        self._conditions = ConditionWrites(client)
        self._on_change = on_change
        self._observers = observers
        self.under_way = 0
        """Number of running binding cycles."""
        self._begun = 0
        """Number of binding cycles started so far."""
        self._waiting: dict[str, WaitingPod] = {}
        self._in_pre_bind: dict[str, PodInPreBind] = {}
        waiting, in_pre_bind = MappingProxyType(self._waiting), MappingProxyType(self._in_pre_bind)
        self.handle = Handle(
            client,
            clock,
            asyncio.sleep,
            waiting,
            queue.activate,
            in_pre_bind,
            lambda change: on_change(change, ""),
            lambda created: notify(observers, lambda one: one.on_claim_request(created=created)),
            lambda wait: notify(observers, lambda one: one.on_device_wait(wait)),
        )

    def admit(self, queued: QueuedPod, assumed: AssumedPod, profile: Profile) -> Failure | None:
        """Run Reserve and Permit for an assumed pod; after a failure, remove the pod from its node and unreserve."""
        status = self._admit(queued, assumed, profile)
        if status is None:
            return None
        undo = self.unreserve(assumed, profile)
        self._cluster.forget(queued.identity)
        return replace_field(Failure.at_permit(status), undo=undo)

    def _admit(self, queued: QueuedPod, assumed: AssumedPod, profile: Profile) -> Status | None:
        if (status := self.reserve(assumed, profile)) is not None:
            return status
        if not profile.permits:
            return None
        answer = self.at(PERMIT, profile, self._permit, queued, assumed, profile.permits)
        return answer if isinstance(answer, Status) else None

    def reserve(self, assumed: AssumedPod, profile: Profile) -> Status | None:
        """Run Reserve for an assumed pod; return the status of the plugin that failed; the caller runs Unreserve."""
        reserving = profile.reserving(assumed.pod, assumed.cluster)
        return self.at(RESERVE, profile, reserve, assumed, reserving, self._asked) if reserving else None

    def _permit(self, queued: QueuedPod, assumed: AssumedPod, plugins: Iterable[PermitPlugin]) -> Status | Wait | None:
        """Run Permit; return the status of a rejection, a Wait if plugins let the pod wait, or None."""
        waits: dict[str, Wait] = {}
        for one in plugins:
            answer = self._asked(PERMIT, one, partial(one.permit, assumed, self.handle), Wait)
            if isinstance(answer, Status):
                return answer
            if isinstance(answer, Wait):
                waits[one.name] = answer
        if waits:
            self._waiting[queued.identity] = WaitingPod(assumed, waits)
        return next(iter(waits.values()), None)

    def at(self, point: str, profile: Profile, run: Callable[..., T], *arguments: Any) -> T:
        """Run a synchronous extension point, such as Reserve, and record its duration."""
        timing = self.timing
        if timing is None:
            return run(*arguments)
        began = timing.now()
        answer = run(*arguments)
        timing.point(point, code_of(answer), profile.scheduler_name, timing.now() - began)
        return answer

    def _asked(self, point: str, plugin: Plugin, ask: Callable[[], Any], *others: type) -> Any:
        if self.timing is None:
            return answer_of(point, plugin, ask, *others)
        return measured(self.timing, plugin.name, point, answer_of, point, plugin, ask, *others)

    def unreserve(self, assumed: AssumedPod, profile: Profile) -> tuple[Undo, ...]:
        """Run Unreserve; return the requests that undo what the plugins wrote to the API server."""
        if not profile.reserving(assumed.pod, assumed.cluster):
            return ()
        return self.at(UNRESERVE, profile, unreserve, assumed, profile)

    async def undo(self, pod: Pod, undo: Iterable[Undo]) -> None:
        """Send the requests that undo what plugins wrote to the API server; log failures."""
        for one in undo:
            try:
                await one(self.handle)
            except Exception:
                log.exception('an API request of Unreserve failed for pod "%s"', pod.key)

    def will_wait(self, queued: QueuedPod, assumed: AssumedPod, profile: Profile) -> bool:
        """Return whether the pod's binding waits for Permit or PreBind before the Bind request is sent."""
        waiting = self._waiting.get(queued.identity)
        return bool(pre_bind_groups(assumed, profile)) or (waiting is not None and not waiting.has_outcome)

    async def bind(self, queued: QueuedPod, assumed: AssumedPod, profile: Profile) -> None:
        """Run the binding cycle and end the attempt."""
        self.under_way += 1
        self._begun += 1
        BINDING_CYCLE.set(self._begun)
        try:
            await self._run(queued, assumed, profile)
        finally:
            self.under_way -= 1

    async def _run(self, queued: QueuedPod, assumed: AssumedPod, profile: Profile) -> None:
        pod, node = queued.pod, assumed.node
        pre_binds = pre_bind_groups(assumed, profile)
        if isinstance(pre_binds, Status):
            self._end_waiting(queued.identity)
            failure: Failure | None = Failure.of(pre_binds, node)
        else:
            if self.will_wait(queued, assumed, profile):
                await self._nominate(queued, node)
            failure = await self._wait_on_permit(queued.identity)
        if failure is None:
            self._queue.release(queued)
            await self._conditions.settle(queued.identity)
            status = await self._bind(assumed, profile)
            failure = Failure.of(status, node) if status is not None else None
        if failure is not None:
            await self.undo(pod, self.unreserve(assumed, profile))
            await self._binding_failed(queued, assumed, failure)
            return
        self._queue.done(queued)
        self._record(pod, "Normal", "Scheduled", "Binding", f"Successfully assigned {pod.key} to {node}")
        self._ended(queued, AttemptResult.SCHEDULED, node)
        if profile.post_binds:
            posting = self._post_bind(assumed, profile.post_binds)
            await at_point(self.timing, POST_BIND, profile.scheduler_name, posting)

    async def _post_bind(self, assumed: AssumedPod, plugins: Iterable[PostBindPlugin]) -> None:
        for plugin in plugins:
            await self._awaited(POST_BIND, plugin, partial(plugin.post_bind, assumed, self.handle))

    async def _awaited(self, point: str, plugin: Plugin, ask: Callable[[], Awaitable[Any]]) -> Status | None:
        """Await a plugin's asynchronous method, record its duration and return its status; None is success."""
        return await awaited(self.timing, plugin.name, point, awaited_answer(point, plugin, ask))

    async def _nominate(self, queued: QueuedPod, node: str) -> None:
        """Write the chosen node into nominatedNodeName, for other schedulers, because the pod's binding waits."""
        if queued.pod.status.nominated_node_name == node:
            return
        await self._conditions.write(queued.pod, PodStatusChange(nominated_node=node), first=True)
        latest = self._queue.latest(queued)
        self._queue.renew(replace(latest, status=replace(latest.status, nominated_node_name=node)))

    def reject_waiting(self, identity: str, why: str) -> None:
        """Reject a pod that waits at Permit."""
        waiting = self._waiting.get(identity)
        if waiting is not None:
            waiting.reject("", why)

    def stop_waiting(self) -> None:
        """Cancel all waits at Permit, because the process shuts down."""
        for waiting in self._waiting.values():
            waiting.cancel()

    def _end_waiting(self, identity: str) -> None:
        waiting = self._waiting.pop(identity, None)
        if waiting is not None:
            waiting.cancel()

    async def _wait_on_permit(self, identity: str) -> Failure | None:
        waiting = self._waiting.get(identity)
        if waiting is None:
            return None
        since = self._clock.monotonic()
        try:
            status = await waiting.outcome()
        finally:
            if self._waiting.get(identity) is waiting:
                del self._waiting[identity]
        if self._observers:
            seconds = self._clock.monotonic() - since
            notify(self._observers, lambda one: one.on_permit_wait(waiting, status, seconds))
        if status is not None and not status.rejects:
            status = Status(status.code, (f"waiting on permit for pod: {status.message}",), status.plugin)
        return None if status is None else Failure.at_permit(status)

    async def _bind(self, assumed: AssumedPod, profile: Profile) -> Status | None:
        """Run PreBind and Bind for an assumed pod; return the status of a failure, or None."""
        pre_binds = pre_bind_groups(assumed, profile)
        if isinstance(pre_binds, Status):
            return pre_binds
        name = profile.scheduler_name
        if pre_binds:
            status = await at_point(self.timing, PRE_BIND, name, self._pre_bind(assumed, pre_binds))
            if status is not None:
                return status
        return await at_point(self.timing, BIND, name, self._bind_at(assumed, profile))

    async def _bind_at(self, assumed: AssumedPod, profile: Profile) -> Status | None:
        """Bind the pod by an extender, or by the first Bind plugin that does not return SKIP."""
        for extender in profile.extending(assumed.pod):
            if extender.binds and (bound := await bound_by(extender, assumed)) is not None:
                return None if bound.code is Code.SUCCESS else bound
        for one in profile.binds:
            status = await self._awaited(BIND, one, partial(one.bind, assumed, self.handle))
            if status is None or status.code is not Code.SKIP:
                return status
        return Status(Code.ERROR, ("all Bind plugins skipped the pod",))

    async def _pre_bind(self, assumed: AssumedPod, groups: Sequence[Sequence[PreBindPlugin]]) -> Status | None:
        """Run the PreBind plugins; return the status of a failed plugin or of a cancellation of the binding."""

        def ask(plugin: PreBindPlugin) -> Coroutine[Any, Any, Status | None]:
            return self._awaited(PRE_BIND, plugin, partial(plugin.pre_bind, assumed, self.handle))

        identity, running = pod_id(assumed.pod), PodInPreBind()
        self._in_pre_bind[identity] = running
        try:
            for group in groups:
                status = await running.run(group, ask)
                if status is not None or running.failure is not None:
                    return status or running.failure
            return None
        finally:
            del self._in_pre_bind[identity]

    async def _binding_failed(self, queued: QueuedPod, assumed: AssumedPod, failure: Failure) -> None:
        """Remove the pod from its node and requeue the pod, and requeue the pods that the freed resources may help.

        If a plugin rejected the pod, its own departure does not retry it. If the pod was deleted meanwhile, its node
        was freed then, but its plugins' reservations are freed now.
        """
        pod, rejected = queued.pod, failure.result is AttemptResult.UNSCHEDULABLE
        change = self._cluster.forget(queued.identity)
        if change.action is Action.NONE and queued.identity not in self._cluster.pods.by_id:
            change = departure(assumed.pod, assumed.node, self._cluster.nodes.row_of.get(assumed.node, -1))
        if not rejected and change.action is not Action.NONE:
            self._on_change(change, "")
        if queued.identity in self._cluster.pods.by_id:
            log.info('pod "%s" was bound by another client: %s', pod.key, failure.message)
            self._queue.done(queued)
            return
        comes_back = self.requeue(queued, failure)
        if rejected and change.action is not Action.NONE:
            self._on_change(change, queued.identity)
        if comes_back:
            await self.report_failure(queued.pod, failure)
        else:
            log.info('pod "%s" is deleted; its binding is dropped', pod.key)

    def requeue(self, queued: QueuedPod, failure: Failure) -> bool:
        """Return the pod of a failed attempt to the scheduling queue; return False if the pod was deleted."""
        if not self._queue.reject(queued, failure.rejectors, failure.pending):
            return False
        if not failure.is_nomination_stored:
            self._note_nomination(queued.pod, failure)
        pod = queued.pod
        if self._observers:
            is_news = not is_reported(pod, failure)
            self._ended(queued, failure.result, failure.node, failure.message, is_news=is_news)
        return True

    def store_nomination(self, queued: QueuedPod, failure: Failure) -> Failure:
        """Store the nomination of a failed attempt in the cluster; return the failure to pass to `requeue` later."""
        self._note_nomination(self._queue.latest(queued), failure)
        return replace_field(failure, is_nomination_stored=True)

    def _note_nomination(self, pod: Pod, failure: Failure) -> None:
        named = pod.status.nominated_node_name if failure.nominated is None else failure.nominated
        self._cluster.nominations.set(pod, named)

    async def report_failure(self, pod: Pod, failure: Failure) -> None:
        """Write an Event with the reason of a failure, and the pod's condition and nominated node if they change.

        Args:
            pod: The newest version of the pod.
            failure: The failure; a long message is cut in the Event.
        """
        message = visible(failure.message)
        self._record(pod, "Warning", "FailedScheduling", "Scheduling", cut_bytes(message, NOTE_LIMIT, CUT))
        told = PodCondition(type="PodScheduled", status="False", reason=REASONS[failure.result], message=message)
        condition = pod_condition(pod, told, self._clock.now())
        nominated = failure.nominated if failure.nominated != pod.status.nominated_node_name else None
        if nominated is not None:
            self._renominate(pod, nominated)
        if condition is not None or nominated is not None:
            await self._conditions.write(pod, PodStatusChange(condition, nominated))

    def _renominate(self, pod: Pod, node: str) -> None:
        """Set the nominated node of a pod group's queued member without waiting for the watch event of the change.

        The watch shows no difference then: if the nomination ends, pods that may use its resources are retried here.
        """
        queued, before = self._queue.get(pod_id(pod)), pod.status.nominated_node_name
        if queued is None or queued.pod is not pod or queued.stage is not Stage.IN_GROUP:
            return
        queued.pod = replace(pod, status=replace(pod.status, nominated_node_name=node))
        if before and not node:
            row = self._cluster.nodes.row_of.get(before, -1)
            self._queue.move(departure(pod, before, row), at_most=pod_priority(pod))

    def _ended(
        self, queued: QueuedPod, result: AttemptResult, node: str, message: str = "", *, is_news: bool = True
    ) -> None:
        if self._observers:
            seconds = self._clock.monotonic() - queued.tried_at
            attempt = Attempt(queued, result, seconds, node, message, is_news)
            notify(self._observers, lambda one: one.on_attempt(attempt))

    def _record(self, pod: Pod, kind: str, reason: str, action: str, note: str) -> None:
        self._client.record(Event(pod, kind, reason, action, note, self._clock.now()))


def is_reported(pod: Pod, failure: Failure) -> bool:
    """Return whether a pod's condition PodScheduled already has the reason and message of a failure."""
    told = ("PodScheduled", "False", REASONS[failure.result], visible(failure.message))
    return any((one.type, one.status, one.reason, one.message) == told for one in pod.status.conditions)
