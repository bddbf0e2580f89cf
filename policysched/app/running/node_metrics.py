"""Creates the configured source of node metrics and writes its values into the state's columns.

Here is added what neither a source nor the state can know: that values are for nodes of this cluster, and that a policy
wants them younger than they are asked for.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from policysched.app.clock import SystemClock
from policysched.errors import UsageError
from policysched.framework import Clock, MetricAnswer, MetricKey, MetricSource, Wanted
from policysched.language.checking.compile import Want, compile_expression
from policysched.language.functions.signatures import Environment
from policysched.language.ir.types import DURATION
from policysched.late_dataclass import dataclass
from policysched.metric_sources import INTERVAL
from policysched.metric_sources.file import FileSource, NoSource
from policysched.metric_sources.problems import SourceCounters, one_line
from policysched.rules.compile.policy import CompiledPolicy, MetricInput
from policysched.rules.policy_set.policy_set import PolicySet
from policysched.schedule.scheduler import Scheduler

if TYPE_CHECKING:
    from policysched.metric_sources.prometheus_http import PrometheusClient

log = logging.getLogger(__name__)
FIRST_ANSWERS: Final = 2.0
"""How long the first decision waits for the first values. Units: seconds."""
SHORTEST: Final = 1.0
"""The shortest interval. Units: seconds."""


@dataclass(frozen=True, slots=True)
class MetricOptions:
    """Where metrics come from; at most one of the URL and the file."""

    url: str | None = None
    token_file: Path | None = None
    ca_file: Path | None = None
    file: Path | None = None
    interval: float = INTERVAL
    """Units: seconds."""

    def check(self) -> None:
        """Make sure that the flags go together.

        Raises:
            UsageError: they do not.
        """
        if self.url is not None and self.file is not None:
            raise UsageError("--prometheus-url and --metrics-file exclude each other: give one of them")
        for name, given in (("--prometheus-token-file", self.token_file), ("--prometheus-ca-file", self.ca_file)):
            if given is not None and self.url is None:
                raise UsageError(f"{name} is of no use without --prometheus-url")


NO_METRICS: Final = MetricOptions()


def read_interval(text: str) -> float:
    """Read a `--metrics-interval`, written as durations are in policies. Units: seconds.

    Raises:
        UsageError: it is none, or too short.
    """
    program = compile_expression(text, Environment(), Want.ANY).program
    value = program.constant if program is not None and program.type.like(DURATION) else None
    if not isinstance(value, int | float):
        raise UsageError(f'--metrics-interval "{text}" is no duration: write it as 15s or 1min')
    if value < SHORTEST:
        raise UsageError(f'--metrics-interval "{text}" is too short: at least {SHORTEST:g}s')
    return float(value)


def make_source(options: MetricOptions, clock: Clock, counters: SourceCounters) -> MetricSource:
    """Make the source that the flags ask for.

    Raises:
        UsageError: a flag or a file cannot be used.
    """
    options.check()
    if options.file is not None:
        return FileSource(options.file, clock, counters, interval=options.interval)
    if options.url is not None:
        from policysched.metric_sources.prometheus import PrometheusSource  # noqa: PLC0415 - few have a server of metrics

        client = make_prometheus_client(options, options.url)
        return PrometheusSource(client, clock, counters, interval=options.interval)
    return NoSource()


def make_prometheus_client(options: MetricOptions, url: str) -> PrometheusClient:
    """Make the client of a Prometheus server.

    Raises:
        UsageError: a flag or a file cannot be used.
    """
    from policysched.metric_sources.prometheus_http import PrometheusClient, ServerSettings  # noqa: PLC0415

    client = PrometheusClient(ServerSettings(url, options.token_file, options.ca_file))
    if options.token_file is not None and client.url.startswith("http:"):
        log.warning("metrics: the token of --prometheus-token-file goes to %s without encryption", client.url)
    return client


def metrics_read(policies: Iterable[CompiledPolicy]) -> Iterator[tuple[CompiledPolicy, MetricInput]]:
    """Give each metric that a policy reads; what is declared only is not asked for."""
    for policy in policies:
        for item in policy.inputs:
            if isinstance(item, MetricInput):
                yield policy, item


def wanted_by(policies: Iterable[CompiledPolicy]) -> Wanted:
    """Gather the metrics that policies read, with the names that they give them."""
    wanted: dict[MetricKey, frozenset[str]] = {}
    for policy, item in metrics_read(policies):
        name = item.path[0]
        wanted[item.metric] = wanted.get(item.metric, frozenset()) | {name, f"{policy.key}/{name}"}
    return wanted


class MetricFeed:
    """A source at work for a scheduler."""

    def __init__(
        self,
        source: MetricSource,
        scheduler: Scheduler,
        interval: float,
        news: Callable[[], None],
        clock: Clock | None = None,
    ) -> None:
        """Wire a source to a scheduler.

        Args:
            source: Where values come from.
            scheduler: Who takes them.
            interval: How often they come. Units: seconds.
            news: Is called when policies' statuses have something else to say of metrics.
            clock: Says when answers came.
        """
        self._monotonic = (clock or SystemClock()).monotonic
        self._wanted: Wanted = {}
        self._answered: dict[MetricKey, float] = {}
        """When each was answered last, or asked first."""
        self._source = source
        self._scheduler = scheduler
        self._interval = interval
        self._news = news
        self._hasty: dict[MetricKey, str] = {}
        self._told: dict[MetricKey, tuple[str, bool]] = {}

    def use(self, policies: PolicySet) -> None:
        """Follow what the policies in force read."""
        compiled = [plugin.policy for plugin in policies.plugins]
        wanted = wanted_by(compiled)
        self._hasty = dict(self._too_hasty(compiled))
        self._told = {key: told for key, told in self._told.items() if key in wanted}
        self._scheduler.cluster.metrics.keep(wanted)
        now = self._monotonic()
        self._answered = {key: self._answered.get(key, now) for key in wanted}
        self._wanted = wanted
        self._source.follow(wanted)

    def ages(self) -> dict[str, float]:
        """Return how old the last answer about each metric is, by `policy/metric`; it may be asked from any thread."""
        answered, now = self._answered, self._monotonic()
        of_policies = ((key, name) for key, names in self._wanted.items() for name in names if "/" in name)
        return {name: now - answered[key] for key, name in of_policies if key in answered}

    async def run(self) -> None:
        """Bring values until cancelled."""
        await self._source.run(self._take, self._scheduler.cluster.nodes.row_of)

    async def first_answers(self) -> None:
        """Wait for the first values, but not long: metrics are a help to decisions and no condition."""
        with suppress(TimeoutError):
            async with asyncio.timeout(FIRST_ANSWERS):
                await self._source.settled()

    def _take(self, answer: MetricAnswer) -> None:
        problems = (answer.problem, self._nobodys(answer), self._hasty.get(answer.key, ""))
        told = replace(answer, problem="; ".join(problem for problem in problems if problem))
        self._scheduler.set_metric(told)
        if answer.samples is not None and answer.key in self._answered:
            self._answered[answer.key] = self._monotonic()
        before = self._told.get(answer.key, ("", False))
        now = told.problem, before[1] if answer.samples is None else bool(answer.samples)
        if now != before:
            self._told[answer.key] = now
            self._news()

    def _nobodys(self, answer: MetricAnswer) -> str:
        """Say where no value is for a node of this cluster: most often the label holds an address."""
        nodes = self._scheduler.cluster.nodes
        if not answer.samples or not nodes.count or not answer.samples.keys().isdisjoint(nodes.row_of):
            return ""
        example = one_line(min(answer.samples))
        return f'no series is for a node of this cluster: the label "{answer.key.node_label}" says "{example}", say'

    def _too_hasty(self, policies: Iterable[CompiledPolicy]) -> Iterator[tuple[MetricKey, str]]:
        for policy, item in metrics_read(policies):
            if item.max_age < self._interval:
                short, asked = f"{item.max_age:g} s", f"{self._interval:g} s"
                text = f"values are asked for every {asked}, but {policy.key} has them missing after {short}"
                yield item.metric, f"{text}: raise maxAge or lower --metrics-interval"
