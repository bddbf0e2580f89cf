"""Metrics of a dry-run: read once from numbers, a function, a file or a Prometheus server."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TypeAlias

from policysched.app.clock import SystemClock
from policysched.app.running.metric_options import MetricOptions, metrics_read, wanted_by
from policysched.framework import MetricAnswer, MetricKey, Sample, Wanted
from policysched.metric_sources.problems import values_of_others
from policysched.metric_sources.table import as_table, load_table
from policysched.metric_sources.table_answers import answers
from policysched.rules.compile.policy import CompiledPolicy
from policysched.state.cluster import Cluster

Measure: TypeAlias = Callable[[Wanted, float], Iterable[MetricAnswer]]
"""Function that returns the answers of a metric source at a time. Units of the time: seconds since 1970."""
Numbers: TypeAlias = Mapping[str, Mapping[str, float]]
NOT_GIVEN = "no metric source; pass metrics="
NO_FLAG = "no metric source; set --metrics-file or --prometheus-url"


def measuring(options: MetricOptions) -> Measure:
    """Return the metric reader that the flags define; without flags, the reader reports a problem for each metric.

    Raises:
        UsageError: a flag or file is invalid.
    """
    options.check()
    if options.file is not None:
        table, name = load_table(options.file), str(options.file)
        return lambda wanted, at: answers(table, wanted, at, name)
    if options.url is not None:
        from policysched.app.running.metric_clients import make_prometheus_source  # noqa: PLC0415 - aiohttp takes 200 ms

        source = make_prometheus_source(options, options.url, SystemClock())
        return lambda wanted, at: _aged(asyncio.run(source.ask(wanted)), at - SystemClock().now().timestamp())
    return lambda wanted, _: (MetricAnswer(key, None, NO_FLAG) for key in wanted)


def _aged(found: Iterable[MetricAnswer], shift: float) -> Iterator[MetricAnswer]:
    """Shift sample times so that values keep their current age in a decision at another time."""
    for answer in found:
        samples = answer.samples
        if samples is not None:
            samples = {node: Sample(one.value, one.at + shift) for node, one in samples.items()}
        yield MetricAnswer(answer.key, samples, answer.problem)


def measure(cluster: Cluster, policies: Iterable[CompiledPolicy], metrics: Numbers | Measure | None) -> tuple[str, ...]:
    """Set the metrics that policies read in a cluster; return the problems of these metrics.

    Raises:
        UsageError: the numbers have another format.
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
        problems[answer.key] = answer.problem or values_of_others(answer.samples or (), cluster.nodes.row_of)
    read = {f"metrics.{item.path[0]}": problems.get(item.metric, "") for _, item in metrics_read(policies)}
    return tuple(f"{name}: {problem}" for name, problem in read.items() if problem)
