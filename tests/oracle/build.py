"""Builds the oracle, the recorder and what is asked about selectors from their Go sources, once per version of them.

Knows nothing of cases. The flags are those of the control plane's programs, stamps included, so that
both share one build cache; the stamp also is what NodeDeclaredFeatures compares versions with. Several
checkouts share the folder of programs, so a program stays until others have been used more recently.
"""

from __future__ import annotations

from pathlib import Path

from tests.controlplane.golang import fingerprint, go_build, keep_latest, program_folder
from tests.controlplane.releases import Release, chosen

SOURCES = Path(__file__).resolve().parent
PACKAGES = {"oracle": ".", "recorder": "./recorder", "selectors": "./selectors"}
"""The module's programs."""
KEPT = 6
"""How many programs of a release stay: those of the sources that were used last."""


def binary(name: str = "oracle", release: Release | None = None) -> Path:
    """Return the path of a program of a release, by default the chosen one; it is built if its sources have changed.

    Raises:
        BuildError: Go is missing or the build fails.
    """
    release = release or chosen()
    program = program_folder(release) / f"{name}-{fingerprint(SOURCES, PACKAGES[name], release)}"
    if not program.exists():
        go_build(SOURCES, PACKAGES[name], program, release=release)
    program.touch()
    keep_latest(f"{name}-*", KEPT, release)
    return program
