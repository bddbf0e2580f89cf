"""The API server of an end-to-end test, as its client sees it: over HTTP, whatever serves it.

It knows a URL, a kubeconfig and how to read and write objects. Tests that use nothing else run against any API
server; what only the sandbox can do stands in `sandbox`.
"""

from __future__ import annotations

import asyncio
import json
import ssl
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Self

import aiohttp
from aiohttp.connector import NEEDS_CLEANUP_CLOSED

from tests.e2e.objects import Json
from tests.e2e.waiting import DEADLINE, until

MERGE = "application/merge-patch+json"
COLLECTIONS = {
    "Node": "/api/v1/nodes",
    "Namespace": "/api/v1/namespaces",
    "Pod": "/api/v1/namespaces/{}/pods",
    "Event": "/apis/events.k8s.io/v1/namespaces/{}/events",
    "Job": "/apis/batch/v1/namespaces/{}/jobs",
    "Deployment": "/apis/apps/v1/namespaces/{}/deployments",
    "Service": "/api/v1/namespaces/{}/services",
    "PersistentVolume": "/api/v1/persistentvolumes",
    "PersistentVolumeClaim": "/api/v1/namespaces/{}/persistentvolumeclaims",
    "StorageClass": "/apis/storage.k8s.io/v1/storageclasses",
    "PriorityClass": "/apis/scheduling.k8s.io/v1/priorityclasses",
    "PodGroup": "/apis/scheduling.k8s.io/v1beta1/namespaces/{}/podgroups",
    "PodDisruptionBudget": "/apis/policy/v1/namespaces/{}/poddisruptionbudgets",
    "DeviceClass": "/apis/resource.k8s.io/v1/deviceclasses",
    "ResourceSlice": "/apis/resource.k8s.io/v1/resourceslices",
    "ResourceClaim": "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims",
    "ResourceClaimTemplate": "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaimtemplates",
    "SchedulingPolicy": "/apis/policysched.io/v1beta1/schedulingpolicies",
    "CustomResourceDefinition": "/apis/apiextensions.k8s.io/v1/customresourcedefinitions",
}
AT_ONCE = 16


@dataclass
class Server:
    """An API server and a client of it that may do everything."""

    url: str
    kubeconfig: Path
    headers: dict[str, str] = field(default_factory=dict)
    tls: ssl.SSLContext | None = None
    session: aiohttp.ClientSession = field(init=False)

    async def __aenter__(self) -> Self:
        # Some versions of Python hold on to closed TLS connections; these are ended with the session then.
        connector = aiohttp.TCPConnector(ssl=self.tls or True, enable_cleanup_closed=NEEDS_CLEANUP_CLOSED)
        self.session = aiohttp.ClientSession(connector=connector, headers=self.headers)
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.session.close()

    async def call(self, method: str, path: str, body: Any = None, media: str = "application/json") -> Json:
        """Make a request that must succeed."""
        data = None if body is None else json.dumps(body)
        headers = {"Content-Type": media}
        async with self.session.request(method, self.url + path, data=data, headers=headers) as response:
            found: Json = await response.json(content_type=None)
            assert response.status < 400, f"{method} {path}: {found}"
            return found

    async def load(self, *objects: Json) -> None:
        """Create objects: nodes with their status, pods as pending ones or, with a nodeName, as placed ones."""
        room = asyncio.Semaphore(AT_ONCE)

        async def create(obj: Json) -> None:
            async with room:
                await self.call("POST", _collection(obj["kind"], obj["metadata"].get("namespace", "default")), obj)

        await asyncio.gather(*map(create, objects))

    async def objects(self, kind: str, namespace: str = "default") -> list[Json]:
        """List the objects of a kind."""
        items: list[Json] = (await self.call("GET", _collection(kind, namespace)))["items"]
        return items

    async def get(self, kind: str, name: str) -> Json:
        """Read an object."""
        return await self.call("GET", f"{_collection(kind)}/{name}")

    async def patch(self, kind: str, name: str, change: Json, part: str = "") -> Json:
        """Merge a change into an object, or into its subresource."""
        return await self.call("PATCH", f"{_collection(kind)}/{name}{part}", change, MERGE)

    async def delete(self, kind: str, name: str) -> None:
        """Delete an object, without grace."""
        await self.call("DELETE", f"{_collection(kind)}/{name}", {"gracePeriodSeconds": 0})

    async def bind(self, name: str, node: str) -> None:
        """Bind a pod as another scheduler would."""
        target = {"apiVersion": "v1", "kind": "Node", "name": node}
        body = {"apiVersion": "v1", "kind": "Binding", "metadata": {"name": name}, "target": target}
        await self.call("POST", f"{_collection('Pod')}/{name}/binding", body)

    async def nodes_of(self, names: Iterable[str] = ()) -> dict[str, str]:
        """Give the node of every pod, or of those named; empty while it has none."""
        found = {one["metadata"]["name"]: one["spec"].get("nodeName", "") for one in await self.objects("Pod")}
        return {name: found[name] for name in names} if names else found

    async def placed(self, *names: str, seconds: float = DEADLINE) -> dict[str, str]:
        """Wait until pods have a node, all pods where none is named; give the nodes."""
        return await until(lambda: self.nodes_of(names), lambda nodes: all(nodes.values()), seconds)

    async def turned_away(self, name: str, message: str) -> Json:
        """Wait until a pending pod's condition and an event say exactly this; give the condition."""

        async def said() -> tuple[Json, list[str]]:
            condition = scheduled_condition(await self.get("Pod", name))
            return condition, [one["note"] for one in await self.events(name) if one["reason"] == "FailedScheduling"]

        condition, _ = await until(said, lambda seen: seen[0].get("message") == message and message in seen[1])
        return condition

    async def events(self, name: str) -> list[Json]:
        """List the events about a pod."""
        return [one for one in await self.objects("Event") if one["regarding"]["name"] == name]

    async def policy_says(self, name: str, generation: int, **conditions: str) -> Json:
        """Wait until a policy's status is about a generation and has conditions of these reasons."""

        def holds(obj: Json) -> bool:
            status = obj.get("status") or {}
            reasons = {one["type"]: one["reason"] for one in status.get("conditions", ())}
            return status.get("observedGeneration") == generation and conditions.items() <= reasons.items()

        found = await until(lambda: self.get("SchedulingPolicy", name), holds)
        status: Json = found["status"]
        return status


def scheduled_condition(obj: Json) -> Json:
    """Give a pod's PodScheduled condition."""
    conditions = obj["status"].get("conditions", ())
    return next((one for one in conditions if one["type"] == "PodScheduled"), {})


def _collection(kind: str, namespace: str = "default") -> str:
    return COLLECTIONS[kind].format(namespace)
