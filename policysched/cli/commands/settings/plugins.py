"""`policysched plugins`: list the plugins that a configuration can enable."""

from __future__ import annotations

import time

from policysched.app.plugins.discovery import find_plugins
from policysched.app.plugins.listing import plugin_rows, plugin_table
from policysched.app.plugins.measuring import measured_times
from policysched.cli.flags.formats import TableFormat
from policysched.cli.flags.settings import PluginsFlags
from policysched.cli.formats import print_document
from policysched.cli.output import print_error
from policysched.cli.rich_output import print_parts, working
from policysched.errors import UsageError
from policysched.framework.registry import PluginRegistry
from policysched.model.release import Release
from policysched.model.release_choice import release_named
from policysched.reading.files import read_text


def plugins(flags: PluginsFlags) -> int:
    """Print the plugins; return the exit code."""
    output = flags.output
    release = release_named(flags.kube_version)
    found = find_plugins(flags.plugin or ())
    rows = list(plugin_rows(found, release, _prices(flags, found.registry, release)))
    if output.is_value:
        print_document("Plugin", [row.to_dict() for row in rows], output)
    else:
        print_parts([plugin_table(rows)], wide=output is TableFormat.WIDE)
    problems = list(dict.fromkeys([*found.problems, *(row.problem for row in rows if row.problem)]))
    for problem in problems:
        print_error(problem)
    return int(bool(problems))


def _prices(flags: PluginsFlags, registry: PluginRegistry, release: Release) -> dict[str, float]:
    config, nodes = flags.config, flags.measure
    if (config is None) != (nodes is None):
        raise UsageError("--measure needs --config, and --config needs --measure")
    if config is None or nodes is None:
        return {}
    with working("measuring"):
        return measured_times(read_text(config), registry, nodes, time.thread_time, release)
