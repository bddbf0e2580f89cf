"""`policysched plan`: what a change would do to the pods of a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, Any

import typer

from policysched.cli.formats import OutputFormat
from policysched.cli.options import (
    ClusterOrLive,
    Context,
    Kubeconfig,
    MetricsFile,
    Output,
    Plugin,
    PrometheusCa,
    PrometheusToken,
    PrometheusUrl,
    SchedulerName,
    Seed,
    WithoutPolicy,
)
from policysched.cli.output import FAILED, INTERRUPTED, console, print_finding, say, say_left_out
from policysched.errors import UsageError

if TYPE_CHECKING:
    from policysched.app.dry_run.inputs import ClusterInputs
    from policysched.app.plan.deciding import Progress


def plan(  # noqa: PLR0913, PLR0917 - one parameter a flag
    cluster: ClusterOrLive = None,
    policy: Annotated[
        list[str] | None, typer.Option("--policy", metavar="FILE|DIR", help="Policies to add or replace; repeatable.")
    ] = None,
    without_policy: WithoutPolicy = None,
    config: Annotated[
        str | None, typer.Option("--config", metavar="FILE", help="New KubeSchedulerConfiguration.")
    ] = None,
    current_config: Annotated[
        str | None,
        typer.Option(
            "--current-config", metavar="FILE", help="Current KubeSchedulerConfiguration; default: the default plugins."
        ),
    ] = None,
    nodes: Annotated[
        list[str] | None, typer.Option("--nodes", metavar="FILE", help="Nodes to add or replace; repeatable.")
    ] = None,
    without_node: Annotated[
        list[str] | None, typer.Option("--without-node", metavar="NAME", help="Node to remove; repeatable.")
    ] = None,
    replicas: Annotated[
        list[str] | None,
        typer.Option(
            "--replicas",
            metavar="WORKLOAD=N",
            help="New number of pods of a workload, such as team-a/train=20; repeatable.",
        ),
    ] = None,
    scheduler_name: SchedulerName = None,
    plugin: Plugin = None,
    seed: Seed = 0,
    metrics_file: MetricsFile = None,
    prometheus_url: PrometheusUrl = None,
    prometheus_token_file: PrometheusToken = None,
    prometheus_ca_file: PrometheusCa = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    output: Output = OutputFormat.TABLE,
) -> int:
    """Show how a change affects the pods of a cluster.

    A change can combine policies, the configuration, nodes and replicas. Changes nothing in the cluster.

    Example: `policysched plan --policy policy.yaml --without-node node-7`

    Exit codes: 0 no differences; 1 differences; 2 the change, a file or a flag is invalid, or a plugin failed; 130
    interrupted, with partial results.
    """
    from policysched.app.dry_run.dry_run import measuring  # noqa: PLC0415 - the engine is not needed for --help
    from policysched.app.dry_run.inputs import LIVE, gather_cluster  # noqa: PLC0415
    from policysched.app.files.saved_clusters import load_cluster, refuse_twins  # noqa: PLC0415
    from policysched.app.plan.plan import plan as planned  # noqa: PLC0415
    from policysched.app.plan.tables import plan_parts  # noqa: PLC0415
    from policysched.app.plugins.discovery import configurable_plugins  # noqa: PLC0415
    from policysched.app.running.metric_options import MetricOptions  # noqa: PLC0415
    from policysched.cli.event_loop import uncollected, wait_for  # noqa: PLC0415
    from policysched.cli.reports import say_report  # noqa: PLC0415

    known = configurable_plugins(plugin, config or current_config)
    measured = measuring(MetricOptions(prometheus_url, prometheus_token_file, prometheus_ca_file, metrics_file))
    wanted = _replicas(replicas or ())
    with uncollected(), _telling() as progress:
        read = gather_cluster(cluster or [LIVE], policy or (), config=config, kubeconfig=kubeconfig, context=context)
        inputs = wait_for(read)
        say_left_out(inputs.left_out)
        _refuse_broken(inputs)
        node_notes: list[str] = []
        added = load_cluster(nodes or (), node_notes)
        refuse_twins(added)
        told = planned(
            inputs.objects,
            policies=[one.object for one in inputs.policies],
            without_policies=without_policy or (),
            config=inputs.config,
            current_config=None if current_config is None else _one(current_config),
            nodes=[one.object for one in added],
            without_nodes=without_node or (),
            replicas=wanted,
            scheduler_name=scheduler_name or (),
            seed=seed,
            metrics=measured,
            plugins=known.registry,
            progress=progress,
        )
    for note in (*known.problems, *inputs.notes, *node_notes, *told.notes):
        say(f"note: {note}", stderr=True)
    say_report(told.to_dict(), plan_parts(told), output, "Plan", "plan")
    if told.interrupted:
        return INTERRUPTED
    return FAILED if told.failed else int(told.changes)


def _one(file: str) -> Any:
    from policysched.app.files.loading import load  # noqa: PLC0415 - as above

    documents = load([file])
    if len(documents) != 1:
        raise UsageError(f"{file}: expected one KubeSchedulerConfiguration, got {len(documents)} objects")
    return documents[0]


def _refuse_broken(inputs: ClusterInputs) -> None:
    """Refuse policies to come that do not compile; print what is wrong with all."""
    from policysched.app.files.objects import metadata_of  # noqa: PLC0415 - as above

    coming = {id(one): one for one in inputs.findings()}
    tried = {str(metadata_of(one.object).get("name")) for one in inputs.policies}
    for one in coming.values():
        print_finding(one.text(), stderr=True)
    broken = sorted({str(one.policy) for one in coming.values() if one.is_error and one.policy in tried})
    if broken:
        raise UsageError(_do_not_compile(broken))


def _do_not_compile(policies: list[str]) -> str:
    return (
        f"policy {policies[0]} does not compile"
        if len(policies) == 1
        else f"policies {', '.join(policies)} do not compile"
    )


def _replicas(given: list[str] | tuple[()]) -> Mapping[str, int]:
    made = {}
    for text in given:
        name, sign, number = text.rpartition("=")
        if not sign or not name or not number.isdecimal():
            raise UsageError(f'--replicas "{text}" is not WORKLOAD=N, such as team-a/train=20')
        made[name] = int(number)
    return made


@contextmanager
def _telling() -> Iterator[Progress]:
    """Show on stderr how far it is, where that is a terminal."""
    out = console(stderr=True)
    if not out.is_terminal:
        yield lambda _done, _all: None
        return
    with out.status("reading the cluster") as status:
        yield lambda done, everything: status.update(f"{done:,} of {everything:,} pods decided")
