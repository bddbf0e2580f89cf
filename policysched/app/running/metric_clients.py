"""Create the source of node metrics from the flags: a file, a Prometheus server, or none."""

from __future__ import annotations

import logging

from policysched.app.running.metric_options import MetricOptions
from policysched.framework import Clock, MetricSource
from policysched.metric_sources.counters import SourceCounters
from policysched.metric_sources.file import FileSource
from policysched.metric_sources.no_source import NoSource
from policysched.metric_sources.prometheus import PrometheusSource
from policysched.metric_sources.prometheus_http import PrometheusClient, ServerSettings

log = logging.getLogger(__name__)


def make_source(options: MetricOptions, clock: Clock, counters: SourceCounters) -> MetricSource:
    """Return the source of metrics that the flags name.

    Raises:
        UsageError: a flag or a file is invalid.
    """
    options.check()
    if options.file is not None:
        return FileSource(options.file, clock, counters, interval=options.interval)
    if options.url is not None:
        return make_prometheus_source(options, options.url, clock, counters)
    return NoSource()


def make_prometheus_source(
    options: MetricOptions, url: str, clock: Clock, counters: SourceCounters | None = None
) -> PrometheusSource:
    """Return the source of a Prometheus server.

    Raises:
        UsageError: a flag or a file is invalid.
    """
    client = PrometheusClient(ServerSettings(url, options.token_file, options.ca_file))
    if options.token_file is not None and client.url.startswith("http:"):
        log.warning("metrics: the token of --prometheus-token-file is sent to %s unencrypted", client.url)
    return PrometheusSource(client, clock, counters or SourceCounters(), interval=options.interval)
