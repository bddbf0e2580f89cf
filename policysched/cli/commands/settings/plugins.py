"""`policysched plugins`: lists the plugins that a configuration can enable."""

from __future__ import annotations

import time
from typing import TYPE_CHECKING, Annotated

import typer

from policysched.cli.formats import TableFormat, say_document
from policysched.cli.options import ListOutput, Plugin
from policysched.cli.output import print_parts, say_error, working
from policysched.errors import UsageError

if TYPE_CHECKING:
    from policysched.framework.registry import PluginRegistry


def plugins(
    plugin: Plugin = None,
    config: Annotated[
        str | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="KubeSchedulerConfiguration with the plugins to measure.",
        ),
    ] = None,
    measure: Annotated[
        int | None,
        typer.Option(
            "--measure",
            metavar="NODES",
            min=1,
            max=50_000,
            help="Measure the CPU time per decision on this number of nodes.",
        ),
    ] = None,
    output: ListOutput = TableFormat.TABLE,
) -> int:
    """List the plugins that a configuration can enable.

    Lists the default plugins, the plugins of installed packages, and those of --plugin. With --config and --measure,
    also prints the CPU time of the plugins that the configuration enables.

    Exit codes: 0 all plugins can be enabled; 1 a plugin cannot be enabled; 2 a flag is invalid.
    """
    from policysched.app.plugins.discovery import find_plugins  # noqa: PLC0415 - plugins are not needed for --help
    from policysched.app.plugins.listing import plugin_rows, plugin_table  # noqa: PLC0415

    found = find_plugins(plugin or ())
    rows = list(plugin_rows(found, _prices(config, measure, found.registry)))
    if output.is_value:
        say_document("Plugin", [row.to_dict() for row in rows], output)
    else:
        print_parts([plugin_table(rows)], wide=output is TableFormat.WIDE)
    problems = list(dict.fromkeys([*found.problems, *(row.problem for row in rows if row.problem)]))
    for problem in problems:
        say_error(problem)
    return int(bool(problems))


def _prices(config: str | None, nodes: int | None, registry: PluginRegistry) -> dict[str, float]:
    if (config is None) != (nodes is None):
        raise UsageError("--measure needs --config, and --config needs --measure")
    if config is None or nodes is None:
        return {}
    from policysched.app.plugins.measuring import measured_times  # noqa: PLC0415 - as above
    from policysched.reading.files import read_text  # noqa: PLC0415 - as above

    with working("measuring"):
        return measured_times(read_text(config), registry, nodes, time.thread_time)
