"""`SecureServer`: HTTPS on one socket, with limits on connections and on each connection's resources.

Anyone can connect, so every connection has limits: one request of limited size, and a deadline from the moment it is
accepted. TLS, the most expensive part, begins with the first byte. If the limits are reached, the oldest connection is
closed, separately for silent and for active ones, so a client with many connections cannot lock out probes.
"""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Awaitable, Callable
from http import HTTPStatus
from ssl import SSLContext
from typing import Any, Final, Protocol

from aiohttp import web

from policysched.app.serving.answers import HEADERS

MAX_CONNECTIONS: Final = 100
"""Largest number of active connections, each with about 300 kB for TLS; above it the oldest connection is closed."""
MOST_SILENT: Final = 200
"""Largest number of connections without a first byte; above it the oldest of these connections is closed.

Also the largest number of connections that wait for a place among the active ones, beyond which none is accepted.
"""
LONGEST: Final = 30.0
"""Longest duration of a connection. Units: seconds."""
HANDSHAKE: Final = 5.0
"""Longest duration of a TLS handshake. Units: seconds."""
TLS_SHUTDOWN: Final = 1.0
"""Longest duration of a TLS shutdown. Units: seconds."""
AFTER_FAILURE: Final = 0.5
"""Pause before new connections are accepted after the system ran out of file descriptors. Units: seconds."""
MAX_HEADER: Final = 16 << 10
"""Largest header field of a request, so that a client's token fits. Units: bytes."""
REFRESH: Final = 5.0
"""Interval between checks of certificate files. Units: seconds."""

_silent = logging.getLogger(f"{__name__}.http")
_silent.disabled = True  # invalid requests would be logged one by one

Handle = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class _Connection(web.RequestHandler):
    """aiohttp's handler of a connection, which answers invalid requests without identifying the server software."""

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Reject an invalid request."""
        super().handle_error(request, status, exc, message)
        _clear_traceback(exc)
        answer = web.Response(text=f"{status} {HTTPStatus(status).phrase}\n", status=status, headers=HEADERS)
        answer.force_close()
        return answer


class ServerTls(Protocol):
    """Interface of periodically refreshed TLS settings for new connections."""

    context: SSLContext

    def refresh(self) -> None:
        """Reload the settings if they changed."""


class _Http(web.Server):
    """aiohttp's server, which reports the end of a connection."""

    def __init__(self, handle: Handle) -> None:
        super().__init__(handle, handler_cancellation=True)
        self.ends: dict[Any, asyncio.Event] = {}

    def __call__(self) -> web.RequestHandler:
        """Create the handler of a connection."""
        limits: dict[str, Any] = {
            "max_line_size": MAX_HEADER,
            "max_field_size": MAX_HEADER,
            "lingering_time": TLS_SHUTDOWN,
        }
        logs: dict[str, Any] = {"access_log": None, "logger": _silent}
        return _Connection(self, loop=asyncio.get_running_loop(), auto_decompress=False, **limits, **logs)

    def connection_lost(self, handler: Any, exc: BaseException | None = None) -> None:
        """Record the end of a connection."""
        super().connection_lost(handler, exc)
        if (end := self.ends.get(handler)) is not None:
            end.set()


