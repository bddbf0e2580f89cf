"""Connection of a metrics source with a scheduler: `MetricFeed`.

The feed adds problems that neither the source nor the state can detect: values for nodes of another cluster, and a
maximum age below the refresh interval.
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

FIRST_VALUES_WITHIN: Final = 2.0
"""Longest wait of the first decision for the first values of metrics. Units: seconds."""


class MetricFeed:
    """A running metrics source for a scheduler."""

    def __init__(
        self,
        source: MetricSource,
        scheduler: Scheduler,
        interval: float,
        news: Callable[[], None],
        clock: Clock | None = None,
    ) -> None:
        """Connect a source with a scheduler.

        Args:
            source: The metrics source.
            scheduler: The scheduler that receives the values.
            interval: Interval between refreshes. Units: seconds.
            news: Called when the problems of metrics in policy statuses change.
            clock: Clock for the ages of answers.
        """
        self._monotonic = (clock or SystemClock()).monotonic
        self._wanted: Wanted = {}
        self._answered: dict[MetricKey, float] = {}
        """Monotonic time of each metric's last answer, or of the first request before any answer. Units: seconds."""
        self._source = source
        self._scheduler = scheduler
        self._interval = interval
        self._news = news
        self._short_max_ages: dict[MetricKey, str] = {}
        """Problem of each metric whose maximum age is below the refresh interval."""
        self._reported: dict[MetricKey, tuple[str, bool]] = {}
        """Last reported state of each metric: its problem, and whether any node had a value."""
        self._problems = ActiveProblems()

    def use(self, policies: PolicySet) -> None:
        """Request the metrics that the policies in force read, and drop the values of other metrics."""
        compiled = [plugin.policy for plugin in policies.active]
        wanted = wanted_by(compiled)
        self._short_max_ages = dict(self._max_age_problems(compiled))
        self._reported = {key: reported for key, reported in self._reported.items() if key in wanted}
        self._scheduler.cluster.metrics.keep(wanted)
        for key in self._wanted.keys() - wanted.keys():
            self._problems.forget(key)
        now = self._monotonic()
        self._answered = {key: self._answered.get(key, now) for key in wanted}
        self._wanted = wanted
        self._source.follow(wanted)

    def ages(self) -> dict[str, float]:
        """Return the age of the last answer for each metric, by `policy/metric`; thread-safe."""
        answered, now = self._answered, self._monotonic()
        of_policies = ((key, name) for key, names in self._wanted.items() for name in names if "/" in name)
        return {name: now - answered[key] for key, name in of_policies if key in answered}

    async def run(self) -> None:
        """Run the source until cancelled."""
        await self._source.run(self._take, self._scheduler.cluster.nodes.row_of)

    async def wait_for_first_values(self) -> None:
        """Wait a limited time for the first values of metrics; afterwards, decide without the missing values."""
        with suppress(TimeoutError):
            async with asyncio.timeout(FIRST_VALUES_WITHIN):
                await self._source.settled()

    def _take(self, answer: MetricAnswer) -> None:
        problems = ("" if answer.problem else self._foreign_values(answer), self._short_max_ages.get(answer.key, ""))
        found = "; ".join(filter(None, problems))
        self._problems.set(answer.key, found, answer.key.query)  # the source logs its own problems
        completed = replace(answer, problem="; ".join(filter(None, (answer.problem, found))))
        self._scheduler.set_metric(completed)
        if answer.samples is not None and answer.key in self._answered:
            self._answered[answer.key] = self._monotonic()
        before = self._reported.get(answer.key, ("", False))
        now = completed.problem, before[1] if answer.samples is None else bool(answer.samples)
        if now != before:
            self._reported[answer.key] = now
            self._news()

    def _foreign_values(self, answer: MetricAnswer) -> str:
        """Return the problem that no value is for a node of this cluster, often because a label contains addresses."""
        nodes = self._scheduler.cluster.nodes
        if not answer.samples or not nodes.count or not answer.samples.keys().isdisjoint(nodes.row_of):
            return ""
        example = one_line(min(answer.samples))
        node_label = answer.key.node_label
        return f'no series is for a node of this cluster; the label "{node_label}" has values such as "{example}"'

    def _max_age_problems(self, policies: Iterable[CompiledPolicy]) -> Iterator[tuple[MetricKey, str]]:
        for policy, item in metrics_read(policies):
            if item.max_age < self._interval:
                short, asked = f"{item.max_age:g} s", f"{self._interval:g} s"
                effect = f'policy "{policy.key}" treats them as missing after {short}'
                text = f"values are refreshed every {asked}, but {effect}"
                yield item.metric, f"{text}; raise maxAge or lower --metrics-interval"
