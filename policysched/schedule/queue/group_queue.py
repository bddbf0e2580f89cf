"""`GroupQueue`: the scheduling queue of a cluster with pod groups; a group is queued as a whole.

Pods of a group are members of its `QueuedPodGroup`, which passes the queues like a pod. A member that the queue cannot
add to its group waits outside: *incomplete* until the object of the group exists, or *pending* until the attempt of the
group has ended. A group is never unschedulable: after a failed attempt it only waits for its backoff. Several groups
can be in flight at a time.

Source: pkg/scheduler/backend/queue/scheduling_queue.go (addPodGroupMember, AddAttemptedPodGroupIfNeeded), v1.38.
"""

from __future__ import annotations

import math
from collections import Counter
from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Final

from msgspec.structs import replace

from policysched.framework import Action, Change, Clock, Cluster, QueueSortPlugin, Resource
from policysched.model.objects import Pod, PodGroup
from policysched.schedule.queue.hints import QueueingStrategy, label
from policysched.schedule.queue.queue import Queue
from policysched.schedule.queue.queued_pod import NO_PLUGINS, QueuedPod, Stage
from policysched.schedule.queue.queued_pod_group import (
    GroupOutcome,
    HeldMembers,
    QueuedPodGroup,
    evaluation_key,
    standing_for,
)
from policysched.schedule.queue.subqueues import PodQueues, QueueCounts
from policysched.schedule.timing import Timing
from policysched.state.cluster_events import pod_difference
from policysched.state.placed.pods import pod_id
from policysched.state.pod_groups import group_key

ADDED: Final = "UnschedulablePodAdd"
"""Event name, in logs and metrics, for a pod that is queued because it, or its PodGroup object, was added."""
FAILED: Final = "ScheduleAttemptFailure"
_OUTSIDE: Final = frozenset((Stage.IN_GROUP, Stage.INCOMPLETE, Stage.PENDING))
"""The stages of pods that are not queued alone, but as members of a queued group, or wait for their group."""


class EntityQueues(PodQueues):
    """The queues of pods and pod groups; a group is gated if a PreEnqueue plugin rejects any member."""

    def enter_active(self, queued: QueuedPod, event: str) -> bool:
        """Make a pod or group active; if a PreEnqueue plugin gates it, return False."""
        entered = super().enter_active(queued, event)
        if entered and isinstance(queued, QueuedPodGroup):
            for member in queued.members:
                self._start(member)
        return entered

    def join(self, group: QueuedPodGroup, member: QueuedPod, event: str) -> None:
        """Add a member to a queued group; run PreEnqueue for the new member only."""
        group.add(member)
        if group.stage is Stage.UNSCHEDULABLE:
            self.list_anew(group)
            self._entered(member, "gated", event)
        elif not self._admit(member):
            group.gate(member)
            self.wait(group, event)
        elif group.stage is Stage.BACKOFF and not self.backoff.holds(group, self._clock.monotonic()):
            self.enter_active(group, event)
        else:
            self.reorder(group)
            if group.stage is Stage.ACTIVE:
                self._start(member)
            self._entered(member, group.stage.value, event)

    def part(self, group: QueuedPodGroup, event: str) -> None:
        """After a group lost a member, gate the group if PreEnqueue rejects the remaining members."""
        first = group.members[0]
        if not self._admit(first):
            group.gate(first)
            self.wait(group, event)

    def _start(self, member: QueuedPod) -> None:
        if member.first_attempt_at is None:
            member.first_attempt_at = self._clock.monotonic()

    def _entered(self, queued: QueuedPod, queue: str, event: str) -> None:
        super()._entered(queued, queue, event)
        for member in queued.members if isinstance(queued, QueuedPodGroup) else ():
            super()._entered(member, queue, event)

    def _passes_gates(self, queued: QueuedPod, timing: Timing | None = None) -> bool:
        if not isinstance(queued, QueuedPodGroup):
            return super()._passes_gates(queued, timing)
        for member in queued.members:
            if not super()._passes_gates(member, timing):
                queued.gate(member)
                return False
        queued.gated_by = ""
        return True


