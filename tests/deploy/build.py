"""Builds helm from its Go module, once per version of it; its Kubernetes libraries are those of kubectl."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.controlplane.golang import fingerprint, go_build, keep_latest, program_folder

SOURCES: Final = Path(__file__).resolve().parent / "helm"
PACKAGE: Final = "helm.sh/helm/v3/cmd/helm"
KEPT: Final = 2
"""How many versions stay: those that were used last."""


def helm() -> Path:
    """Give the path of helm, building it if it is not there yet.

    Raises:
        BuildError: Go is missing or the build fails.
    """
    program = program_folder() / f"helm-{fingerprint(SOURCES)}"
    if not program.exists():
        go_build(SOURCES, PACKAGE, program)
    program.touch()
    keep_latest("helm-*", KEPT)
    return program
