"""A proxy between a scheduler and its API server that makes the faults of servers, gateways and networks.

It passes everything on but reads of chosen collections, which it answers as a fault says. It knows no objects.
"""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Collection, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import TypeVar

import yaml
from aiohttp import web

from tests.e2e.objects import Json
from tests.e2e.server import Server

Answer = Callable[["Proxy", web.Request], Awaitable[web.StreamResponse]]
JSON = {"Content-Type": "application/json"}
LINE = b'{"type":"MODIFIED","object":{"metadata":{"name":"x","resourceVersion":"999999999"}}}\n'


@dataclass
class Proxy:
    """The way to a server."""

    server: Server
    struck: Counter[str] = field(default_factory=Counter)
    """How many reads got the fault, by collection."""
    first: dict[str, bytes] = field(default_factory=dict)
    """The first list of each collection that passed."""
    url: str = ""
    port: int = 0
    _fault: Answer | None = None
    _collections: Collection[str] = ()
    _open: dict[asyncio.Transport, str] = field(default_factory=dict)
    """The connections of answers under way, with what they are about."""
    _site: web.TCPSite | None = None
    _runner: web.ServerRunner | None = None

    async def strike(self, fault: Answer, *collections: str) -> None:
        """Answer reads of these collections with a fault from now on; their watches break."""
        self.struck.clear()
        if fault is refused:
            await self._close()
        self._fault, self._collections = fault, collections
        self._break(*collections)

    async def heal(self) -> None:
        """Pass everything on."""
        if self._fault is refused:
            await self.listen(self.port)
        self._fault = None
        self._break(*self._open.values())

    async def _close(self) -> None:
        """Take no connections any more, and break those that there are."""
        assert self._site is not None
        await self._site.stop()
        self._break(*self._open.values())

    async def listen(self, port: int = 0) -> None:
        """Take connections."""
        if self._runner is None:
            made = web.Server(self._answer, handler_cancellation=True)  # type: ignore[arg-type]
            self._runner = web.ServerRunner(made, shutdown_timeout=0.01)
            await self._runner.setup()
        self._site = web.TCPSite(self._runner, "127.0.0.1", port)
        await self._site.start()
        assert self._site._server is not None
        self.port = self._site._server.sockets[0].getsockname()[1]  # type: ignore[attr-defined]
        self.url = f"http://127.0.0.1:{self.port}"

    async def end(self) -> None:
        """Stop for good."""
        assert self._runner is not None
        await self._runner.cleanup()

    def _break(self, *collections: str) -> None:
        for transport, path in list(self._open.items()):
            if path in collections:
                transport.abort()

    async def _answer(self, request: web.Request) -> web.StreamResponse:
        with self._answering(request):
            return await self._answer_or_strike(request)

    async def _answer_or_strike(self, request: web.Request) -> web.StreamResponse:
        fault = self._fault
        struck = fault is not None and request.method == "GET" and request.path in (*self._collections, *DISCOVERY)
        if not struck or fault is None or (request.path in DISCOVERY and fault is not not_served):
            return await self.forward(request)
        self.struck[request.path] += 1
        return await fault(self, request)

    @contextmanager
    def _answering(self, request: web.BaseRequest) -> Iterator[None]:
        transport = request.transport
        assert transport is not None
        self._open[transport] = request.path
        try:
            yield
        finally:
            self._open.pop(transport, None)

    def target(self) -> str:
        """Return the URL of the server that gets the next request."""
        return self.server.url

    async def forward(self, request: web.Request, limit: int | None = None) -> web.StreamResponse:
        """Pass a request on, and of the answer all or so many bytes."""
        body = await request.read()
        headers = {name: request.headers[name] for name in ("Content-Type", "Accept") if name in request.headers}
        url = self.target() + request.path_qs
        async with self.server.session.request(request.method, url, data=body or None, headers=headers) as answer:
            kept = {name: answer.headers[name] for name in ("Content-Type", "Retry-After") if name in answer.headers}
            if not is_watch(request):
                whole = await answer.read()
                self.first.setdefault(request.path, whole)
                return web.Response(status=answer.status, body=whole[:limit], headers=kept)
            response = web.StreamResponse(status=answer.status, headers=kept)
            await response.prepare(request)
            async for chunk in answer.content.iter_any():
                await response.write(chunk)
            return response


DISCOVERY = ("/apis",)


def is_watch(request: web.BaseRequest) -> bool:
    return "watch" in request.query


def status(code: int, **headers: str) -> Answer:
    """Refuse with a Status object."""
    body: Json = {"kind": "Status", "code": code, "reason": f"Reason{code}", "message": f"refused with {code}"}

    async def answer(_: Proxy, __: web.Request) -> web.StreamResponse:
        named = {name.replace("_", "-"): value for name, value in headers.items()}
        return web.Response(status=code, text=json.dumps(body), headers=JSON | named)

    return answer


async def too_many(_: Proxy, __: web.Request) -> web.StreamResponse:
    """Refuse as an API server does that is overloaded."""
    said = "Too many requests, please try again later.\n"
    return web.Response(status=429, text=said, headers={"Retry-After": "1"})


def text(body: bytes, kind: str = "application/json") -> Answer:
    """Answer with status 200 and a body."""

    async def answer(_: Proxy, __: web.Request) -> web.StreamResponse:
        return web.Response(body=body, headers={"Content-Type": kind})

    return answer


