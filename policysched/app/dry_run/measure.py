"""Metrics of a decision that is made once: from given numbers, from a file, or from a server that is asked once.

The values take the same way into the state as those of a running scheduler.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from typing import TypeAlias

from policysched.app.clock import SystemClock
from policysched.app.running.feed import MetricOptions, make_server, metrics_read, wanted_by
from policysched.feeds.file import answers, as_table, load_table
from policysched.feeds.problems import FeedCounters
from policysched.feeds.prometheus import PrometheusSource
from policysched.framework import Cluster, MetricAnswer, MetricKey, Wanted
from policysched.rules.compile.policy import CompiledPolicy

Measure: TypeAlias = Callable[[Wanted, float], Iterable[MetricAnswer]]
"""Answers for metrics at a time. Units: seconds since 1970."""
Numbers: TypeAlias = Mapping[str, Mapping[str, float]]
NOT_GIVEN = "no values were given: give --metrics-file or --prometheus-url, or metrics= in Python"


def measuring(options: MetricOptions) -> Measure | None:
    """Give what measures as the flags ask for; None where they ask for nothing.

    Raises:
        UsageError: a flag or a file cannot be used.
    """
    options.check()
    if options.file is not None:
        table, name = load_table(options.file), str(options.file)
        return lambda wanted, at: answers(table, wanted, at, name)
    if options.url is not None:
        source = PrometheusSource(make_server(options, options.url), SystemClock(), FeedCounters())
        return lambda wanted, _: asyncio.run(source.ask(wanted))
    return None


def measure(cluster: Cluster, policies: Iterable[CompiledPolicy], metrics: Numbers | Measure | None) -> tuple[str, ...]:
    """Put the metrics that policies read into a cluster, and say what is wrong with them.

    Raises:
        UsageError: the numbers are not of the right shape.
    """
    policies = list(policies)
    wanted = wanted_by(policies)
    at = cluster.time.seconds
    if metrics is None:
        found: Iterable[MetricAnswer] = (MetricAnswer(key, None, NOT_GIVEN) for key in wanted)
    elif callable(metrics):
        found = metrics(wanted, at)
    else:
        found = answers(as_table(metrics), wanted, at, "metrics=")
    problems: dict[MetricKey, str] = {}
    for answer in found:
        cluster.metrics.take(answer)
        problems[answer.key] = answer.problem
    read = {f"metrics.{item.path[0]}": problems.get(item.metric, "") for _, item in metrics_read(policies)}
    return tuple(f"{name}: {problem}" for name, problem in read.items() if problem)
