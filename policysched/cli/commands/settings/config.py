"""`policysched config`: print a KubeSchedulerConfiguration with its defaults, and find errors of configurations."""

from __future__ import annotations

from policysched.app.configuration.files import check_files, read_file
from policysched.app.configuration.printing import to_dict, to_yaml
from policysched.app.plugins.discovery import find_plugins
from policysched.cli.flags.formats import TextFormat
from policysched.cli.flags.settings import ConfigCheckFlags, ConfigViewFlags
from policysched.cli.formats import print_document
from policysched.cli.output import count, print_json, print_lines, print_text


def view(flags: ConfigViewFlags) -> int:
    """Print a configuration with all defaults; return the exit code."""
    completed = read_file(flags.config, find_plugins(flags.plugin or ()).registry, flags.kube_version).completed
    if flags.output is TextFormat.JSON:
        print_json(to_dict(completed))
    else:
        print_lines(to_yaml(completed), commands=True)
    return 0


def check(flags: ConfigCheckFlags) -> int:
    """Print the errors of configurations; return the exit code."""
    found = check_files(flags.files, find_plugins(flags.plugin or ()).registry, flags.kube_version)
    if flags.output.is_value:
        print_document("ConfigurationError", [one.to_dict() for one in found.faults], flags.output)
    else:
        for one in found.faults:
            print_text(str(one))
        print_text(f"{count(found.configurations, 'configuration')}: {count(len(found.faults), 'error')}")
    return int(bool(found.faults))
