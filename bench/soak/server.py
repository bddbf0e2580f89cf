"""The API server of the soak: the sandbox's storage and controllers, called without HTTP."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import AsyncGenerator, Callable, Iterator, Mapping
from contextlib import aclosing
from typing import Any, Final
from urllib.parse import parse_qsl, urlsplit

import msgspec

from bench.soak.clock import SimulatedClock
from policysched.apimachinery import encode
from policysched.apimachinery.errors import StatusError
from policysched.app.checking.schema import policy_definition
from policysched.framework import ApiError
from policysched.kube.request_limits import UNLIMITED, RateLimit
from policysched.kube.transport import JSON
from policysched.sandbox.api import requests
from policysched.sandbox.api.reading import Reader
from policysched.sandbox.controllers import ControllerLoop
from policysched.sandbox.controllers.nodes_and_cleanup import GarbageCollector, Kubelets, NodeLifecycleController
from policysched.sandbox.controllers.resource_claims import ReservationController, TemplateController
from policysched.sandbox.storage.actions import DeleteOptions, delete
from policysched.sandbox.storage.store import Backend, Stored
from policysched.sandbox.storage.writes import WriteOptions, create

Json = dict[str, Any]
HALF_A_REQUEST: Final = 0.001
"""Time of a request or an answer between the scheduler and the API server. Units: seconds."""
WATCH_DELAY: Final = 0.005
"""Time until a change reaches a watch. Units: seconds."""
STEP: Final = 1.0
"""Interval of the kubelets and controllers. Units: seconds."""
HISTORY: Final = 300
"""Number of changes of a resource that a watch can go back."""
_CONTROLLERS: Final = (
    Kubelets,
    NodeLifecycleController,
    GarbageCollector,
    TemplateController,
    ReservationController,
)
_EVENT = msgspec.json.Decoder(dict[str, Any])


class SoakServer:
    """An API server without a network.

    Attributes:
        backend: The objects.
        events: Number of events by reason; events are not stored.
        refused: The bindings that were refused because the pod had a node, as `namespace/name node`.
    """

    def __init__(self, clock: SimulatedClock, seed: int) -> None:
        self.backend = Backend(clock.now, random.Random(seed), HISTORY)
        self.events: Counter[str] = Counter()
        self.refused: list[str] = []
        self.on_eviction: Callable[[Json], None] = _ignore
        """Called with a pod before a scheduler deletes it."""
        self._keys: dict[str, str] = {}
        """Storage keys by kind."""
        self._reader = Reader(self.backend)
        self._controllers = ControllerLoop(self.backend, _CONTROLLERS, STEP)
        self.create(dict(policy_definition()), loaded=True)

    def start(self) -> None:
        """Start the controllers in the running event loop."""
        self._controllers.start()

    async def stop(self) -> None:
        """Stop the controllers."""
        await self._controllers.stop()

    # For the users of the cluster

    def create(self, obj: Json, *, loaded: bool = False) -> Json:
        """Create an object; with `loaded`, keep its node and status."""
        resource = self.backend.registry.of_kind(obj["kind"], obj["apiVersion"])
        if resource is None:
            raise KeyError(obj["kind"])
        namespace = obj["metadata"].get("namespace", "") if resource.namespaced else ""
        options = WriteOptions(field_validation="Ignore", loaded=True) if loaded else WriteOptions()
        return create(self.backend, resource, namespace, obj, options).object

    def get(self, kind: str, name: str, namespace: str = "") -> Json | None:
        """Return an object, which the caller must not change; None if it does not exist."""
        found = self.backend.store.get(self._key(kind), namespace, name)
        return None if found is None else found.object

    def objects(self, kind: str) -> Iterator[Json]:
        """Yield the objects of a kind, which the caller must not change."""
        return (one.object for one in self.backend.store.values(self._key(kind)))

    def write(self, kind: str, obj: Json) -> None:
        """Store a new version of an object as a controller of the cluster, without validation."""
        self.backend.store.write(self._key(kind), obj)

    def edit(self, path: str, patch: Json) -> None:
        """Send a merge patch."""
        self.answer("PATCH", path, encode(patch), "application/merge-patch+json")

    def delete(self, kind: str, name: str, namespace: str = "") -> None:
        """Delete an object if it exists."""
        resource = self.backend.registry.of_kind(kind, "")
        found = None if resource is None else self.backend.store.get(resource.key, namespace, name)
        if resource is not None and found is not None:
            delete(self.backend, resource, found, DeleteOptions())

    def _key(self, kind: str) -> str:
        if kind not in self._keys:
            resource = self.backend.registry.of_kind(kind, "")
            if resource is None:
                raise KeyError(kind)
            self._keys[kind] = resource.key
        return self._keys[kind]

    # For the schedulers

    def forget_lists(self) -> None:
        """Forget the lists that were read page by page, which hold old versions of all objects."""
        self._reader = Reader(self.backend)

    def answer(self, method: str, path: str, body: bytes | None, content_type: str) -> bytes:
        """Answer a request.

        Raises:
            ApiError: the request is refused.
        """
        parts = urlsplit(path)
        query = dict(parse_qsl(parts.query))
        if parts.path.split("/")[-1] == "events" and body is not None:
            self.events[_EVENT.decode(body).get("reason", "")] += 1
            return body
        target = requests.target_of(self.backend.registry, parts.path)
        if target is None:
            raise ApiError(404, "NotFound", f"{path} is not served")
        try:
            if method == "GET":
                return self._read(target, query)
            found = self._changed(method, target, requests.body_of(body or b"", content_type), content_type)
        except StatusError as error:
            raise ApiError(error.code, error.status.get("reason", ""), str(error)) from error
        return self._reader.one(target.resource, found) if isinstance(found, Stored) else encode(found)

    def _read(self, target: requests.Target, query: Mapping[str, str]) -> bytes:
        if not target.name:
            return self._reader.listed(target, query, "")
        found = self.backend.store.get(target.resource.key, target.namespace, target.name)
        if found is None:
            raise ApiError(404, "NotFound", f"{target.name} does not exist")
        return self._reader.one(target.resource, found)

    def _changed(self, method: str, target: requests.Target, body: Any, content_type: str) -> Stored | Json:
        backend, options = self.backend, requests.options_of({})
        match method:
            case "PATCH":
                return requests.patch(backend, target, body, content_type, options)[1]
            case "DELETE":
                if target.resource.kind == "Pod" and (found := self.get("Pod", target.name, target.namespace)):
                    self.on_eviction(found)
                return requests.remove(backend, target, body, {})[1]
        pod = self.get("Pod", target.name, target.namespace) if target.subresource == "binding" else None
        if pod is not None and pod["spec"].get("nodeName"):
            self.refused.append(f"{target.namespace}/{target.name} {body['target']['name']}")
        return requests.post(backend, target, body, {}, options)[1]

    async def lines(self, path: str) -> AsyncGenerator[list[bytes], None]:
        """Yield the lines of a watch."""
        parts = urlsplit(path)
        target = requests.target_of(self.backend.registry, parts.path)
        if target is None:
            raise ApiError(404, "NotFound", f"{path} is not served")
        watch = self._reader.watch(target, dict(parse_qsl(parts.query)), "")
        try:
            yield []
            async with aclosing(watch.lines()) as chunks:
                async for chunk in chunks:
                    await asyncio.sleep(WATCH_DELAY)
                    yield chunk.split(b"\n")[:-1]
        finally:
            watch.close()


def _ignore(_: Json) -> None:
    """Do nothing."""


class Link:
    """The connection of a scheduler to the server; a cut connection answers nothing."""

    url = "http://soak"
    on_answer: Callable[[str, int, float], None] | None = None

    def __init__(self, server: SoakServer) -> None:
        self.server = server
        self.is_cut = False

    def check(self) -> None:
        """Raise an error if the connection is cut.

        Raises:
            ApiError: the connection is cut.
        """
        if self.is_cut:
            raise ApiError(0, "Unreachable", "the connection is cut")


class LocalTransport:
    """Replaces `policysched.kube.transport.Transport`: calls the server after a simulated delay."""

    def __init__(
        self, link: Link, *, limit: RateLimit = UNLIMITED, may_write: Callable[[], bool] = lambda: True
    ) -> None:
        self._link, self._limit, self._may_write = link, limit, may_write

    async def request(
        self,
        method: str,
        path: str,
        body: bytes | Callable[[], bytes] | None = None,
        *,
        content_type: str = JSON,
        last: bool = False,
        **_: Any,
    ) -> bytes:
        """Send a request and return the answer.

        Raises:
            ApiError: the server refused the request, or the connection is cut.
        """
        await self._limit.wait(last=last)
        sent = body() if callable(body) else body
        await asyncio.sleep(HALF_A_REQUEST)
        self._link.check()
        if method != "GET" and not self._may_write():
            raise ApiError(0, "NotLeading", "another scheduler leads")
        answer = self._link.server.answer(method, path, sent, content_type)
        await asyncio.sleep(HALF_A_REQUEST)
        self._link.check()
        return answer

    async def lines(self, path: str, timeout: float, silence: float | None = None) -> AsyncGenerator[list[bytes], None]:  # noqa: ARG002 - a local watch is never silent
        """Yield the lines of a watch.

        Raises:
            ApiError: the connection is cut.
        """
        self._link.check()
        async with aclosing(self._link.server.lines(path)) as several:
            async for lines in several:
                self._link.check()
                yield lines
