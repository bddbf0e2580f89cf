"""What is still to be done with many pods that wait: a portion at a time, while pods are popped.

Of changes that come faster than their pods can be asked about only so many are kept apart; then nobody is asked any
more, and the pods that any of them concerns are all tried again, a portion at a time as well. No work here is done in
one piece, however many pods wait and however fast changes come.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterable, Sequence

from policysched.schedule.queue.queued import Place, QueuedPod

PORTION = 100
"""How many pods are moved before others get their turn."""
MOST_MOVES = 8
"""How many changes are kept apart."""
Act = Callable[[Sequence[QueuedPod]], int]
"""Does something with waiting pods and counts those that it moved."""


class Moves:
    """Changes with the waiting pods that they concern, in order.

    Args:
        retry: Moves pods without asking anybody.
    """

    def __init__(self, retry: Act) -> None:
        self._retry = retry
        self._moves: deque[_Move] = deque()

    def add(self, pods: Iterable[QueuedPod], act: Act, now: float) -> None:
        """Take pods to do something with, but for those that are tried meanwhile."""
        self._moves.append(_Move(pods, act, now))
        if len(self._moves) > MOST_MOVES:
            concerned = {queued.identity: queued for move in self._moves for queued in move.pods}
            self._moves = deque([_Move(concerned.values(), self._retry, now)])

    def go_on(self) -> None:
        """Do a portion."""
        if self._moves and not self._moves[0].go_on():
            self._moves.popleft()

    def __len__(self) -> int:
        return len(self._moves)


class _Move:
    def __init__(self, pods: Iterable[QueuedPod], act: Act, since: float) -> None:
        self.pods = deque(pods)
        self._act = act
        self._since = since

    def go_on(self) -> bool:
        """Do a portion; tell whether there is more."""
        some = [self.pods.popleft() for _ in range(min(PORTION, len(self.pods)))]
        self._act([queued for queued in some if queued.place is Place.WAITING and queued.queued_at <= self._since])
        return bool(self.pods)
