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
