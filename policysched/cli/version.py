"""`policysched version`."""

from __future__ import annotations

import platform

import typer

import policysched


def version() -> None:
    """Print the version."""
    typer.echo(f"policysched {policysched.__version__} (Python {platform.python_version()})")
