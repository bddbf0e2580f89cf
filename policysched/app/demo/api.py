"""What the demo and the benchmarks ask of an API server: create, read, patch, delete, as kubectl would.

The engine never uses it: it has a client of its own for the few writes it does.
"""

from __future__ import annotations

from typing import Any, Final

import msgspec

from policysched.kube.transport import JSON, MERGE_PATCH, Transport
from policysched.model.policy import API_VERSION, KIND, PLURAL

Object = dict[str, Any]
_PATHS: Final = {
    "Node": "/api/v1/nodes",
    "Pod": "/api/v1/namespaces/{}/pods",
    "Event": "/api/v1/namespaces/{}/events",
    "Namespace": "/api/v1/namespaces",
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
    KIND: f"/apis/{API_VERSION}/{PLURAL}",
}


class Api:
    """Requests about objects of a few kinds."""

    def __init__(self, transport: Transport) -> None:
        self._transport = transport

    async def create(self, obj: Object) -> Object:
        """Create an object."""
        namespace = obj["metadata"].get("namespace", "default")
        return await self._ask("POST", _path(obj["kind"], namespace), obj)

    async def get(self, kind: str, name: str, namespace: str = "default") -> Object:
        """Read an object."""
        return await self._ask("GET", f"{_path(kind, namespace)}/{name}")

    async def list(self, kind: str, namespace: str = "default") -> list[Object]:
        """List the objects of a kind."""
        items: list[Object] = (await self._ask("GET", _path(kind, namespace)))["items"]
        return items

    async def patch(self, kind: str, name: str, patch: Object, namespace: str = "default") -> Object:
        """Change some fields of an object."""
        return await self._ask("PATCH", f"{_path(kind, namespace)}/{name}", patch, MERGE_PATCH)

    async def delete(self, kind: str, name: str, namespace: str = "default") -> None:
        """Delete an object."""
        await self._ask("DELETE", f"{_path(kind, namespace)}/{name}")

    async def _ask(self, method: str, path: str, body: Object | None = None, content_type: str = JSON) -> Object:
        data = msgspec.json.encode(body) if body is not None else None
        answer = await self._transport.request(method, path, data, content_type=content_type)
        made: Object = msgspec.json.decode(answer)
        return made


def _path(kind: str, namespace: str) -> str:
    return _PATHS[kind].format(namespace)
