"""Events about pods, written behind the bindings by a few workers.

What cannot be written is counted and said, never just dropped. While the server is out of reach or busy, events wait,
up to a bound (see `queue`). One that the server fails at goes behind the others, a few times. So many workers at
most, because bindings use the same server and decide how fast pods start.
"""

from __future__ import annotations

import asyncio
import logging
from datetime import datetime
from http import HTTPStatus
from typing import NamedTuple

from policysched.errors import ConnectionProblemError
from policysched.framework import ApiError, Event
from policysched.kube.events.bodies import Entry, SeriesMemory, create_body, series_body
from policysched.kube.events.queue import MOST, MOST_BYTES, EventQueue
from policysched.kube.transport import STRATEGIC_PATCH, Pacing, Retry, Transport, passes

log = logging.getLogger(__name__)
WORKERS = 4
TRIES = 12
"""How often the server may fail at an event (5xx) before it counts as refused; as often as with client-go."""
MOST_SAID = 100
"""How many reasons of refusals are told apart in the log."""
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
    given_up: int
    """Events that were not written because too many waited."""


class EventWriter:
    """Takes events at once and writes them when it can.

    Args:
        transport: The API server.
        pacing: Where pauses come from.
        host: The name of this machine.
        most: How many requests may wait.
        most_bytes: How many bytes their texts may have.
    """

    def __init__(
        self, transport: Transport, pacing: Pacing, host: str, *, most: int = MOST, most_bytes: int = MOST_BYTES
    ) -> None:
        self._transport, self._host = transport, host
        self._retry = Retry(pacing)
        self._queue = EventQueue(most, most_bytes)
        self._memory = SeriesMemory()
        self._workers: list[asyncio.Task[None]] = []
        self._said: set[tuple[int, str]] = set()
        self._recorded = self._requests = self._refused = self._waiting = self._given_up = 0

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
        if self._given_up:
            log.warning("events were given up because too many waited: count=%d", self._given_up)
        for worker in self._workers:
            worker.cancel()
        await asyncio.gather(*self._workers, return_exceptions=True)
        self._workers = []
        return self._waiting

    @property
    def counts(self) -> EventCounts:
        """What became of the events so far."""
        return EventCounts(self._recorded, self._requests, self._refused, self._waiting, self._given_up)

    def _enqueue(self, entry: Entry) -> None:
        entry.queued = True
        self._waiting += 1
        self._queue.put_nowait(entry)
        while (least := self._queue.give_up()) is not None:
            self._leave_out(least)

    def _leave_out(self, entry: Entry) -> None:
        """Do without an entry that waits; a series that goes on may still be told as a whole."""
        entry.queued = False
        self._waiting -= 1
        if entry.written_count and self._memory.follows(entry):
            return
        if not self._given_up:
            log.warning("too many events wait for the API server: some are given up")
        self._given_up += self._drop(entry)

    async def _work(self) -> None:
        while True:
            entry = await self._queue.get()
            again = False
            try:
                again = not await self._write(entry)
            except Exception:  # a worker that ends would leave events waiting for ever
                log.exception("event %s in namespace %s was not written", entry.name, entry.about.namespace)
                self._refused += self._drop(entry)
            entry.queued = False
            self._waiting -= 1
            if again or entry.due:
                self._enqueue(entry)
            self._queue.task_done()

    async def _write(self, entry: Entry) -> bool:
        """Write an entry, however long the server is away; tell whether it need not be tried again behind the others.

        One that the server refuses, or fails at time and again, is not.
        """
        while True:
            count, last = entry.count, entry.last
            try:
                await self._send(entry, count, last)
            except ApiError as error:
                entry.failures += error.status >= HTTPStatus.INTERNAL_SERVER_ERROR
                if entry.failures == TRIES or not passes(error):
                    self._refuse(entry, error)
                    return True
                await self._retry.pause(error.retry_after or 0.0)
                return False
            except ConnectionProblemError:
                await self._retry.pause()
            else:
                self._retry.reset()
                entry.written(count, last)
                self._requests += 1
                return True

    async def _send(self, entry: Entry, count: int, last: datetime) -> None:
        path = f"/apis/events.k8s.io/v1/namespaces/{entry.about.namespace}/events"
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
            # A first try that got no answer may have succeeded all the same.
            if error.status != HTTPStatus.CONFLICT:
                raise

    def _refuse(self, entry: Entry, error: ApiError) -> None:
        self._refused += self._drop(entry)
        if (error.status, error.reason) not in self._said and len(self._said) < MOST_SAID:
            self._said.add((error.status, error.reason))
            log.warning("events are refused, said once for this reason: %d %s", error.status, error)

    def _drop(self, entry: Entry) -> int:
        """Follow an entry no longer; count the events that are lost with it."""
        lost = entry.count - entry.written_count
        self._memory.forget(entry)
        entry.count = entry.written_count
        return lost
