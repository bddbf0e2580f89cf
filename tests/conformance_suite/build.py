"""Builds the program of Kubernetes' own scheduling specs, once per version of its sources.

Knows nothing of clusters. It takes a few minutes where the programs of the control plane have been built before.
"""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.controlplane.golang import fingerprint, go_build, keep_latest, program_folder

SOURCES: Final = Path(__file__).resolve().parent
KEPT: Final = 2
"""How many programs stay: those of the sources that were used last."""


def binary() -> Path:
    """Give the path of the program, building it if its sources have changed.

    Raises:
        BuildError: Go is missing or the build fails.
    """
    program = program_folder() / f"scheduling-specs-{fingerprint(SOURCES)}"
    if not program.exists():
        go_build(SOURCES, ".", program, tests=True)
    program.touch()
    keep_latest("scheduling-specs-*", KEPT)
    return program
