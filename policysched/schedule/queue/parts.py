"""The places where pending pods are kept, and the ways between them.

Every way into active or backoff leads through the PreEnqueue plugins, gates first, so that a pod that may be popped
has always passed them; only what comes from backoff passed them already. Why a pod moves is not known here.

Source: pkg/scheduler/backend/queue/scheduling_queue.go (moveToActiveQ, moveToBackoffQ, runPreEnqueuePlugins).
"""

from __future__ import annotations

import logging
import math
from collections.abc import Callable, Mapping
from typing import NamedTuple

from policysched.framework import Clock, Code, PreEnqueuePlugin, QueueSortPlugin
from policysched.schedule.queue.backoff import WINDOW, Backoff
from policysched.schedule.queue.heap import Key, PodHeap
from policysched.schedule.queue.hints import NO_INTERESTS, Interests, Verdict
from policysched.schedule.queue.queued import Place, QueuedPod
from policysched.schedule.queue.waiting import WaitingPods

log = logging.getLogger(__name__)


class Counts(NamedTuple):
    """How many pods are where."""

    active: int
    backoff: int
    unschedulable: int
    gated: int


OnQueued = Callable[[QueuedPod, str, str], None]
"""Hears of a pod that enters a queue: which queue, and on which event."""


class Places:
    """Active, backoff, error backoff, and the waiting pods."""

    def __init__(
        self, clock: Clock, sort: QueueSortPlugin, profiles: Mapping[str, Interests], backoff: Backoff
    ) -> None:
        self.profiles = profiles
        self.backoff = backoff
        self.on_ready: Callable[[], None] = _nobody
        self.on_queued: OnQueued | None = None
        self.waiting = WaitingPods()
        self._clock, self._sort = clock, sort
        self._active, self._backing_off, self._failed = PodHeap(), PodHeap(), PodHeap()

    def take_first(self) -> QueuedPod | None:
        """Take the first active pod, else the one whose backoff ends first; never one after an error."""
        queued = self._active.pop()
        if queued is not None:
            return queued
        queued = self._backing_off.pop()
        if queued is not None:
            self._entered(queued, "active", "PopFromBackoffQ")
        return queued

    def enter_active(self, queued: QueuedPod, event: str) -> bool:
        """Make a pod ready; tell whether no gate kept it out."""
        if queued.place is not Place.BACKOFF and not self._admit(queued):
            self.wait(queued, event)
            return False
        self.leave(queued)
        if queued.first_attempt_at is None:
            queued.first_attempt_at = self._clock.monotonic()
        queued.place = Place.ACTIVE
        self._active.push(self._key(queued), queued)
        self._entered(queued, "active", event)
        self.on_ready()
        return True

    def requeue(self, queued: QueuedPod, verdict: Verdict, event: str) -> bool:
        """Put a pod where the verdict sends it; tell whether it is active or in backoff then."""
        if verdict is Verdict.STAY:
            self.wait(queued, event)
            return False
        if verdict is Verdict.BACKOFF and self.backoff.holds(queued, self._clock.monotonic()):
            return self._enter_backoff(queued, event)
        return self.enter_active(queued, event)

    def wait(self, queued: QueuedPod, event: str) -> None:
        """Let a pod wait for a change, or for its gate."""
        if queued.place is not Place.WAITING:
            self._entered(queued, "gated" if queued.gated_by else "unschedulable", event)
        self.leave(queued)
        queued.place = Place.WAITING
        self.list_anew(queued)

    def list_anew(self, queued: QueuedPod) -> None:
        """List a waiting pod by what it waits for now."""
        self.waiting.add(queued, self.profiles.get(queued.profile, NO_INTERESTS).indexes)

    def leave(self, queued: QueuedPod) -> None:
        """Take a pod out of wherever it is."""
        match queued.place:
            case Place.ACTIVE:
                self._active.discard(queued.identity)
            case Place.BACKOFF:
                self._backing_off.discard(queued.identity)
                self._failed.discard(queued.identity)
            case Place.WAITING:
                self.waiting.discard(queued.identity)
            case _:
                return
        queued.place = Place.NOWHERE

    def reorder(self, queued: QueuedPod) -> None:
        """Put a pod that changed where it belongs in its own place; without a difference it keeps its turn."""
        if queued.place is Place.ACTIVE:
            self._active.push(self._key(queued), queued)
        elif queued.place is Place.BACKOFF:
            self._push_backoff(queued)

    def end_backoffs(self, now: float, most: int) -> bool:
        """Make pods ready whose backoff is over, so many at most; tell whether these were all."""
        for heap in (self._backing_off, self._failed):
            while (head := heap.head()) is not None and not self.backoff.holds(head[1], now):
                if most <= 0:
                    return False
                self.enter_active(head[1], "BackoffComplete")
                most -= 1
        return True

    @property
    def poppable(self) -> bool:
        """Whether `take_first` would give a pod."""
        return bool(len(self._active) or len(self._backing_off))

    @property
    def error_backoff_ends(self) -> float:
        """When the first pod after an error becomes ready; infinite without any."""
        head = self._failed.head()
        return math.inf if head is None else float(head[0][0]) + WINDOW

    def counts(self) -> Counts:
        """Count the pods in each place."""
        gated = self.waiting.gated
        backoff = len(self._backing_off) + len(self._failed)
        return Counts(len(self._active), backoff, len(self.waiting) - gated, gated)

    def _entered(self, queued: QueuedPod, queue: str, event: str) -> None:
        if self.on_queued is not None:
            self.on_queued(queued, queue, event)

    def _enter_backoff(self, queued: QueuedPod, event: str) -> bool:
        if not self._admit(queued):
            self.wait(queued, event)
            return False
        self.leave(queued)
        queued.place = Place.BACKOFF
        self._push_backoff(queued)
        self._entered(queued, "backoff", event)
        self.on_ready()
        return True

    def _push_backoff(self, queued: QueuedPod) -> None:
        window = self.backoff.last_window(queued)
        if queued.rejectors or queued.pending:
            self._backing_off.push((window, self._key(queued)), queued)
        else:
            self._failed.push((window,), queued)

    def _key(self, queued: QueuedPod) -> Key:
        return self._sort.key(queued.pod, queued.queued_at)

    def _admit(self, queued: QueuedPod) -> bool:
        gates = self.profiles.get(queued.profile, NO_INTERESTS).pre_enqueue
        last = gates.get(queued.gated_by)
        order = (last, *(gate for gate in gates.values() if gate is not last)) if last else gates.values()
        for gate in order:
            if not _passes(gate, queued):
                queued.gated_by = gate.name
                queued.rejectors |= {gate.name}
                return False
        queued.gated_by = ""
        return True


def _passes(gate: PreEnqueuePlugin, queued: QueuedPod) -> bool:
    try:
        status = gate.pre_enqueue(queued.pod)
    except Exception:
        log.exception("PreEnqueue plugin %s failed for pod %s: keeping the pod out", gate.name, queued.pod.key)
        return False
    return status is None or status.code is Code.SUCCESS


def _nobody() -> None:
    """Wake nobody: nobody waits yet."""