async def not_served(_: Proxy, request: web.Request) -> web.StreamResponse:
    """Know nothing of the kinds, neither of their objects nor in the list of what is served."""
    if request.path in DISCOVERY:
        return web.json_response({"kind": "APIGroupList", "groups": []})
    return await status(404)(_, request)


async def reset(_: Proxy, request: web.Request) -> web.StreamResponse:
    """Break the connection before an answer."""
    assert request.transport is not None
    request.transport.abort()
    await asyncio.sleep(0)
    return web.Response()


async def refused(_: Proxy, __: web.Request) -> web.StreamResponse:
    """Stand for taking no connections at all."""
    raise AssertionError


async def hang(_: Proxy, __: web.Request) -> web.StreamResponse:
    """Never answer."""
    await asyncio.sleep(60)
    return web.Response()


async def halfway(_: Proxy, request: web.Request) -> web.StreamResponse:
    """Break the connection inside the answer, after half a line of a watch and half a list."""
    response = web.StreamResponse(headers=JSON)
    await response.prepare(request)
    await response.write(LINE[:40] if is_watch(request) else b'{"kind":"NodeList","metadata":{"resourceVersion":"9')
    await asyncio.sleep(0.01)
    return await reset(_, request)


async def cut(proxy: Proxy, request: web.Request) -> web.StreamResponse:
    """End in good order after half a line or half a list."""
    return await text(LINE[:40])(proxy, request) if is_watch(request) else await proxy.forward(request, -5)


async def drip(_: Proxy, request: web.Request) -> web.StreamResponse:
    """Send a byte now and then."""
    response = web.StreamResponse(headers=JSON)
    await response.prepare(request)
    for _number in range(1000):
        await response.write(b" ")
        await asyncio.sleep(0.02)
    return response


async def expired(_: Proxy, request: web.Request) -> web.StreamResponse:
    """Say of every version that it is too old."""
    if not is_watch(request):
        return await status(410)(_, request)
    gone = {"kind": "Status", "code": 410, "reason": "Expired", "message": "too old resource version"}
    return await text(json.dumps({"type": "ERROR", "object": gone}).encode() + b"\n")(_, request)


async def older(proxy: Proxy, request: web.Request) -> web.StreamResponse:
    """Answer lists with what was there at first, as a replica that stays behind; watches have no news."""
    if is_watch(request):
        return await status(504)(proxy, request)
    return await text(proxy.first[request.path])(proxy, request)


async def quiet(proxy: Proxy, request: web.Request) -> web.StreamResponse:
    """Open watches and never say anything in them; lists are well."""
    if not is_watch(request):
        return await proxy.forward(request)
    response = web.StreamResponse(headers=JSON)
    await response.prepare(request)
    await asyncio.sleep(60)
    return response


async def mixed_up(proxy: Proxy, request: web.Request) -> web.StreamResponse:
    """Answer watches with events about objects of another kind that have the names of those listed, lists with 502."""
    if not is_watch(request):
        return await status(502)(proxy, request)
    lines = []
    for number, one in enumerate(json.loads(proxy.first[request.path])["items"]):
        metadata = {name: one["metadata"][name] for name in ("name", "namespace") if name in one["metadata"]}
        metadata |= {"uid": f"other-{number}", "resourceVersion": str(10**12 + number)}
        obj = {"kind": "Secret", "apiVersion": "v1", "metadata": metadata}
        lines += [{"type": event, "object": obj} for event in ("MODIFIED", "DELETED")]
    return await text("".join(f"{json.dumps(line)}\n" for line in lines).encode())(proxy, request)


def passing(fault: Answer, times: int) -> Answer:
    """Make a fault that strikes so many reads of each collection and then passes everything on."""
    seen: Counter[str] = Counter()

    async def answer(proxy: Proxy, request: web.Request) -> web.StreamResponse:
        seen[request.path] += 1
        return await (fault(proxy, request) if seen[request.path] <= times else proxy.forward(request))

    return answer


FAULTS: dict[str, Answer] = {
    "404": status(404),
    "404, and the kind is not served": not_served,
    "403": status(403),
    "429 with Retry-After": too_many,
    "500": status(500),
    "connection refused": refused,
    "connection reset": reset,
    "connection reset inside the answer": halfway,
    "no answer": hang,
    "a byte now and then": drip,
    "empty body": text(b""),
    "garbage": text(b"\x00garbage\n"),
    "web page of status 200": text(b"<html></html>\n", "text/html"),
    "list or line cut short": cut,
    "object of another kind": text(b'{"kind":"Status","status":"Success","metadata":{}}\n'),
    "events about another kind": mixed_up,
    "410, by status and by ERROR event": expired,
    "list older than what was seen": older,
}


P = TypeVar("P", bound=Proxy)


@asynccontextmanager
async def proxied(
    server: Server,
    folder: Path,
    make: Callable[[Server], P],
) -> AsyncIterator[tuple[P, Path]]:
    """Give a proxy before a server, and the kubeconfig that leads there."""
    proxy = make(server)
    await proxy.listen()
    config = {
        "current-context": "c",
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
        "clusters": [{"name": "c", "cluster": {"server": proxy.url}}],
        "users": [{"name": "u", "user": {}}],
    }
    path = folder / "proxied"
    path.write_text(yaml.safe_dump(config))
    try:
        yield proxy, path
    finally:
        await proxy.end()