class GroupQueue(Queue):
    """The queue of all pending pods and pod groups; pods without a group are queued as in `Queue`."""

    _make_queues = EntityQueues
    _queues: EntityQueues

    def __init__(self, clock: Clock, sort: QueueSortPlugin, cluster: Cluster, **options: Any) -> None:
        """Create the queue of a cluster with pod groups."""
        super().__init__(clock, sort, cluster, **options)
        self._groups: dict[str, QueuedPodGroup] = {}
        """The queued pod groups by `namespace/name`, without groups whose attempt is running."""
        self._popped: set[str] = set()
        """`namespace/name` of the pod groups whose attempt is running (in flight)."""
        self._incomplete, self._pending = HeldMembers(Stage.INCOMPLETE), HeldMembers(Stage.PENDING)

    def add(self, pod: Pod) -> None:
        """Add a pending pod, or update a pod that is already in the queue."""
        identity, key = pod_id(pod), group_key(pod)
        if not key or identity in self._pods:
            super().add(pod)
            return
        queued = self._pods[identity] = QueuedPod(pod, identity, self._clock.monotonic())
        self._add_member(queued, key, ADDED)

    def update(self, pod: Pod) -> None:
        """Store a new version of a pending pod; add the pod if it is unknown."""
        queued = self._pods.get(pod_id(pod))
        if queued is None or queued.stage not in _OUTSIDE:
            super().update(pod)
            return
        old, queued.pod = queued.pod, pod
        if queued.stage is not Stage.IN_GROUP:
            return
        group = self._groups[group_key(pod)]
        group.represent()
        if group.stage is Stage.UNSCHEDULABLE:
            self._queues.list_anew(group)
            action = pod_difference(old, pod, self._cluster.amounts_in_use) or Action.UPDATE_OTHER
            self._judge(Change(Resource.PENDING_POD, action, old, pod), group)

    def delete(self, identity: str) -> bool:
        """Remove a pod; a pod whose attempt is running does not return to the queue."""
        queued = self._pods.get(identity)
        if queued is None or queued.stage not in _OUTSIDE:
            return super().delete(identity)
        del self._pods[identity]
        key, stage = group_key(queued.pod), queued.stage
        queued.stage = Stage.NOWHERE
        if stage is Stage.IN_GROUP:
            self._remove_member(self._groups[key], queued)
        else:
            held = self._incomplete if stage is Stage.INCOMPLETE else self._pending
            held.discard(key, identity)
        return True

    def pop(self) -> QueuedPod | None:
        """Remove and return the next pod or pod group, and start its attempt.

        The caller ends the attempt of a pod, and of each member of a group, by `reject`, `fail` or `done`. Then it ends
        the attempt of the group by `end_group`.
        """
        popped = super().pop()
        if isinstance(popped, QueuedPodGroup):
            self._in_flight.end(popped.identity)
            del self._groups[popped.key]
            self._popped.add(popped.key)
            for member in popped.members:
                member.stage, member.tried_at = Stage.IN_FLIGHT, popped.tried_at
                member.attempts += 1
                self._in_flight.begin(member)
        return popped

    def reject(self, queued: QueuedPod, rejectors: frozenset[str], pending: frozenset[str] = NO_PLUGINS) -> bool:
        """End an attempt that failed, and requeue its pod; return whether the pod still exists.

        A member of a group in flight waits for the end of the group's attempt. Another member joins its group, or makes
        the group active.
        """
        key = group_key(queued.pod)
        if not key:
            return super().reject(queued, rejectors, pending)
        if self._note_failure(queued, rejectors, pending) is None:
            return False
        self._in_flight.end(queued.identity)
        self._add_member(queued, key, FAILED)
        return True

    def end_group(self, group: QueuedPodGroup, outcome: GroupOutcome) -> None:
        """End the attempt of a popped group; the attempts of its members that are not bound must have ended.

        The group is queued again with its pending members: active at once if it was scheduled, in backoff otherwise.
        """
        self._popped.discard(group.key)
        members = self._pending.take(group.key)
        if not members:
            return
        attempted = {one.identity for one in group.members}
        again = replace(
            group,
            group=self._object(group.key) or group.group,
            members=sorted(members, key=evaluation_key),
            stage=Stage.NOWHERE,
            flushed=False,
            flushed_at=-math.inf,
            backoff_factor=math.sqrt(len(members)),
        )
        again.represent()
        for member in members:
            member.stage = Stage.IN_GROUP
        if outcome is not GroupOutcome.SCHEDULED or not any(one.identity in attempted for one in members):
            again.queued_at = self._clock.monotonic()
        _count(again, outcome)
        self._groups[group.key] = again
        if outcome is GroupOutcome.SCHEDULED:
            self._queues.enter_active(again, FAILED)
        else:
            self._queues.requeue(again, QueueingStrategy.AFTER_BACKOFF, FAILED)

    def set_group(self, group: PodGroup) -> None:
        """Store a created or changed PodGroup object; queue the pods that waited for it."""
        key = group.key
        queued = self._groups.get(key)
        if queued is not None:
            queued.group = group
            queued.represent()
        for member in self._incomplete.take(key):
            self._add_member(member, key, ADDED)

    def remove_group(self, group: PodGroup) -> None:
        """Store that a PodGroup object was deleted; its pods, except pods in flight, wait until it is created again."""
        key = group.key
        queued = self._groups.pop(key, None)
        if queued is not None:
            self._queues.leave(queued)
        for member in self._pending.take(key) if queued is None else queued.members:
            self._incomplete.add(key, member)

    def move_rejected_by(self, plugins: frozenset[str], event: str = "SchedulingPolicyUpdate") -> int:
        """Requeue the pods and groups that given plugins rejected, because the plugins changed; return their number."""
        gated = [one for one in self._groups.values() if one.gated_by in plugins]
        self._moves.run(gated, partial(self._requeue, event))
        return len(gated) + super().move_rejected_by(plugins, event)

    def activate(self, identities: Iterable[str]) -> None:
        """Make pods active without backoff; a member makes its whole group active, unless the group is in flight."""
        for identity in identities:
            queued = self._pods.get(identity)
            if queued is None or queued.stage not in _OUTSIDE:
                super().activate((identity,))
            elif queued.stage is Stage.IN_GROUP:
                group = self._groups[group_key(queued.pod)]
                if group.stage is not Stage.ACTIVE:
                    self._queues.enter_active(group, "ForceActivate")

    def get_group(self, key: str) -> QueuedPodGroup | None:
        """Return a queued group by `namespace/name`; None if the group has no queued members or is in flight."""
        return self._groups.get(key)

    def counts(self) -> QueueCounts:
        """Return the number of pods in each queue."""
        pods, groups = super().counts(), tuple(self._groups.values())
        return QueueCounts(*(map(sum, zip(pods, _counts(groups, more=True), strict=True))))

    def entity_counts(self) -> Mapping[str, QueueCounts]:
        """Return for each queue the number of pods without a group and the number of groups."""
        every, groups = super().counts(), _counts(tuple(self._groups.values()))
        pods = QueueCounts(*(count - of_groups for count, of_groups in zip(every, groups, strict=True)))
        return {"pod": pods, "podgroup": groups}

    def held_counts(self) -> Mapping[str, int]:
        """Return the numbers of pods that wait for their pod group outside the queues, by reason."""
        return {"incomplete": len(self._incomplete), "pending": len(self._pending)}

    def _object(self, key: str) -> PodGroup | None:
        groups = self._cluster.pod_groups
        state = None if groups is None else groups.get(key)
        return None if state is None else state.group

    def _add_member(self, member: QueuedPod, key: str, event: str) -> None:
        """Add a pod to its queued group or to a new group; if there is no PodGroup object, the pod waits for it."""
        made = self._object(key)
        if made is None:
            self._incomplete.add(key, member)
        elif key in self._groups:
            self._queues.join(self._groups[key], member, event)
        elif key in self._popped:
            self._pending.add(key, member)
        else:
            member.stage = Stage.IN_GROUP
            self._groups[key] = group = QueuedPodGroup(
                pod=standing_for(made, member.pod),
                identity=f"podgroup/{key}",
                queued_at=member.queued_at,
                first_attempt_at=member.first_attempt_at,
                key=key,
                group=made,
                members=[member],
            )
            self._queues.enter_active(group, event)

    def _remove_member(self, group: QueuedPodGroup, member: QueuedPod) -> None:
        """Remove a pod from its queued group; if this pod gated the group, try to make the group active."""
        group.remove(member)
        if not group.members:
            self._queues.leave(group)
            del self._groups[group.key]
        elif group.stage is not Stage.UNSCHEDULABLE:
            self._queues.part(group, ADDED)
        elif member.gated_by:
            self._queues.requeue(group, QueueingStrategy.AFTER_BACKOFF, ADDED)

    def _try_again(self, until: float, queued: QueuedPod) -> bool:
        """Requeue a pod or group that waited for the maximum time; ready pods precede it until the time `until`."""
        if not isinstance(queued, QueuedPodGroup):
            return super()._try_again(until, queued)
        requeued = super()._try_again(-math.inf, queued)
        for member in queued.members:
            member.flushed = requeued
        return requeued

    def _judge(self, change: Change, queued: QueuedPod) -> bool:
        """Requeue a waiting pod or group if the queueing hints accept a change."""
        if not isinstance(queued, QueuedPodGroup):
            return super()._judge(change, queued)
        verdict = self._of_change(queued, change)
        return verdict is not QueueingStrategy.SKIP and self._queues.requeue(queued, verdict, label(change))

    def _of_change(self, group: QueuedPodGroup, change: Change) -> QueueingStrategy:
        """Return the best verdict of queueing hints about a change, among the rejected members of a group."""
        best = QueueingStrategy.SKIP
        for member in group.members:
            if member.rejectors or member.pending:
                verdict = self._judging.of_change(member, change)
                best = best if verdict is QueueingStrategy.SKIP else verdict
                if verdict is QueueingStrategy.IMMEDIATELY:
                    break
                if best is not QueueingStrategy.SKIP and not any(one.pending for one in group.members):
                    break
        return best


def _count(group: QueuedPodGroup, outcome: GroupOutcome) -> None:
    """Update a group's failure counts, which determine its backoff, after an attempt."""
    if outcome is GroupOutcome.SCHEDULED:
        group.unschedulable_count = group.consecutive_errors = 0
    elif outcome is GroupOutcome.REJECTED:
        group.unschedulable_count += 1
        group.consecutive_errors = 0
    else:
        group.consecutive_errors += 1


def _counts(groups: Iterable[QueuedPodGroup], *, more: bool = False) -> QueueCounts:
    """Return the number of groups in each queue; with `more`, of all members except one for each group."""
    counts = Counter[Stage]()
    for group in groups:
        counts[group.stage] += len(group.members) - 1 if more else 1
    return QueueCounts(counts[Stage.ACTIVE], counts[Stage.BACKOFF], 0, counts[Stage.UNSCHEDULABLE])
