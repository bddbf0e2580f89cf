"""`Sandbox`: starts and stops the in-memory API server with its controllers. Also creates standard nodes.

It listens on loopback only, because there is no authentication: every client may do everything.
"""

from __future__ import annotations

import asyncio
import random
from collections.abc import Callable, Iterable, Mapping
from datetime import datetime
from importlib.resources import files
from typing import Any

from aiohttp import web
from aiohttp.abc import AbstractStreamWriter
from aiohttp.http_parser import RawRequestMessage
from aiohttp.streams import StreamReader
from aiohttp.web_protocol import RequestHandler

from policysched.apimachinery import Json, decode, encode
from policysched.apimachinery.resources import ApiResource
from policysched.model.release import DEFAULT
from policysched.reading import bounded_yaml
from policysched.sandbox.api.reading import WatchStream
from policysched.sandbox.api.server import Faults, Server
from policysched.sandbox.controllers import ControllerLoop
from policysched.sandbox.controllers.nodes_and_cleanup import (
    GarbageCollector,
    Kubelets,
    NamespaceController,
    NodeLifecycleController,
)
from policysched.sandbox.controllers.resource_claims import (
    GroupTemplateController,
    ReservationController,
    TemplateController,
)
from policysched.sandbox.controllers.workloads import DeploymentController, ReplicaSetController
from policysched.sandbox.storage.store import Backend
from policysched.sandbox.storage.writes import WriteOptions, create

_LARGEST_BODY = 3 * 1024 * 1024
_CONTROLLERS = (
    Kubelets,
    NodeLifecycleController,
    NamespaceController,
    GarbageCollector,
    ReplicaSetController,
    DeploymentController,
    GroupTemplateController,
    TemplateController,
    ReservationController,
)
_ORDER = {"CustomResourceDefinition": 0, "Namespace": 1, "PriorityClass": 2, "StorageClass": 3, "Node": 4}
_ZONES = (b"zone-a", b"zone-b", b"zone-c")


