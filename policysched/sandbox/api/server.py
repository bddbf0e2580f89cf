"""HTTP server of the sandbox: one handler for all requests, and faults that tests inject.

This module knows HTTP and no kinds. It uses a low-level server without a routing table, because
CustomResourceDefinitions add paths. Faults make chosen requests fail as real API servers and networks do. They are
consumed in the order in which they were set, so a test can express "two conflicts, then success".
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import re
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from typing import Any

from aiohttp import web

from policysched.apimachinery import encode
from policysched.apimachinery.errors import NO_SUCH, NOT_ALLOWED, REASONS, StatusError, failure
from policysched.sandbox.api import discovery, requests
from policysched.sandbox.api.reading import Reader, WatchStream
from policysched.sandbox.api.requests import Answer, Target, check_origin, flag
from policysched.sandbox.storage.actions import scale_of
from policysched.sandbox.storage.store import Backend, Stored
from policysched.sandbox.storage.writes import WriteOptions, fetch

GRACE = 10.0
"""Time for sending a watch beyond its duration; then its connection is aborted. Units: seconds."""
_LOG = logging.getLogger(__name__)
_HEALTH = ("healthz", "readyz", "livez")
_HTML = b"<html><body><h1>503 Service Unavailable</h1></body></html>"


@dataclass(slots=True)
class Fault:
    """A fault to inject into the next `times` requests whose method and path match."""

    method: str
    path: str
    times: int | None
    action: str
    status: int = 200
    body: bytes = b""
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    after: int = 0

    def matches(self, method: str, path: str) -> bool:
        """Return whether the fault applies to a request with a method and path, and can still occur."""
        return self.times != 0 and self.method in ("*", method) and bool(re.search(self.path, path))


class Faults:
    """The faults to inject into requests of one sandbox; `seen` is the number of affected requests."""

    def __init__(self, close_watches: Callable[[], None]) -> None:
        self._rules: list[Fault] = []
        self._close_watches = close_watches
        self.seen = 0

    def clear(self) -> None:
        """Remove all faults."""
        self._rules.clear()

    def fail(
        self,
        method: str,
        path: str,
        status: int,
        *,
        times: int | None = 1,
        message: str = "",
        headers: dict[str, str] | None = None,
    ) -> None:
        """Answer matching requests with a failure Status; `headers` can add a Retry-After."""
        retry = int((headers or {}).get("Retry-After", "0"))
        details: dict[str, Any] | None = {"retryAfterSeconds": retry} if retry else None
        text = message or f"fault: {method} {path}"
        body = encode(failure(status, text, REASONS.get(status, "InternalError"), details))
        head = {"Content-Type": "application/json"} | (headers or {})
        self._rules.append(Fault(method, path, times, "answer", status, body, head))

    def html(self, method: str, path: str, status: int = 503, *, times: int | None = 1) -> None:
        """Answer matching requests with an HTML page, as a broken proxy does."""
        head = {"Content-Type": "text/html"}
        self._rules.append(Fault(method, path, times, "answer", status, _HTML, head))

    def reset(self, method: str, path: str, *, times: int | None = 1, handled: bool = False) -> None:
        """Abort the connections of matching requests, before they are handled, or afterwards instead of answering."""
        action = "reset-after" if handled else "reset"
        self._rules.append(Fault(method, path, times, action))

    def delay(self, method: str, path: str, seconds: float, *, times: int | None = 1) -> None:
        """Delay the handling of matching requests."""
        self._rules.append(Fault(method, path, times, "delay", delay=seconds))

    def deny(self, path: str) -> None:
        """Answer all requests for a path with 403 from now on, as if the RBAC rule were missing."""
        self.fail("*", path, 403, times=None, message=f'forbidden: User "sandbox" cannot access {path}')

    def cut_watch(self, path: str, *, after: int = 0) -> None:
        """Abort the connection of a watch in the middle of a line, after `after` chunks."""
        self._rules.append(Fault("GET", path, 1, "cut", after=after))

    def close_watches(self) -> None:
        """End all watches in an orderly way, as a restarting API server does."""
        self._close_watches()

    def take(self, method: str, path: str, *, watch: bool) -> Fault | None:
        """Return the fault that applies to a request and count its use; None without a fault."""
        for fault in self._rules:
            if fault.matches(method, path) and (fault.action == "cut") <= watch:
                if fault.times is not None:
                    fault.times -= 1
                self.seen += 1
                return fault
        return None


class Server:
    """Handles the HTTP requests of one sandbox."""

    def __init__(self, backend: Backend, faults: Faults, watches: set[WatchStream], version: Callable[[], str]) -> None:
        self._backend = backend
        self._faults = faults
        self._watches = watches
        self._version = version
        self._reader = Reader(backend)

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        """Answer one request, or cause the fault that matches the request; reject requests from web pages."""
        try:
            check_origin(request.headers, _port(request))
        except StatusError as error:
            return _json(encode(error.status), error.code)
        fault = self._faults.take(request.method, request.path_qs, watch=flag(request.query, "watch"))
        if fault is None:
            return await self._guarded(request, None)
        if fault.action == "answer":
            return web.Response(status=fault.status, body=fault.body, headers=fault.headers)
        await asyncio.sleep(fault.delay)
        if fault.action == "reset":
            return _drop(request)
        response = await self._guarded(request, fault)
        return _drop(request) if fault.action == "reset-after" else response

    async def _guarded(self, request: web.BaseRequest, fault: Fault | None) -> web.StreamResponse:
        try:
            return await self._answer(request, fault)
        except StatusError as error:
            return _json(encode(error.status), error.code)
        except RecursionError:
            return _json(encode(failure(400, "the object is nested too deep", "BadRequest")), 400)
        except ConnectionError:  # the client closed the connection
            raise
        except Exception as error:
            _LOG.exception("handling %s %s failed", request.method, request.path_qs)
            return _json(encode(failure(500, f"Internal error occurred: {error!r}", "InternalError")), 500)

    async def _answer(self, request: web.BaseRequest, fault: Fault | None) -> web.StreamResponse:
        target = requests.target_of(self._backend.registry, request.path)
        if target is None:
            return self._document(request)
        if request.method != "GET":
            return await self._change(request, target)
        if flag(request.query, "watch"):
            return await self._watch(request, target, fault)
        return _json(self._read(request, target))

    def _document(self, request: web.BaseRequest) -> web.Response:
        if request.method != "GET":
            raise StatusError(404, NO_SUCH, details={})
        if request.path.split("/")[1] in _HEALTH:
            return web.Response(text="ok")
        body, media = discovery.document(
            self._backend.registry, request.path, request.headers.get("Accept", ""), self._version()
        )
        if media == discovery.OPENAPI_V2:
            return web.Response(body=body, content_type=media)
        return _json(body, headers={"Content-Type": media})

    def _read(self, request: web.BaseRequest, target: Target) -> bytes:
        accept, query = request.headers.get("Accept", ""), request.query
        if not target.name:
            if "list" not in target.resource.verbs:
                raise StatusError(405, NOT_ALLOWED, details={})
            return self._reader.listed(target, query, accept)
        entry = fetch(self._backend, target.resource, target.namespace, target.name)
        if target.subresource == "scale":
            return encode(scale_of(entry.object))
        return self._reader.one(target.resource, entry, accept, query.get("includeObject", "Metadata"))

    async def _change(self, request: web.BaseRequest, target: Target) -> web.StreamResponse:
        try:
            raw = await request.read()
        except web.HTTPRequestEntityTooLarge as error:
            raise StatusError(413, "Request entity too large: limit is 3145728", "RequestEntityTooLarge") from error
        body = requests.body_of(raw, request.headers.get("Content-Type", ""))
        options = requests.options_of(request.query)
        code, found = self._changed(request, target, body, options)
        headers = {}
        if options.warnings:
            quoted = (text.replace("\\", "\\\\").replace('"', '\\"') for text in options.warnings)
            headers["Warning"] = ", ".join(f'299 - "{text}"' for text in quoted)
        if isinstance(found, Stored):
            return _json(self._reader.one(target.resource, found, request.headers.get("Accept", "")), code, headers)
        return _json(encode(found), code, headers)

    def _changed(self, request: web.BaseRequest, target: Target, body: Any, options: WriteOptions) -> Answer:
        match request.method:
            case "POST":
                return requests.post(self._backend, target, body, request.query, options)
            case "PUT" if target.name:
                return requests.put(self._backend, target, body, options)
            case "PATCH" if target.name:
                media = request.headers.get("Content-Type", "").partition(";")[0].strip()
                return requests.patch(self._backend, target, body, media, options)
            case "DELETE" if target.name:
                return requests.remove(self._backend, target, body, request.query)
            case "DELETE":
                return requests.remove_all(self._backend, target, body, request.query)
        raise StatusError(405, NOT_ALLOWED, details={})

    async def _watch(self, request: web.BaseRequest, target: Target, fault: Fault | None) -> web.StreamResponse:
        watch = self._reader.watch(target, request.query, request.headers.get("Accept", ""))
        response = web.StreamResponse(headers={"Content-Type": discovery.JSON})
        watch.given_up = partial(_drop, request)
        self._watches.add(watch)
        try:
            async with asyncio.timeout(watch.seconds + GRACE):
                await response.prepare(request)
                await self._send(request, response, watch, fault)
        except TimeoutError:
            _drop(request)  # the client does not read
        except ConnectionError:
            pass  # the client closed the connection, so no answer is possible
        finally:
            self._watches.discard(watch)
            watch.close()
        return response

    async def _send(
        self, request: web.BaseRequest, response: web.StreamResponse, watch: WatchStream, fault: Fault | None
    ) -> None:
        left = fault.after if fault is not None and fault.action == "cut" else -1
        async with contextlib.aclosing(watch.lines()) as lines:
            async for chunk in lines:
                if left == 0:
                    await response.write(chunk[: len(chunk) // 2])
                    _drop(request)
                    return
                left -= 1
                await response.write(chunk)
        await response.write_eof()


def _port(request: web.BaseRequest) -> int:
    """Return the local port of a request's connection; -1 if the connection is closed."""
    address = request.transport.get_extra_info("sockname") if request.transport is not None else None
    return int(address[1]) if address else -1


def _drop(request: web.BaseRequest) -> web.Response:
    """Abort the connection of a request without sending an answer."""
    if request.transport is not None:
        request.transport.abort()
    return web.Response(status=500)


def _json(body: bytes, code: int = 200, headers: dict[str, str] | None = None) -> web.Response:
    return web.Response(status=code, body=body + b"\n", headers={"Content-Type": discovery.JSON} | (headers or {}))
