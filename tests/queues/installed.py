"""Kueue and JobSet as their own manifests install them; their managers are processes, because there are no images here.

A control plane calls webhooks at addresses inside of its cluster. Here these are ports of this machine: the Service of
Kueue's webhooks is another name of localhost, and JobSet's webhooks have a URL.
"""

from __future__ import annotations

import base64
import contextlib
import shutil
import urllib.request
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import Any, Final

import yaml

from tests.controlplane.api import RefusedError
from tests.controlplane.loading import until
from tests.controlplane.plane import ControlPlane
from tests.controlplane.programs import free_port
from tests.deploy.rendering import Json, kustomized
from tests.queues.build import manifests, program

LEFT_OUT: Final = ("Deployment", "APIService")
"""Kinds of the manifests that are not created: the managers' pods, and Kueue's API of pending workloads."""


def install_kueue(plane: ControlPlane, *frameworks: str) -> None:
    """Create Kueue's objects, start its manager, and wait until its webhooks answer.

    Args:
        plane: Where it is installed.
        frameworks: The integrations that are enabled.
    """
    folder, health, port = _folder(plane, "kueue"), free_port(), free_port()
    objects = _rendered("kueue")
    for client in _webhooks(objects):
        client["service"]["port"] = port
    [service] = [one for one in objects if one["metadata"]["name"] == "kueue-webhook-service"]
    service["spec"] = {"type": "ExternalName", "externalName": "localhost"}
    _apply(plane, objects)
    config = _common("config.kueue.x-k8s.io/v1beta2", folder, health, port) | {
        "internalCertManagement": {"enable": True},
        "integrations": {"frameworks": list(frameworks)},
        "featureGates": {"VisibilityOnDemand": False},
    }
    _start(plane, "kueue", folder, config)
    until(lambda: _mounted(plane, folder), "Kueue's certificate", 60)
    _await_readiness(plane, "kueue", health)


def install_jobset(plane: ControlPlane) -> None:
    """Create JobSet's objects, start its manager, and wait until its webhooks answer."""
    folder, health, port = _folder(plane, "jobset"), free_port(), free_port()
    for name in ("crt", "key"):
        shutil.copy(plane.folder / f"server.{name}", folder / f"tls.{name}")
    authority = base64.b64encode((plane.folder / "ca.crt").read_bytes()).decode()
    objects = _rendered("jobset")
    for client in _webhooks(objects):
        path = client.pop("service")["path"]
        client |= {"url": f"https://localhost:{port}{path}", "caBundle": authority}
    _apply(plane, objects)
    config = _common("config.jobset.x-k8s.io/v1alpha1", folder, health, port) | {
        "internalCertManagement": {"enable": False}
    }
    _start(plane, "jobset", folder, config)
    _await_readiness(plane, "jobset", health)


def _folder(plane: ControlPlane, name: str) -> Path:
    folder = plane.folder / name
    folder.mkdir()
    return folder


def _rendered(name: str) -> list[Json]:
    return [one for one in kustomized(manifests(name)) if one["kind"] not in LEFT_OUT]


def _webhooks(objects: Iterable[Json]) -> Iterator[Json]:
    """Give how the webhooks of admission and of definitions are called."""
    for one in objects:
        yield from (webhook["clientConfig"] for webhook in one.get("webhooks", ()))
        if one["kind"] == "CustomResourceDefinition" and "webhook" in one["spec"].get("conversion", {}):
            yield one["spec"]["conversion"]["webhook"]["clientConfig"]


def _apply(plane: ControlPlane, objects: Sequence[Json]) -> None:
    plane.kubectl("apply", "--server-side", "-f", "-", stdin=objects)
    plane.await_use(one for one in objects if one["kind"] == "CustomResourceDefinition")


def _common(version: str, folder: Path, health: int, port: int) -> dict[str, Any]:
    return {
        "apiVersion": version,
        "kind": "Configuration",
        "health": {"healthProbeBindAddress": f"127.0.0.1:{health}"},
        "metrics": {"bindAddress": "0"},
        "leaderElection": {"leaderElect": False},
        "webhook": {"host": "127.0.0.1", "port": port, "certDir": str(folder)},
    }


def _start(plane: ControlPlane, name: str, folder: Path, config: Json) -> None:
    file = folder / "config.yaml"
    file.write_text(yaml.safe_dump(config), "utf-8")
    plane.start(name, [program(name), f"--config={file}", f"--kubeconfig={plane.kubeconfig()}"])


def _mounted(plane: ControlPlane, folder: Path) -> bool:
    """Write the certificate that Kueue has made into its folder, as a kubelet does; return whether there is one."""
    with contextlib.suppress(RefusedError):
        data = plane.api.get("Secret", "kueue-webhook-server-cert", "kueue-system").get("data") or {}
        for name, content in data.items():
            (folder / name).write_bytes(base64.b64decode(content))
        return "tls.key" in data
    return False


def _await_readiness(plane: ControlPlane, name: str, health: int) -> None:
    log = plane.logs / f"{name}.log"

    def ready() -> bool:
        with contextlib.suppress(OSError), urllib.request.urlopen(f"http://127.0.0.1:{health}/readyz", timeout=5):
            return True
        return False

    until(ready, f"{name} is ready, see {log}", 60)
