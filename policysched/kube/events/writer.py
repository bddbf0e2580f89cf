"""Background writing of events: `EventWriter`, with a bounded queue and a few workers.

Events that cannot be written are counted and logged. While the server is unreachable, events wait. Beyond the limit the
queue drops repetitions of written events first, then Normal events (a pod's binding shows the same), then warnings, the
oldest first.

If the server rejects the events of one namespace temporarily (429, 5xx, a limit per namespace), only the events of that
namespace wait. An event that fails with a server error is retried a few times. Few workers write, because bindings use
the same server and decide how fast pods start. More workers start while events fall behind.
"""

from __future__ import annotations

import asyncio
import logging
from collections import deque
from collections.abc import Coroutine
from datetime import datetime
from enum import IntEnum
from http import HTTPStatus
from typing import Any, Final, NamedTuple

from policysched.errors import ConnectionProblemError
from policysched.framework import ApiError, Event, PolicyEvent
from policysched.kube.events.bodies import QueuedEvent, SeriesMemory, create_body, series_body
from policysched.kube.transport import STRATEGIC_PATCH, Pacing, Retry, Transport, passes

log = logging.getLogger(__name__)
WORKERS = 4
MOST_WORKERS: Final = 16
"""Largest number of concurrent workers that write events while the queue of events grows."""
FALLEN_BEHIND: Final = 64
"""Number of waiting events per worker above which another worker starts; it ends when no event waits.

With this value, a thousand pods that are bound at once are bound before a tenth of their events is written.
"""
TRIES = 12
"""Number of server errors (5xx) after which an event is dropped, as in client-go."""
MOST_LOGGED = 100
"""Largest number of different rejection reasons in the log; events with further reasons are only counted."""
_NEVER_MADE = frozenset((HTTPStatus.NOT_FOUND, HTTPStatus.GONE))
MOST: Final = 16_384
"""Largest number of waiting events; beyond it the least important event is dropped."""
MOST_BYTES: Final = 16 * 1024 * 1024
"""Largest total size of waiting events; beyond it the least important is dropped. Units: characters."""
MOST_HELD: Final = 4096
"""Largest number of events held back because the server rejects their namespaces; then the oldest is dropped."""


class Loss(IntEnum):
    """Importance of an event; the event with the lowest importance is dropped first."""

    REPEAT = 0
    NORMAL = 1
    WARNING = 2


class _Waiting(NamedTuple):
    number: int
    entry: QueuedEvent


class EventQueue(asyncio.Queue[QueuedEvent]):
    """A FIFO queue of events with limits, from which the least important events can be dropped.

    Args:
        most: Largest number of entries.
        most_bytes: Largest total size of their texts.
    """

    def __init__(self, most: int = MOST, most_bytes: int = MOST_BYTES) -> None:
        self._most, self._most_bytes = most, most_bytes
        self.bytes = 0
        """Total size of the texts of waiting events. Units: characters."""
        self._number = self._count = 0
        self._sorts: dict[Loss, deque[_Waiting]] = {loss: deque() for loss in Loss}
        super().__init__()

    def give_up(self) -> QueuedEvent | None:
        """Remove and return the least important event if the queue exceeds its limits, else return None."""
        if self._count <= self._most and self.bytes <= self._most_bytes:
            return None
        found = self._take(next(waiting for waiting in self._sorts.values() if waiting))
        self.task_done()
        return found

    def qsize(self) -> int:
        """Return the number of waiting events."""
        return self._count

    def empty(self) -> bool:
        """Return whether no event waits."""
        return not self._count

    def _init(self, maxsize: int) -> None:
        """Override asyncio's hook that creates the containers of a queue: the constructor creates them."""

    def _put(self, item: QueuedEvent) -> None:
        self._number += 1
        self._count += 1
        self.bytes += item.bytes
        self._sorts[_loss(item)].append(_Waiting(self._number, item))

    def _get(self) -> QueuedEvent:
        waiting = [sort for sort in self._sorts.values() if sort]
        return self._take(min(waiting, key=lambda sort: sort[0].number))

    def _take(self, waiting: deque[_Waiting]) -> QueuedEvent:
        entry = waiting.popleft().entry
        self._count -= 1
        self.bytes -= entry.bytes
        return entry


def _loss(entry: QueuedEvent) -> Loss:
    if entry.written_count:
        return Loss.REPEAT
    return Loss.WARNING if entry.about.type == "Warning" else Loss.NORMAL


