"""Builds helm and actionlint from their Go modules, once per version; helm has the Kubernetes libraries of kubectl."""

from __future__ import annotations

from pathlib import Path
from typing import Final

from tests.controlplane.golang import fingerprint, go_build, keep_latest, program_folder

HERE: Final = Path(__file__).resolve().parent
PACKAGES: Final = {"helm": "helm.sh/helm/v3/cmd/helm", "actionlint": "github.com/rhysd/actionlint/cmd/actionlint"}
KEPT: Final = 2
"""How many versions of a program stay: those that were used last."""


def helm() -> Path:
    """Give the path of helm, building it if it is not there yet.

    Raises:
        BuildError: Go is missing or the build fails.
    """
    return _program("helm")


def actionlint() -> Path:
    """Give the path of actionlint, building it if it is not there yet.

    Raises:
        BuildError: Go is missing or the build fails.
    """
    return _program("actionlint")


def _program(name: str) -> Path:
    sources = HERE / name
    program = program_folder() / f"{name}-{fingerprint(sources)}"
    if not program.exists():
        go_build(sources, PACKAGES[name], program)
    program.touch()
    keep_latest(f"{name}-*", KEPT)
    return program
