"""`policysched plugin new`: creates the package of a new plugin."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from policysched.cli.options import CommandGroup, OnceCommand
from policysched.cli.output import say

new_plugin = typer.Typer(cls=CommandGroup, help="Create a plugin.")


@new_plugin.callback()
def plugin() -> None:
    """Create a plugin."""


@new_plugin.command(cls=OnceCommand)
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Name of the plugin in configurations.")],
    points: Annotated[
        str,
        typer.Option(
            "--points", metavar="POINT,...", help="Extension points to implement, such as preFilter, filter or score."
        ),
    ] = "filter,score",
    parent: Annotated[
        Path,
        typer.Option(
            "--in",
            metavar="DIR",
            file_okay=False,
            help="Folder in which to create the package folder; default: the current folder.",
        ),
    ] = Path(),
) -> int:
    """Create the Python package of a plugin.

    The package has a module, a test, a configuration and a README. The command prints the next steps.

    Exit codes: 0 success; 2 the name, a point or the folder is invalid.
    """
    from policysched.app.plugins.package import new_package  # noqa: PLC0415 - plugins are not needed for --help

    made = new_package(name, (one.strip() for one in points.split(",") if one.strip()), parent)
    say(f"{made.folder}: {', '.join(made.files)}")
    say("Next:")
    for step in made.next_steps:
        say(f"  {step}")
    return 0
