"""An HTTP server that returns prepared answers in order and records requests."""

from __future__ import annotations

import asyncio
import json
from collections import defaultdict
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

from policysched.kube.connection import Connection
from policysched.kube.transport import Pacing, Transport

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@dataclass(frozen=True)
class Asked:
    method: str
    path: str
    query: Mapping[str, str]
    body: Any
    headers: Mapping[str, str]


def answer(body: Any, status: int = 200, **headers: str) -> Answer:
    """Return an answer with an object as JSON, bytes with the content type of JSON, or a text."""

    async def respond(_: web.Request) -> web.StreamResponse:
        names = {name.replace("_", "-"): value for name, value in headers.items()}
        if isinstance(body, str):
            return web.Response(text=body, status=status, headers=names, content_type="text/html")
        if isinstance(body, bytes):
            return web.Response(body=body, status=status, headers=names, content_type="application/json")
        return web.json_response(body, status=status, headers=names)

    return respond


def status(code: int, reason: str, message: str = "no", **details: Any) -> dict[str, Any]:
    """A Status object of the API server."""
    return {"kind": "Status", "code": code, "reason": reason, "message": message, "details": details}


def refuse(code: int, reason: str, message: str = "no", **headers: str) -> Answer:
    return answer(status(code, reason, message), code, **headers)


def stream(*parts: Any, then: str = "end") -> Answer:
    """Return a watch as an answer: objects become lines, bytes are sent unchanged; `then` is end, hang or reset."""

    async def respond(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse()
        await response.prepare(request)
        for part in parts:
            await response.write(part if isinstance(part, bytes) else json.dumps(part).encode() + b"\n")
            await asyncio.sleep(0.005)
        if then == "hang":
            await asyncio.sleep(60)
        if then == "reset":
            await reset(request)
        return response

    return respond


async def reset(request: web.Request) -> web.StreamResponse:
    """Close the connection without an answer."""
    assert request.transport is not None
    request.transport.abort()
    raise asyncio.CancelledError


async def hang(_: web.Request) -> web.StreamResponse:
    """Never answer."""
    await asyncio.sleep(60)
    raise AssertionError


@dataclass
class FakeServer:
    asked: list[Asked] = field(default_factory=list)
    url: str = ""
    _answers: dict[tuple[str, str], list[Answer]] = field(default_factory=lambda: defaultdict(list))
    _runner: web.AppRunner | None = None

    def on(self, method: str, path: str, *answers: Answer) -> None:
        """Set the answers to a request, in order; the last one is repeated."""
        self._answers[method, path] = list(answers)

    def bodies(self, method: str) -> list[Any]:
        return [asked.body for asked in self.asked if asked.method == method]

    async def start(self) -> None:
        app = web.Application()
        app.router.add_route("*", "/{path:.*}", self._respond)
        self._runner = web.AppRunner(app, shutdown_timeout=0.01, handle_signals=False)
        await self._runner.setup()
        site = web.TCPSite(self._runner, "127.0.0.1", 0)
        await site.start()
        host, port = self._runner.addresses[0][:2]
        self.url = f"http://{host}:{port}"

    async def stop(self) -> None:
        assert self._runner is not None
        await self._runner.cleanup()

    async def _respond(self, request: web.Request) -> web.StreamResponse:
        raw = await request.read()
        body = json.loads(raw) if raw else None
        self.asked.append(Asked(request.method, request.path, dict(request.query), body, dict(request.headers)))
        kind = "WATCH" if "watch" in request.query else request.method
        answers = self._answers[kind, request.path]
        if not answers:
            return await refuse(404, "NotFound", f"{request.path} not found")(request)
        return await (answers.pop(0) if len(answers) > 1 else answers[0])(request)


class Pauses:
    """Pacing without waiting, which records the pauses."""

    def __init__(self) -> None:
        self.lengths: list[float] = []
        self.pacing = Pacing(lambda: 0.0, self._sleep)

    async def _sleep(self, seconds: float) -> None:
        self.lengths.append(seconds)
        await asyncio.sleep(0.001)


class Ticking:
    """A clock that tests advance."""

    def __init__(self) -> None:
        self.at = 100.0

    def now(self) -> datetime:
        return datetime(2026, 1, 1, tzinfo=UTC)

    def monotonic(self) -> float:
        return self.at


@dataclass
class Kube:
    """A fake server and a transport to it."""

    server: FakeServer
    connection: Connection
    transport: Transport
    pauses: Pauses


async def eventually(claim: Callable[[], bool], seconds: float = 5.0) -> None:
    """Wait until a condition is true."""
    for _ in range(int(seconds / 0.005)):
        if claim():
            return
        await asyncio.sleep(0.005)
    assert claim()
