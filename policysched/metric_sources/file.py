"""A file as metric source, for trying policies without a metrics server: for each metric a number for each node.

It is watched by its content, so that it may be replaced, edited or be a link that moves; its numbers hold as long as it
can be read, and while it cannot, they age as those of a server that is down.
"""

from __future__ import annotations

import asyncio
import difflib
import math
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import suppress
from itertools import chain, islice
from pathlib import Path
from typing import TYPE_CHECKING, Final

from policysched.errors import UsageError
from policysched.framework.client import Clock, MetricSink, Wanted, most_unknown
from policysched.metric_sources.problems import NONE_FINITE, ActiveProblems, QueryOutcome, values_of_others
from policysched.metric_sources.table import Table, decode_table, read_bytes
from policysched.model.policy import MetricAnswer, MetricKey, Sample

if TYPE_CHECKING:
    from policysched.metric_sources.counters import SourceCounters

POLL: Final = 1.0
"""How often the file is looked at. Units: seconds."""


class FileSource:
    """A `MetricSource` over one file."""

    def __init__(
        self, path: Path, clock: Clock, counters: SourceCounters, *, interval: float, poll: float = POLL
    ) -> None:
        """Read the file a first time; a file that does not exist yet is read when it appears.

        Raises:
            UsageError: the file cannot be read, or is not of the right shape.
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
        self._untold: dict[MetricKey, None] = {}
        """The metrics that are to be answered for, in order."""
        self._told_at = 0.0
        self._followed = asyncio.Event()
        self._settled = asyncio.Event()
        self._settled.set()
        self._troubles = ActiveProblems()

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
        """Follow these metrics; those that are new, or have another name, are looked up at once."""
        before, self._wanted = self._wanted, dict(wanted)
        for key in before.keys() - wanted.keys():
            self._troubles.forget(key)
        new = [key for key, names in wanted.items() if before.get(key) != names]
        self._untold = dict.fromkeys(key for key in (*self._untold, *new) if key in wanted)
        if new:
            self._settled.clear()
            self._followed.set()

    async def settled(self) -> None:
        """Wait until everything that is followed was looked up."""
        await self._settled.wait()

    async def run(self, sink: MetricSink, nodes: Collection[str]) -> None:
        """Look at the file again and again until cancelled."""
        while True:
            self._followed.clear()
            changed = await self._read()
            now = self._clock.monotonic()
            if changed or now - self._told_at >= self._interval:
                self._told_at = now
                self._untold = dict.fromkeys(self._wanted)
            if self._untold:
                await self._tell(sink, nodes)
            self._settled.set()
            with suppress(TimeoutError):
                async with asyncio.timeout(self._poll):
                    await self._followed.wait()

    async def _read(self) -> bool:
        """Look at the file, in a thread of its own because files may be slow and large; tell whether there is news."""
        before = self._data, self._problem
        try:
            data = await asyncio.to_thread(read_bytes, self._path, again=True)
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

    async def _tell(self, sink: MetricSink, nodes: Collection[str]) -> None:
        """Answer for what is to be answered for; the loop has its turn between two metrics."""
        began = self._clock.monotonic()
        while self._untold:
            key = next(iter(self._untold))
            del self._untold[key]
            for answer in self._answers({key: self._wanted[key]}, nodes):
                self._troubles.tell(key, "" if self._problem else answer.problem, key.query)
                sink(answer)
            if self._untold:
                await asyncio.sleep(0)
        outcome = QueryOutcome.MALFORMED if self._problem else QueryOutcome.ANSWERED
        self._counters.refreshed(outcome, self._clock.monotonic() - began)

    def _answers(self, wanted: Wanted, nodes: Collection[str]) -> Iterable[MetricAnswer]:
        if self._problem:
            return [MetricAnswer(key, None, self._problem) for key in wanted]
        return answers(self._table, wanted, self._clock.now().timestamp(), str(self._path), nodes)


def answers(
    table: Table, wanted: Wanted, at: float, file: str, nodes: Collection[str] | None = None
) -> Iterator[MetricAnswer]:
    """Answer for each metric that is followed.

    Args:
        table: The numbers.
        wanted: The metrics, with the names that policies give them.
        at: The time of the numbers: they hold now.
        file: Where they come from, for the problem of a metric that is not in them.
        nodes: The names of the cluster's nodes; of others only some numbers are given. None: all are.
    """
    for key, names in wanted.items():
        # By `policy/name`, then by name, then by query.
        ordered = (*sorted(names, key=lambda name: (-name.count("/"), name)), key.query)
        found = next((table[name] for name in ordered if name in table), None)
        shown = min(names, key=lambda name: (name.count("/"), name), default=key.query)
        if found is None:
            yield MetricAnswer(key, {}, f'{file} has no values for "{shown}"{_instead(shown, table)}')
            continue
        given = found if nodes is None else list(_known(found, nodes))
        samples = {node: Sample(found[node], at) for node in given if math.isfinite(found[node])}
        fault = NONE_FINITE if given and not samples else values_of_others(samples, nodes or ())
        problem = f"{file}: {shown}: {fault}" if fault else ""
        yield MetricAnswer(key, samples, problem)


def _known(numbers: Mapping[str, float], nodes: Collection[str]) -> Iterator[str]:
    """Return the names of nodes that have a number, and of others no more than an answer may have."""
    others = (name for name in numbers if name not in nodes)
    return chain((name for name in nodes if name in numbers), islice(others, most_unknown(nodes)))


def _instead(name: str, table: Table) -> str:
    """Say which metric of the table may be meant, if one looks alike."""
    close = difflib.get_close_matches(name.rpartition("/")[2], table, 1)
    return f'; "{close[0]}" has values; did you mean "{name}"?' if close else ""
