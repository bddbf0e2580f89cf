"""An extender on loopback that answers as a test tells it to, and remembers what it was asked."""

from __future__ import annotations

import json
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web

from tests.fake_server import Answer, posts_served

Respond = Callable[[Any], Any]
"""Makes an answer of a question, both as plain JSON values."""


@dataclass
class FakeExtender:
    """Answers by verb: with what a function makes of the question, with a response, or with 404."""

    asked: list[tuple[str, Any]] = field(default_factory=list)
    headers: list[dict[str, str]] = field(default_factory=list)
    answers: dict[str, Respond | Answer | web.Response] = field(default_factory=dict)
    url: str = ""

    async def respond(self, request: web.Request) -> web.StreamResponse:
        verb, question = request.match_info["verb"], json.loads(await request.read())
        self.asked.append((verb, question))
        self.headers.append(dict(request.headers))
        answer = self.answers.get(verb)
        if answer is None:
            return web.Response(status=404)
        if isinstance(answer, web.Response):
            return answer
        given = answer(question)
        if isinstance(given, Awaitable):
            given = await given
        return given if isinstance(given, web.StreamResponse) else web.json_response(given)


@asynccontextmanager
async def fake_extender(tls: ssl.SSLContext | None = None) -> AsyncIterator[FakeExtender]:
    fake = FakeExtender()
    async with posts_served("/scheduler/{verb:.*}", fake.respond, tls) as url:
        fake.url = f"{url}/scheduler"
        yield fake
