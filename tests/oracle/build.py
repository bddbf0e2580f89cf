"""Builds the oracle, the recorder and what is asked about selectors from their Go sources, once per version of them.

Knows nothing of cases. The flags are those of the control plane's programs, stamps included, so that
both share one build cache; the stamp also is what NodeDeclaredFeatures compares versions with. Several
checkouts share the folder of programs, so a program stays until others have been used more recently.
"""

from __future__ import annotations

from pathlib import Path

from tests.controlplane.golang import fingerprint, go_build, keep_latest, program_folder

SOURCES = Path(__file__).resolve().parent
PACKAGES = {"oracle": ".", "recorder": "./recorder", "selectors": "./selectors"}
"""The module's programs."""
KEPT = 6
"""How many programs stay: those of the sources that were used last."""


def binary(name: str = "oracle") -> Path:
    """Give the path of a program, building it if its sources have changed.

    Raises:
        BuildError: Go is missing or the build fails.
    """
    program = program_folder() / f"{name}-{fingerprint(SOURCES, PACKAGES[name])}"
    if not program.exists():
        go_build(SOURCES, PACKAGES[name], program)
    program.touch()
    keep_latest(f"{name}-*", KEPT)
    return program
