"""Prometheus metrics about metric sources, for the process's /metrics."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Histogram

from policysched.metric_sources.problems import DropReason, QueryOutcome


class SourceCounters:
    """Counts refreshes and dropped series of metric sources, for the process's /metrics."""

    def __init__(self, registry: CollectorRegistry | None = None) -> None:
        self._refreshes = Counter(
            "policysched_metric_refreshes",
            "Refreshes of metrics that policies read, by outcome.",
            ["outcome"],
            registry=registry,
        )
        self._dropped = Counter(
            "policysched_metric_series_dropped",
            "Series in answers that gave no node a value, by reason.",
            ["reason"],
            registry=registry,
        )
        self._seconds = Histogram(
            "policysched_metric_refresh_duration_seconds",
            "Duration of metric refreshes in seconds, successful or not.",
            registry=registry,
        )
        for outcome in QueryOutcome:
            self._refreshes.labels(outcome.value)
        for reason in DropReason:
            self._dropped.labels(reason.value)

    def refreshed(self, outcome: QueryOutcome, seconds: float) -> None:
        """Count a refresh of a query's values by outcome, and its duration."""
        self._refreshes.labels(outcome.value).inc()
        self._seconds.observe(seconds)

    def dropped(self, reason: DropReason, count: int) -> None:
        """Count dropped series, from which no node gets a value, by the reason for dropping them."""
        if count:
            self._dropped.labels(reason.value).inc(count)
