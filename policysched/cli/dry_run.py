"""`policysched dry-run`: where a pod would go, and why."""

from __future__ import annotations

from dataclasses import replace
from typing import Annotated

import typer

from policysched.cli.options import (
    Context,
    Kubeconfig,
    MetricsFile,
    PrometheusCa,
    PrometheusToken,
    PrometheusUrl,
    TableFormat,
)
from policysched.cli.output import print_finding, print_parts, say, say_json, working


def dry_run(  # noqa: PLR0913, PLR0917 - one parameter a flag
    cluster: Annotated[
        list[str],
        typer.Option("--cluster", metavar="FILE|DIR|live", help="The cluster's objects, or live; may be repeated."),
    ],
    pod: Annotated[str, typer.Option("--pod", metavar="FILE", help="A pod, or a workload with a pod template.")],
    policy: Annotated[
        list[str] | None, typer.Option("--policy", metavar="FILE", help="Policies to try; may be repeated.")
    ] = None,
    config: Annotated[
        str | None, typer.Option("--config", metavar="FILE", help="A KubeSchedulerConfiguration.")
    ] = None,
    seed: Annotated[int | None, typer.Option("--seed", help="Draws among equally good nodes.")] = None,
    metrics_file: MetricsFile = None,
    prometheus_url: PrometheusUrl = None,
    prometheus_token_file: PrometheusToken = None,
    prometheus_ca_file: PrometheusCa = None,
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    output: Annotated[TableFormat, typer.Option("--output", "-o", help="How to print it.")] = TableFormat.TABLE,
) -> int:
    """Say where a pod would go and why; nothing is changed.

    Exit codes: 0 there is an answer, whatever it is; 1 a policy has errors and took no part; 2 a file or a flag cannot
    be used.
    """
    from policysched.app.feed import MetricOptions  # noqa: PLC0415 - the engine is not needed for --help
    from policysched.app.inputs import gather  # noqa: PLC0415
    from policysched.app.measure import measuring  # noqa: PLC0415
    from policysched.app.tables import decision_parts  # noqa: PLC0415
    from policysched.cli.waiting import uncollected, wait_for  # noqa: PLC0415

    measured = measuring(MetricOptions(prometheus_url, prometheus_token_file, prometheus_ca_file, metrics_file))
    with uncollected(), working("reading the cluster and deciding"):
        inputs = wait_for(gather(cluster, pod, policy or (), config=config, kubeconfig=kubeconfig, context=context))
        found = inputs.findings()
        report = replace(inputs, metrics=measured).evaluate(found, seed)
    record = report.to_dict()
    for note in (inputs.wanted.note, *(f"note: {one}" for one in (*report.notes, *report.metric_problems))):
        if note:
            say(note, stderr=True)
    for one in found:
        print_finding(one.text(), stderr=True)
    if output is TableFormat.JSON:
        say_json(record)
    else:
        print_parts(decision_parts(record))
    return int(any(one.is_error for one in found))
