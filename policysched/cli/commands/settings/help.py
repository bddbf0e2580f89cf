"""`policysched help`: print the help of a command, as `--help` does."""

from __future__ import annotations

from policysched.cli import COMMANDS, call
from policysched.cli.flags.settings import HelpFlags


def help(flags: HelpFlags) -> int:  # noqa: A001 - the name of the command
    """Print the help of a command; return the exit code."""
    return call([*(flags.command or ()), "--help"])


def complete(incomplete: str) -> list[tuple[str, str]]:
    """Return the names of commands that start with a text, for shell completion."""
    return [(name, "") for name in COMMANDS if name.startswith(incomplete)]
