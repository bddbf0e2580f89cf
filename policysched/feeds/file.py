"""Metrics from a file, for trying policies without a metrics server.

The file is watched by its content, so that it may be replaced, edited or be a link that moves. Its numbers hold as
long as it can be read; while it cannot, they age as those of a server that is down.
"""

from __future__ import annotations

import asyncio
from contextlib import suppress
from pathlib import Path
from typing import Final

from policysched.errors import UsageError
from policysched.feeds.problems import FeedCounters, Outcome, Troubles
from policysched.feeds.table import Table, answers, decode_table, read_bytes
from policysched.framework.client import Clock, MetricSink, Wanted
from policysched.model.policy import MetricAnswer

POLL: Final = 1.0
"""How often the file is looked at. Units: seconds."""


class FileSource:
    """A `MetricSource` over one file."""

    def __init__(
        self, path: Path, clock: Clock, counters: FeedCounters, *, interval: float, poll: float = POLL
    ) -> None:
        """Read the file a first time.

        Raises:
            UsageError: it cannot be read, or is not of the right shape.
        """
        self._path = path
        self._clock = clock
        self._counters = counters
        self._interval = interval
        self._poll = min(poll, interval)
        self._data: bytes | None = read_bytes(path)
        self._table: Table = decode_table(self._data, path)
        self._problem = ""
        self._wanted: Wanted = {}
        self._told_at = 0.0
        self._followed = asyncio.Event()
        self._settled = asyncio.Event()
        self._settled.set()
        self._troubles = Troubles()

    def follow(self, wanted: Wanted) -> None:
        """Follow these metrics."""
        self._wanted = dict(wanted)
        self._settled.clear()
        self._followed.set()

    async def settled(self) -> None:
        """Wait until everything that is followed was looked up."""
        await self._settled.wait()

    async def run(self, sink: MetricSink) -> None:
        """Look at the file again and again until cancelled."""
        while True:
            changed = await self._read()
            due = self._clock.monotonic() - self._told_at >= self._interval
            if changed or due or self._followed.is_set():
                self._followed.clear()
                self._tell(sink)
            self._settled.set()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._poll):
                    await self._followed.wait()

    async def _read(self) -> bool:
        """Look at the file, in a thread of its own because files may be slow and large; tell whether there is news."""
        before = self._data, self._problem
        try:
            data = await asyncio.to_thread(read_bytes, self._path)
        except UsageError as error:
            self._data, self._problem = None, str(error)
        else:
            await self._take(data)
        self._troubles.tell("metrics file", self._problem)
        return (self._data, self._problem) != before

    async def _take(self, data: bytes) -> None:
        """Take what the file says now; where that is not of the right shape, the old numbers remain and age."""
        if data == self._data:
            return
        self._data = data
        try:
            self._table, self._problem = await asyncio.to_thread(decode_table, data, self._path), ""
        except UsageError as error:
            self._problem = str(error)

    def _tell(self, sink: MetricSink) -> None:
        began = self._told_at = self._clock.monotonic()
        for answer in self._answers():
            sink(answer)
        outcome = Outcome.MALFORMED if self._problem else Outcome.ANSWERED
        self._counters.refreshed(outcome, self._clock.monotonic() - began)

    def _answers(self) -> list[MetricAnswer]:
        if self._problem:
            return [MetricAnswer(key, None, self._problem) for key in self._wanted]
        return list(answers(self._table, self._wanted, self._clock.now().timestamp(), str(self._path)))
