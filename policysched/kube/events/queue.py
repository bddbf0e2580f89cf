"""The events that wait to be written: bounded by number and bytes, and what is given up where they are too many.

First go repeats of what the server knows already, then Normal events (that a pod was scheduled its binding says too),
then warnings; of each sort the oldest. Those that stay are written in the order in which they came.
"""

from __future__ import annotations

import asyncio
from collections import deque
from enum import IntEnum
from typing import Final, NamedTuple

from policysched.kube.events.bodies import Entry

MOST: Final = 16_384
"""How many entries may wait."""
MOST_BYTES: Final = 16 * 1024 * 1024
"""How many bytes their texts may have."""


class Loss(IntEnum):
    """How much is lost with an entry; the least is given up first."""

    REPEAT = 0
    NORMAL = 1
    WARNING = 2


class _Waiting(NamedTuple):
    number: int
    entry: Entry


class EventQueue(asyncio.Queue[Entry]):
    """First in, first out, but for what is given up.

    Args:
        most: How many entries may wait.
        most_bytes: How many bytes their texts may have.
    """

    def __init__(self, most: int = MOST, most_bytes: int = MOST_BYTES) -> None:
        self._most, self._most_bytes = most, most_bytes
        self.bytes = 0
        """How many bytes the texts of those that wait have."""
        self._number = 0
        self._sorts: dict[Loss, deque[_Waiting]] = {loss: deque() for loss in Loss}
        super().__init__()

    def give_up(self) -> Entry | None:
        """Take out the entry with which least is lost; None where there are not too many."""
        if self.qsize() <= self._most and self.bytes <= self._most_bytes:
            return None
        found = self._take(next(waiting for waiting in self._sorts.values() if waiting))
        self.task_done()
        return found

    def qsize(self) -> int:
        """Count those that wait."""
        return sum(map(len, self._sorts.values()))

    def empty(self) -> bool:
        """Tell whether none waits."""
        return not self.qsize()

    def _init(self, maxsize: int) -> None:
        """Do what asyncio's queue asks for: nothing more is to be made."""

    def _put(self, item: Entry) -> None:
        self._number += 1
        self.bytes += item.bytes
        self._sorts[_loss(item)].append(_Waiting(self._number, item))

    def _get(self) -> Entry:
        waiting = [sort for sort in self._sorts.values() if sort]
        return self._take(min(waiting, key=lambda sort: sort[0].number))

    def _take(self, waiting: deque[_Waiting]) -> Entry:
        entry = waiting.popleft().entry
        self.bytes -= entry.bytes
        return entry


def _loss(entry: Entry) -> Loss:
    if entry.written_count:
        return Loss.REPEAT
    return Loss.WARNING if entry.about.type == "Warning" else Loss.NORMAL
