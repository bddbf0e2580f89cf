"""`policysched plugins`: which plugins a configuration may enable."""

from __future__ import annotations

import time
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from policysched.cli.options import Plugin, TableFormat
from policysched.cli.output import print_parts, say_error, say_json, working
from policysched.errors import UsageError

if TYPE_CHECKING:
    from policysched.framework.registry import PluginRegistry


def plugins(
    plugin: Plugin = None,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config", metavar="FILE", exists=True, dir_okay=False, help="What enables those to be measured."
        ),
    ] = None,
    measure: Annotated[
        int | None,
        typer.Option("--measure", metavar="NODES", min=1, max=50_000, help="Say what they take in a decision."),
    ] = None,
    output: Annotated[TableFormat, typer.Option("--output", "-o", help="How to print it.")] = TableFormat.TABLE,
) -> int:
    """List the plugins that a configuration may enable: the default ones, those of installed packages, --plugin's.

    With --config and --measure it also says what those cost that the configuration enables, on so many nodes.

    Exit codes: 0 all of them can be enabled; 1 one cannot, and why is said; 2 a flag cannot be used.
    """
    from policysched.app.plugins.discovery import find_plugins  # noqa: PLC0415 - plugins are not needed for --help
    from policysched.app.plugins.listing import plugin_rows, plugin_table  # noqa: PLC0415

    found = find_plugins(plugin or ())
    rows = list(plugin_rows(found, _prices(config, measure, found.registry)))
    if output is TableFormat.JSON:
        say_json([row.to_dict() for row in rows])
    else:
        print_parts([plugin_table(rows)])
    problems = list(dict.fromkeys([*found.problems, *(row.problem for row in rows if row.problem)]))
    for problem in problems:
        say_error(problem)
    return int(bool(problems))


def _prices(config: Path | None, nodes: int | None, registry: PluginRegistry) -> dict[str, float]:
    if (config is None) != (nodes is None):
        raise UsageError("--config and --measure belong together: plugins are measured as a configuration enables them")
    if config is None or nodes is None:
        return {}
    from policysched.app.plugins.measuring import measured_times  # noqa: PLC0415 - as above

    with working("measuring"):
        return measured_times(config.read_text("utf-8"), registry, nodes, time.thread_time)
