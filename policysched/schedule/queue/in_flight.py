"""`InFlight`: pods whose scheduling attempt is under way, and the changes since the attempts began.

A change during an attempt may help the pod, but the attempt may have missed the change. Changes are kept in order until
the end of all attempts that began before them. If an attempt fails, its pod's queueing hints evaluate them.

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
    """A change, or a forced retry, that happened while pods were in flight.

    A forced retry applies to the pod `only`, to the pods that `plugins` rejected, or to all pods.
    """

    change: Change | None = None
    only: str = ""
    """Identity of the only pod that it concerns; empty for all pods."""
    plugins: frozenset[str] = NO_PLUGINS
    pushes_all: bool = False


@dataclass(slots=True, eq=False)
class Flight:
    """A scheduling attempt under way."""

    queued: QueuedPod
    since: int
    """Number of the first occurrence that the attempt may have missed; -1 if none is kept for it."""
    latest: Pod | None = None
    """A version of the pod that arrived during the attempt."""
    deleted: bool = False
    due: float | None = None
    """Time from which elapsed time alone may reverse a rejection; None without one. Units: seconds since 1970, UTC."""


class InFlight:
    """Attempts under way by pod identity, oldest first, and the occurrences since the oldest."""

    __slots__ = ("_first", "_flights", "_listening", "_occurrences")

    def __init__(self) -> None:
        self._flights: dict[str, Flight] = {}
        self._listening: dict[str, int] = {}
        """The first occurrence of attempts that may still fail, by identity."""
        self._occurrences: deque[Occurrence] = deque()
        self._first = 0
        """Number of the oldest occurrence that is kept."""

    def begin(self, queued: QueuedPod) -> None:
        """Start an attempt; end an attempt of another pod with the same identity."""
        self.end(queued.identity)
        since = self._first + len(self._occurrences)
        self._flights[queued.identity] = Flight(queued, since)
        self._listening[queued.identity] = since

    def get(self, identity: str) -> Flight | None:
        """Return the attempt of a pod."""
        return self._flights.get(identity)

    def record(self, occurrence: Occurrence) -> None:
        """Keep an occurrence for the attempts under way."""
        if self._listening:
            self._occurrences.append(occurrence)

    @property
    def is_recording(self) -> bool:
        """Whether occurrences are kept for some attempt."""
        return bool(self._listening)

    def missed(self, flight: Flight) -> Iterator[Occurrence]:
        """Return the occurrences that an attempt may have missed, oldest first."""
        recent = islice(self._occurrences, flight.since - self._first, None)
        return (item for item in recent if not item.only or item.only == flight.queued.identity)

    def release(self, identity: str) -> None:
        """Stop keeping occurrences for an attempt that can no longer end in a rejection."""
        if self._listening.pop(identity, None) is not None:
            self._flights[identity].since = -1
            self._prune()

    def end(self, identity: str) -> Flight | None:
        """Remove and return an attempt."""
        flight = self._flights.pop(identity, None)
        if self._listening.pop(identity, None) is not None:
            self._prune()
        return flight

    def _prune(self) -> None:
        """Drop the occurrences that no attempt needs."""
        oldest = next(iter(self._listening.values()), self._first + len(self._occurrences))
        while self._first < oldest:
            self._occurrences.popleft()
            self._first += 1

    def kept(self) -> tuple[Occurrence, ...]:
        """Return the occurrences that are kept. Safe to call from any thread."""
        return tuple(self._occurrences)

    @property
    def listening(self) -> int:
        """Number of attempts for which occurrences are kept."""
        return len(self._listening)

    @property
    def occurrences(self) -> int:
        """Number of occurrences that are kept."""
        return len(self._occurrences)

    def __len__(self) -> int:
        return len(self._flights)
