"""Reading of the inputs that dry-run, why and plan share besides the cluster: plugins, time and metrics."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from policysched.app.dry_run.metrics import Measure, measuring
from policysched.app.dry_run.now import read_now
from policysched.app.plugins.discovery import FoundPlugins, configurable_plugins
from policysched.app.running.metric_options import MetricOptions
from policysched.cli.flags.shared import EvaluationFlags, MetricSourceFlags


class EvaluationInputs(NamedTuple):
    """Inputs of a simulated decision besides Kubernetes objects: plugins, time and metrics."""

    plugins: FoundPlugins
    now: datetime | None
    metrics: Measure


def prepare(flags: EvaluationFlags, config: str | None) -> EvaluationInputs:
    """Return the plugins, the time and the source of metrics that the flags name.

    Raises:
        UsageError: a flag or a file is invalid.
    """
    known = configurable_plugins(flags.plugin, config)
    return EvaluationInputs(known, read_now(flags.now), measuring(_metric_options(flags.metrics)))


def _metric_options(flags: MetricSourceFlags) -> MetricOptions:
    return MetricOptions(
        flags.prometheus_url, flags.prometheus_token_file, flags.prometheus_ca_file, flags.metrics_file
    )
