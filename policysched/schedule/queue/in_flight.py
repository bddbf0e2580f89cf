"""Pods in flight (their attempt is under way), and the changes that arrived meanwhile.

A change that arrives while a pod is being tried may help it, but the attempt may not have seen it. So changes are
kept, in order, as long as any attempt that started before them is under way, and are replayed when the pod comes
back. It knows nothing of what a change means.

Source: pkg/scheduler/backend/queue/active_queue.go (inFlightPods, inFlightEvents).
"""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice

from policysched.framework import Change
from policysched.model.objects import Pod
from policysched.schedule.queue.queued_pod import NO_PLUGINS, QueuedPod


@dataclass(frozen=True, slots=True)
class Occurrence:
    """Something that happened while pods were in flight.

    Either a change, or a push: one for the pod `only`, one for all pods that `plugins` rejected, or one for every pod.
    """

    change: Change | None = None
    only: str = ""
    """The one pod that it concerns; empty for all."""
    plugins: frozenset[str] = NO_PLUGINS
    pushes_all: bool = False


@dataclass(slots=True, eq=False)
class Flight:
    """An attempt under way."""

    queued: QueuedPod
    since: int
    """The number of the first occurrence that it may have missed; -1 where they are no longer kept for it."""
    latest: Pod | None = None
    """A version of the pod that arrived meanwhile."""
    deleted: bool = False
    due: float | None = None
    """When time alone may change a decision against the pod; absent where it cannot. Units: seconds since 1970, UTC."""


class InFlight:
    """Attempts under way, in the order of their start, and the occurrences since the first."""

    __slots__ = ("_first", "_flights", "_listening", "_occurrences")

    def __init__(self) -> None:
        self._flights: dict[str, Flight] = {}
        self._listening: dict[str, int] = {}
        self._occurrences: deque[Occurrence] = deque()
        self._first = 0

    def begin(self, queued: QueuedPod) -> None:
        """Note that an attempt starts; one of a pod of the same identity ends with it."""
        self.end(queued.identity)
        since = self._first + len(self._occurrences)
        self._flights[queued.identity] = Flight(queued, since)
        self._listening[queued.identity] = since

    def get(self, identity: str) -> Flight | None:
        """Find an attempt."""
        return self._flights.get(identity)

    def record(self, occurrence: Occurrence) -> None:
        """Keep an occurrence for the attempts under way."""
        if self._listening:
            self._occurrences.append(occurrence)

    @property
    def keeps(self) -> bool:
        """Whether occurrences are kept for anybody."""
        return bool(self._listening)

    def missed(self, flight: Flight) -> Iterator[Occurrence]:
        """Replay what an attempt may have missed, oldest first."""
        recent = islice(self._occurrences, flight.since - self._first, None)
        return (item for item in recent if not item.only or item.only == flight.queued.identity)

    def release(self, identity: str) -> None:
        """Stop keeping occurrences for an attempt that can no longer end in a rejection."""
        if self._listening.pop(identity, None) is not None:
            self._flights[identity].since = -1
            self._prune()

    def end(self, identity: str) -> Flight | None:
        """Forget an attempt; what it might have missed goes with it."""
        flight = self._flights.pop(identity, None)
        if self._listening.pop(identity, None) is not None:
            self._prune()
        return flight

    def _prune(self) -> None:
        oldest = next(iter(self._listening.values()), self._first + len(self._occurrences))
        while self._first < oldest:
            self._occurrences.popleft()
            self._first += 1

    def kept(self) -> tuple[Occurrence, ...]:
        """Return the occurrences that are kept; it may be asked from any thread."""
        return tuple(self._occurrences)

    @property
    def listening(self) -> int:
        """For how many attempts they are kept."""
        return len(self._listening)

    @property
    def occurrences(self) -> int:
        """How many occurrences are kept."""
        return len(self._occurrences)

    def __len__(self) -> int:
        return len(self._flights)
