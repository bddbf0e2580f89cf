"""`PodQueues`: the parts of the scheduling queue (active, backoff, unschedulable), between which pods move.

A pod passes all PreEnqueue plugins before it enters active or backoff. Backoffs end at whole seconds of the clock: pods
whose backoffs end within the same second become active together and are then ordered by priority.

Source: pkg/scheduler/backend/queue/scheduling_queue.go (moveToActiveQ, moveToBackoffQ, runPreEnqueuePlugins),
backoff_queue.go.
"""

from __future__ import annotations

import heapq
import logging
import math
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from itertools import count
from typing import Any, NamedTuple

import msgspec

from policysched.framework import Clock, Cluster, Code, PreEnqueuePlugin, QueueSortPlugin
from policysched.schedule.queue.hints import NO_INTERESTS, Interests, QueueingStrategy
from policysched.schedule.queue.queued_pod import QueuedPod, Stage
from policysched.schedule.queue.unschedulable import UnschedulablePods
from policysched.schedule.timing import PRE_ENQUEUE, SAMPLE, Timing, measured
from policysched.state.tables.sparse import is_sparse

log = logging.getLogger(__name__)


WINDOW = 1.0
"""Granularity of backoffs, which end at multiples of this time. Units: seconds."""
_MAX_DOUBLINGS = 62
Key = tuple[Any, ...]
OnQueued = Callable[[QueuedPod, str, str], None]
"""Callback when a pod enters a queue, with the pod, the queue's name and the name of the causing event."""


@dataclass(frozen=True, slots=True)
class Backoff:
    """Times that a pod waits after failures: doubled after each failure, up to a maximum; a maximum of 0 disables them.

    Units: seconds.
    """

    initial: float = 1.0
    maximum: float = 10.0

    def duration(self, count: int, factor: float = 1.0) -> float:
        """Return the time that a pod waits after a number of failures; `factor` multiplies the maximum."""
        if count == 0:
            return 0.0
        return min(self.initial * 2.0 ** min(count - 1, _MAX_DOUBLINGS), self.maximum * factor)

    def last_window(self, queued: QueuedPod) -> float:
        """Return the end of a pod's backoff, rounded down to seconds; minus infinity if the pod has no backoff."""
        count = queued.consecutive_errors or queued.unschedulable_count
        ends = queued.yields_until
        if count and self.maximum:
            ends = max(ends, queued.queued_at + self.duration(count, queued.backoff_factor))
        return ends if ends == -math.inf else math.floor(ends)

    def holds(self, queued: QueuedPod, now: float) -> bool:
        """Return whether a pod's backoff has not ended."""
        return self.last_window(queued) >= math.floor(now)


class _Entry(msgspec.Struct, eq=False):
    key: Key
    queued: QueuedPod | None


class PodHeap:
    """Priority queue of pods: the smallest sort key first; among equal keys, the pod that was added first.

    Removed pods leave marked entries, which are dropped at the top of the heap, or when they outnumber the others.
    """

    __slots__ = ("_entries", "_heap", "_tickets")

    def __init__(self) -> None:
        self._heap: list[tuple[Key, int, _Entry]] = []
        self._entries: dict[str, _Entry] = {}
        self._tickets = count()

    def push(self, key: Key, queued: QueuedPod) -> None:
        """Add a pod under a sort key; a pod that is already in the heap moves to the place of its new key."""
        known = self._entries.get(queued.identity)
        if known is not None and known.key == key:
            return
        self.discard(queued.identity)
        entry = _Entry(key, queued)
        self._entries[queued.identity] = entry
        heapq.heappush(self._heap, (key, next(self._tickets), entry))

    def discard(self, identity: str) -> None:
        """Remove a pod if it is in the heap."""
        entry = self._entries.pop(identity, None)
        if entry is None:
            return
        entry.queued = None
        if is_sparse(len(self._heap), len(self._entries)):
            self._heap = [item for item in self._heap if item[2].queued is not None]
            heapq.heapify(self._heap)

    def head(self) -> tuple[Key, QueuedPod] | None:
        """Return the smallest sort key and its pod, without removing the pod; None if the heap is empty."""
        while self._heap:
            key, _, entry = self._heap[0]
            if entry.queued is not None:
                return key, entry.queued
            heapq.heappop(self._heap)
        return None

    def pop(self) -> QueuedPod | None:
        """Remove and return the pod with the smallest sort key; None if the heap is empty."""
        while self._heap:
            entry = heapq.heappop(self._heap)[2]
            if entry.queued is not None:
                del self._entries[entry.queued.identity]
                return entry.queued
        return None

    def __len__(self) -> int:
        return len(self._entries)

    def __iter__(self) -> Iterator[QueuedPod]:
        return (entry.queued for entry in list(self._entries.values()) if entry.queued is not None)