class SecureServer:
    """An HTTPS server on one socket, with limits on connections.

    Args:
        listener: A listening socket.
        certificate: The TLS settings.
        handle: Answers a request.
    """

    def __init__(self, listener: socket.socket, certificate: ServerTls, handle: Handle) -> None:
        self._listener = listener
        self._certificate = certificate
        self._handle = handle
        self._silent: dict[asyncio.Task[None], None] = {}
        self._waiting: dict[asyncio.Task[None], None] = {}
        """Connections that wait for a place among the active ones, in the order in which their first bytes came."""
        self._has_begun = asyncio.Event()
        self._connections: dict[asyncio.Task[None], None] = {}
        self._place_lock = asyncio.Lock()
        self.most = 0
        """Largest number of simultaneous active connections since the start."""

    async def run(self) -> None:
        """Serve until cancelled, or until refreshing the certificate fails."""
        self._http = _Http(self._handle_once)
        try:
            async with asyncio.TaskGroup() as tasks:
                tasks.create_task(self._refresh_until_cancelled())
                await self._accept_until_cancelled()
        finally:
            for one in (open_now := [*self._silent, *self._waiting, *self._connections]):
                one.cancel()
            await asyncio.gather(*open_now, return_exceptions=True)

    async def _handle_once(self, request: web.BaseRequest) -> web.StreamResponse:
        answer = await self._handle(request)
        answer.force_close()
        return answer

    async def _accept_until_cancelled(self) -> None:
        loop = asyncio.get_running_loop()
        while True:
            try:
                client, _ = await loop.sock_accept(self._listener)
            except OSError:
                await asyncio.sleep(AFTER_FAILURE)
                continue
            task = asyncio.create_task(self._serve(client))
            self._silent[task] = None
            task.add_done_callback(self._forget)
            if len(self._silent) > MOST_SILENT:
                oldest = next(iter(self._silent))
                del self._silent[oldest]
                oldest.cancel()
            await asyncio.sleep(0)
            while len(self._waiting) >= MOST_SILENT:
                self._has_begun.clear()
                await self._has_begun.wait()

    def _forget(self, task: asyncio.Task[None]) -> None:
        self._silent.pop(task, None)
        self._connections.pop(task, None)

    async def _make_room(self) -> None:
        """Close the oldest connection if the limit is reached."""
        await asyncio.sleep(0)  # finished connections free their places
        while len(self._connections) >= MAX_CONNECTIONS:
            oldest = next(iter(self._connections))
            oldest.cancel()
            await asyncio.wait((oldest,))
            await asyncio.sleep(0)

    async def _serve(self, client: socket.socket) -> None:
        """Serve one connection to its end or deadline."""
        try:
            if not await self._begin(client):
                client.close()
                return
        except BaseException:
            client.close()
            raise
        await self._answer(client)

    async def _begin(self, client: socket.socket) -> bool:
        """Wait for a connection's first byte, then make the connection active; return whether it is active."""
        task = asyncio.current_task()
        try:
            async with asyncio.timeout(HANDSHAKE):
                has_begun = await _has_first_byte(client)
        except OSError:  # includes the deadline
            has_begun = False
        if task is None or task not in self._silent or not has_begun:
            return False
        del self._silent[task]
        self._waiting[task] = None
        try:
            async with self._place_lock:
                await self._make_room()
        finally:
            del self._waiting[task]
            self._has_begun.set()
        self._connections[task] = None
        self.most = max(self.most, len(self._connections))
        return True

    async def _answer(self, client: socket.socket) -> None:
        handler, transport = self._http(), None
        end = self._http.ends[handler] = asyncio.Event()
        try:
            async with asyncio.timeout(LONGEST):
                transport, _ = await asyncio.get_running_loop().connect_accepted_socket(
                    lambda: handler,
                    client,
                    ssl=self._certificate.context,
                    ssl_handshake_timeout=HANDSHAKE,
                    ssl_shutdown_timeout=TLS_SHUTDOWN,
                )
                await end.wait()
        except OSError as error:  # includes TLS errors and the deadline
            _clear_traceback(error)
        finally:
            del self._http.ends[handler]
            # If a connection is cancelled during the handshake, its transport watches the socket until it is aborted.
            made = transport or handler.transport
            if made is not None:
                made.abort()
            else:
                handler.connection_lost(None)  # breaks the reference cycle with its parser
                client.close()

    async def _refresh_until_cancelled(self) -> None:
        while True:
            await asyncio.sleep(REFRESH)
            self._certificate.refresh()


async def _has_first_byte(client: socket.socket) -> bool:
    """Wait for the first byte of a connection; return whether the byte arrived."""
    loop = asyncio.get_running_loop()
    readable = asyncio.Event()
    loop.add_reader(client, readable.set)
    try:
        await readable.wait()
    finally:
        loop.remove_reader(client)
    return bool(client.recv(1, socket.MSG_PEEK))


def _clear_traceback(error: BaseException | None) -> None:
    """Clear the frames of a traceback, which keep the connection's 300 kB alive in a reference cycle.

    Only a full garbage collection frees such cycles, and that is rare.
    """
    while error is not None:
        error.__traceback__ = None
        error = error.__context__
