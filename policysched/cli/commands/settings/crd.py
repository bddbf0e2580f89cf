"""`policysched crd`: print the CustomResourceDefinition of SchedulingPolicy."""

from __future__ import annotations

from policysched.app.definition import definition_text
from policysched.cli.flags.formats import TextFormat
from policysched.cli.flags.settings import CrdFlags
from policysched.cli.output import print_json, print_lines
from policysched.reading import bounded_yaml


def crd(flags: CrdFlags) -> int:
    """Print the CustomResourceDefinition; return the exit code."""
    text = definition_text()
    if flags.output is TextFormat.JSON:
        print_json(bounded_yaml.load(text))
    else:
        print_lines(text)
    return 0