class QueueCounts(NamedTuple):
    """The number of pods in each queue."""

    active: int
    backoff: int
    unschedulable: int
    gated: int


class PodQueues:
    """The active queue, the backoff queue, and the unschedulable and gated pods."""

    def __init__(
        self,
        clock: Clock,
        sort: QueueSortPlugin,
        cluster: Cluster,
        profiles: Mapping[str, Interests],
        backoff: Backoff,
    ) -> None:
        self.profiles = profiles
        self.backoff = backoff
        self.on_ready: Callable[[], None] = _nobody
        self.on_queued: OnQueued | None = None
        self.timing: Timing | None = None
        self._admissions = 0
        """Number of PreEnqueue runs while durations are recorded; one run in `SAMPLE` records each plugin's."""
        self.waiting = UnschedulablePods()
        self._clock, self._sort, self._cluster = clock, sort, cluster
        self._active, self._backing_off = PodHeap(), PodHeap()
        self._completing = PodHeap()
        """The pods in backoff that never leave it early, after errors and expensive attempts."""

    def take_first(self) -> QueuedPod | None:
        """Remove and return the first active pod; if no pod is active, the first pod that may leave backoff early."""
        queued = self._active.pop()
        if queued is not None:
            return queued
        queued = self._backing_off.pop()
        if queued is not None:
            self._entered(queued, "active", "PopFromBackoffQ")
        return queued

    def enter_active(self, queued: QueuedPod, event: str) -> bool:
        """Make a pod active; if a PreEnqueue plugin gates the pod, return False."""
        if queued.stage is not Stage.BACKOFF and not self._admit(queued):
            self.wait(queued, event)
            return False
        self.leave(queued)
        if queued.first_attempt_at is None:
            queued.first_attempt_at = self._clock.monotonic()
        queued.stage = Stage.ACTIVE
        self._active.push(self._key(queued), queued)
        self._entered(queued, "active", event)
        self.on_ready()
        return True

    def requeue(self, queued: QueuedPod, verdict: QueueingStrategy, event: str) -> bool:
        """Put a pod into the queue that the queueing hints demand; return whether it is now active or in backoff."""
        if verdict is QueueingStrategy.SKIP:
            self.wait(queued, event)
            return False
        now = self._clock.monotonic()
        waits = verdict is QueueingStrategy.AFTER_BACKOFF or queued.completes_backoff
        if waits and self.backoff.holds(queued, now):
            return self._enter_backoff(queued, event)
        return self.enter_active(queued, event)

    def retry(self, queued: QueuedPod, verdict: QueueingStrategy, event: str) -> bool:
        """Requeue a waiting pod after a cluster change; if a plugin gates the pod again, report the change."""
        requeued = self.requeue(queued, verdict, event)
        if not requeued:
            self._entered(queued, "gated", event)
        return requeued

    def wait(self, queued: QueuedPod, event: str) -> None:
        """Make a pod unschedulable, or gated if a PreEnqueue plugin gates it, until a cluster change helps."""
        if queued.stage is not Stage.UNSCHEDULABLE:
            self._entered(queued, "gated" if queued.gated_by else "unschedulable", event)
            self.leave(queued)
        queued.stage = Stage.UNSCHEDULABLE
        self.list_anew(queued)
        self.on_ready()  # a timer may make it ready: `next_wake` changes

    def list_anew(self, queued: QueuedPod) -> None:
        """Store a waiting pod again under its rejecting plugins, after the pod or these plugins changed."""
        self.waiting.add(queued, self.profiles.get(queued.profile, NO_INTERESTS).indexes)

    def leave(self, queued: QueuedPod) -> None:
        """Remove a pod from the queue in which it is."""
        match queued.stage:
            case Stage.ACTIVE:
                self._active.discard(queued.identity)
            case Stage.BACKOFF:
                self._backing_off.discard(queued.identity)
                self._completing.discard(queued.identity)
            case Stage.UNSCHEDULABLE:
                self.waiting.discard(queued.identity)
            case _:
                return
        queued.stage = Stage.NOWHERE

    def reorder(self, queued: QueuedPod) -> None:
        """Move a changed pod to its new place in its queue; a pod whose sort key did not change keeps its place."""
        if queued.stage is Stage.ACTIVE:
            self._active.push(self._key(queued), queued)
        elif queued.stage is Stage.BACKOFF:
            self._push_backoff(queued)

    def end_backoffs(self, now: float, seconds: float) -> bool:
        """Make pods active whose backoff is over, for at most `seconds`; return False if some pods are left over."""
        ends = self._clock.monotonic() + seconds
        for heap in (self._backing_off, self._completing):
            while (head := heap.head()) is not None and not self.backoff.holds(head[1], now):
                if self._clock.monotonic() > ends:
                    return False
                self.enter_active(head[1], "BackoffComplete")
        return True

    def use_backoff(self, backoff: Backoff) -> None:
        """Replace the backoff, also for pods that are in backoff now."""
        self.backoff = backoff
        for heap in (self._backing_off, self._completing):
            for queued in list(heap):
                self._push_backoff(queued)
        self.on_ready()

    @property
    def poppable(self) -> bool:
        """Whether `take_first` would return a pod."""
        return bool(len(self._active) or len(self._backing_off))

    @property
    def completing_until(self) -> float:
        """Earliest end of the backoffs that cannot end early; infinite if no pod has such a backoff."""
        head = self._completing.head()
        return math.inf if head is None else float(head[0][0]) + WINDOW

    def counts(self) -> QueueCounts:
        """Return the number of pods in each queue."""
        gated = self.waiting.gated
        backoff = len(self._backing_off) + len(self._completing)
        return QueueCounts(len(self._active), backoff, len(self.waiting) - gated, gated)

    def _entered(self, queued: QueuedPod, queue: str, event: str) -> None:
        if self.on_queued is not None:
            self.on_queued(queued, queue, event)

    def _enter_backoff(self, queued: QueuedPod, event: str) -> bool:
        if not self._admit(queued):
            self.wait(queued, event)
            return False
        self.leave(queued)
        queued.stage = Stage.BACKOFF
        self._push_backoff(queued)
        self._entered(queued, "backoff", event)
        self.on_ready()
        return True

    def _push_backoff(self, queued: QueuedPod) -> None:
        window = self.backoff.last_window(queued)
        if (queued.rejectors or queued.pending) and not queued.completes_backoff:
            self._backing_off.push((window, self._key(queued)), queued)
        else:
            self._completing.push((window,), queued)

    def _key(self, queued: QueuedPod) -> Key:
        return self._sort.key(queued.pod, queued.queued_at)

    def _admit(self, queued: QueuedPod) -> bool:
        timing = self.timing
        if timing is None:
            return self._passes_gates(queued)
        measuring = timing if self._admissions % SAMPLE == 0 else None
        self._admissions += 1
        began = timing.now()
        admitted = self._passes_gates(queued, measuring)
        code = Code.SUCCESS if admitted else Code.UNSCHEDULABLE_AND_UNRESOLVABLE
        timing.point(PRE_ENQUEUE, code, queued.profile, timing.now() - began)
        return admitted

    def _passes_gates(self, queued: QueuedPod, timing: Timing | None = None) -> bool:
        gates = self.profiles.get(queued.profile, NO_INTERESTS).pre_enqueue
        last = gates.get(queued.gated_by)
        order = (last, *(gate for gate in gates.values() if gate is not last)) if last else gates.values()
        for gate in order:
            if not _passes(gate, queued, self._cluster, timing):
                queued.gated_by = gate.name
                queued.rejectors |= {gate.name}
                return False
        queued.gated_by = ""
        return True


def _passes(gate: PreEnqueuePlugin, queued: QueuedPod, cluster: Cluster, timing: Timing | None) -> bool:
    try:
        if timing is None:
            status = gate.pre_enqueue(queued.pod, cluster)
        else:
            status = measured(timing, gate.name, PRE_ENQUEUE, gate.pre_enqueue, queued.pod, cluster)
    except Exception:
        log.exception('PreEnqueue plugin "%s" failed for pod "%s"; the pod stays gated', gate.name, queued.pod.key)
        return False
    return status is None or status.code is Code.SUCCESS


def _nobody() -> None:
    """Do nothing: the default callback, which `Queue.wake_with` replaces."""
