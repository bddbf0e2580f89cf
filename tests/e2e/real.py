"""The other server of the end-to-end tests: a real control plane, wiped before each of them.

It knows how a sandbox's conveniences are had on a real one: objects are loaded in an order that works, and each can be
used when `load` comes back.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass

from tests.controlplane.plane import ControlPlane
from tests.e2e.objects import DEFINITION, Json
from tests.e2e.server import Server


@dataclass
class RealServer(Server):
    """A real API server with its controllers and kubelets."""

    plane: ControlPlane | None = None

    async def load(self, *objects: Json) -> None:
        """Create objects and wait until they can be used: namespaces and nodes take the controllers a moment."""
        assert self.plane is not None
        await asyncio.to_thread(self.plane.load, objects)


@asynccontextmanager
async def real_server(plane: ControlPlane, *, bare: bool) -> AsyncIterator[Server]:
    """Give a control plane that is as good as new, with our definition unless it is to be bare."""
    plane.wipe()
    name = DEFINITION["metadata"]["name"]
    present = any(each["metadata"]["name"] == name for each in plane.objects("CustomResourceDefinition"))
    if present and bare:
        plane.kubectl("delete", "crd", name, "--wait")
    elif not present and not bare:
        plane.load([DEFINITION])
    identities = plane.identities
    headers = {"Authorization": f"Bearer {identities.token()}"}
    async with RealServer(plane.url, plane.kubeconfig(), headers, identities.tls(), plane=plane) as made:
        yield made
