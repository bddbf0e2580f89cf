"""Hooks into the scheduler's work: decisions, ends of attempts, moves between queues, waits at Permit.

Where nobody listens nothing is made for it, not even a time is read. A listener that fails is logged and stops nothing.
It reads what it is given before it returns: the cluster changes afterwards.

Source: pkg/scheduler/metrics/metrics.go (what is counted and measured there).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Final

from policysched.framework import DeviceWait, PostFilterResult, Status, WaitingPod
from policysched.framework.profile import Profile
from policysched.klog import V2, V3, V4, V5
from policysched.rules.policy_set.policy_set import PolicySet
from policysched.schedule.cycle.decision import Decision
from policysched.schedule.queue.queued_pod import QueuedPod

log = logging.getLogger(__name__)


class AttemptResult(Enum):
    """How an attempt to schedule a pod ended."""

    SCHEDULED = "scheduled"
    UNSCHEDULABLE = "unschedulable"
    ERROR = "error"


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt that has ended, with its binding if it came to that."""

    queued: QueuedPod
    result: AttemptResult
    seconds: float
    """How long it took."""
    node: str = ""
    message: str = ""
    """Why the pod is not scheduled."""
    is_news: bool = True
    """Whether the pod's condition does not say so already."""


class Observer:
    """A listener; each method does nothing unless a listener has its own."""

    def on_swap(self, profiles: Mapping[str, Profile], policies: PolicySet) -> None:
        """Hear which profiles take force now, with the policies in force; before the next cycle."""

    def on_decision(self, queued: QueuedPod, decision: Decision) -> None:
        """Hear what a cycle decided."""

    def on_preemption(self, queued: QueuedPod, result: PostFilterResult) -> None:
        """Hear which pods are to make room for a pod, and on which node."""

    def on_attempt(self, attempt: Attempt) -> None:
        """Hear how an attempt ended."""

    def on_queued(self, queued: QueuedPod, queue: str, event: str) -> None:
        """Hear that a pod entered a queue: active, backoff, unschedulable or gated.

        Args:
            queued: The pod.
            queue: The queue.
            event: What put it there, as kube-scheduler's metrics say it.
        """

    def on_permit_wait(self, waiting: WaitingPod, status: Status | None, seconds: float) -> None:
        """Hear how a pod's wait at Permit ended: None where it was allowed."""

    def on_claim_request(self, *, created: bool) -> None:
        """Hear whether the API server has created a resource claim that it was asked for."""

    def on_device_wait(self, wait: DeviceWait) -> None:
        """Hear how a pod's wait for the binding conditions of its devices ended."""


Observers = Sequence[Observer]


def tell(observers: Observers, say: Callable[[Observer], None]) -> None:
    """Tell every listener something."""
    for one in observers:
        try:
            say(one)
        except Exception:
            log.exception("listener %s failed; scheduling continues", type(one).__name__)


MOST_COUNTS: Final = 4096
"""Of how many pods that are about to be bound it is remembered what the log is to say of their decisions."""


class LogLines(Observer):
    """Writes what becomes of pods to the log, in kube-scheduler's words and at its levels; what is no news, at 4."""

    def __init__(self) -> None:
        self._counts: dict[str, tuple[int, int]] = {}
        """Of pods that are about to be bound, how many nodes were evaluated, and feasible.

        Of a pod that goes meanwhile no attempt is heard to end, so the oldest are given up.
        """

    def on_decision(self, queued: QueuedPod, decision: Decision) -> None:
        """Say on which node a pod counts from now on."""
        if decision.row < 0 or not log.isEnabledFor(V2):
            return
        self._counts[queued.identity] = (decision.evaluated_count, decision.feasible_count)
        if len(self._counts) > MOST_COUNTS:
            del self._counts[next(iter(self._counts))]
        log.log(V3, "Attempting to bind pod to node", {"pod": queued.pod.key, "node": decision.node})

    def on_preemption(self, queued: QueuedPod, result: PostFilterResult) -> None:
        """Say how many pods are to make room."""
        told = {"node": result.nominated_node, "pod": queued.pod.key, "victims": len(result.victims)}
        log.log(V2, "the target node for the preemption is determined", told)

    def on_queued(self, queued: QueuedPod, queue: str, event: str) -> None:
        """Say into which queue an event has put a pod."""
        if log.isEnabledFor(V5):
            told = {"pod": queued.pod.key, "event": event, "queue": queue}
            log.log(V5, "Pod moved to an internal scheduling queue", told)

    def on_attempt(self, attempt: Attempt) -> None:
        """Say how an attempt ended."""
        key, level = attempt.queued.pod.key, V2 if attempt.is_news else V4
        evaluated, feasible = self._counts.pop(attempt.queued.identity, (0, 0))
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


LOG_LINES: Observers = (LogLines(),)
