"""`policysched plugin new`: create the Python package of a plugin."""

from __future__ import annotations

from policysched.app.plugins.package import new_package
from policysched.cli.flags.settings import PluginNewFlags
from policysched.cli.output import print_text


def new(flags: PluginNewFlags) -> int:
    """Create a package and print the next steps; return the exit code."""
    points = (one.strip() for one in flags.points.split(",") if one.strip())
    made = new_package(flags.name, points, flags.parent)
    print_text(f"{made.folder}: {', '.join(made.files)}")
    print_text("Next:")
    for step in made.next_steps:
        print_text(f"  {step}")
    return 0
