"""`policysched plugins`: which plugins a configuration may enable."""

from __future__ import annotations

from typing import Annotated

import typer

from policysched.cli.options import Plugin, TableFormat
from policysched.cli.output import print_parts, say_error, say_json


def plugins(
    plugin: Plugin = None,
    output: Annotated[TableFormat, typer.Option("--output", "-o", help="How to print it.")] = TableFormat.TABLE,
) -> int:
    """List the plugins that a configuration may enable: the default ones, those of installed packages, --plugin's.

    Exit codes: 0 all of them can be enabled; 1 one cannot, and why is said; 2 a flag cannot be used.
    """
    from policysched.app.plugins.discovery import find_plugins  # noqa: PLC0415 - plugins are not needed for --help
    from policysched.app.plugins.listing import plugin_rows, plugin_table  # noqa: PLC0415

    found = find_plugins(plugin or ())
    rows = list(plugin_rows(found))
    if output is TableFormat.JSON:
        say_json([row.to_dict() for row in rows])
    else:
        print_parts([plugin_table(rows)])
    problems = list(dict.fromkeys([*found.problems, *(row.problem for row in rows if row.problem)]))
    for problem in problems:
        say_error(problem)
    return int(bool(problems))
