"""The line that `policysched version` prints."""

from __future__ import annotations

import platform
from importlib.metadata import version

from policysched.cli.output import print_text


def print_version() -> None:
    """Print the version."""
    print_text(f"policysched {version('policysched')} (Python {platform.python_version()})")
