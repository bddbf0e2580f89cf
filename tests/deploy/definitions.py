"""The definitions of Prometheus Operator's resources, from its Go module: nothing is built, the files are in it."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any, Final

import yaml

from tests.controlplane.golang import BuildError, find_go

SOURCES: Final = Path(__file__).resolve().parent / "operator"
MODULE: Final = "github.com/prometheus-operator/prometheus-operator"
FOLDER: Final = Path("example") / "prometheus-operator-crd"
Json = dict[str, Any]


def definition_file(plural: str) -> Path:
    """Give the file of a definition, getting the module if it is not there yet.

    Raises:
        BuildError: Go is missing or the module cannot be had.
    """
    command = [str(find_go()), "mod", "download", "-json", MODULE]
    environment = os.environ | {"GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly"}
    done = subprocess.run(command, cwd=SOURCES, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(f"cannot get {MODULE}:\n{done.stdout}{done.stderr}")
    return Path(json.loads(done.stdout)["Dir"]) / FOLDER / f"monitoring.coreos.com_{plural}.yaml"


def definition(plural: str) -> Json:
    """Give a definition."""
    found: Json = yaml.safe_load(definition_file(plural).read_text("utf-8"))
    return found
