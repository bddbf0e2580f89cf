"""The definitions of other projects' resources, from their Go modules: nothing is built, the files are in them."""

from __future__ import annotations

import json
import os
import subprocess
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

import yaml

from tests.controlplane.golang import BuildError, find_go

SOURCES: Final = Path(__file__).resolve().parent / "definition_modules"
Json = dict[str, Any]


@dataclass(frozen=True, slots=True)
class Module:
    """A Go module with definitions."""

    name: str
    folder: str
    """The folder of the definitions in the module."""
    group: str


OPERATOR: Final = Module(
    "github.com/prometheus-operator/prometheus-operator", "example/prometheus-operator-crd", "monitoring.coreos.com"
)
KYVERNO: Final = Module("github.com/kyverno/api", "config/crds", "policies.kyverno.io")


def definition_file(plural: str, module: Module = OPERATOR) -> Path:
    """Give the file of a definition, getting the module if it is not there yet.

    Raises:
        BuildError: Go is missing or the module cannot be had.
    """
    command = [str(find_go()), "mod", "download", "-json", module.name]
    environment = os.environ | {"GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly"}
    done = subprocess.run(command, cwd=SOURCES, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(f"cannot get {module.name}:\n{done.stdout}{done.stderr}")
    return Path(json.loads(done.stdout)["Dir"]) / module.folder / f"{module.group}_{plural}.yaml"


def definition(plural: str, module: Module = OPERATOR) -> Json:
    """Give a definition."""
    found: Json = yaml.safe_load(definition_file(plural, module).read_text("utf-8"))
    return found
