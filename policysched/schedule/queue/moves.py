"""`Moves`: requeues many waiting pods in chunks, between scheduling attempts, so that attempts are not delayed.

A change can concern thousands of waiting pods. Their queueing hints run for a short time before each attempt, so that
other pods do not wait for all of them.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable
from itertools import chain
from typing import Final, NamedTuple

from policysched.framework import Clock
from policysched.schedule.queue.queued_pod import QueuedPod, Stage

CHUNK: Final = 0.001
"""Time for handling waiting pods between two scheduling attempts; at least one pod is handled. Units: seconds."""
MOST_MOVES: Final = 8
"""Maximum number of unfinished moves; beyond it, the pods of all moves are requeued without calling hints."""
Act = Callable[[QueuedPod], bool]
"""Function that handles one waiting pod and returns whether the pod was requeued."""


class _Move(NamedTuple):
    """The waiting pods that a change may help and that are still to be handled, and the function that handles a pod."""

    pods: deque[QueuedPod]
    act: Act
    since: float
    """Monotonic time of the change; pods that were queued later are skipped. Units: seconds."""


class Moves:
    """The unfinished moves of pods between queues, oldest first, one for each change that may help waiting pods."""

    __slots__ = ("_clock", "_moves", "_retry")

    def __init__(self, clock: Clock, retry: Act) -> None:
        """Create an object without moves.

        Args:
            clock: Measures chunks.
            retry: Requeues a pod without evaluating queueing hints.
        """
        self._clock, self._retry = clock, retry
        self._moves: deque[_Move] = deque()

    def run(self, pods: Iterable[QueuedPod], act: Act) -> int:
        """Handle a first chunk of waiting pods now and the rest later; return how many pods were requeued now."""
        left = deque(pods)
        moved = self._run_chunk(_Move(left, act, self._clock.monotonic()))
        if left:
            self._moves.append(_Move(left, act, self._clock.monotonic()))
            if len(self._moves) > MOST_MOVES:
                self._merge()
        return moved

    def run_chunk(self) -> None:
        """Handle the next chunk of waiting pods of the oldest move."""
        if self._moves:
            self._run_chunk(self._moves[0])
            if not self._moves[0].pods:
                self._moves.popleft()

    def _merge(self) -> None:
        """Replace all moves by a single move that requeues the pods of all moves without calling queueing hints."""
        pods = dict.fromkeys(chain.from_iterable(move.pods for move in self._moves))
        self._moves = deque((_Move(deque(pods), self._retry, self._clock.monotonic()),))

    def _run_chunk(self, move: _Move) -> int:
        pods, ends, moved = move.pods, self._clock.monotonic() + CHUNK, 0
        while pods:
            queued = pods.popleft()
            if queued.stage is Stage.UNSCHEDULABLE and queued.queued_at <= move.since:
                moved += move.act(queued)
                if self._clock.monotonic() >= ends:
                    break
        return moved

    def __len__(self) -> int:
        return len(self._moves)
