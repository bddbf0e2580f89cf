"""From a decision to a bound pod: bind once, confirm or take back, and tell people.

Each binding runs on its own while the next pods are decided; the pod counts on its node from the moment it was
assumed. A failed binding frees that at once and the pod is tried again after a backoff, without waiting for an event.

Source: pkg/scheduler/schedule_one.go (bindingCycle, handleBindingCycleError).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Sequence
from typing import Any

from policysched.framework import Action, ApiError, BindingHandle, Client, Clock, Event, Reservation
from policysched.model.objects import Pod
from policysched.schedule.conditions import ConditionWrites
from policysched.schedule.queue.queue import Queue
from policysched.schedule.queue.queued import QueuedPod
from policysched.state.changes import Change
from policysched.state.cluster import Cluster
from policysched.visible import visible

log = logging.getLogger(__name__)
NOTE_LIMIT = 1024
"""What the API server takes as an event's note. Units: bytes."""
CUT = " ..."
SERVER_ERROR = 500
READ_AGAIN = 1.0
"""How long to wait before asking again what became of a binding. Units: seconds."""


class Binder:
    """Binds assumed pods and reports what came of it."""

    def __init__(
        self, cluster: Cluster, queue: Queue, client: Client, clock: Clock, on_change: Callable[[Change], None]
    ) -> None:
        self._cluster = cluster
        self._queue = queue
        self._client = client
        self._conditions = ConditionWrites(client)
        self._clock = clock
        self._on_change = on_change
        self._handle = BindingHandle(client, clock, asyncio.sleep)

    async def bind(self, queued: QueuedPod, node: str, held: Sequence[Reservation] = ()) -> None:
        """Bind an assumed pod and finish its attempt, whatever happens.

        Args:
            queued: The pod.
            node: Its node.
            held: What plugins hold for it.
        """
        pod = queued.pod
        await self._conditions.settle(queued.identity)
        problem = await self._pre_bind(pod, held) or await self._bind(pod, node)
        if problem:
            undo(held)
            await self._binding_failed(queued, problem)
            return
        self._queue.done(queued)
        log.info("bound pod=%s node=%s attempts=%d", pod.key, node, queued.attempts)
        note = f"Successfully assigned {pod.key} to {node}"
        self._record(pod, "Normal", "Scheduled", "Binding", note)

    async def _pre_bind(self, pod: Pod, held: Sequence[Reservation]) -> str:
        """Let plugins do what must be done first; give what went wrong, empty where nothing did."""
        for one in held:
            try:
                problem = await one.pre_bind(self._handle)
            except Exception as error:
                log.exception("plugin %s failed before the binding of pod=%s", one.plugin, pod.key)
                problem = repr(error)
            if problem:
                return f'running PreBind plugin "{one.plugin}": {problem}'
        return ""

    async def _bind(self, pod: Pod, node: str) -> str:
        """Write the binding; give what went wrong, empty where nothing did."""
        try:
            problem = await self._refusal(pod, node)
        except Exception as error:
            log.exception("binding pod=%s failed", pod.key)
            problem = repr(error)
        return problem and f'running Bind plugin "DefaultBinder": {problem}'

    async def _refusal(self, pod: Pod, node: str) -> str:
        """Write the binding; give the server's words where it is not stored."""
        try:
            await self._client.bind(pod, node)
        except ApiError as error:
            return "" if await self._bound_all_the_same(pod, node, error) else error.message
        return ""

    async def _bound_all_the_same(self, pod: Pod, node: str, error: ApiError) -> bool:
        """Find out what became of a binding whose answer was lost or is no verdict.

        Until the server says so the pod keeps its place on the node: the binding may have been stored, and giving the
        place to another pod would overfill the node.
        """
        if 0 < error.status < SERVER_ERROR:
            return False
        log.warning("no verdict on the binding of pod=%s, its place is kept until there is one: %s", pod.key, error)
        while True:
            try:
                return await self._client.node_of(pod) == node
            except ApiError as unread:
                if unread.status != 0 and unread.status < SERVER_ERROR:
                    return False
                await asyncio.sleep(READ_AGAIN)

    async def report_failure(self, pod: Pod, reason: str, message: str) -> None:
        """Tell the pod's owner why it is not scheduled: an event, and a condition where it would change.

        Args:
            pod: The pod as it was tried.
            reason: Unschedulable or SchedulerError.
            message: The whole text; the event's is cut where it is too long.
        """
        told, message = is_told(pod, reason, message), visible(message)
        self._record(pod, "Warning", "FailedScheduling", "Scheduling", _shortened(message))
        if told:
            return
        condition: dict[str, Any] = {
            "type": "PodScheduled",
            "status": "False",
            "reason": reason,
            "message": message,
            "observedGeneration": pod.metadata.generation,
        }
        if not any(one.type == "PodScheduled" and one.status == "False" for one in pod.status.conditions):
            condition["lastProbeTime"] = None
            condition["lastTransitionTime"] = self._clock.now().strftime("%Y-%m-%dT%H:%M:%SZ")
        await self._conditions.write(pod, condition)

    async def _binding_failed(self, queued: QueuedPod, message: str) -> None:
        pod = queued.pod
        change = self._cluster.forget(queued.identity)
        if change.action is not Action.NONE:
            self._on_change(change)
        if queued.identity in self._cluster.pods.by_id:
            log.info("pod=%s was bound by another client: %s", pod.key, message)
            self._queue.done(queued)
            return
        if not self._queue.fail(queued):
            log.info("pod=%s is gone, its binding is dropped", pod.key)
            return
        log.warning("could not bind pod=%s: %s", pod.key, message)
        await self.report_failure(pod, "SchedulerError", message)

    def _record(self, pod: Pod, kind: str, reason: str, action: str, note: str) -> None:
        self._client.record(Event(pod, kind, reason, action, note, self._clock.now()))


def undo(held: Sequence[Reservation]) -> None:
    """Let plugins give back what they hold, the last one first."""
    for one in reversed(held):
        one.undo()


def _shortened(message: str) -> str:
    """Cut a message to the length of a note, between two characters."""
    encoded = message.encode()
    if len(encoded) <= NOTE_LIMIT:
        return message
    return encoded[: NOTE_LIMIT - len(CUT)].decode(errors="ignore") + CUT


def is_told(pod: Pod, reason: str, message: str) -> bool:
    """Tell whether a pod's condition says already why it is not scheduled."""
    told = ("PodScheduled", "False", reason, visible(message))
    return any((one.type, one.status, one.reason, one.message) == told for one in pod.status.conditions)
