"""Eviction of victims: deletes them after setting a condition; victims that are not bound yet return to the queue.

All victims but the last are deleted concurrently, and then the last one: its deletion is the event that requeues the
preemptor. Until then the preemptor is gated, because it would find the node full. A victim that no longer exists counts
as deleted. After any other error the preemptor is retried after seconds, not at once as in kube-scheduler, whose client
sends at most 50 requests a second.

Source: pkg/scheduler/framework/preemption/executor.go (prepareCandidateAsync, IsPodRunningPreemption), KEP-4832, v1.36
and v1.37.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Iterable, Sequence
from dataclasses import dataclass
from typing import Final

from policysched.framework import ApiError, Cluster, Event, Handle, PodStatusChange, pod_condition
from policysched.model.objects import Pod, PodCondition, PodGroup
from policysched.model.pod_requirements import pod_priority
from policysched.state.placed.pods import pod_id

log = logging.getLogger(__name__)
GONE: Final = frozenset((404, 409, 422))
"""HTTP statuses of the API server's answer for a pod that was deleted or recreated under the same name."""
FIRST_PAUSE: Final = 1.0
LONGEST_PAUSE: Final = 10.0
"""Longest pause after a failed eviction, as in the backoff of the queue. Units: seconds."""
PAUSE_EACH: Final = 0.1
"""Pause after a failed eviction for each waiting preemptor: together they retry 10 times a second. Units: seconds."""
MARK: Final = "DisruptionTarget"
REASON: Final = "PreemptionByScheduler"


@dataclass(frozen=True, slots=True)
class Preemptor:
    """A pod or pod group for which other pods are evicted."""

    obj: Pod | PodGroup
    pods: Sequence[Pod]
    """The preempting pod, or the members of the preempting pod group that are being scheduled; at least one pod."""

    @property
    def identity(self) -> str:
        """The identity of the preempting pod, or the UID of the preempting pod group."""
        return pod_id(self.obj) if isinstance(self.obj, Pod) else self.obj.metadata.uid

    @property
    def kind(self) -> str:
        """The kind of preemptor in messages and metrics: `pod` or `podgroup`."""
        return "pod" if isinstance(self.obj, Pod) else "podgroup"

    @property
    def priority(self) -> int:
        """The priority of the preempting pod or pod group."""
        return pod_priority(self.obj) if isinstance(self.obj, Pod) else self.obj.priority

    @property
    def identities(self) -> tuple[str, ...]:
        """The identities of the preemptor's pods."""
        return tuple(map(pod_id, self.pods))


@dataclass(slots=True, eq=False)
class Preemption:
    """A running preemption: preemptor, nominated node and victims."""

    preemptor: Preemptor
    place: str
    """The name of the node in messages; `cluster` for a pod group."""
    nodes: Sequence[str]
    """The names of the nodes on which nominations of pods of lower priority are cleared."""
    victims: Sequence[Pod]
    """The victims that are not yet being deleted, most important first."""
    cluster: Cluster
    last: str = ""
    """The identity of the victim that is evicted last; empty until all other victims are evicted."""
    held_back: bool = False
    """Whether PreEnqueue gated the preemptor during the preemption."""
    ends_unbound: bool = False
    """Whether the last victim was not bound yet, so that it returned to the queue."""

    @property
    def is_over(self) -> bool:
        """Whether the last victim is deleted or being deleted, after which the preemptor is not gated."""
        if not self.last:
            return False
        placed = self.cluster.pods.by_id.get(self.last)
        return placed is None or placed.pod.metadata.deletion_timestamp is not None

    @property
    def left_nobody(self) -> bool:
        """Whether all victims are already deleted, so that no further deletion can requeue the preemptor."""
        return self.cluster.pods.by_id.keys().isdisjoint(map(pod_id, self.victims))


