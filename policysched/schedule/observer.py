"""`Observer`: callbacks for decisions, attempts, moves between queues and waits at Permit; `LogLines` logs them.

An observer that fails is logged and does not affect scheduling. Its arguments are valid until it returns: the cluster
changes afterwards.

Source: pkg/scheduler/metrics/metrics.go (what is counted and measured there).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from weakref import WeakKeyDictionary

from policysched.framework import DeviceWait, PostFilterResult, Status, WaitingPod
from policysched.framework.pod_groups import PodGroupPostFilterResult
from policysched.framework.profile import Profile
from policysched.klog import V2, V3, V4, V5
from policysched.model.objects import Pod, PodGroup
from policysched.rules.policy_set.policy_set import PolicySet
from policysched.schedule.cycle.decision import Decision
from policysched.schedule.queue.queued_pod import QueuedPod
from policysched.schedule.queue.queued_pod_group import QueuedPodGroup

log = logging.getLogger(__name__)


class AttemptResult(Enum):
    """The way in which an attempt to schedule a pod ended."""

    SCHEDULED = "scheduled"
    UNSCHEDULABLE = "unschedulable"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Attempt:
    """A finished scheduling attempt of a pod, including its binding if the pod was bound."""

    queued: QueuedPod
    result: AttemptResult
    seconds: float
    """Duration of the attempt. Units: seconds."""
    node: str = ""
    message: str = ""
    """Reason why the pod is not scheduled; empty if the pod was bound."""
    is_news: bool = True
    """Whether the message differs from the message in the pod's PodScheduled condition."""


@dataclass(frozen=True, slots=True)
class GroupVerdict:
    """The decision about a pod group: message, nodes and nominated nodes of its members, victims."""

    result: AttemptResult
    message: str
    """Reason why the group is not scheduled; empty if it is."""
    nodes: Mapping[str, str]
    """The node of each member that fits, by pod identity."""
    nominated: Mapping[str, str]
    """The nominated nodes of members, by pod identity."""
    victims: Sequence[Pod]
    """The pods that are evicted for the group."""


@dataclass(frozen=True, slots=True)
class GroupAttempt:
    """A finished cycle of a pod group; the bindings of its members have not begun."""

    queued: QueuedPodGroup
    result: AttemptResult
    message: str
    """Reason why the group is not scheduled; empty if it is."""
    scheduled: int
    """Number of members that fit and whose binding is started."""
    unschedulable: int
    """Number of members whose binding is not started."""
    algorithm_seconds: float
    """Duration of the group's cycle until the decision. Units: seconds."""
    seconds: float
    """Duration of the group's attempt. Units: seconds."""
    waits: bool = False
    """Whether the group waits until the pods that it preempts are gone."""


@dataclass(frozen=True, slots=True)
class PlacementSearch:
    """A finished search for a placement of a pod group."""

    profile: str
    generated: int
    """Number of placements that plugins generated."""
    evaluated: Sequence[tuple[bool, float]]
    """For each evaluated placement, whether the group fits, and the duration of the evaluation in seconds."""


class Observer:
    """Receives events of the scheduler; every method does nothing by default."""

    def on_swap(self, profiles: Mapping[str, Profile], policies: PolicySet) -> None:
        """Called after profiles or policies were replaced, before the next scheduling cycle."""

    def on_decision(self, queued: QueuedPod, decision: Decision) -> None:
        """Called after the scheduling cycle of a pod."""

    def on_preemption(self, queued: QueuedPod, result: PostFilterResult) -> None:
        """Called when the victims of a pod's preemption are chosen."""

    def on_group_preemption(self, group: PodGroup, result: PodGroupPostFilterResult) -> None:
        """Called when the victims of a pod group's preemption are chosen."""

    def on_attempt(self, attempt: Attempt) -> None:
        """Called at the end of a pod's scheduling attempt."""

    def on_group_cycle(self, queued: QueuedPodGroup, members: Sequence[QueuedPod]) -> None:
        """Called before the cycle of a pod group, with its members in the order of evaluation."""

    def on_group_decision(self, verdict: GroupVerdict | None) -> None:
        """Called after a pod group's cycle, before members are placed; `verdict` is None if the cycle failed."""

    def on_group_attempt(self, attempt: GroupAttempt) -> None:
        """Called after a pod group's cycle, when its members are assumed and before their bindings begin."""

    def on_placement_search(self, search: PlacementSearch) -> None:
        """Called after each search for a placement of a pod group, in attempts and in simulations of preemption."""

    def on_queued(self, queued: QueuedPod, queue: str, event: str) -> None:
        """Called when a pod enters a queue; for a queued pod group, called for the group and then for each member.

        Args:
            queued: The pod or pod group.
            queue: The queue: active, backoff, unschedulable or gated.
            event: The event's name in kube-scheduler's metrics.
        """

    def on_permit_wait(self, waiting: WaitingPod, status: Status | None, seconds: float) -> None:
        """Called at the end of a pod's wait at Permit; `status` is None if the pod was allowed."""

    def on_claim_request(self, *, created: bool) -> None:
        """Called after a request to create a ResourceClaim."""

    def on_device_wait(self, wait: DeviceWait) -> None:
        """Called after a pod waited at PreBind for the binding conditions of its devices."""


