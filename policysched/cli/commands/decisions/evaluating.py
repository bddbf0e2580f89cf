"""Reading of the inputs that dry-run, why and plan share: plugins, time, metrics and the cluster."""

from __future__ import annotations

from datetime import datetime
from typing import NamedTuple

from policysched.app.dry_run.dry_run import Measure, measuring
from policysched.app.dry_run.inputs import LIVE, ClusterInputs, gather_cluster
from policysched.app.dry_run.now import read_now
from policysched.app.plugins.discovery import FoundPlugins, configurable_plugins
from policysched.app.running.metric_options import MetricOptions
from policysched.cli.event_loop import wait_for
from policysched.cli.flags.decisions import PlanFlags, WhyFlags
from policysched.cli.flags.shared import EvaluationFlags, MetricSourceFlags
from policysched.cli.output import print_left_out


class EvaluationInputs(NamedTuple):
    """Inputs of a dry-run besides the objects: plugins, time and metrics."""

    plugins: FoundPlugins
    now: datetime | None
    metrics: Measure


def prepare(flags: EvaluationFlags, config: str | None) -> EvaluationInputs:
    """Find the plugins, the time and the metrics that flags name.

    Raises:
        UsageError: a flag or a file is invalid.
    """
    known = configurable_plugins(flags.plugin, config)
    return EvaluationInputs(known, read_now(flags.now), measuring(_metric_options(flags.metrics)))


def read_cluster(flags: PlanFlags | WhyFlags) -> ClusterInputs:
    """Read the cluster, policies and configuration that flags name; print the objects that are left out.

    Raises:
        PolicyschedError: an input cannot be used.
    """
    access = flags.evaluation.access
    gathering = gather_cluster(
        flags.cluster or [LIVE],
        flags.policy or (),
        config=flags.config,
        kubeconfig=access.kubeconfig,
        context=access.context,
        kube_version=flags.evaluation.kube_version,
    )
    inputs = wait_for(gathering)
    print_left_out(inputs.left_out)
    return inputs


def _metric_options(flags: MetricSourceFlags) -> MetricOptions:
    return MetricOptions(
        flags.prometheus_url, flags.prometheus_token_file, flags.prometheus_ca_file, flags.metrics_file
    )
