"""`Endpoints`: the paths of the HTTPS port and their authorization.

A request is authenticated, authorized by path and method, and only then processed, so unauthorized clients cannot
detect which paths exist.

Source: cmd/kube-scheduler/app/server.go (newEndpointsHandler, buildHandlerChain).
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Mapping
from http import HTTPStatus
from types import MappingProxyType
from typing import Any, Final, Protocol

from aiohttp import web
from cachetools import TTLCache
from prometheus_client import disable_created_metrics
from prometheus_client.exposition import choose_encoder
from prometheus_client.registry import Collector

from policysched.app.serving.answers import json_answer, refusal, text_answer
from policysched.app.serving.health import Health
from policysched.app.serving.refused import RefusedError

log = logging.getLogger(__name__)
Answer = Callable[[web.BaseRequest], Awaitable[web.Response]]
READING: Final = ("GET", "HEAD")
REUSED_FOR: Final = 1.0
"""Time for which a document is reused, because computing it can take tens of milliseconds. Units: seconds."""
READ_WITHIN: Final = 5.0
"""Longest wait for an answer of the scheduler's loop. Units: seconds."""


class Access(Protocol):
    """Interface of an object that decides which clients may read which paths."""

    async def check(self, request: web.BaseRequest) -> None:
        """Check that a client may make a request; raise an error if not.

        Raises:
            RefusedError: the request is not allowed.
        """


class Endpoints:
    """The paths of the port, answered in its own thread.

    Args:
        access: Authorization.
        health: The health checks.
        metrics: Registry of /metrics.
        documents: JSON documents by path; computed in the scheduler's loop.
        loop: The scheduler's event loop.
        more: Other paths with method and handler; without a method it is GET.
    """

    def __init__(
        self,
        access: Access,
        health: Health,
        metrics: Collector,
        documents: Mapping[str, Callable[[], Any]],
        loop: asyncio.AbstractEventLoop,
        more: Mapping[str, tuple[str, Answer]] = MappingProxyType({}),
    ) -> None:
        # kube-scheduler has no such series, and they would double the number.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._access = access
        self._health = health
        self._metrics_of = metrics
        self._documents = documents
        self._loop = loop
        self._more = more
        self._document_lock = asyncio.Lock()
        self._recent: TTLCache[str, Any] = TTLCache(len(documents) + 1, REUSED_FOR)

    async def answer(self, request: web.BaseRequest) -> web.Response:
        """Answer a request to the HTTPS port."""
        try:
            await self._access.check(request)
            return await self._routed(request)
        except RefusedError as error:
            return refusal(error)
        except Exception:
            log.exception("a request to the secure port failed")
            return refusal(RefusedError(500, "Internal error occurred"))

    async def _routed(self, request: web.BaseRequest) -> web.Response:
        path = request.path
        method, answer = self._more.get(path, ("", None))
        taken = (method,) if method else READING
        if request.method not in taken:
            text = f"{path:.100} does not allow {request.method}"
            raise RefusedError(HTTPStatus.METHOD_NOT_ALLOWED, text, {"Allow": ", ".join(taken)})
        if answer is not None:
            return await answer(request)
        if path == "/metrics":
            return self._metrics(request)
        if path in self._documents:
            return json_answer(await self._document(path))
        query = request.query
        result = self._health.answer(path, excluded=query.getall("exclude", ()), verbose="verbose" in query)
        if result is None:
            return text_answer("404 page not found\n", HTTPStatus.NOT_FOUND)
        code, text = result
        return text_answer(text, code)

    def _metrics(self, request: web.BaseRequest) -> web.Response:
        try:
            encode, media = choose_encoder(request.headers.get("Accept", ""))
        except (TypeError, ValueError):  # invalid versions
            encode, media = choose_encoder("")
        return text_answer(encode(self._metrics_of).decode(), media=media)

    async def _document(self, path: str) -> Any:
        """Return a JSON document; the scheduler's loop computes the document once for concurrent requests."""
        async with self._document_lock:
            document = self._recent.get(path)
            if document is None:
                document = self._recent[path] = await self._in_loop(self._documents[path])
            return document

    async def _in_loop(self, function: Callable[[], Any]) -> Any:
        """Call a function in the scheduler's loop.

        Raises:
            RefusedError: the loop does not answer in time.
        """

        async def call() -> Any:
            return function()

        try:
            async with asyncio.timeout(READ_WITHIN):
                return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(call(), self._loop))
        except TimeoutError:
            raise RefusedError(503, "the scheduler's event loop does not respond") from None
