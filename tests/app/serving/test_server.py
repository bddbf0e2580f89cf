"""The secure port against those who open it: slow, many, large, and not speaking TLS."""

from __future__ import annotations

import asyncio
import gc
import os
import socket
import ssl
import sys
from pathlib import Path

import pytest
from aiohttp import web

from policysched.app.serving import server
from policysched.app.serving.options import ServingOptions
from policysched.app.serving.thread import listen
from policysched.errors import UsageError
from tests.app.serving.flood import BEGIN
from tests.app.serving.ports import free_port, hello, open_port
from tests.app.serving.test_certificates import write_pair

PATIENCE = 60.0
CONNECTIONS = int(os.environ.get("POLICYSCHED_CONNECTIONS", "1000"))


async def closed(reader: asyncio.StreamReader) -> bytes:
    """Wait until the other side ends a connection; give what came before."""
    try:
        return await asyncio.wait_for(reader.read(), PATIENCE)
    except ConnectionError:
        return b""


def unverified() -> ssl.SSLContext:
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    return context


async def test_connection_serves_one_request() -> None:
    async with open_port() as port:
        assert await port.get("/a") == (200, "/a")
        reader, writer = await asyncio.open_connection("127.0.0.1", port.port, ssl=unverified())
        writer.write(b"GET /b HTTP/1.1\r\nHost: x\r\n\r\nGET /c HTTP/1.1\r\nHost: x\r\n\r\n")
        said = await closed(reader)
        writer.close()
        assert said.startswith(b"HTTP/1.1 200 OK\r\n") and said.endswith(b"\r\n\r\n/b")


async def test_silent_connections_end_at_their_deadlines(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "HANDSHAKE", 0.2)
    monkeypatch.setattr(server, "LONGEST", 0.5)
    async with open_port() as port:
        reader, writer = await port.connect()
        assert await closed(reader) == b""
        writer.close()
        reader, writer = await asyncio.open_connection("127.0.0.1", port.port, ssl=unverified())
        writer.write(b"GET /slow HTTP/1.1\r\nHost: ")
        assert await closed(reader) == b""
        writer.close()
        assert await port.get("/still") == (200, "/still")


async def test_handler_that_hangs_ends_with_its_connection(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(server, "LONGEST", 0.5)
    ended = asyncio.Event()

    async def hang(request: web.BaseRequest) -> web.StreamResponse:
        if request.path == "/ok":
            return web.Response()
        try:
            await asyncio.sleep(PATIENCE)
        finally:
            ended.set()
        raise AssertionError

    async with open_port(hang) as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port.port, ssl=unverified())
        writer.write(b"GET /slow HTTP/1.1\r\nHost: x\r\n\r\n")
        assert await closed(reader) == b""
        writer.close()
        await asyncio.wait_for(ended.wait(), PATIENCE)
        assert (await port.get("/ok"))[0] == 200


@pytest.mark.parametrize(
    "sent",
    [b"hello\r\n\r\n", b"GET / HTTP/1.1\r\nX: " + b"x" * (server.MAX_HEADER + 99) + b"\r\n\r\n", b"\0" * 99 + b"\n"],
)
async def test_requests_that_are_none_are_refused_and_not_logged(sent: bytes, caplog: pytest.LogCaptureFixture) -> None:
    async with open_port() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port.port, ssl=unverified())
        writer.write(sent)
        assert (await closed(reader)).startswith(b"HTTP/1.0 400 ")
        writer.close()
        assert await port.get("/a") == (200, "/a")
    assert caplog.messages == []


async def test_answer_to_what_is_no_request_does_not_name_the_library() -> None:
    async with open_port() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port.port, ssl=unverified())
        writer.write(b"GET /a HTTP/1.1\r\nHost: x\rEvil: y\r\n\r\n")
        said = await closed(reader)
        writer.close()
    assert b"Server: policysched\r\n" in said and said.endswith(b"\r\n\r\n400 Bad Request\n") and b"Evil" not in said


def open_tls() -> int:
    """Count the TLS connections that somebody holds, be it only the garbage."""
    return sum(type(one) is ssl.SSLObject for one in gc.get_objects())


async def test_connection_ended_as_tls_begins_takes_no_later_one_along(monkeypatch: pytest.MonkeyPatch) -> None:
    # Its socket's number is the next one's: what still watches it would have that one hear nothing.
    ended: list[bool] = []

    def end_at_once(made: web.RequestHandler, transport: asyncio.BaseTransport) -> None:
        web.RequestHandler.connection_made(made, transport)
        if not ended:
            serving = [one for one in asyncio.all_tasks() if "SecureServer._serve" in repr(one.get_coro())]
            ended.extend(one.cancel() for one in serving)

    monkeypatch.setattr(server._Connection, "connection_made", end_at_once, raising=False)
    async with open_port() as port:
        reader, writer = await asyncio.open_connection("127.0.0.1", port.port, ssl=unverified())
        assert await closed(reader) == b""
        async with asyncio.timeout(server.HANDSHAKE):
            said = await asyncio.gather(*(port.get(f"/{number}") for number in range(8)))
        writer.close()
    assert ended == [True] and said == [(200, f"/{number}") for number in range(8)]


