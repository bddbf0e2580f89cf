"""Connections are closed with the session, even if the peer never closes them."""

from __future__ import annotations

import asyncio
import gc
import socket
import ssl
import threading
import warnings
from collections.abc import Iterator
from pathlib import Path

import pytest

from policysched.app.clock import SystemClock
from policysched.kube.connection import Connection
from tests.controlplane.certificates import Authority

HEAD = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n"


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


@pytest.fixture
def deaf(authority: Authority) -> Iterator[int]:
    """A server that sends the beginning of a TLS response and then reads nothing; yields its port."""
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(authority.folder / "server.crt", authority.folder / "server.key")
    over = threading.Event()
    with socket.create_server(("127.0.0.1", 0)) as listening:

        def serve() -> None:
            accepted, _ = listening.accept()
            with tls.wrap_socket(accepted, server_side=True) as connected:
                connected.recv(4096)
                connected.sendall(HEAD)
                over.wait(30)

        thread = threading.Thread(target=serve)
        thread.start()
        yield listening.getsockname()[1]
        over.set()
        thread.join()


def test_answer_given_up_midway_leaves_no_connection_behind(authority: Authority, deaf: int) -> None:
    tls = ssl.create_default_context(cafile=str(authority.certificate))

    async def give_up() -> None:
        connection = Connection(f"https://localhost:{deaf}", SystemClock(), tls=tls)
        response = await connection.session.get(connection.url, **connection.routing)
        await response.content.readany()
        response.close()
        await connection.close()

    gc.collect()
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("always")
        asyncio.run(give_up())
        gc.collect()
    assert [str(one.message) for one in said] == []
