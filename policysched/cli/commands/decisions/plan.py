"""`policysched plan`: shows the effect of a change on the pods of a cluster."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import TYPE_CHECKING, Annotated, TypeAlias

import typer

from policysched.cli.formats import OutputFormat
from policysched.cli.options import (
    ClusterOrLive,
    Context,
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
    WithoutPolicy,
)
from policysched.cli.output import console, say_left_out
from policysched.errors import UsageError

if TYPE_CHECKING:
    from policysched.app.dry_run.inputs import ClusterInputs
    from policysched.app.plan.deciding import Progress


NewConfig: TypeAlias = Annotated[
    str | None, typer.Option("--config", metavar="FILE", help="New KubeSchedulerConfiguration.")
]
CurrentConfig: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--current-config", metavar="FILE", help="Current KubeSchedulerConfiguration; default: the default plugins."
    ),
]
Nodes: TypeAlias = Annotated[
    list[str] | None, typer.Option("--nodes", metavar="FILE", help="Nodes to add or replace; repeatable.")
]
WithoutNode: TypeAlias = Annotated[
    list[str] | None, typer.Option("--without-node", metavar="NAME", help="Node to remove; repeatable.")
]
Replicas: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--replicas",
        metavar="WORKLOAD=N",
        help="New number of pods of a workload, such as team-a/train=20; repeatable.",
    ),
]


def plan(  # noqa: PLR0913, PLR0917 - one parameter a flag
    cluster: ClusterOrLive = None,
    policy: PoliciesToTry = None,
    without_policy: WithoutPolicy = None,
    config: NewConfig = None,
    current_config: CurrentConfig = None,
    nodes: Nodes = None,
    without_node: WithoutNode = None,
    replicas: Replicas = None,
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
    from policysched.app.dry_run.now import read_now  # noqa: PLC0415
    from policysched.app.files.saved_clusters import load_cluster, refuse_twins  # noqa: PLC0415
    from policysched.app.plan.plan import plan as planned  # noqa: PLC0415
    from policysched.app.plugins.discovery import configurable_plugins  # noqa: PLC0415
    from policysched.app.running.metric_options import MetricOptions  # noqa: PLC0415
    from policysched.cli.event_loop import uncollected, wait_for  # noqa: PLC0415
    from policysched.cli.reports import say_plan  # noqa: PLC0415
    from policysched.reading.loading import load_one  # noqa: PLC0415

    known = configurable_plugins(plugin, config or current_config)
    at = read_now(now)
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
            current_config=None if current_config is None else load_one(current_config, "KubeSchedulerConfiguration"),
            nodes=[one.object for one in added],
            without_nodes=without_node or (),
            replicas=wanted,
            scheduler_name=scheduler_name or (),
            seed=seed,
            now=at,
            metrics=measured,
            plugins=known.registry,
            progress=progress,
        )
    return say_plan(told, (*known.problems, *inputs.notes, *node_notes), output, "plan")


def _refuse_broken(inputs: ClusterInputs) -> None:
    """Reject new policies that do not compile, and print all findings."""
    from policysched.cli.reports import refuse_broken  # noqa: PLC0415
    from policysched.reading.documents import metadata_of  # noqa: PLC0415 - as above

    coming = {id(one): one for one in inputs.findings()}
    refuse_broken(coming.values(), {str(metadata_of(one.object).get("name")) for one in inputs.policies})


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
    """Show progress on stderr if it is a terminal."""
    out = console(stderr=True)
    if not out.is_terminal:
        yield lambda _done, _all: None
        return
    with out.status("reading the cluster") as status:
        yield lambda done, everything: status.update(f"{done:,} of {everything:,} pods decided")
