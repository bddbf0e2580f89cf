"""What `deploy/` comes to: the objects that kubectl makes of a kustomization."""

from __future__ import annotations

import subprocess
from pathlib import Path
from typing import Any, Final

import yaml

from tests.controlplane.build import binary

Json = dict[str, Any]
DEPLOY: Final = Path(__file__).parents[2] / "deploy"
OVERLAYS: Final = ("beside", "in-place", "static-pod")
NAMESPACE: Final = "kube-system"


def kustomized(folder: Path) -> list[Json]:
    """Give the objects of a kustomization."""
    done = subprocess.run([binary("kubectl"), "kustomize", str(folder)], capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr
    return [obj for obj in yaml.safe_load_all(done.stdout) if obj]


def of_kind(objects: list[Json], kind: str, name: str = "") -> list[Json]:
    """Give the objects of a kind, or of a kind and a name."""
    return [obj for obj in objects if obj["kind"] == kind and name in {"", obj["metadata"]["name"]}]


def one(objects: list[Json], kind: str, name: str = "") -> Json:
    """Give the only object of a kind, or of a kind and a name."""
    [found] = of_kind(objects, kind, name)
    return found


def own_roles(objects: list[Json]) -> list[Json]:
    """Return the roles that are bound to the scheduler, without those of users (user-roles.yaml, reader.yaml)."""
    files = [(DEPLOY / "base" / name).read_text("utf-8") for name in ("user-roles.yaml", "reader.yaml")]
    names = {role["metadata"]["name"] for text in files for role in yaml.safe_load_all(text)}
    roles = (*of_kind(objects, "ClusterRole"), *of_kind(objects, "Role"))
    return [role for role in roles if role["metadata"]["name"] not in names]


def container(objects: list[Json]) -> Json:
    """Give the scheduler's container."""
    found: Json
    [found] = one(objects, "Deployment", "policysched")["spec"]["template"]["spec"]["containers"]
    return found


def mounted(objects: list[Json]) -> dict[str, str]:
    """Give the files of the scheduler's container that come from the ConfigMap, by their paths."""
    volumes = one(objects, "Deployment", "policysched")["spec"]["template"]["spec"]["volumes"]
    names = {volume["name"] for volume in volumes if "configMap" in volume}
    [place] = [mount["mountPath"] for mount in container(objects)["volumeMounts"] if mount["name"] in names]
    return {f"{place}/{name}": text for name, text in one(objects, "ConfigMap")["data"].items()}


def configuration(objects: list[Json]) -> str:
    """Give the scheduler's configuration file."""
    text: str
    [text] = one(objects, "ConfigMap")["data"].values()
    return text


def static_pod() -> Json:
    """Give the pod that a kubelet starts in kube-scheduler's place."""
    found: Json = yaml.safe_load((DEPLOY / "static-pod" / "kube-scheduler.yaml").read_text("utf-8"))
    return found
