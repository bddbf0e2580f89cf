"""`policysched dry-run`: shows where a pod would be placed, and why."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Annotated

import typer

from policysched.cli.formats import OutputFormat
from policysched.cli.options import (
    ClusterOrLive,
    Config,
    Context,
    ExitCode,
    Kubeconfig,
    MetricsFile,
    Now,
    Output,
    Plugin,
    PoliciesToTry,
    PrometheusCa,
    PrometheusToken,
    PrometheusUrl,
    Seed,
)
from policysched.cli.output import FAILED, say_beside, say_left_out, working

if TYPE_CHECKING:
    from policysched.app.dry_run.results import Report


def dry_run(  # noqa: PLR0913, PLR0917 - one parameter a flag
    pod: Annotated[
        str, typer.Option("--pod", metavar="FILE", help="Pod or workload; FILE#KIND/NAME chooses one of several.")
    ],
    cluster: ClusterOrLive = None,
    policy: PoliciesToTry = None,
    config: Config = None,
    plugin: Plugin = None,
    seed: Seed = 0,
    now: Now = None,
    metrics_file: MetricsFile = None,
    prometheus_url: PrometheusUrl = None,
    prometheus_token_file: PrometheusToken = None,
    prometheus_ca_file: PrometheusCa = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    exit_code: ExitCode = False,
    output: Output = OutputFormat.TABLE,
) -> int:
    """Show where the scheduler would place a pod, and why.

    Prints the selected node, the scores and the rejected nodes. Changes nothing in the cluster.

    Example: `policysched dry-run --cluster live --policy policy.yaml --pod pod.yaml`

    Exit codes: 0 success, whether or not a node fits; 1 a policy has errors, or with --exit-code the pod fits
    no node; 2 a file or a flag is invalid, or a plugin failed.
    """
    from policysched.app.dry_run.dry_run import measuring  # noqa: PLC0415
    from policysched.app.dry_run.inputs import LIVE, gather  # noqa: PLC0415
    from policysched.app.dry_run.now import read_now  # noqa: PLC0415
    from policysched.app.plugins.discovery import configurable_plugins  # noqa: PLC0415
    from policysched.app.running.metric_options import MetricOptions  # noqa: PLC0415 - the engine is not needed for --help
    from policysched.cli.event_loop import uncollected, wait_for  # noqa: PLC0415

    known = configurable_plugins(plugin, config)
    at = read_now(now)
    measured = measuring(MetricOptions(prometheus_url, prometheus_token_file, prometheus_ca_file, metrics_file))
    with uncollected(), working("reading the cluster and deciding"):
        inputs = wait_for(
            gather(cluster or [LIVE], pod, policy or (), config=config, kubeconfig=kubeconfig, context=context)
        )
        say_left_out(inputs.cluster.left_out)
        found = inputs.findings()
        report = replace(inputs, metrics=measured, plugins=known.registry).evaluate(found, seed, at)
    say_beside((*known.problems, *inputs.notes, *report.notes, *report.metric_problems), (one.text() for one in found))
    _print(report, output)
    if report.result == "Error":
        return FAILED
    return int(any(one.is_error for one in found) or (exit_code and not report.selected))


def _print(report: Report, output: OutputFormat) -> None:
    from policysched.app.dry_run.tables import decision_parts  # noqa: PLC0415 - as above
    from policysched.cli.reports import say_report  # noqa: PLC0415

    told = report.to_dict()
    say_report(told, decision_parts(told), output, "DryRun", f"dry-run {told['pod']}")
