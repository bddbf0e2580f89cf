"""A minimal client of an API server on aiohttp, for creating objects and for the null scheduler.

It shares no code with policysched, so that changes of policysched do not change the baseline.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Iterable, Mapping
from http import HTTPStatus
from pathlib import Path
from typing import Any, Self

import aiohttp
import msgspec
import yaml

Json = dict[str, Any]
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
AT_ONCE = 48
"""Largest number of objects that are created concurrently."""
_encode = msgspec.json.Encoder().encode
_PATHS: Mapping[str, str] = {
    "Node": "/api/v1/nodes",
    "Namespace": "/api/v1/namespaces",
    "PersistentVolume": "/api/v1/persistentvolumes",
    "CSINode": "/apis/storage.k8s.io/v1/csinodes",
    "Pod": "/api/v1/namespaces/{}/pods",
    "PersistentVolumeClaim": "/api/v1/namespaces/{}/persistentvolumeclaims",
    "DeviceClass": "/apis/resource.k8s.io/v1/deviceclasses",
    "ResourceSlice": "/apis/resource.k8s.io/v1/resourceslices",
    "ResourceClaim": "/apis/resource.k8s.io/v1/namespaces/{}/resourceclaims",
    "Secret": "/api/v1/namespaces/{}/secrets",
    "PodGroup": "/apis/scheduling.k8s.io/v1beta1/namespaces/{}/podgroups",
    "Service": "/api/v1/namespaces/{}/services",
    "SchedulingPolicy": "/apis/policysched.io/v1beta1/schedulingpolicies",
}


class RequestError(Exception):
    """An error status in a response of the API server."""


class Client:
    """A client for the user of a kubeconfig with a token; an asynchronous context manager."""

    def __init__(self, kubeconfig: Path, connections: int = 128) -> None:
        given = yaml.safe_load(kubeconfig.read_text("utf-8"))
        cluster, user = given["clusters"][0]["cluster"], given["users"][0]["user"]
        self._url = cluster["server"]
        self._tls = ssl.create_default_context(cafile=cluster["certificate-authority"])
        self._headers = {"Authorization": f"Bearer {user['token']}", "Accept": "application/json"}
        self._connections = connections

    async def __aenter__(self) -> Self:
        connector = aiohttp.TCPConnector(limit=self._connections, ssl=self._tls, keepalive_timeout=60)
        self._session = aiohttp.ClientSession(
            connector=connector, headers=self._headers, cookie_jar=aiohttp.DummyCookieJar()
        )
        return self

    async def __aexit__(self, *_: object) -> None:
        await self._session.close()

    async def send(self, method: str, path: str, body: bytes | None = None, kind: str = "application/json") -> bytes:
        """Send a request and return the body of the response.

        Raises:
            RequestError: the response has an error status.
            aiohttp.ClientError: the server did not respond.
        """
        headers = {} if body is None else {"Content-Type": kind}
        async with self._session.request(method, self._url + path, data=body, headers=headers) as answer:
            found = await answer.read()
            if answer.status >= HTTPStatus.BAD_REQUEST:
                raise RequestError(f"{method} {path}: {answer.status}: {found[:500]!r}")
            return found

    async def lines(self, path: str) -> AsyncIterator[bytes]:
        """Stream the lines of a watch until the server ends it."""
        timeout = aiohttp.ClientTimeout(total=None)
        async with self._session.get(self._url + path, timeout=timeout) as answer:
            if answer.status >= HTTPStatus.BAD_REQUEST:
                raise RequestError(f"GET {path}: {answer.status}")
            rest = b""
            async for chunk in answer.content.iter_any():
                *lines, rest = (rest + chunk).split(b"\n")
                for line in lines:
                    yield line

    async def create(self, obj: Json) -> None:
        """Create an object, by default in namespace `default`; for a claim, its status is written as well."""
        path = _PATHS[obj["kind"]].format(obj["metadata"].get("namespace", "default"))
        await self.send("POST", path, _encode(obj))
        if obj["kind"] == "ResourceClaim" and "status" in obj:
            status = _encode({"status": obj["status"]})
            await self.send("PATCH", f"{path}/{obj['metadata']['name']}/status", status, MERGE_PATCH)

    async def create_all(self, objects: Iterable[Json]) -> int:
        """Create objects concurrently, in any order; return their number."""
        left, made = iter(objects), 0

        async def work() -> None:
            nonlocal made
            for one in left:
                await self.create(one)
                made += 1

        async with asyncio.TaskGroup() as group:
            for _ in range(AT_ONCE):
                group.create_task(work())
        return made
