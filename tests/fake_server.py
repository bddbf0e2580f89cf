"""An HTTP server on loopback that answers posts as a function says, for fakes of services that are asked."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

from aiohttp import web

Answer = Callable[[web.Request], Awaitable[web.StreamResponse]]


@asynccontextmanager
async def posts_served(path: str, respond: Answer, tls: ssl.SSLContext | None = None) -> AsyncIterator[str]:
    """Serve posts to a path until the end; give the URL in front of it."""
    app = web.Application(client_max_size=1 << 30)
    app.router.add_post(path, respond)
    runner = web.AppRunner(app, shutdown_timeout=0.01, handle_signals=False)
    await runner.setup()
    try:
        await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls).start()
        port = runner.addresses[0][1]
        yield f"https://localhost:{port}" if tls else f"http://127.0.0.1:{port}"
    finally:
        await runner.cleanup()