class Evictions:
    """The running preemptions of one profile, by preemptor.

    Args:
        plugin: The name of the plugin.
        retries_at_once: Whether a preemptor is retried without backoff if its last victim was not bound yet.
    """

    def __init__(self, plugin: str, *, retries_at_once: bool = False) -> None:
        self._plugin = plugin
        self._retries_at_once = retries_at_once
        self._running: dict[str, Preemption] = {}
        self._pausing = 0
        """Number of preemptors that wait for a retry after a failed eviction."""

    def holds_back(self, preemptor: str) -> bool:
        """Return whether a preemptor has to wait for the evictions of its own preemption."""
        running = self._running.get(preemptor)
        if running is None or running.is_over:
            return False
        running.held_back = True
        return True

    def start(self, preemption: Preemption, handle: Handle) -> Awaitable[bool]:
        """Register a preemption; return an awaitable that evicts the victims and returns whether that succeeded."""
        self._running[preemption.preemptor.identity] = preemption
        return self._run(preemption, handle)

    async def _run(self, preemption: Preemption, handle: Handle) -> bool:
        preemptor, error = preemption.preemptor.identity, None
        try:
            cleared = await self._clear_nominations(preemption, handle)
            failed = not await self._evict(preemption, handle) or not cleared
        except Exception as caught:
            failed, error = True, caught
        finally:
            if self._running.get(preemptor) is preemption:
                del self._running[preemptor]
        if failed:
            await self._pause(handle)
        at_once = self._retries_at_once and preemption.ends_unbound
        if at_once:
            await handle.pause(0.0)  # until the victim left its node; otherwise, the preemptor would evict it again
        if failed or ((at_once or preemption.held_back) and preemption.left_nobody):
            handle.activate(preemption.preemptor.identities)
        if error is not None:
            raise error
        return not failed

    async def _pause(self, handle: Handle) -> None:
        """Pause after a failed eviction; the more preemptors wait, the longer."""
        self._pausing += 1
        try:
            await handle.pause(min(max(FIRST_PAUSE, self._pausing * PAUSE_EACH), LONGEST_PAUSE))
        finally:
            self._pausing -= 1

    async def _evict(self, preemption: Preemption, handle: Handle) -> bool:
        """Evict all victims, the last only after all others; return whether all were evicted."""
        *first, last = preemption.victims
        if not all(await asyncio.gather(*(self._evict_one(preemption, victim, handle) for victim in first))):
            return False
        preemption.last = pod_id(last)
        return await self._evict_one(preemption, last, handle)

    async def _clear_nominations(self, preemption: Preemption, handle: Handle) -> bool:
        """Clear the nominations of lower-priority pods to the preemption's nodes; return whether all were cleared."""
        fine = True
        for pod in lower_nominated(preemption.cluster, preemption.preemptor.priority, preemption.nodes):
            if not pod.status.nominated_node_name:
                continue
            try:
                await handle.client.set_pod_status(pod, PodStatusChange(nominated_node=""))
            except ApiError as error:
                log.warning('could not clear the nominated node of pod "%s": %s', pod.key, error.message)
                fine = False
        return fine

    async def _evict_one(self, preemption: Preemption, victim: Pod, handle: Handle) -> bool:
        preemptor = preemption.preemptor
        obj, place = preemptor.obj, preemption.place
        note = f"Preempted by {preemptor.kind} {obj.metadata.uid} on node {place}"
        if self._requeue_unbound(pod_id(victim), handle):
            note += " (in kube-scheduler memory)."
            preemption.ends_unbound = preemption.last == pod_id(victim)
        else:
            try:
                await _delete(victim, preemptor, handle)
            except ApiError as error:
                if error.status in GONE:
                    return True
                told = victim.key, preemptor.kind, obj.key, error.message
                log.warning('could not evict victim "%s" for %s "%s": %s', *told)
                return False
        now = handle.clock.now()
        handle.client.record(Event(victim, "Normal", "Preempted", "Preempting", note, now, obj))
        log.info('preempted victim "%s" on node "%s" for %s "%s"', victim.key, place, preemptor.kind, obj.key)
        return True

    def _requeue_unbound(self, victim: str, handle: Handle) -> bool:
        """Return to the queue a victim that waits at Permit or is in PreBind; return False for other victims."""
        waiting, binding = handle.waiting.get(victim), handle.in_pre_bind.get(victim)
        if waiting is not None:
            return waiting.preempt(self._plugin, "preempted")
        if binding is not None:
            binding.cancel(f"preempted by {self._plugin}")
        return binding is not None


async def _delete(victim: Pod, preemptor: Preemptor, handle: Handle) -> None:
    """Set the condition DisruptionTarget of a victim and delete the victim.

    Raises:
        ApiError: The request failed; with a status in GONE if the victim no longer exists.
    """
    name = preemptor.pods[0].spec.scheduler_name
    message = f"{name}: preempting to accommodate a higher priority {preemptor.kind}"
    told = PodCondition(type=MARK, status="True", reason=REASON, message=message)
    condition = pod_condition(victim, told, handle.clock.now())
    if condition is not None:
        await handle.client.set_pod_status(victim, PodStatusChange(condition))
    await handle.client.delete_pod(victim)


def lower_nominated(cluster: Cluster, priority: int, nodes: Iterable[str]) -> list[Pod]:
    """Return the pods of lower priority than `priority` that are nominated to one of the given nodes."""
    nominated = (one for node in nodes for one in cluster.nominations.on_node(node))
    return [one for one in nominated if pod_priority(one) < priority]


def is_going_for_another(pod: Pod) -> bool:
    """Return whether a pod is being deleted because a scheduler preempted the pod."""
    if pod.metadata.deletion_timestamp is None:
        return False
    told = next((one for one in pod.status.conditions if one.type == MARK), None)
    return told is not None and (told.status, told.reason) == ("True", REASON)
