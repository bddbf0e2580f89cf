"""`policysched why`: explains why a pod is on its node or pending, and what would change that."""

from __future__ import annotations

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
    SchedulerName,
    Seed,
)
from policysched.cli.output import FAILED, INTERRUPTED, say_beside, say_left_out, working

if TYPE_CHECKING:
    from policysched.app.why.results import Explanation


def why(  # noqa: PLR0913, PLR0917 - one parameter a flag
    pod: Annotated[str, typer.Argument(metavar="POD", help="Pod of the cluster, as [NAMESPACE/]NAME.")],
    node: Annotated[
        str, typer.Argument(metavar="NODE", help="Node to compare with; default: the best other node.")
    ] = "",
    cluster: ClusterOrLive = None,
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", metavar="NAME", help="Namespace of the pod, if POD has none.")
    ] = "default",
    policy: PoliciesToTry = None,
    config: Config = None,
    scheduler_name: SchedulerName = None,
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
    """Explain why a pod is on its node or pending.

    Also lists changes of the pod, of nodes or of policies that would place a pending pod. Changes nothing in the
    cluster.

    Example: `policysched why team-a/web`

    Exit codes: 0 success; 1 a policy has errors, or with --exit-code the pod fits no node; 2 the pod, the node, a
    file or a flag is invalid, or a plugin failed; 130 interrupted, with partial results.
    """
    from policysched.app.dry_run.dry_run import measuring  # noqa: PLC0415 - the engine is not needed for --help
    from policysched.app.dry_run.inputs import LIVE, gather_cluster  # noqa: PLC0415
    from policysched.app.dry_run.now import read_now  # noqa: PLC0415
    from policysched.app.plugins.discovery import configurable_plugins  # noqa: PLC0415
    from policysched.app.running.metric_options import MetricOptions  # noqa: PLC0415
    from policysched.app.why.inputs import explain  # noqa: PLC0415
    from policysched.cli.event_loop import uncollected, wait_for  # noqa: PLC0415

    known = configurable_plugins(plugin, config)
    at = read_now(now)
    measured = measuring(MetricOptions(prometheus_url, prometheus_token_file, prometheus_ca_file, metrics_file))
    with uncollected(), working("reading and evaluating the cluster"):
        read = gather_cluster(cluster or [LIVE], policy or (), config=config, kubeconfig=kubeconfig, context=context)
        inputs = wait_for(read)
        say_left_out(inputs.left_out)
        found = inputs.findings()
        asked = pod if "/" in pod else f"{namespace}/{pod}"
        told = explain(
            inputs, found, asked, node,
            scheduler_name=scheduler_name or (), seed=seed, now=at, metrics=measured, plugins=known.registry,
        )  # fmt: skip
    say_beside((*known.problems, *told.notes), (one.text() for one in found))
    _print(told, output)
    if told.interrupted:
        return INTERRUPTED
    if told.state == "Error":
        return FAILED
    fits_nowhere = exit_code and told.state == "Unschedulable"
    return int(any(one.is_error for one in found) or fits_nowhere)


def _print(told: Explanation, output: OutputFormat) -> None:
    from policysched.app.why.tables import explanation_parts  # noqa: PLC0415 - as above
    from policysched.cli.reports import say_report  # noqa: PLC0415

    say_report(told.to_dict(), explanation_parts(told), output, "Explanation", f"why {told.pod}")
