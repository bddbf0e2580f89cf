"""A metric source that queries a Prometheus server: one task per distinct query, shared by its metrics.

A slow or failing query does not delay others: slow queries share a part of the concurrency limit. New queries share
another part, where each is tried for a short time. No failure ends the process or delays a decision. Without an answer,
known values age and the problem is reported.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Collection, Iterable, Mapping
from contextlib import nullcontext, suppress
from typing import Final

from policysched.framework.client import Clock, MetricSink, Wanted
from policysched.metric_sources import INTERVAL
from policysched.metric_sources.counters import SourceCounters
from policysched.metric_sources.problems import ActiveProblems, QueryError, QueryOutcome
from policysched.metric_sources.prometheus_http import PrometheusClient
from policysched.metric_sources.vector import Join, first_warning, read_series
from policysched.model.policy import MetricAnswer, MetricKey

log = logging.getLogger(__name__)
AT_ONCE: Final = 8
"""Largest number of concurrent queries; further queries wait."""
SLOW_AT_ONCE: Final = 3
"""Largest number of concurrent queries whose last run was slow; further slow queries wait."""
NEW_AT_ONCE: Final = 4
"""Largest number of concurrent queries without an earlier run; further new queries wait."""
SLOW: Final = 2.0
"""Duration above which a query is slow; a slow new query is cancelled and repeated. Units: seconds."""
Keys = frozenset[MetricKey]


class PrometheusSource:
    """The `MetricSource` of one Prometheus server."""

    def __init__(
        self, server: PrometheusClient, clock: Clock, counters: SourceCounters, *, interval: float = INTERVAL
    ) -> None:
        self._server = server
        self._clock = clock
        self._counters = counters
        self._interval = interval
        self._wanted: Mapping[str, Keys] = {}
        self._nodes: Collection[str] | None = None
        self._tasks: dict[str, tuple[Keys, asyncio.Task[None]]] = {}
        self._changed = asyncio.Event()
        self._unasked: set[str] = set()
        self._settled = asyncio.Event()
        self._settled.set()
        self._room = asyncio.Semaphore(AT_ONCE)
        self._room_of_slow = asyncio.Semaphore(SLOW_AT_ONCE)
        self._room_of_new = asyncio.Semaphore(NEW_AT_ONCE)
        self._slow: set[str] = set()
        self._known: set[str] = set()
        """Queries that have run at least once; `_slow` contains those of them that were slow."""
        self._problems = ActiveProblems()

    def follow(self, wanted: Wanted) -> None:
        """Set the metrics to query; new queries, and queries whose metrics changed, run at once."""
        before, self._wanted = self._wanted, by_query(wanted)
        new = {query for query, keys in self._wanted.items() if before.get(query) != keys}
        self._unasked = (self._unasked & self._wanted.keys()) | new
        for query in before.keys() - self._wanted.keys():
            self._problems.forget(query)
        self._slow &= self._wanted.keys()
        self._known &= self._wanted.keys()
        self._changed.set()
        self._note_settled()

    async def settled(self) -> None:
        """Wait until every query has run once."""
        await self._settled.wait()

    async def run(self, sink: MetricSink, nodes: Collection[str]) -> None:
        """Run the queries repeatedly and pass the values of each metric to the sink, until cancelled."""
        self._nodes = nodes
        try:
            async with asyncio.TaskGroup() as tasks:
                while True:
                    self._changed.clear()
                    self._stop_tasks()
                    self._start_tasks(tasks, sink)
                    await self._changed.wait()
        finally:
            self._tasks.clear()
            await self._server.close()

    async def ask(self, wanted: Wanted) -> list[MetricAnswer]:
        """Run all queries once and return the values of each metric, or the error of its query."""
        queries = by_query(wanted)
        try:
            asking = (self._answers(query, keys, tried=True) for query, keys in queries.items())
            found = await asyncio.gather(*asking)
        finally:
            await self._server.close()
        return [answer for answers in found for answer in answers]

    def _stop_tasks(self) -> None:
        for query, (keys, task) in list(self._tasks.items()):
            if self._wanted.get(query) != keys:
                task.cancel()
                del self._tasks[query]

    def _start_tasks(self, tasks: asyncio.TaskGroup, sink: MetricSink) -> None:
        for query, keys in self._wanted.items():
            if query not in self._tasks:
                self._tasks[query] = keys, tasks.create_task(self._repeat(query, keys, sink))

    async def _repeat(self, query: str, keys: Keys, sink: MetricSink) -> None:
        while True:
            began = self._clock.monotonic()
            answers = await self._answers(query, keys, tried=query in self._known)
            if self._wanted.get(query) != keys:
                return
            self._problems.set(query, next((one.problem for one in answers if one.problem), ""))
            for answer in answers:
                sink(answer)
                await asyncio.sleep(0)
                if self._wanted.get(query) != keys:
                    return
            self._unasked.discard(query)
            self._note_settled()
            await asyncio.sleep(max(0.0, self._interval - (self._clock.monotonic() - began)))

    async def _answers(self, query: str, keys: Keys, *, tried: bool) -> list[MetricAnswer]:
        """Run one query and return an answer (values or error) per metric; a new query first gets a short timeout."""
        if not tried:
            async with self._room_of_new, self._room:
                with suppress(TimeoutError):
                    async with asyncio.timeout(SLOW):
                        return await self._asked(query, keys)
            self._note_speed(query, is_slow=True)
        async with self._room_of_slow if query in self._slow else nullcontext(), self._room:
            return await self._asked(query, keys)

    async def _asked(self, query: str, keys: Keys) -> list[MetricAnswer]:
        began = self._clock.monotonic()
        outcome, answers = await self._outcome(query, sorted(keys))
        took = self._clock.monotonic() - began
        self._counters.refreshed(outcome, took)
        self._note_speed(query, is_slow=took > SLOW)
        return answers

    def _note_speed(self, query: str, *, is_slow: bool) -> None:
        self._known.add(query)
        (self._slow.add if is_slow else self._slow.discard)(query)

    async def _outcome(self, query: str, keys: Iterable[MetricKey]) -> tuple[QueryOutcome, list[MetricAnswer]]:
        try:
            return QueryOutcome.ANSWERED, await self._ask(query, keys)
        except QueryError as error:
            return error.outcome, [MetricAnswer(key, None, str(error)) for key in keys]
        except Exception as error:
            # A decision does not depend on metrics: not even a bug here may stop the scheduler.
            log.exception('the refresh of query "%s" failed', query)
            return QueryOutcome.FAILED, [MetricAnswer(key, None, f"the refresh failed: {error!r}") for key in keys]

    async def _ask(self, query: str, keys: Iterable[MetricKey]) -> list[MetricAnswer]:
        envelope = await self._server.ask(query)
        now = self._clock.now().timestamp()
        joins = [Join(key, now, self._nodes) for key in keys]
        async for part in read_series(envelope):
            for join in joins:
                join.take(part)
                await asyncio.sleep(0)
        warning = first_warning(envelope)
        return [join.answer(self._counters, warning) for join in joins]

    def _note_settled(self) -> None:
        if self._unasked:
            self._settled.clear()
        else:
            self._settled.set()


def by_query(wanted: Iterable[MetricKey]) -> dict[str, Keys]:
    """Return the metrics of each distinct query."""
    grouped: dict[str, Keys] = {}
    for key in wanted:
        grouped[key.query] = grouped.get(key.query, frozenset()) | {key}
    return grouped
