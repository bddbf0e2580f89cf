"""`policysched plugin new`: begin a plugin of one's own."""

from __future__ import annotations

from pathlib import Path
from typing import Annotated

import typer

from policysched.cli.options import OnceCommand
from policysched.cli.output import say

new_plugin = typer.Typer(no_args_is_help=True, help="Begin a plugin.")


@new_plugin.callback()
def plugin() -> None:
    """Begin a plugin of your own."""


@new_plugin.command(cls=OnceCommand)
def new(
    name: Annotated[str, typer.Argument(metavar="NAME", help="Its name, as configurations will have it.")],
    points: Annotated[
        str, typer.Option("--points", metavar="POINT,...", help="Where it acts, by kube-scheduler's names.")
    ] = "filter,score",
    parent: Annotated[
        Path, typer.Option("--in", metavar="DIR", file_okay=False, help="Where its folder is made.")
    ] = Path(),
) -> int:
    """Write the package of a plugin: a module, its test, a configuration, a README; and say what to do next."""
    from policysched.app.plugins.package import new_package  # noqa: PLC0415 - plugins are not needed for --help

    made = new_package(name, (one.strip() for one in points.split(",") if one.strip()), parent)
    say(f"{made.folder}: {', '.join(made.files)}")
    say("Next:")
    for step in made.next_steps:
        say(f"  {step}")
    return 0