class _Hold:
    """Events of one namespace that wait because the API server temporarily rejects events in this namespace."""

    def __init__(self, pacing: Pacing) -> None:
        self.retry = Retry(pacing)
        self.entries: deque[QueuedEvent] = deque()
        self.pause: asyncio.Task[None] | None = None
        """Task that waits until an event of the namespace is tried again; the other events wait for its result."""


class EventCounts(NamedTuple):
    """Numbers of events by outcome since the start."""

    recorded: int
    requests: int
    """Number of successful requests; one request can write several occurrences of a series."""
    refused: int
    """Number of events that the server rejected."""
    waiting: int
    """Number of requests that still have to be sent."""
    given_up: int
    """Number of events that were dropped because too many events waited."""


class EventWriter:
    """Queues events without waiting and writes them in the background.

    Args:
        transport: The API server.
        pacing: Source of random numbers and pauses.
        host: The name of this machine.
        most: Largest number of waiting events.
        most_bytes: Largest total size of their texts.
    """

    def __init__(
        self, transport: Transport, pacing: Pacing, host: str, *, most: int = MOST, most_bytes: int = MOST_BYTES
    ) -> None:
        self._transport, self._pacing, self._host = transport, pacing, host
        self._retry = Retry(pacing)
        self._held: dict[str, _Hold] = {}
        self._held_count = 0
        """Number of events that wait because the API server temporarily rejects events in their namespaces."""
        self._queue = EventQueue(most, most_bytes)
        self._memory = SeriesMemory()
        self._workers: set[asyncio.Task[None]] = set()
        self._logged: set[tuple[int, str]] = set()
        self._recorded = self._requests = self._refused = self._waiting = self._dropped = 0

    def start(self) -> None:
        """Start the workers in the running event loop."""
        for _ in range(WORKERS):
            self._add_worker(self._work())

    def _add_worker(self, work: Coroutine[Any, Any, None]) -> None:
        worker = asyncio.create_task(work)
        self._workers.add(worker)
        worker.add_done_callback(self._workers.discard)

    def record(self, event: Event | PolicyEvent) -> None:
        """Queue an event, or add the event to its series."""
        self._recorded += 1
        entry, over = self._memory.note(event)
        if entry.due:
            self._enqueue(entry)
        if over is not None and over.unwritten and not over.queued:
            self._enqueue(over)

    async def close(self, deadline: float) -> int:
        """Write the waiting events for at most `deadline` seconds; return the number of unwritten requests."""
        for entry in self._memory:
            if entry.unwritten and not entry.queued:
                self._enqueue(entry)
        try:
            async with asyncio.timeout(deadline):
                await self._queue.join()
                while pauses := [hold.pause for hold in self._held.values() if hold.pause is not None]:
                    await asyncio.wait(pauses, return_when=asyncio.FIRST_COMPLETED)
                    await self._queue.join()
        except TimeoutError:
            log.warning("%d event(s) could not be written before shutdown", self._waiting)
        if self._dropped:
            log.warning("%d event(s) were dropped because too many waited for the API server", self._dropped)
        tasks = [*self._workers, *(hold.pause for hold in self._held.values() if hold.pause is not None)]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        return self._waiting

    @property
    def counts(self) -> EventCounts:
        """Numbers of events by outcome since the start."""
        return EventCounts(self._recorded, self._requests, self._refused, self._waiting, self._dropped)

    def _enqueue(self, entry: QueuedEvent) -> None:
        entry.queued = True
        self._waiting += 1
        self._queue.put_nowait(entry)
        while (least := self._queue.give_up()) is not None:
            self._leave_out(least)
        if WORKERS <= len(self._workers) < min(MOST_WORKERS, self._queue.qsize() // FALLEN_BEHIND):
            self._add_worker(self._catch_up())

    def _leave_out(self, entry: QueuedEvent) -> None:
        """Drop a waiting event; if its series still runs, a later write contains the occurrences of this event."""
        entry.queued = False
        self._waiting -= 1
        if entry.written_count and self._memory.follows(entry):
            return
        if not self._dropped:
            log.warning("too many events wait for the API server; dropping the least important")
        self._dropped += self._drop(entry)

    async def _work(self) -> None:
        while True:
            await self._take(await self._queue.get())

    async def _catch_up(self) -> None:
        """Write queued events until no event waits; main coroutine of an additional worker."""
        while not self._queue.empty():
            await self._take(self._queue.get_nowait())

    async def _take(self, entry: QueuedEvent) -> None:
        """Write an event, or hold the event back if the server rejects events of its namespace."""
        hold = self._held.get(entry.about.namespace)
        if hold is not None and hold.pause is not None:
            self._hold(entry, hold)
        else:
            try:
                if await self._write(entry):
                    self._end(entry)
            except Exception:  # an exception must not end the worker: its events would wait forever
                log.exception('writing event "%s" in namespace "%s" failed', entry.name, entry.about.namespace)
                self._refused += self._drop(entry)
                self._end(entry)
        self._queue.task_done()

    def _end(self, entry: QueuedEvent) -> None:
        """Finish an event that was written or dropped, and queue the events of its namespace that were held back."""
        entry.queued = False
        self._waiting -= 1
        if entry.due:
            self._enqueue(entry)
        hold = self._held.pop(entry.about.namespace, None)
        if hold is None:
            return
        if hold.pause is not None:
            hold.pause.cancel()
        self._held_count -= len(hold.entries)
        for other in hold.entries:
            self._waiting -= 1
            self._enqueue(other)

    async def _write(self, entry: QueuedEvent) -> bool:
        """Write an event, waiting while the server is unreachable; return whether the event was written or dropped.

        An entry that the server rejects for good, or fails at too often, is dropped. For a temporary error the
        namespace is held.
        """
        while True:
            count, last = entry.count, entry.last
            try:
                await self._send(entry, count, last)
            except ApiError as error:
                if error.status == 0:
                    await self._retry.pause()
                    continue
                entry.failures += error.status >= HTTPStatus.INTERNAL_SERVER_ERROR
                if entry.failures == TRIES or not passes(error):
                    self._refuse(entry, error)
                    return True
                hold = self._held.setdefault(entry.about.namespace, _Hold(self._pacing))
                self._hold(entry, hold)
                if hold.pause is None:
                    pause = self._pause(entry.about.namespace, hold, error.retry_after or 0.0)
                    hold.pause = asyncio.create_task(pause)
                return False
            except ConnectionProblemError:
                await self._retry.pause()
            else:
                self._retry.reset()
                entry.written(count, last)
                self._requests += 1
                return True

    def _hold(self, entry: QueuedEvent, hold: _Hold) -> None:
        """Hold an event back until its namespace accepts events; beyond MOST_HELD, drop the oldest of a namespace."""
        hold.entries.append(entry)
        self._held_count += 1
        if self._held_count > MOST_HELD:
            most = max(self._held.values(), key=lambda one: len(one.entries))
            self._held_count -= 1
            self._leave_out(most.entries.popleft())

    async def _pause(self, namespace: str, hold: _Hold, at_least: float) -> None:
        """After a pause, queue one of the events held back in a namespace; without such events, stop holding back."""
        await hold.retry.pause(at_least)
        hold.pause = None
        if not hold.entries:
            self._held.pop(namespace, None)
            return
        self._waiting -= 1
        self._held_count -= 1
        self._enqueue(hold.entries.popleft())

    async def _send(self, entry: QueuedEvent, count: int, last: datetime) -> None:
        path = f"/apis/events.k8s.io/v1/namespaces/{entry.about.written_in}/events"
        if entry.written_count:
            try:
                await self._transport.request(
                    "PATCH", f"{path}/{entry.name}", series_body(count, last), content_type=STRATEGIC_PATCH
                )
            except ApiError as error:
                if error.status not in _NEVER_MADE:
                    raise
            else:
                return
        series = (count, last) if count > 1 else None
        try:
            await self._transport.request("POST", path, create_body(entry.about, entry.name, self._host, series))
        except ApiError as error:
            # A first attempt without an answer can have succeeded.
            if error.status != HTTPStatus.CONFLICT:
                raise

    def _refuse(self, entry: QueuedEvent, error: ApiError) -> None:
        self._refused += self._drop(entry)
        if (error.status, error.reason) not in self._logged and len(self._logged) < MOST_LOGGED:
            self._logged.add((error.status, error.reason))
            log.warning("the API server refuses events (logged once per reason): %d %s", error.status, error)

    def _drop(self, entry: QueuedEvent) -> int:
        """Remove the series of an event from memory; return how many unwritten occurrences are lost."""
        lost = entry.count - entry.written_count
        self._memory.forget(entry)
        entry.count = entry.written_count
        return lost