class Sandbox:
    """A Kubernetes API server in this process, with its objects in memory.

    Args:
        now: clock of timestamps.
        random: source of UIDs and generated names.
        first_version: first resourceVersion. A server that replaces another one on the same port has to begin above its
            versions, so that clients get "too old" for these.
        history: number of changes of a resource that a watch can go back.
        kubelet_seconds: duration of one step of kubelets and controllers; None: there are none.
        kubernetes: the version of Kubernetes that it reports.
    """

    def __init__(
        self,
        now: Callable[[], datetime],
        random: random.Random,
        *,
        first_version: int = 1,
        history: int = 20_000,
        kubelet_seconds: float | None = 0.05,
        kubernetes: str = DEFAULT.version,
    ) -> None:
        self.kubernetes = kubernetes
        self._backend = Backend(now, random, history, first_version)
        self._watches: set[WatchStream] = set()
        self._runner: web.ServerRunner | None = None
        self._listening: asyncio.Server | None = None
        self._controllers = ControllerLoop(self._backend, _CONTROLLERS, kubelet_seconds)
        self.faults = Faults(self.close_watches)
        self.load(_data("cluster.yaml"))

    @property
    def url(self) -> str:
        """URL of the sandbox, `http://127.0.0.1:PORT`."""
        if self._listening is None or not self._listening.sockets:
            raise RuntimeError("the sandbox has not been started")
        return f"http://127.0.0.1:{self._listening.sockets[0].getsockname()[1]}"

    @property
    def revision(self) -> int:
        """The newest resourceVersion: that of the last change of any object."""
        return self._backend.store.revision

    def kubeconfig(self) -> Json:
        """Return a kubeconfig for this sandbox."""
        return {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "sandbox",
            "clusters": [{"name": "sandbox", "cluster": {"server": self.url}}],
            "contexts": [{"name": "sandbox", "context": {"cluster": "sandbox", "user": "sandbox"}}],
            "users": [{"name": "sandbox", "user": {}}],
        }

    async def start(self, port: int = 0) -> None:
        """Listen on loopback; port 0 chooses a free port."""
        server = Server(self._backend, self.faults, self._watches, lambda: self.kubernetes)
        handler = web.Server(server.handle, request_factory=_request, access_log=None)
        self._runner = web.ServerRunner(handler, shutdown_timeout=1.0)
        await self._runner.setup()
        self._listening = await asyncio.get_running_loop().create_server(handler, "127.0.0.1", port)
        self._controllers.start()

    async def stop(self) -> None:
        """End the watches and stop listening."""
        await self._controllers.stop()
        self.close_watches()
        if self._listening is not None:
            await self._accept_no_more(self._listening)
            self._listening = None
        if self._runner is not None:
            await self._runner.cleanup()
            self._runner = None

    @staticmethod
    async def _accept_no_more(server: asyncio.Server) -> None:
        """Stop listening after the accepted connections are set up.

        Asyncio leaks connections that arrive while it closes.
        """
        for one in server.sockets:
            asyncio.get_running_loop().remove_reader(one.fileno())
        await asyncio.sleep(0)
        server.close()

    def close_watches(self) -> None:
        """End every watch in an orderly way."""
        for watch in tuple(self._watches):
            watch.close()

    def forget_history(self) -> None:
        """Drop the history, so that a watch from an older version gets 410."""
        self._backend.store.forget()

    def load(self, objects: Iterable[Json]) -> None:
        """Store objects in the form that kubectl prints, including the nodes and statuses of pods.

        CustomResourceDefinitions, namespaces and classes are stored first, whatever their order. Lists are split into
        their items.

        Raises:
            KeyError: the kind of an object is not served.
        """
        flat = [item for obj in objects for item in _items(obj)]
        for obj in sorted(flat, key=load_rank):
            self._load(obj)

    def _load(self, obj: Json) -> None:
        resource = self._of_kind(obj.get("kind", ""), obj.get("apiVersion", ""))
        metadata = dict(obj.get("metadata") or {})
        namespace = (metadata.get("namespace") or "default") if resource.namespaced else ""
        if namespace and not self._backend.store.get("namespaces", "", namespace):
            self._load({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": namespace}})
        options = WriteOptions(field_validation="Ignore", loaded=True)
        create(self._backend, resource, namespace, _copied(obj | {"metadata": metadata}), options)

    def _of_kind(self, kind: str, api_version: str) -> ApiResource:
        resource = self._backend.registry.of_kind(kind, api_version)
        if resource is None:
            raise KeyError(f"the sandbox does not serve kind {kind} of {api_version}")
        return resource

    def objects(self, kind: str) -> list[Json]:
        """Return the stored objects of a kind, sorted by namespace and name; the caller must not change the objects."""
        resource = self._of_kind(kind, "")
        return [entry.object for entry in self._backend.store.entries(resource.key)]


def _request(
    message: RawRequestMessage,
    payload: StreamReader,
    protocol: RequestHandler,
    writer: AbstractStreamWriter,
    task: asyncio.Task[None],
) -> web.BaseRequest:
    """Return an aiohttp request object with the API server's limit on request bodies."""
    loop = asyncio.get_running_loop()
    return web.BaseRequest(message, payload, protocol, writer, task, loop, client_max_size=_LARGEST_BODY)


def load_rank(obj: Mapping[str, Any]) -> int:
    """Return the position of an object's kind in the loading order: definitions, namespaces and classes come first."""
    return _ORDER.get(obj.get("kind", ""), len(_ORDER))


def _items(obj: Json) -> list[Json]:
    if "items" not in obj or not str(obj.get("kind", "")).endswith("List"):
        return [obj]
    kind = str(obj["kind"]).removesuffix("List")
    implied = {"kind": kind, "apiVersion": obj.get("apiVersion", "v1")} if kind else {}
    return [implied | item for item in obj["items"]]


def _copied(value: Any) -> Any:
    match value:
        case dict():
            return {key: _copied(item) for key, item in value.items()}
        case list() | tuple():
            return [_copied(item) for item in value]
    return value


def sandbox_nodes(count: int, kubernetes: str = DEFAULT.version) -> list[Json]:
    """Return Node objects `node-1` … with 4 CPUs, 32Gi and 110 pods each, assigned to three zones in turn.

    Args:
        count: how many nodes.
        kubernetes: the version of Kubernetes that their kubelets report.
    """
    text = encode(_data("node.yaml")).replace(b"VERSION", kubernetes.encode())
    named = (text.replace(b"NAME", b"node-%d" % (index + 1)) for index in range(count))
    return [decode(node.replace(b"ZONE", _ZONES[index % len(_ZONES)])) for index, node in enumerate(named)]


def _data(name: str) -> Any:
    return bounded_yaml.load(files("policysched.sandbox").joinpath(name).read_text("utf-8"))
