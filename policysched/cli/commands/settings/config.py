"""`policysched config`: prints a completed KubeSchedulerConfiguration, or all its errors."""

from __future__ import annotations

from typing import Annotated

import typer

from policysched.cli.formats import TableFormat, TextFormat, say_document
from policysched.cli.options import CommandGroup, ListOutput, OnceCommand, Plugin, TextOutput
from policysched.cli.output import count, say, say_json, say_lines

config = typer.Typer(name="config", help="Show or check scheduler configurations.", cls=CommandGroup)


@config.command("view", cls=OnceCommand)
def view(
    file: Annotated[str, typer.Option("--config", metavar="FILE", help="KubeSchedulerConfiguration file.")],
    plugin: Plugin = None,
    output: TextOutput = TextFormat.YAML,
) -> int:
    """Print a configuration with all defaults, as the scheduler uses it.

    Exit codes: 0 success; 2 the configuration, a file or a flag is invalid.
    """
    from policysched.app.configuration.files import read_file  # noqa: PLC0415 - the engine is not needed for --help
    from policysched.app.configuration.printing import to_dict, to_yaml  # noqa: PLC0415
    from policysched.app.plugins.discovery import find_plugins  # noqa: PLC0415

    completed = read_file(file, find_plugins(plugin or ()).registry).completed
    if output is TextFormat.JSON:
        say_json(to_dict(completed))
    else:
        say_lines(to_yaml(completed), commands=True)
    return 0


@config.command("check", cls=OnceCommand)
def check(
    files: Annotated[list[str], typer.Argument(metavar="FILE", help="Files, folders, or - for standard input.")],
    plugin: Plugin = None,
    output: ListOutput = TableFormat.TABLE,
) -> int:
    """Check configurations for everything that kube-scheduler rejects.

    Exit codes: 0 no errors; 1 errors in a configuration; 2 a file or a flag is invalid.
    """
    from policysched.app.configuration.files import check_files  # noqa: PLC0415 - as above
    from policysched.app.plugins.discovery import find_plugins  # noqa: PLC0415

    found = check_files(files, find_plugins(plugin or ()).registry)
    if output.is_value:
        say_document("ConfigurationError", [one.to_dict() for one in found.faults], output)
    else:
        for one in found.faults:
            say(str(one))
        say(f"{count(found.configurations, 'configuration')}: {count(len(found.faults), 'error')}")
    return int(bool(found.faults))
