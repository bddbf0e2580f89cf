"""Builds Kueue and JobSet from their Go modules, once per version of them; Kueue has 1,600 packages."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Final

from tests.controlplane.golang import SETTINGS, BuildError, find_go, fingerprint, go_build, keep_latest, program_folder

SOURCES: Final = Path(__file__).resolve().parent
PACKAGES: Final = {"kueue": "sigs.k8s.io/kueue/cmd/kueue", "jobset": "sigs.k8s.io/jobset"}
"""The program of each module, whose go.mod is in the folder of that name."""
KEPT: Final = 2
"""How many versions stay: those that were used last."""


def program(name: str) -> Path:
    """Give the path of a program, building it if it is not there yet.

    Raises:
        BuildError: Go is missing or the build fails.
    """
    sources = SOURCES / name
    target = program_folder() / f"{name}-{fingerprint(sources)}"
    if not target.exists():
        go_build(sources, PACKAGES[name], target)
    target.touch()
    keep_latest(f"{name}-*", KEPT)
    return target


def manifests(name: str) -> Path:
    """Give the folder of the kustomization that a module comes with.

    Raises:
        BuildError: the module cannot be fetched.
    """
    module = "/".join(PACKAGES[name].split("/")[:2])
    command = [str(find_go()), "mod", "download", "-json", module]
    environment = os.environ | SETTINGS
    done = subprocess.run(command, cwd=SOURCES / name, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(f"cannot fetch {module}:\n{done.stdout}{done.stderr}")
    return Path(json.loads(done.stdout)["Dir"]) / "config" / "default"
