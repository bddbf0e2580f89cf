from __future__ import annotations

from collections.abc import AsyncIterator

import pytest_asyncio

from policysched.kube.connection import Connection
from policysched.kube.transport import Transport
from tests.kube.fake_server import FakeServer, Kube, Pauses, Ticking


@pytest_asyncio.fixture
async def kube() -> AsyncIterator[Kube]:
    server = FakeServer()
    await server.start()
    connection = Connection(server.url, Ticking())
    try:
        yield Kube(server, connection, Transport(connection, timeout=1.0), Pauses())
    finally:
        await connection.close()
        await server.stop()