@pytest.mark.parametrize("sent", [b"", b"hello", b"\x16\x03\x01\x00\x05hello", b"\x16\x03\x01\x02\x00\x01"])
async def test_connections_without_tls_are_no_work_for_the_garbage_collector(
    sent: bytes, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with open_port() as port:
        gc.collect()
        gc.disable()
        try:
            before = open_tls()
            for _ in range(2):
                opened = await asyncio.gather(*(port.connect() for _ in range(server.MAX_CONNECTIONS)))
                for _, writer in opened:
                    writer.write(sent)
                await asyncio.gather(*(writer.drain() for _, writer in opened), return_exceptions=True)
                for _, writer in opened:
                    writer.transport.abort()
            async with asyncio.timeout(PATIENCE):
                while open_tls() > before:
                    await asyncio.sleep(0.01)
        finally:
            gc.enable()


async def test_malformed_requests_are_no_work_for_the_garbage_collector() -> None:
    async with open_port() as port:
        gc.collect()
        gc.disable()
        try:
            before = open_tls()
            for _ in range(20):
                reader, writer = await asyncio.open_connection("127.0.0.1", port.port, ssl=unverified())
                writer.write(b"hello\r\n\r\n")
                await closed(reader)
                writer.close()
            del reader, writer
            async with asyncio.timeout(PATIENCE):
                while open_tls() > before:
                    await asyncio.sleep(0.01)
        finally:
            gc.enable()


async def test_plain_http_is_no_request(caplog: pytest.LogCaptureFixture) -> None:
    async with open_port() as port:
        reader, writer = await port.connect()
        writer.write(b"GET /a HTTP/1.1\r\nHost: x\r\n\r\n")
        assert b"HTTP/1.1 200" not in await closed(reader)
        writer.close()
    assert caplog.messages == []


async def test_thousand_connections_keep_no_probe_out() -> None:
    async with open_port() as port:
        waves = CONNECTIONS // server.MAX_CONNECTIONS // 2
        for _ in range(waves):
            opened = await asyncio.gather(*(port.connect() for _ in range(2 * server.MAX_CONNECTIONS)))
            for _, writer in opened:
                writer.transport.abort()
        silent = await asyncio.gather(*(port.connect() for _ in range(2 * server.MAX_CONNECTIONS)))
        assert await port.get("/probe") == (200, "/probe")
        assert port.server.most == 1, "those that say nothing take no place"
        for _, writer in silent:
            writer.transport.abort()


async def test_who_says_nothing_is_not_waited_for_and_who_begins_gives_way() -> None:
    async with open_port() as port:
        silent = [await port.connect() for _ in range(2 * server.MOST_SILENT)]
        assert await port.get("/probe") == (200, "/probe")
        beginning = [await port.connect() for _ in range(2 * server.MAX_CONNECTIONS)]
        for _, writer in beginning:
            writer.write(BEGIN)
        assert await port.get("/probe") == (200, "/probe")
        assert port.server.most == server.MAX_CONNECTIONS
        for _, writer in (*silent, *beginning):
            writer.transport.abort()


async def test_who_has_spoken_gets_a_place_whoever_else_begins() -> None:
    """Those that wait for a place do not give way to those that come after them."""
    async with open_port() as port:
        command = (sys.executable, "-m", "tests.app.serving.flood", str(port.port), "800")
        flood = await asyncio.create_subprocess_exec(*command)
        try:
            async with asyncio.timeout(PATIENCE):
                while port.server.most < server.MAX_CONNECTIONS:
                    await asyncio.sleep(0.01)
            answers = [await port.get(f"/{number}") for number in range(50)]
        finally:
            flood.kill()
            await flood.wait()
    assert answers == [(200, f"/{number}") for number in range(50)]


async def test_rotated_certificate_is_what_the_next_connection_sees(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(server, "REFRESH", 0.01)

    async def shown(number: int) -> bytes:
        _, writer = await asyncio.open_connection("127.0.0.1", number, ssl=unverified())
        found: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
        writer.close()
        return found

    async with open_port(options=write_pair(tmp_path, "first")) as port:
        before = await shown(port.port)
        write_pair(tmp_path, "second")
        async with asyncio.timeout(PATIENCE):
            while await shown(port.port) == before:
                await asyncio.sleep(0.01)


def test_port_that_is_taken_ends_the_start_unless_nobody_asked_for_it(caplog: pytest.LogCaptureFixture) -> None:
    number = free_port()
    first = listen(ServingOptions(port=number, bind_address="127.0.0.1"))
    assert first is not None
    with first:
        with pytest.raises(
            UsageError, match=f"--secure-port: cannot listen on 127.0.0.1:{number}: Address already in use"
        ):
            listen(ServingOptions(port=number, bind_address="127.0.0.1"))
        assert listen(ServingOptions(port=number, bind_address="127.0.0.1", is_optional=True)) is None
    assert caplog.messages == [
        f"cannot listen on 127.0.0.1:{number}, so metrics and health checks are not served: Address already in use"
    ]
    assert listen(ServingOptions(port=0)) is None


async def test_a_certificate_that_cannot_be_looked_at_ends_the_server_with_the_reason(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(server, "REFRESH", 0.01)

    class Broken:
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)

        def refresh(self) -> None:
            raise AttributeError("gone")

    with socket.create_server(("127.0.0.1", 0)) as listener:
        listener.setblocking(False)
        with pytest.raises(ExceptionGroup) as raised:
            await asyncio.wait_for(server.SecureServer(listener, Broken(), hello).run(), PATIENCE)
    assert repr(raised.value.exceptions) == "(AttributeError('gone'),)"
