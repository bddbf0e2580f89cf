"""The definitions of other projects' resources, from their Go modules: nothing is built, the files are in them."""

from __future__ import annotations

import json
import os
import subprocess
from pathlib import Path
from typing import Any, Final

import yaml

from tests.controlplane.golang import BuildError, find_go

SOURCES: Final = Path(__file__).resolve().parent / "definition_modules"
OPERATOR: Final = "github.com/prometheus-operator/prometheus-operator"
FLUX: Final = "config/crd/bases"
FILES: Final = {
    "servicemonitors": (OPERATOR, "example/prometheus-operator-crd/monitoring.coreos.com_servicemonitors.yaml"),
    "prometheusrules": (OPERATOR, "example/prometheus-operator-crd/monitoring.coreos.com_prometheusrules.yaml"),
    "mutatingpolicies": ("github.com/kyverno/api", "config/crds/policies.kyverno.io_mutatingpolicies.yaml"),
    "applications": ("github.com/argoproj/argo-cd/v3", "manifests/crds/application-crd.yaml"),
    "gitrepositories": (
        "github.com/fluxcd/source-controller", f"{FLUX}/source.toolkit.fluxcd.io_gitrepositories.yaml",
    ),
    "kustomizations": (
        "github.com/fluxcd/kustomize-controller", f"{FLUX}/kustomize.toolkit.fluxcd.io_kustomizations.yaml",
    ),
}  # fmt: skip
"""The module of each resource, and the file of its definition in the module."""
Json = dict[str, Any]


def definition(plural: str) -> Json:
    """Give a definition, getting its module if it is not there yet.

    Raises:
        BuildError: Go is missing or the module cannot be had.
    """
    module, file = FILES[plural]
    command = [str(find_go()), "mod", "download", "-json", module]
    environment = os.environ | {"GOTOOLCHAIN": "local", "GOFLAGS": "-mod=readonly"}
    done = subprocess.run(command, cwd=SOURCES, env=environment, capture_output=True, text=True, check=False)
    if done.returncode:
        raise BuildError(f"cannot get {module}:\n{done.stdout}{done.stderr}")
    found: Json = yaml.safe_load((Path(json.loads(done.stdout)["Dir"]) / file).read_text("utf-8"))
    return found
