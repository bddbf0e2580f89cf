"""Writes the values of a source of node metrics into the state's columns.

Here is added what neither a source nor the state can know: that values are for nodes of this cluster, and that a policy
wants them younger than they are asked for.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from dataclasses import replace
from typing import Final

from policysched.app.clock import SystemClock
from policysched.app.running.metric_options import metrics_read, wanted_by
from policysched.framework import Clock, MetricAnswer, MetricKey, MetricSource, Wanted
from policysched.metric_sources.problems import ActiveProblems, one_line
from policysched.rules.compile.policy import CompiledPolicy
from policysched.rules.policy_set.policy_set import PolicySet
from policysched.schedule.scheduler import Scheduler

FIRST_ANSWERS: Final = 2.0
"""How long the first decision waits for the first values. Units: seconds."""


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
        self._troubles = ActiveProblems()

    def use(self, policies: PolicySet) -> None:
        """Follow what the policies in force read."""
        compiled = [plugin.policy for plugin in policies.plugins]
        wanted = wanted_by(compiled)
        self._hasty = dict(self._too_hasty(compiled))
        self._told = {key: told for key, told in self._told.items() if key in wanted}
        self._scheduler.cluster.metrics.keep(wanted)
        for key in self._wanted.keys() - wanted.keys():
            self._troubles.forget(key)
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
        problems = ("" if answer.problem else self._nobodys(answer), self._hasty.get(answer.key, ""))
        found = "; ".join(filter(None, problems))
        self._troubles.tell(answer.key, found, answer.key.query)  # the source logs its own problems
        told = replace(answer, problem="; ".join(filter(None, (answer.problem, found))))
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
        node_label = answer.key.node_label
        return f'no series is for a node of this cluster; the label "{node_label}" has values such as "{example}"'

    def _too_hasty(self, policies: Iterable[CompiledPolicy]) -> Iterator[tuple[MetricKey, str]]:
        for policy, item in metrics_read(policies):
            if item.max_age < self._interval:
                short, asked = f"{item.max_age:g} s", f"{self._interval:g} s"
                effect = f'policy "{policy.key}" treats them as missing after {short}'
                text = f"values are refreshed every {asked}, but {effect}"
                yield item.metric, f"{text}; raise maxAge or lower --metrics-interval"
