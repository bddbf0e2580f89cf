"""Options that several subcommands share."""

from __future__ import annotations

import enum
from pathlib import Path
from typing import Annotated, TypeAlias

import typer


class TextFormat(enum.StrEnum):
    """How findings are printed."""

    TEXT = "text"
    JSON = "json"


class TableFormat(enum.StrEnum):
    """How a decision is printed."""

    TABLE = "table"
    JSON = "json"


Kubeconfig: TypeAlias = Annotated[
    Path | None,
    typer.Option(
        "--kubeconfig",
        metavar="FILE",
        exists=True,
        dir_okay=False,
        help="The kubeconfig; absent, the one kubectl would use.",
    ),
]
Context: TypeAlias = Annotated[
    str | None, typer.Option("--context", metavar="NAME", help="The kubeconfig's context; absent, its current one.")
]
PrometheusUrl: TypeAlias = Annotated[
    str | None,
    typer.Option("--prometheus-url", metavar="URL", help="The Prometheus server that policies' metrics are asked of."),
]
PrometheusToken: TypeAlias = Annotated[
    Path | None,
    typer.Option("--prometheus-token-file", metavar="FILE", help="A bearer token for it; it may rotate."),
]
PrometheusCa: TypeAlias = Annotated[
    Path | None,
    typer.Option("--prometheus-ca-file", metavar="FILE", help="The authority of its certificate, in PEM form."),
]
MetricsFile: TypeAlias = Annotated[
    Path | None,
    typer.Option("--metrics-file", metavar="FILE", help="Metrics from a file instead: NAME: {NODE: NUMBER}."),
]
