"""A secure port on loopback, and requests to it."""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import AsyncIterator
from datetime import UTC, datetime

import aiohttp
from aiohttp import web

from policysched.app.serving.options import ServingOptions
from policysched.app.serving.server import Handle, SecureServer
from policysched.app.serving.thread import listen
from policysched.app.serving.tls.certificates import ServingCertificate


def free_port() -> int:
    """Give a port that was free a moment ago."""
    with socket.create_server(("127.0.0.1", 0)) as probe:
        port: int = probe.getsockname()[1]
        return port


class Port:
    """A server under test.

    Args:
        port: Where it is.
        server: It.
        certificate: Its TLS settings.
    """

    def __init__(self, port: int, server: SecureServer, certificate: ServingCertificate) -> None:
        self.port, self.server, self.certificate = port, server, certificate

    async def get(
        self, path: str, method: str = "GET", *, headers: dict[str, str] | None = None, data: str | None = None
    ) -> tuple[int, str]:
        """Make a request on a connection of its own."""
        async with (
            aiohttp.ClientSession() as session,
            session.request(
                method, f"https://127.0.0.1:{self.port}{path}", headers=headers, data=data, ssl=False
            ) as answer,
        ):
            return answer.status, await answer.text()

    async def connect(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Open a connection and say nothing, not even for TLS."""
        return await asyncio.open_connection("127.0.0.1", self.port)


async def hello(request: web.BaseRequest) -> web.StreamResponse:
    """Answer with the path."""
    return web.Response(text=request.path)


@contextlib.asynccontextmanager
async def open_port(handle: Handle = hello, options: ServingOptions | None = None) -> AsyncIterator[Port]:
    """Serve with a handler."""
    options = options or ServingOptions()
    chosen = ServingOptions(port=free_port(), bind_address="127.0.0.1")
    listener = listen(chosen)
    assert listener is not None
    certificate = ServingCertificate(options, datetime.now(UTC))
    server = SecureServer(listener, certificate, handle)
    with listener:
        task = asyncio.create_task(server.run())
        try:
            yield Port(chosen.port, server, certificate)
            assert not task.done(), task.exception()
        finally:
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)
