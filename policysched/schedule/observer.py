"""Hooks into the scheduler's work: decisions, ends of attempts, moves between queues, waits at Permit.

Where nobody listens nothing is made for it, not even a time is read. A listener that fails is logged and stops nothing.
It reads what it is given before it returns: the cluster changes afterwards.

Source: pkg/scheduler/metrics/metrics.go (what is counted and measured there).
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from enum import Enum

from policysched.framework import PostFilterResult, Status, WaitingPod
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


Observers = Sequence[Observer]


def tell(observers: Observers, say: Callable[[Observer], None]) -> None:
    """Tell every listener something."""
    for one in observers:
        try:
            say(one)
        except Exception:
            log.exception("%s failed as it listened", type(one).__name__)


class LogLines(Observer):
    """Writes what becomes of pods to the log; what was said before, at DEBUG."""

    def on_decision(self, queued: QueuedPod, decision: Decision) -> None:
        """Say on which node a pod counts from now on."""
        if decision.row >= 0:
            text = "assumed pod=%s node=%s evaluatedNodes=%d feasibleNodes=%d"
            log.debug(text, queued.pod.key, decision.node, decision.evaluated_count, decision.feasible_count)

    def on_preemption(self, queued: QueuedPod, result: PostFilterResult) -> None:
        """Say how many pods are to make room."""
        log.info("preempting pod=%s node=%s victims=%d", queued.pod.key, result.nominated_node, len(result.victims))

    def on_queued(self, queued: QueuedPod, queue: str, event: str) -> None:
        """Say into which queue an event has put a pod."""
        log.debug("queued pod=%s queue=%s event=%s", queued.pod.key, queue, event)

    def on_attempt(self, attempt: Attempt) -> None:
        """Say how an attempt ended."""
        key = attempt.queued.pod.key
        if attempt.result is AttemptResult.SCHEDULED:
            log.info("bound pod=%s node=%s attempts=%d", key, attempt.node, attempt.queued.attempts)
            return
        failed = attempt.result is AttemptResult.ERROR
        level = logging.DEBUG if not attempt.is_news else logging.WARNING if failed else logging.INFO
        text = "could not bind" if attempt.node else "error for" if failed else "unschedulable"
        log.log(level, "%s pod=%s: %s", text, key, attempt.message)


LOG_LINES: Observers = (LogLines(),)
