"""Builds the judge with Karpenter's scheduling code from its Go module, once per version of it."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.controlplane.golang import fingerprint, go_build, keep_latest, program_folder

SOURCES: Final = Path(__file__).resolve().parent / "karpenter"
KEPT: Final = 2
"""Number of versions that stay: those that were used last."""


def karpenter() -> Path:
    """Return the path of the judge; it is built if it is missing.

    Raises:
        BuildError: Go is missing or the build fails.
    """
    program = program_folder() / f"karpenter-{fingerprint(SOURCES)}"
    if not program.exists():
        go_build(SOURCES, ".", program)
    program.touch()
    keep_latest("karpenter-*", KEPT)
    return program
