"""A metric source for trials without a metrics server: reads a file with a number for each metric and node.

The file is compared by its content, so it may be replaced, edited or be a symbolic link. Its numbers are current as
long as it is readable. While it is unreadable, they age like those of an unreachable server.
"""

from __future__ import annotations

import asyncio
from collections.abc import Collection, Iterable
from contextlib import suppress
from pathlib import Path
from typing import Final

from policysched.errors import UsageError
from policysched.framework.client import Clock, MetricSink, Wanted
from policysched.metric_sources.counters import SourceCounters
from policysched.metric_sources.problems import ActiveProblems, QueryOutcome
from policysched.metric_sources.table import Table, decode_table, read_bytes
from policysched.metric_sources.table_answers import answers
from policysched.model.policy import MetricAnswer, MetricKey

POLL: Final = 1.0
"""Interval between two reads of the metrics file. Units: seconds."""


class FileSource:
    """The `MetricSource` that reads one file."""

    def __init__(
        self, path: Path, clock: Clock, counters: SourceCounters, *, interval: float, poll: float = POLL
    ) -> None:
        """Read the file a first time; read a missing file when it appears.

        Raises:
            UsageError: the file cannot be read, or has another format.
        """
        self._path = path
        self._clock = clock
        self._counters = counters
        self._interval = interval
        self._poll = min(poll, interval)
        self._data: bytes | None = None
        self._table: Table = {}
        self._problem = ""
        self._read_first()
        self._wanted: Wanted = {}
        self._due: dict[MetricKey, None] = {}
        """Metrics for which an answer still has to be passed to the sink, in this order."""
        self._answered_at = 0.0
        self._followed = asyncio.Event()
        self._settled = asyncio.Event()
        self._settled.set()
        self._active_problems = ActiveProblems()

    def _read_first(self) -> None:
        try:
            self._data = read_bytes(self._path, again=True)
        except UsageError as error:
            if not isinstance(error.__cause__, FileNotFoundError):
                raise
            self._problem = str(error)
        else:
            self._table = decode_table(self._data, self._path)

    def follow(self, wanted: Wanted) -> None:
        """Set the metrics for which answers are sent; answers for new or renamed metrics are sent at once."""
        before, self._wanted = self._wanted, dict(wanted)
        for key in before.keys() - wanted.keys():
            self._active_problems.forget(key)
        new = [key for key, names in wanted.items() if before.get(key) != names]
        self._due = dict.fromkeys(key for key in (*self._due, *new) if key in wanted)
        if new:
            self._settled.clear()
            self._followed.set()

    async def settled(self) -> None:
        """Wait until one answer has been sent for each metric that was passed to `follow`."""
        await self._settled.wait()

    async def run(self, sink: MetricSink, nodes: Collection[str]) -> None:
        """Read the file repeatedly and pass the values of each metric to the sink, until cancelled."""
        while True:
            self._followed.clear()
            changed = await self._read()
            now = self._clock.monotonic()
            if changed or now - self._answered_at >= self._interval:
                self._answered_at = now
                self._due = dict.fromkeys(self._wanted)
            if self._due:
                await self._send_due_answers(sink, nodes)
            self._settled.set()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._poll):
                    await self._followed.wait()

    async def _read(self) -> bool:
        """Read the file in a thread, because files can be slow and large; return whether content or error changed."""
        before = self._data, self._problem
        try:
            data = await asyncio.to_thread(read_bytes, self._path, again=True)
        except UsageError as error:
            self._data, self._problem = None, str(error)
        else:
            await self._decode(data)
        self._active_problems.set("metrics file", self._problem)
        return (self._data, self._problem) != before

    async def _decode(self, data: bytes) -> None:
        """Decode the content of the file if it changed; if its format is invalid, keep the previous numbers."""
        if data == self._data:
            return
        self._data = data
        try:
            self._table, self._problem = await asyncio.to_thread(decode_table, data, self._path), ""
        except UsageError as error:
            self._problem = str(error)

    async def _send_due_answers(self, sink: MetricSink, nodes: Collection[str]) -> None:
        """Pass the values of each metric in `_due` to the sink, yielding to the event loop between two metrics."""
        began = self._clock.monotonic()
        while self._due:
            key = next(iter(self._due))
            del self._due[key]
            for answer in self._answers({key: self._wanted[key]}, nodes):
                self._active_problems.set(key, "" if self._problem else answer.problem, key.query)
                sink(answer)
            if self._due:
                await asyncio.sleep(0)
        outcome = QueryOutcome.MALFORMED if self._problem else QueryOutcome.ANSWERED
        self._counters.refreshed(outcome, self._clock.monotonic() - began)

    def _answers(self, wanted: Wanted, nodes: Collection[str]) -> Iterable[MetricAnswer]:
        if self._problem:
            return [MetricAnswer(key, None, self._problem) for key in wanted]
        return answers(self._table, wanted, self._clock.now().timestamp(), str(self._path), nodes)
