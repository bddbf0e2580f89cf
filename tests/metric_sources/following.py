"""A source that runs against a test's server or file, and a sink that remembers."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Iterable
from contextlib import asynccontextmanager, suppress

from prometheus_client import CollectorRegistry

from policysched.app.clock import SystemClock
from policysched.framework import Clock, MetricAnswer, MetricKey, MetricSource, Wanted
from policysched.metric_sources.counters import SourceCounters
from policysched.metric_sources.prometheus import PrometheusSource
from policysched.metric_sources.prometheus_http import PrometheusClient, ServerSettings
from tests.metric_sources.fake_prometheus import FakePrometheus

LOAD = MetricKey("load", "node")


def wanting(*keys: MetricKey) -> Wanted:
    """What one policy `p` wants that calls each metric after its query."""
    return {key: frozenset((key.query, f"p/{key.query}")) for key in keys}


class Kept:
    """A sink that keeps the last answer of each metric."""

    def __init__(self) -> None:
        self.answers: dict[MetricKey, MetricAnswer] = {}
        self.all: list[MetricAnswer] = []
        self._more = asyncio.Event()

    def __call__(self, answer: MetricAnswer) -> None:
        self.answers[answer.key] = answer
        self.all.append(answer)
        self._more.set()

    async def reaches(self, count: int) -> None:
        async with asyncio.timeout(60):
            while len(self.all) < count:
                self._more.clear()
                await self._more.wait()

    def values(self, key: MetricKey = LOAD) -> dict[str, float] | None:
        """The last values of a metric, None where there was no answer."""
        samples = self.answers[key].samples
        return None if samples is None else {node: sample.value for node, sample in samples.items()}

    def problem(self, key: MetricKey = LOAD) -> str:
        return self.answers[key].problem


class Counted:
    """Counters in a registry of their own."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.counters = SourceCounters(self.registry)

    def outcomes(self) -> dict[str, int]:
        return self._of("policysched_metric_refreshes_total", "outcome")

    def dropped(self) -> dict[str, int]:
        return self._of("policysched_metric_series_dropped_total", "reason")

    def _of(self, name: str, label: str) -> dict[str, int]:
        samples = (sample for family in self.registry.collect() for sample in family.samples if sample.name == name)
        return {sample.labels[label]: int(sample.value) for sample in samples if sample.value}


@asynccontextmanager
async def running(source: MetricSource, nodes: Collection[str] = ()) -> AsyncIterator[Kept]:
    kept = Kept()
    task = asyncio.create_task(source.run(kept, nodes))
    try:
        yield kept
        assert not task.done()
    finally:
        task.cancel()
        with suppress(asyncio.CancelledError):
            await task


def prometheus(
    fake: FakePrometheus,
    counted: Counted | None = None,
    clock: Clock | None = None,
    *,
    interval: float = 60.0,
    timeout: float = 5.0,
) -> PrometheusSource:
    server = PrometheusClient(ServerSettings(fake.url, timeout=timeout))
    counters = (counted or Counted()).counters
    return PrometheusSource(server, clock or SystemClock(), counters, interval=interval)


async def answers(source: PrometheusSource, keys: Iterable[MetricKey] = (LOAD,)) -> Kept:
    """What one refresh of a source gives."""
    kept = Kept()
    for answer in await source.ask(wanting(*keys)):
        kept(answer)
    return kept
