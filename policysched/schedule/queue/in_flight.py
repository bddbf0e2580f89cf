"""`InFlight`: the pods whose scheduling attempt is running, and the changes since their attempts began.

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
    """A cluster change, or a retry forced for some pods, recorded while scheduling attempts were running.

    A forced retry applies to the pod `only`, to the pods that `plugins` rejected, or to all pods.
    """

    change: Change | None = None
    only: str = ""
    """Identity of the only pod that is to be retried; empty if the retry is for several pods."""
    plugins: frozenset[str] = NO_PLUGINS
    pushes_all: bool = False


@dataclass(slots=True, eq=False)
class Flight:
    """The running scheduling attempt of a pod."""

    queued: QueuedPod
    since: int
    """Number of the first recorded change after the attempt began; -1 if changes are no longer recorded for the pod."""
    latest: Pod | None = None
    """The newest version of the pod that arrived during the attempt; None if none arrived."""
    deleted: bool = False
    due: float | None = None
    """Time from which the rejected pod may fit without any change, or None. Units: seconds since 1970, UTC."""


class InFlight:
    """Running scheduling attempts, oldest first, and the cluster changes since the oldest attempt began."""

    __slots__ = ("_first", "_flights", "_listening", "_occurrences")

    def __init__(self) -> None:
        self._flights: dict[str, Flight] = {}
        self._listening: dict[str, int] = {}
        """For each attempt that may still fail, by pod identity: number of the first change after it began."""
        self._occurrences: deque[Occurrence] = deque()
        self._first = 0
        """Number of the oldest recorded change."""

    def begin(self, queued: QueuedPod) -> None:
        """Start the attempt of a pod; end the attempt of an earlier pod with the same identity."""
        self.end(queued.identity)
        since = self._first + len(self._occurrences)
        self._flights[queued.identity] = Flight(queued, since)
        self._listening[queued.identity] = since

    def get(self, identity: str) -> Flight | None:
        """Return the running attempt of a pod; None if no attempt of the pod is running."""
        return self._flights.get(identity)

    def record(self, occurrence: Occurrence) -> None:
        """Record a cluster change, or a forced retry of pods, for the running attempts."""
        if self._listening:
            self._occurrences.append(occurrence)

    @property
    def is_recording(self) -> bool:
        """Whether changes are recorded, because at least one running attempt may still fail."""
        return bool(self._listening)

    def missed(self, flight: Flight) -> Iterator[Occurrence]:
        """Return the changes and forced retries that happened during an attempt, oldest first."""
        recent = islice(self._occurrences, flight.since - self._first, None)
        return (item for item in recent if not item.only or item.only == flight.queued.identity)

    def release(self, identity: str) -> None:
        """Stop recording changes for the attempt of a pod that can no longer be rejected."""
        if self._listening.pop(identity, None) is not None:
            self._flights[identity].since = -1
            self._prune()

    def end(self, identity: str) -> Flight | None:
        """Remove and return the running attempt of a pod; None if no attempt of the pod is running."""
        flight = self._flights.pop(identity, None)
        if self._listening.pop(identity, None) is not None:
            self._prune()
        return flight

    def _prune(self) -> None:
        """Drop the recorded changes that are older than all attempts that may still fail."""
        oldest = next(iter(self._listening.values()), self._first + len(self._occurrences))
        while self._first < oldest:
            self._occurrences.popleft()
            self._first += 1

    def kept(self) -> tuple[Occurrence, ...]:
        """Return all recorded changes and forced retries; thread-safe."""
        return tuple(self._occurrences)

    @property
    def listening(self) -> int:
        """Number of attempts for which changes are recorded."""
        return len(self._listening)

    @property
    def occurrences(self) -> int:
        """Number of recorded changes and forced retries."""
        return len(self._occurrences)

    def __len__(self) -> int:
        return len(self._flights)
