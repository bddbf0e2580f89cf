"""Writes over few connections: one packet each, invalid responses are errors, nothing is sent twice."""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest

from policysched.connection_errors import BrokenAnswerError, NoAnswerError, TooLargeError, UnreachableError
from policysched.kube.short_requests import Answer, AnswerReader, ShortRequests
from tests.controlplane.certificates import Authority
from tests.leaks import nothing_left_open
from tests.work import calls

MOST = 1 << 10
OK = b"HTTP/1.1 200 OK\r\nContent-Type: application/json; charset=utf-8\r\nContent-Length: 2\r\n\r\n{}"
CREATED = (
    b"HTTP/1.1 201 Created\r\nAudit-Id: 3ad5\r\nCache-Control: no-cache, private\r\nContent-Type: application/json\r\n"
    b"X-Kubernetes-Pf-Flowschema-Uid: 1\r\nX-Kubernetes-Pf-Prioritylevel-Uid: 2\r\n"
    b"Date: Mon, 23 Nov 2026 05:00:00 GMT\r\n"
    b"Content-Length: 2\r\n\r\n{}"
)
CHUNKED = b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n"
Serve = Callable[[asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Served:
    """A server that returns prepared bytes and records the received bytes of each connection."""

    def __init__(self, *answers: bytes) -> None:
        self.answers = list(answers)
        self.connections: list[list[bytes]] = []
        self.port = 0
        self.then: Callable[[asyncio.StreamWriter], None] = lambda _: None

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        came: list[bytes] = []
        self.connections.append(came)
        try:
            while piece := await reader.read(1 << 16):
                came.append(piece)
                writer.write(self.answers.pop(0) if len(self.answers) > 1 else self.answers[0])
                self.then(writer)
        finally:
            writer.transport.abort()


@asynccontextmanager
async def asked(
    served: Served, tls: ssl.SSLContext | None = None, **of: ssl.SSLContext
) -> AsyncIterator[ShortRequests]:
    """Run a server during the block, and yield a client for it."""
    server = await asyncio.start_server(served.serve, "127.0.0.1", 0, ssl=tls)
    served.port = server.sockets[0].getsockname()[1]
    scheme = "http" if tls is None else "https"
    requests = ShortRequests(f"{scheme}://127.0.0.1:{served.port}/prefix", of.get("trusting"), None, {"Accept": "any"})
    try:
        yield requests
    finally:
        await requests.close()
        assert not requests.open_count
        server.close()
        await server.wait_closed()


def read_answer(received: bytes, most: int, *, ended: bool = False) -> tuple[Answer, bool] | None:
    """Parse bytes that are received at once."""
    reader = AnswerReader(most)
    found = reader.take(received)
    return reader.end() if ended else found


async def post(requests: ShortRequests, path: str = "/a", timeout: float = 30.0) -> Answer:
    headers = {"Authorization": "Bearer x"}
    return await requests.request("POST", path, lambda: b"{}", headers, timeout=timeout, most=MOST)


def pieces(received: bytes, size: int) -> list[bytes]:
    return [received[begin : begin + size] for begin in range(0, len(received), size)]


@pytest.mark.parametrize(
    ("received", "body"),
    [
        (OK, b"{}"),
        (b"HTTP/1.1 100 Continue\r\n\r\n" + OK, b"{}"),
        (b"HTTP/1.1 204 No Content\r\n\r\n", b""),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n3\r\nabc\r\n2;x=y\r\nde\r\n0\r\n\r\n", b"abcde"),
        (b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n4\r\n\r\n\r\n\r\n0\r\nT: x\r\n\r\n", b"\r\n\r\n"),
    ],
)
def test_answer_is_read_once_all_of_it_is_there(received: bytes, body: bytes) -> None:
    for end in range(len(received)):
        assert read_answer(received[:end], MOST) is None
    dripped, *before = reversed([*map(AnswerReader(MOST).take, pieces(received, 1))])
    assert not any(before)
    for found in (read_answer(received, MOST), dripped):
        assert found is not None
        assert (found[0].body, found[1]) == (body, True)


def test_answer_without_a_length_ends_with_its_connection() -> None:
    received = b"HTTP/1.1 503 Busy now\r\nRetry-After: 7\r\nContent-Type: text/html\r\n\r\nlater"
    assert read_answer(received, MOST) is None
    assert read_answer(received, MOST, ended=True) == (Answer(503, "Busy now", "text/html", "7", b"later"), True)


@pytest.mark.parametrize(
    "line",
    [
        b"HTTP/1.0 200 OK\r\n",
        b"HTTP/1.1 200 OK\r\nConnection: close\r\n",
        b"HTTP/1.1 200 OK\r\nConnection: x, Close\r\n",
    ],
)
def test_connection_that_will_close_is_not_used_again(line: bytes) -> None:
    found = read_answer(line + b"Content-Length: 0\r\n\r\n", MOST)
    assert found is not None
    assert not found[1]


@pytest.mark.parametrize(
    "received",
    [
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 two OK\r\n\r\n",
        b"HTTP/1.1 42 OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 0 OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 -99 OK\r\nContent-Length: 0\r\n\r\n",
        b"HTTP/1.1 100 Continue\r\n\r\n" * 8000,
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\n" + OK + b"\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -5\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: +2\r\n\r\n{}",
        b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\nContent-Length: 2\r\n\r\n{}",
        b"HTTP/1.1 204 No Content\r\n\r\n{}",
        CHUNKED + b"0x3\r\nabc\r\n0\r\n\r\n",
        CHUNKED + b"3\r\nabc0\r\n\r\n\r\n",
        CHUNKED + b"3" * (1 << 17),
        CHUNKED + b"0\r\n" + b"T" * (1 << 17),
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\nabc",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-3\r\n\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\nContent-Length: 1\r\n\r\nx",
        b"x" * (1 << 17),
    ],
)
async def test_what_is_no_answer_is_an_error_and_drops_the_connection(received: bytes) -> None:
    served = Served(received, OK)
    async with asked(served) as requests:
        with pytest.raises(OSError):
            await post(requests)
        assert (await post(requests)).status == 200
    assert len(served.connections) == 2


@pytest.mark.parametrize("head", [b"Content-Length: 2000\r\n\r\n", b"\r\n"])
async def test_answer_that_is_too_large_is_not_read(head: bytes) -> None:
    served = Served(b"HTTP/1.1 200 OK\r\n" + head + bytes(1 << 17))
    async with asked(served) as requests:
        with pytest.raises(TooLargeError):
            await post(requests)


async def test_many_requests_share_few_connections_and_are_one_piece_each() -> None:
    served = Served(OK)
    async with asked(served) as requests:
        for _ in range(50):
            await asyncio.gather(*(post(requests, "/a?b=1") for _ in range(4)))
    assert len(served.connections) == 4
    pieces = [piece for connection in served.connections for piece in connection]
    head = f"POST /prefix/a?b=1 HTTP/1.1\r\nHost: 127.0.0.1:{served.port}\r\nAccept: any\r\nAuthorization: Bearer x\r\n"
    assert pieces == [f"{head}Content-Length: 2\r\n\r\n{{}}".encode()] * 200


async def test_path_cannot_end_the_line_that_it_stands_in() -> None:
    served = Served(OK)
    async with asked(served) as requests:
        await post(requests, "/a b\r\nX: y/ü")
    assert served.connections[0][0].startswith(b"POST /prefix/a%20b%0D%0AX:%20y/%C3%BC HTTP/1.1\r\n")


@pytest.mark.parametrize(
    ("answer", "error"), [(b"", NoAnswerError), (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\n\r\n{", BrokenAnswerError)]
)
async def test_connection_that_closes_early_is_an_error(answer: bytes, error: type[OSError]) -> None:
    served = Served(answer)
    served.then = lambda writer: writer.close()
    async with asked(served) as requests:
        with pytest.raises(error):
            await post(requests)
    assert [len(came) for came in served.connections] == [1], "it was sent twice"


async def test_connection_that_was_closed_is_not_used_again() -> None:
    served = Served(OK)
    served.then = lambda writer: writer.close()
    async with asked(served) as requests:
        for _ in range(3):
            await post(requests)
            while requests.open_count:
                await asyncio.sleep(0)
    assert len(served.connections) == 3


async def test_late_answer_is_for_nobody() -> None:
    served = Served(OK, b"", OK)
    async with asked(served) as requests:
        await post(requests)  # the timeout is for the response alone, not for connecting
        with pytest.raises(TimeoutError):
            await post(requests, timeout=0.01)
        assert (await post(requests)).body == b"{}"
    assert len(served.connections) == 2


async def test_answer_to_who_went_away_is_for_nobody() -> None:
    served = Served(b"", OK)
    async with asked(served) as requests:
        waiting = asyncio.create_task(post(requests))
        while not (served.connections and served.connections[0]):
            await asyncio.sleep(0)
        waiting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await waiting
        assert (await post(requests)).body == b"{}"
    assert len(served.connections) == 2


async def test_nobody_there_is_said_with_the_place() -> None:
    served = Served(OK)
    async with asked(served):
        pass
    requests = ShortRequests(f"http://127.0.0.1:{served.port}", None, None, {})
    with pytest.raises(UnreachableError) as caught:
        await post(requests)
    assert (caught.value.host, caught.value.port) == ("127.0.0.1", served.port)


@pytest.mark.parametrize("trusted", [True, False])
async def test_server_must_be_trusted_and_its_connections_end(tmp_path: Path, trusted: bool) -> None:
    authority = Authority(tmp_path)
    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(authority.folder / "server.crt", authority.folder / "server.key")
    trusting = ssl.create_default_context(cafile=str(authority.certificate) if trusted else None)
    trusting.verify_flags &= ~ssl.VERIFY_X509_STRICT
    with nothing_left_open():
        async with asked(Served(OK), tls, trusting=trusting) as requests:
            if trusted:
                assert (await post(requests)).status == 200
            else:
                with pytest.raises(ssl.SSLCertVerificationError):
                    await post(requests)


def test_interim_answers_without_an_end_take_no_more_work_than_a_large_head() -> None:
    def work(number: int) -> int:
        def read() -> None:
            with pytest.raises(BrokenAnswerError):
                read_answer(b"HTTP/1.1 100 Continue\r\n\r\n" * number, 1 << 20)

        return calls(read)

    assert work(32_000) <= work(8_000) + 8


@pytest.mark.parametrize(
    "answer",
    [
        lambda number: CHUNKED + b"2\r\nab\r\n" * number + b"0\r\n\r\n",
        lambda number: CHUNKED + b"4\r\n\r\n\r\n\r\n" * number + b"0\r\n\r\n",
        lambda number: b"HTTP/1.1 100 Continue\r\n\r\n" * number + OK,
        lambda number: b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (9 * number) + b"123456789" * number,
    ],
)
def test_answer_in_many_pieces_is_looked_at_once(answer: Callable[[int], bytes]) -> None:
    def work(number: int) -> int:
        reader, all_pieces = AnswerReader(1 << 20), pieces(answer(number), 9)

        def read() -> None:
            *before, last = [reader.take(piece) for piece in all_pieces]
            assert last is not None
            assert not any(before)

        return calls(read)

    assert work(800) < 4.2 * work(200)


async def test_connection_that_ends_before_it_is_used_is_an_error_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    async with asked(Served(OK)) as requests:
        connect = requests._connected

        async def ended(timeout: float) -> Any:
            channel = await connect(timeout)
            channel.drop()
            return channel

        monkeypatch.setattr(requests, "_connected", ended)
        with pytest.raises(NoAnswerError):
            await post(requests)