Observers = Sequence[Observer]


def notify(observers: Observers, say: Callable[[Observer], None]) -> None:
    """Call the same method of every observer; log exceptions."""
    for one in observers:
        try:
            say(one)
        except Exception:
            log.exception("listener %s failed; scheduling continues", type(one).__name__)


class LogLines(Observer):
    """Logs attempts with kube-scheduler's messages and levels; repeated failures are logged at level 4."""

    def __init__(self) -> None:
        self._counts: WeakKeyDictionary[QueuedPod, tuple[int, int]] = WeakKeyDictionary()
        """For each pod that is being bound, the numbers of nodes that were evaluated and that were feasible."""

    def on_decision(self, queued: QueuedPod, decision: Decision) -> None:
        """Log the node that a decision selects."""
        if decision.row < 0 or not log.isEnabledFor(V2):
            return
        self._counts[queued] = (decision.evaluated_count, decision.feasible_count)
        log.log(V3, "Attempting to bind pod to node", {"pod": queued.pod.key, "node": decision.node})

    def on_preemption(self, queued: QueuedPod, result: PostFilterResult) -> None:
        """Log the nominated node and the number of victims of a preemption."""
        told = {"node": result.nominated_node, "pod": queued.pod.key, "victims": len(result.victims)}
        log.log(V2, "the target node for the preemption is determined", told)

    def on_queued(self, queued: QueuedPod, queue: str, event: str) -> None:
        """Log the queue that a pod enters."""
        if log.isEnabledFor(V5) and not isinstance(queued, QueuedPodGroup):
            told = {"pod": queued.pod.key, "event": event, "queue": queue}
            log.log(V5, "Pod moved to an internal scheduling queue", told)

    def on_attempt(self, attempt: Attempt) -> None:
        """Log the result of a scheduling attempt."""
        key, level = attempt.queued.pod.key, V2 if attempt.is_news else V4
        evaluated, feasible = self._counts.pop(attempt.queued, (0, 0))
        if attempt.result is AttemptResult.SCHEDULED:
            if log.isEnabledFor(V2):
                told = {"pod": key, "node": attempt.node, "evaluatedNodes": evaluated, "feasibleNodes": feasible}
                log.log(V2, "Successfully bound pod to node", told)
        elif attempt.result is AttemptResult.UNSCHEDULABLE:
            log.log(level, "Unable to schedule pod; no fit; waiting", {"pod": key, "err": attempt.message})
        else:
            node = {"node": attempt.node} if attempt.node else {}
            failed = logging.WARNING if attempt.is_news else V4
            log.log(failed, "Error scheduling pod; retrying", {"err": attempt.message, "pod": key} | node)

    def on_group_attempt(self, attempt: GroupAttempt) -> None:
        """Log the result of a pod group's cycle."""
        told: dict[str, object] = {"podGroup": attempt.queued.key}
        if attempt.result is AttemptResult.SCHEDULED:
            told |= {"scheduledPods": attempt.scheduled, "unschedulablePods": attempt.unschedulable}
            log.log(V2, "Successfully scheduled a pod group", told)
        elif attempt.result is AttemptResult.UNSCHEDULABLE:
            told |= {"unschedulablePods": attempt.unschedulable, "err": attempt.message}
            log.log(V2, "Unable to schedule a pod group", told)
        else:
            told |= {"err": attempt.message, "errorPods": attempt.unschedulable}
            log.log(logging.WARNING, "Error scheduling pod group", told)


LOG_LINES: Observers = (LogLines(),)
