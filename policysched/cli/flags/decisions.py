"""Flags of the commands that inspect decisions: dry-run, why, plan, record, replay."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated

import typer

from policysched.cli.flags.base import Flags
from policysched.cli.flags.formats import OutputFormat
from policysched.cli.flags.shared import (
    ClusterAccess,
    ClusterOrLive,
    Config,
    EvaluationFlags,
    ExitCode,
    Output,
    Plugin,
    PoliciesToTry,
    SchedulerName,
    WithoutPolicy,
    kube_version_option,
)
from policysched.model.release_choice import AUTO


@dataclass(frozen=True, slots=True, kw_only=True)
class DryRunFlags(Flags):
    """Show where the scheduler would place a pod, and why.

    Prints the selected node, the scores and the rejected nodes. Changes nothing in the cluster.

    If the PodGroup that the pod names is in the file or the cluster, decides about all pods of the file and all pending
    pods of the group, as with --feature-gates=GenericWorkload=true. If the group has a topology constraint, also as
    with TopologyAwareWorkloadScheduling=true; if it has resource claims, as with DRAWorkloadResourceClaims=true.

    Example: `policysched dry-run --cluster live --policy policy.yaml --pod pod.yaml`

    Exit codes: 0 success, whether or not a node fits; 1 a policy has errors, or with --exit-code the pod fits
    no node; 2 a file or a flag is invalid, or a plugin failed.
    """

    pod: Annotated[
        str, typer.Option("--pod", metavar="FILE", help="Pod or workload; FILE#KIND/NAME chooses one of several.")
    ]
    cluster: ClusterOrLive = None
    policy: PoliciesToTry = None
    config: Config = None
    node_template: Annotated[
        list[str] | None,
        typer.Option(
            "--node-template",
            metavar="FILE",
            help="Nodes that do not exist; shows for each whether such a new node would take the pod.",
        ),
    ] = None
    evaluation: EvaluationFlags
    exit_code: ExitCode = False
    output: Output = OutputFormat.TABLE


@dataclass(frozen=True, slots=True, kw_only=True)
class WhyFlags(Flags):
    """Explain why a pod is on its node or pending.

    Also lists changes of the pod, of nodes or of policies that would place a pending pod. Changes nothing in the
    cluster.

    Example: `policysched why team-a/web`

    Exit codes: 0 success; 1 a policy has errors, or with --exit-code the pod fits no node; 2 the pod, the node, a
    file or a flag is invalid, or a plugin failed; 130 interrupted, with partial results.
    """

    pod: Annotated[str, typer.Argument(metavar="POD", help="Pod of the cluster, as [NAMESPACE/]NAME.")]
    node: Annotated[str, typer.Argument(metavar="NODE", help="Node to compare with; default: the best other node.")] = (
        ""
    )
    cluster: ClusterOrLive = None
    namespace: Annotated[
        str, typer.Option("--namespace", "-n", metavar="NAME", help="Namespace of the pod, if POD has none.")
    ] = "default"
    policy: PoliciesToTry = None
    config: Config = None
    scheduler_name: SchedulerName = None
    evaluation: EvaluationFlags
    exit_code: ExitCode = False
    output: Output = OutputFormat.TABLE


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanFlags(Flags):
    """Show how a change affects the pods of a cluster.

    A change can combine policies, the configuration, nodes and replicas. Changes nothing in the cluster.

    Example: `policysched plan --policy policy.yaml --without-node node-7`

    Exit codes: 0 no differences; 1 differences; 2 the change, a file or a flag is invalid, or a plugin failed; 130
    interrupted, with partial results.
    """

    cluster: ClusterOrLive = None
    policy: PoliciesToTry = None
    without_policy: WithoutPolicy = None
    config: Annotated[str | None, typer.Option("--config", metavar="FILE", help="New KubeSchedulerConfiguration.")] = (
        None
    )
    current_config: Annotated[
        str | None,
        typer.Option(
            "--current-config", metavar="FILE", help="Current KubeSchedulerConfiguration; default: the default plugins."
        ),
    ] = None
    nodes: Annotated[
        list[str] | None, typer.Option("--nodes", metavar="FILE", help="Nodes to add or replace; repeatable.")
    ] = None
    without_node: Annotated[
        list[str] | None, typer.Option("--without-node", metavar="NAME", help="Node to remove; repeatable.")
    ] = None
    replicas: Annotated[
        list[str] | None,
        typer.Option(
            "--replicas",
            metavar="WORKLOAD=N",
            help="New number of pods of a workload, such as team-a/train=20; repeatable.",
        ),
    ] = None
    scheduler_name: SchedulerName = None
    evaluation: EvaluationFlags
    output: Output = OutputFormat.TABLE


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordFlags(Flags):
    """Write a snapshot of a cluster to a file.

    Other commands read the file with --cluster. The snapshot has the fields that scheduling reads and no Secrets. Only
    the owner can read the file.

    Example: `policysched record -o cluster.json`

    Exit codes: 0 success; 1 invalid objects were left out; 2 the cluster, a file or a flag is invalid.
    """

    output: Annotated[
        str,
        typer.Option(
            "--output",
            "-o",
            metavar="FILE",
            help="File to write, JSON if it ends with .json, else YAML; - is standard output.",
        ),
    ]
    cluster: ClusterOrLive = None
    policy: Annotated[
        list[str] | None,
        typer.Option(
            "--policy",
            metavar="FILE|DIR",
            help="Policies whose annotations are kept beside those of the cluster's policies; repeatable.",
        ),
    ] = None
    access: ClusterAccess


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplayFlags(Flags):
    """Repeat the decisions of a record and report differences.

    `policysched run --record` writes the record. With --policy, --without-policy, --config or --kube-version, reports
    which decisions the change would have affected.

    Example: `policysched replay /var/lib/policysched --policy policy.yaml`

    Exit codes: 0 no differences; 1 differences; 2 a file, the change or a flag is invalid, or a plugin failed; 130
    interrupted, with partial results.
    """

    files: Annotated[list[Path], typer.Argument(metavar="FILE|DIR", help="Record files, or their folder.")]
    policy: PoliciesToTry = None
    without_policy: WithoutPolicy = None
    config: Annotated[
        str | None,
        typer.Option("--config", metavar="FILE", help="KubeSchedulerConfiguration to use instead of the recorded one."),
    ] = None
    kube_version: Annotated[
        str,
        kube_version_option("Kubernetes minor whose kube-scheduler decides; `auto` is the recorded one."),
    ] = AUTO
    plugin: Plugin = None
    output: Output = OutputFormat.TABLE
