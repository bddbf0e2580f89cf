"""A server on loopback that answers queries as a test tells it to, with sense or nonsense, and remembers them."""

from __future__ import annotations

import asyncio
import json
import ssl
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Any

from aiohttp import web

from tests.fake_server import Answer, posts_served


@dataclass
class FakePrometheus:
    """Gives each query the answer that is set for it, else the one that is set for all."""

    asked: list[Mapping[str, str]] = field(default_factory=list)
    headers: list[Mapping[str, str]] = field(default_factory=list)
    answers: dict[str, Answer] = field(default_factory=dict)
    otherwise: Answer | None = None
    url: str = ""

    async def respond(self, request: web.Request) -> web.StreamResponse:
        form = {name: str(value) for name, value in (await request.post()).items()}
        self.asked.append(form)
        self.headers.append(dict(request.headers))
        answer = self.answers.get(form.get("query", ""), self.otherwise)
        return await (answer or vector())(request)

    @property
    def queries(self) -> list[str]:
        return [form["query"] for form in self.asked]


@asynccontextmanager
async def fake_prometheus(
    tls: ssl.SSLContext | None = None, path: str = "/api/v1/query"
) -> AsyncIterator[FakePrometheus]:
    fake = FakePrometheus()
    async with posts_served(path, fake.respond, tls) as fake.url:
        yield fake


def series(node: str | None, value: object, at: float | None = None, label: str = "node", **labels: str) -> Any:
    """One series of a vector, as Prometheus writes it."""
    metric = {**labels, **({label: node} if node is not None else {})}
    return {"metric": metric, "value": [time.time() if at is None else at, str(value)]}


def result(kind: str, items: Any, **beside: Any) -> Answer:
    return given({"status": "success", "data": {"resultType": kind, "result": items}, **beside})


def vector(*items: Any, **beside: Any) -> Answer:
    """Answer with an instant vector."""
    return result("vector", list(items), **beside)


def nodes(**values: object) -> Answer:
    """Answer with one series for each node."""
    return vector(*(series(node, value) for node, value in values.items()))


def given(body: Any, status: int = 200, content_type: str = "application/json", **headers: str) -> Answer:
    """Answer with JSON, or with a text or bytes as they are."""
    text = body if isinstance(body, bytes | str) else json.dumps(body)
    data = text.encode() if isinstance(text, str) else text

    async def respond(_: web.Request) -> web.StreamResponse:
        return web.Response(body=data, status=status, content_type=content_type, headers=headers)

    return respond


PAGE = given("<html><body>Sign in</body></html>", content_type="text/html")
"""What a login in front of the server answers."""


def after(seconds: float, answer: Answer) -> Answer:
    """Take that long to answer."""

    async def respond(request: web.Request) -> web.StreamResponse:
        await asyncio.sleep(seconds)
        return await answer(request)

    return respond


class Counted:
    """Answers slowly, and counts how many requests are under way.

    Args:
        seconds: How long an answer takes.
        answer: The answer.
    """

    def __init__(self, seconds: float, answer: Answer) -> None:
        self._slow = after(seconds, answer)
        self._under_way = self.most = 0

    async def __call__(self, request: web.Request) -> web.StreamResponse:
        self._under_way += 1
        self.most = max(self.most, self._under_way)
        try:
            return await self._slow(request)
        finally:
            self._under_way -= 1


def cut_after(data: bytes, announced: int) -> Answer:
    """Announce a body and end the connection before all of it is sent."""

    async def respond(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json", "Content-Length": str(announced)})
        await response.prepare(request)
        await response.write(data)
        assert request.transport is not None
        request.transport.close()
        return response

    return respond


async def hang_up(request: web.Request) -> web.StreamResponse:
    """End the connection without an answer."""
    assert request.transport is not None
    request.transport.abort()
    raise asyncio.CancelledError


def flood(megabytes: int, sent: list[int]) -> Answer:
    """Send a vector that does not end before so much, counting what was taken."""

    async def respond(request: web.Request) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "application/json"})
        await response.prepare(request)
        await response.write(b'{"status":"success","data":{"resultType":"vector","result":[')
        piece = json.dumps(series("n", 1, 1.0)).encode() + b","
        block = piece * ((1 << 20) // len(piece))
        for _ in range(megabytes):
            await response.write(block)
            sent.append(len(block))
        await response.write(piece[:-1] + b"]}}")
        return response

    return respond


class Held:
    """A clock whose wall time only moves when it is told to."""

    def __init__(self, at: float = 1_790_000_000.0) -> None:
        self.at = at

    def now(self) -> datetime:
        return datetime.fromtimestamp(self.at, UTC)

    def monotonic(self) -> float:
        return time.monotonic()
