"""`policysched version`: the version of the program, and the Kubernetes releases whose decisions it reproduces."""

from __future__ import annotations

import platform
from importlib.metadata import version as version_of

from policysched.cli.flags.settings import VersionFlags
from policysched.cli.formats import print_document
from policysched.cli.version import print_version
from policysched.model.release import DEFAULT, RELEASES


def version(flags: VersionFlags) -> None:
    """Print the version."""
    if not flags.output.is_value:
        print_version()
        return
    references = [
        {"minor": minor, "version": one.version, "preview": one.is_preview, "default": one is DEFAULT}
        for minor, one in RELEASES.items()
    ]
    made = {"policysched": version_of("policysched"), "python": platform.python_version(), "references": references}
    print_document("Version", made, flags.output)
