"""The line of `policysched version`."""

from __future__ import annotations

import platform
from importlib.metadata import version

from policysched.cli.output import say


def say_version() -> None:
    """Print the version."""
    say(f"policysched {version('policysched')} (Python {platform.python_version()})")
