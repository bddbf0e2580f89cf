"""`policysched version`."""

from __future__ import annotations

from policysched.cli.flags.settings import VersionFlags
from policysched.cli.version import print_version


def version(_flags: VersionFlags) -> None:
    """Print the version."""
    print_version()
