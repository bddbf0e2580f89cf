"""A scheduler as a pod of an installation would run it: its arguments, its files, its service account's token.

There are no images here, so the process runs beside the control plane; all else is what `deploy/` says.
"""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import yaml

from tests.app.serving.ports import free_port
from tests.deploy.rendering import NAMESPACE, Json, container, mounted
from tests.e2e.real import RealServer
from tests.e2e.schedulers import Spawned, spawned
from tests.e2e.test_serving import Port
from tests.e2e.waiting import until_true

START = 90.0
"""How long a process may take until it schedules; a lease that nobody released takes 15 s of it. Units: seconds."""


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


async def account_kubeconfig(server: RealServer, folder: Path, namespace: str = NAMESPACE) -> Path:
    """Write a kubeconfig with the token of the scheduler's service account."""
    assert server.plane is not None
    return server.plane.identities.with_bearer(folder / "account", await token(server, "policysched", namespace))


@asynccontextmanager
async def running(objects: list[Json], kubeconfig: Path, folder: Path) -> AsyncIterator[Installed]:
    """Run the scheduler of a rendered installation."""
    async with started(container(objects)["args"], mounted(objects), kubeconfig, folder) as made:
        yield made


@asynccontextmanager
async def started(
    args: Sequence[str], files: Mapping[str, str], kubeconfig: Path, folder: Path, *own: str
) -> AsyncIterator[Installed]:
    """Run a scheduler with a container's arguments.

    Args:
        args: the arguments, `run` first. Those that name this machine's port or server give way to what is free here.
        files: the container's files, by their paths; the kubeconfig that one of them names is this one.
        kubeconfig: the way to the API server.
        folder: where the files are put.
        own: further arguments.
    """
    assert args[0] == "run"
    kept = [one for one in args[1:] if not re.match(r"--(secure-port|bind-address|kubeconfig|master)=", one)]
    port, config = free_port(), folder / "none"
    for path, text in files.items():
        here = folder / Path(path).name
        here.write_text(_without_kubeconfig(text) if here.suffix == ".yaml" else text)
        config = here if f"--config={path}" in kept else config
        kept = [one.replace(path, str(here)) for one in kept]
    flags = [*kept, f"--secure-port={port}", "--bind-address=127.0.0.1", *own]
    async with spawned(*flags, environment={"KUBECONFIG": str(kubeconfig)}, wait=False) as scheduler:
        try:
            await until_true(lambda: any(line.endswith(" scheduling") for line in scheduler.lines), START)
        except AssertionError as error:
            raise AssertionError(f"it does not schedule: {scheduler.lines[-20:]}") from error
        yield Installed(scheduler, Port(port), config)


def _without_kubeconfig(text: str) -> str:
    """Give a configuration that finds its kubeconfig in the environment."""
    content: Any = yaml.safe_load(text)
    content.get("clientConnection", {}).pop("kubeconfig", None)
    return yaml.safe_dump(content)
