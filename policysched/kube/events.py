"""Events about pods, written behind the bindings by a few workers.

What cannot be written is counted and said, never just dropped; while the server is out of reach or busy, events wait.
One that it fails at time and again gives way to the others. So many
workers at most, because bindings use the same server and decide how fast pods start.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime
from http import HTTPStatus
from typing import NamedTuple

from policysched.errors import ConnectionProblemError
from policysched.framework import ApiError, Event
from policysched.kube.eventbody import create_body, series_body
from policysched.kube.eventseries import Entry, SeriesMemory
from policysched.kube.retry import Pacing, Retry, passes
from policysched.kube.transport import STRATEGIC_PATCH, Transport

log = logging.getLogger(__name__)
WORKERS = 4
TRIES = 12
"""How often the server may fail at an event (5xx) before it counts as refused; as often as with client-go."""
_NEVER_MADE = frozenset((HTTPStatus.NOT_FOUND, HTTPStatus.GONE))


class EventCounts(NamedTuple):
    """What became of the events so far."""

    recorded: int
    requests: int
    """Requests that succeeded; a series takes fewer than it has events."""
    refused: int
    """Events that the server does not take."""
    waiting: int
    """Requests still to be made."""


class EventWriter:
    """Takes events at once and writes them when it can."""

    def __init__(self, transport: Transport, pacing: Pacing, host: str) -> None:
        self._transport, self._pacing, self._host = transport, pacing, host
        self._queue: asyncio.Queue[Entry] = asyncio.Queue()
        self._memory = SeriesMemory()
        self._workers: list[asyncio.Task[None]] = []
        self._said: set[tuple[int, str]] = set()
        self._recorded = self._requests = self._refused = self._waiting = 0

    def start(self) -> None:
        """Start the workers in the running loop."""
        self._workers = [asyncio.create_task(self._work(), name=f"events-{index}") for index in range(WORKERS)]

    def record(self, event: Event) -> None:
        """Take an event."""
        self._recorded += 1
        entry, over = self._memory.note(event)
        if entry.due:
            self._enqueue(entry)
        if over is not None and over.unwritten and not over.queued:
            self._enqueue(over)

    async def close(self, deadline: float) -> int:
        """Write what still waits, for at most so many seconds; give how many requests were left over."""
        for entry in self._memory:
            if entry.unwritten and not entry.queued:
                self._enqueue(entry)
        try:
            await asyncio.wait_for(self._queue.join(), deadline)
        except TimeoutError:
            log.warning("events could not be written before the end: count=%d", self._waiting)
        for worker in self._workers:
            worker.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)
        self._workers = []
        return self._waiting

    @property
    def counts(self) -> EventCounts:
        """What became of the events so far."""
        return EventCounts(self._recorded, self._requests, self._refused, self._waiting)

    def _enqueue(self, entry: Entry) -> None:
        entry.queued = True
        self._waiting += 1
        self._queue.put_nowait(entry)

    async def _work(self) -> None:
        retry = Retry(self._pacing)
        while True:
            entry = await self._queue.get()
            try:
                await self._write(entry, retry)
            except Exception:  # a worker that ends would leave events waiting for ever
                log.exception("event %s of pod %s was not written", entry.name, entry.event.pod.key)
                self._abandon(entry)
            entry.queued = False
            self._waiting -= 1
            if entry.due:
                self._enqueue(entry)
            self._queue.task_done()

    async def _write(self, entry: Entry, retry: Retry) -> None:
        """Write an entry, however long the server is away, unless it refuses it or fails at it time and again."""
        failures = 0
        while True:
            count, last = entry.count, entry.last
            try:
                await self._send(entry, count, last)
            except ApiError as error:
                failures += error.status >= HTTPStatus.INTERNAL_SERVER_ERROR
                if failures == TRIES or not passes(error):
                    self._give_up(entry, error)
                    return
                await retry.pause(error.retry_after or 0.0)
            except ConnectionProblemError:
                await retry.pause()
            else:
                retry.reset()
                entry.written(count, last)
                self._requests += 1
                return

    async def _send(self, entry: Entry, count: int, last: datetime) -> None:
        path = f"/apis/events.k8s.io/v1/namespaces/{entry.event.pod.metadata.namespace}/events"
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
            await self._transport.request("POST", path, create_body(entry.event, entry.name, self._host, series))
        except ApiError as error:
            # A first try that got no answer may have succeeded all the same.
            if error.status != HTTPStatus.CONFLICT:
                raise

    def _give_up(self, entry: Entry, error: ApiError) -> None:
        self._abandon(entry)
        if (error.status, error.reason) not in self._said:
            self._said.add((error.status, error.reason))
            log.warning("events are refused, said once for this reason: %d %s", error.status, error)

    def _abandon(self, entry: Entry) -> None:
        self._refused += entry.count - entry.written_count
        self._memory.forget(entry.event)
        entry.count = entry.written_count
