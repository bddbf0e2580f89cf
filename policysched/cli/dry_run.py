"""`policysched dry-run`: where a pod would go, and why."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from policysched.app.check import Finding, check_documents, findings
from policysched.app.dry_run import dry_run as evaluate
from policysched.app.files import Document, Object, load
from policysched.app.live import read_cluster
from policysched.app.tables import decision_parts
from policysched.app.templates import pod_of
from policysched.cli.options import Context, Kubeconfig, TableFormat
from policysched.cli.output import print_parts
from policysched.errors import UsageError
from policysched.model.decode import ObjectError
from policysched.model.policy import KIND

LIVE = "live"


def dry_run(
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
    kubeconfig: Kubeconfig = None,
    context: Context = None,
    output: Annotated[TableFormat, typer.Option("--output", "-o", help="How to print it.")] = TableFormat.TABLE,
) -> int:
    """Say where a pod would go and why; nothing is changed.

    Exit codes: 0 the decision was made, whatever it is, 1 a policy has errors and took no part, 2 a file or a flag
    cannot be used.
    """
    documents, objects = _cluster(cluster, kubeconfig, context)
    wanted = pod_of(load([pod]), pod)
    tried = load(policy or [])
    _only_policies(tried)
    found = _check(objects, documents, tried)
    try:
        report = evaluate(
            objects, wanted.object, [one.object for one in tried], config=_config(config), seed=seed
        )
    except ObjectError as error:
        raise _located(error, [wanted, *documents, *tried]) from error
    for note in (*([wanted.note] if wanted.note else ()), *(one.text() + "\n" for one in found)):
        typer.echo(note, err=True)
    if output is TableFormat.JSON:
        typer.echo(json.dumps(report.to_dict(), indent=2, ensure_ascii=False))
    else:
        print_parts(decision_parts(report.to_dict()))
    return int(any(one.is_error for one in found))
