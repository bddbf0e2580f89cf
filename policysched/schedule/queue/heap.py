"""A heap of pods that also finds and drops them by identity.

It knows nothing of what the keys mean. Dropped entries stay in the heap, marked, until they surface or outnumber the
others: that makes dropping cheap, which is what updates and deletions do most.
"""

from __future__ import annotations

import heapq
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import count
from typing import Any

from policysched.schedule.queue.queued import QueuedPod

Key = tuple[Any, ...]
_SLACK = 64


@dataclass(slots=True, eq=False)
class _Entry:
    key: Key
    queued: QueuedPod | None


class PodHeap:
    """Pods by key, the smallest first; equal keys in the order of their arrival."""

    __slots__ = ("_entries", "_heap", "_tickets")

    def __init__(self) -> None:
        self._heap: list[tuple[Key, int, _Entry]] = []
        self._entries: dict[str, _Entry] = {}
        self._tickets = count()

    def push(self, key: Key, queued: QueuedPod) -> None:
        """Add a pod, or move it to where its new key belongs."""
        known = self._entries.get(queued.identity)
        if known is not None and known.key == key:
            return
        self.discard(queued.identity)
        entry = _Entry(key, queued)
        self._entries[queued.identity] = entry
        heapq.heappush(self._heap, (key, next(self._tickets), entry))

    def discard(self, identity: str) -> None:
        """Drop a pod if it is here."""
        entry = self._entries.pop(identity, None)
        if entry is None:
            return
        entry.queued = None
        if len(self._heap) > _SLACK + 2 * len(self._entries):
            self._heap = [item for item in self._heap if item[2].queued is not None]
            heapq.heapify(self._heap)

    def head(self) -> tuple[Key, QueuedPod] | None:
        """Give the first pod and its key without taking it."""
        while self._heap:
            key, _, entry = self._heap[0]
            if entry.queued is not None:
                return key, entry.queued
            heapq.heappop(self._heap)
        return None

    def pop(self) -> QueuedPod | None:
        """Take the first pod."""
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
