"""Flags that several commands share, as single fields and as dataclasses of several flags."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, TypeAlias

import typer

from policysched.cli.flags.base import Flags
from policysched.cli.flags.formats import OutputFormat, TableFormat, TextFormat
from policysched.model.release import DEFAULT
from policysched.model.release_choice import AUTO, KUBE_VERSIONS

Output: TypeAlias = Annotated[
    OutputFormat,
    typer.Option("--output", "-o", help="Output format; wide prints all columns at any width."),
]
ListOutput: TypeAlias = Annotated[TableFormat, typer.Option("--output", "-o", help="Output format.")]
TextOutput: TypeAlias = Annotated[TextFormat, typer.Option("--output", "-o", help="Output format.")]
PoliciesToTry: TypeAlias = Annotated[
    list[str] | None, typer.Option("--policy", metavar="FILE|DIR", help="Policies to add or replace; repeatable.")
]
WithoutPolicy: TypeAlias = Annotated[
    list[str] | None, typer.Option("--without-policy", metavar="NAME", help="Policy to remove; repeatable.")
]
Config: TypeAlias = Annotated[
    str | None, typer.Option("--config", metavar="FILE", help="KubeSchedulerConfiguration file.")
]
ClusterOrLive: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--cluster",
        metavar="FILE|DIR|live",
        help="Objects of the cluster: files, folders, or `live` for the kubeconfig's cluster (default). Repeatable.",
    ),
]
SchedulerName: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--scheduler-name",
        metavar="NAME",
        help=(
            "Evaluate only pods with this schedulerName; default: the profiles of the configuration, else the "
            "schedulerNames of the policies, else all names of the pods. Repeatable."
        ),
    ),
]
ExitCode: TypeAlias = Annotated[bool, typer.Option("--exit-code", help="Exit with 1 if the pod fits no node.")]
Seed: TypeAlias = Annotated[
    int, typer.Option("--seed", help="Seed of the random choice among nodes with equal scores.")
]
Now: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--now",
        metavar="TIME",
        help="Time of the decision, such as 2026-01-05T23:00:00+01:00, or HH:MM of today in UTC; default: now.",
    ),
]
Kubeconfig: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--kubeconfig",
        metavar="FILE",
        exists=True,
        dir_okay=False,
        help="Kubeconfig file; default: the one that kubectl uses.",
    ),
]
Context: TypeAlias = Annotated[
    str | None, typer.Option("--context", metavar="NAME", help="Kubeconfig context; default: the current context.")
]
PrometheusUrl: TypeAlias = Annotated[
    str | None,
    typer.Option(
        "--prometheus-url", metavar="URL", help="URL of the Prometheus server that provides node metrics to policies."
    ),
]
PrometheusToken: TypeAlias = Annotated[
    Path | None,
    typer.Option("--prometheus-token-file", metavar="FILE", help="Bearer token for Prometheus."),
]
PrometheusCa: TypeAlias = Annotated[
    Path | None,
    typer.Option("--prometheus-ca-file", metavar="FILE", help="CA certificate of Prometheus, PEM."),
]
Plugin: TypeAlias = Annotated[
    list[str] | None,
    typer.Option(
        "--plugin",
        metavar="[NAME=]MODULE:FACTORY",
        help="Python plugin that the configuration can enable; MODULE is a module or a .py file. Repeatable.",
    ),
]
MetricsFile: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--metrics-file",
        metavar="FILE",
        help="YAML file with node metrics, in place of Prometheus: `NAME: {NODE: NUMBER}`.",
    ),
]


def complete_kube_version(incomplete: str) -> list[str]:
    """Return the values of `--kube-version` that start with a text."""
    return [one for one in KUBE_VERSIONS if one.startswith(incomplete)]


def kube_version_option(text: str) -> Any:
    """Return the option `--kube-version` of a command, with completion.

    Args:
        text: The help text.
    """
    metavar = "|".join(KUBE_VERSIONS)
    return typer.Option("--kube-version", metavar=metavar, help=text, autocompletion=complete_kube_version)


KubeVersion: TypeAlias = Annotated[
    str,
    kube_version_option(
        f"Kubernetes minor whose kube-scheduler decides; `auto` is that of the live cluster, for files {DEFAULT.minor}."
    ),
]


@dataclass(frozen=True, slots=True, kw_only=True)
class ClusterAccess(Flags):
    """Flags that select the live cluster: kubeconfig and context."""

    kubeconfig: Kubeconfig = None
    context: Context = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MetricSourceFlags(Flags):
    """Flags that select the source of node metrics: a file or a Prometheus server."""

    metrics_file: MetricsFile = None
    prometheus_url: PrometheusUrl = None
    prometheus_token_file: PrometheusToken = None
    prometheus_ca_file: PrometheusCa = None


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationFlags(Flags):
    """Flags of commands that simulate scheduling: Kubernetes version, plugins, time, metrics and live cluster."""

    kube_version: KubeVersion = AUTO
    plugin: Plugin = None
    seed: Seed = 0
    now: Now = None
    metrics: MetricSourceFlags
    access: ClusterAccess
