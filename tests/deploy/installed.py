"""A scheduler as a pod of the installation would run it: its arguments, its configuration, its service account's token.

There are no images here, so the process runs beside the control plane; all else is what `deploy/` says.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.app.serving.ports import free_port
from tests.deploy.rendering import NAMESPACE, Json, configuration, container
from tests.e2e.real import RealServer
from tests.e2e.schedulers import Spawned, spawned
from tests.e2e.test_serving import Port


@dataclass
class Installed:
    """A running scheduler, its secure port and its configuration file."""

    scheduler: Spawned
    port: Port
    config: Path


async def token(server: RealServer, account: str, namespace: str = NAMESPACE) -> str:
    """Ask for a service account's token, as the kubelet does for a pod."""
    asked = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
    made = await server.call("POST", path, asked)
    return str(made["status"]["token"])


async def account_kubeconfig(server: RealServer, folder: Path) -> Path:
    """Write a kubeconfig with the token of the scheduler's service account."""
    assert server.plane is not None
    return server.plane.identities.with_bearer(folder / "account", await token(server, "policysched"))


def arguments(given: Sequence[str], config: Path, port: int) -> list[str]:
    """Give a container's arguments after `run`, with this machine's file and a port that nobody has."""
    assert given[0] == "run"
    kept = [one for one in given[1:] if not re.match(r"--(config|secure-port|bind-address)=", one)]
    return [*kept, f"--config={config}", f"--secure-port={port}", "--bind-address=127.0.0.1"]


@asynccontextmanager
async def running(
    objects: list[Json], kubeconfig: Path, folder: Path, *, wait: bool = True
) -> AsyncIterator[Installed]:
    """Run the scheduler of a rendered installation."""
    async with started(container(objects)["args"], configuration(objects), kubeconfig, folder, wait=wait) as made:
        yield made


@asynccontextmanager
async def started(
    args: Sequence[str], text: str, kubeconfig: Path, folder: Path, *, wait: bool = True
) -> AsyncIterator[Installed]:
    """Run a scheduler with a container's arguments and a configuration, whose kubeconfig is this one."""
    config, port = folder / "scheduler.yaml", free_port()
    content: Any = yaml.safe_load(text)
    content.setdefault("clientConnection", {}).pop("kubeconfig", None)
    config.write_text(yaml.safe_dump(content))
    environment = {"KUBECONFIG": str(kubeconfig)}
    async with spawned(*arguments(args, config, port), environment=environment, wait=wait) as scheduler:
        yield Installed(scheduler, Port(port), config)
