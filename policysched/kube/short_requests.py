"""Writes over HTTP/1.1 connections that are kept open: one piece for a request, one buffer for its answer.

A pod takes two requests, its binding and its event, and they are most of what the scheduler does: the general HTTP
library takes 2.5 times the processor time for one. Nothing here is more than these need: no proxy, no redirects, no
cookies, no compression, answers that are read as a whole. Lists and watches go through the library, and so does
everything that has to pass a proxy.

Deadlines have one timer for all requests, because nearly none is ever reached.

Source: RFC 9112 (HTTP/1.1), sections 4 to 7.
"""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import ssl
from collections.abc import Mapping
from dataclasses import dataclass
from http import HTTPStatus
from typing import Final
from urllib.parse import quote, urlsplit

from policysched.connection_errors import BrokenAnswerError, NoAnswerError, TooLargeError, UnreachableError

IDLE: Final = 60.0
"""How long a connection is kept that nobody uses. Units: seconds."""
LARGEST_HEAD: Final = 64 << 10
"""Units: bytes."""
HAPPY_EYEBALLS: Final = 0.25
"""After how long the next address of a name is tried beside one that does not answer. Units: seconds."""
MOST_HEADS: Final = 16
"""How many kinds of heads are kept ready: they change with the credentials."""
CODE_LENGTH: Final = 3
"""Units: digits."""
_END, _LINE = b"\r\n\r\n", b"\r\n"
_TYPE, _LENGTH, _ENCODING = b"\r\ncontent-type:", b"\r\ncontent-length:", b"\r\ncontent-encoding:"
_TRANSFER, _CONNECTION, _RETRY = b"\r\ntransfer-encoding:", b"\r\nconnection:", b"\r\nretry-after:"
_SAFE: Final = "/%?=&+,:;@!$'()*~-._[]"


@dataclass(frozen=True, slots=True)
class Answer:
    """What a server answers.

    Args:
        status: the code.
        reason: the words behind it.
        content_type: without parameters.
        retry_after: the header of that name, empty without one.
        body: all of it.
    """

    status: int
    reason: str
    content_type: str
    retry_after: str
    body: bytes


class ShortRequests:
    """Requests to one server over connections that are used again, the one used last first.

    Args:
        url: the server; a path in it comes before those that are asked for.
        tls: how TLS is spoken, where the URL says so.
        server_hostname: the name in the server's certificate where it is not that of the URL.
        headers: what every request says.
    """

    def __init__(
        self, url: str, tls: ssl.SSLContext | None, server_hostname: str | None, headers: Mapping[str, str]
    ) -> None:
        parts = urlsplit(url)
        self._host, self._secure = parts.hostname or "", parts.scheme == "https"
        self._port = parts.port or (443 if self._secure else 80)
        self._tls = (tls or ssl.create_default_context()) if self._secure else None
        self._name = (server_hostname or self._host) if self._secure else None
        self._next_address = None if _is_address(self._host) else HAPPY_EYEBALLS
        self._prefix = parts.path.rstrip("/")
        self._headers = {"Host": parts.netloc, **headers}
        self._heads: dict[tuple[tuple[str, str], ...], bytes] = {}
        self._idle: list[_Channel] = []
        self._open: set[_Channel] = set()
        self._timer: asyncio.TimerHandle | None = None

    async def request(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], *, timeout: float, most: int
    ) -> Answer:
        """Send a request and wait for its answer; it is sent once, whatever happens.

        Args:
            method: the HTTP method.
            path: what is asked for.
            body: what is sent.
            headers: what the head says besides.
            timeout: after how many seconds nobody waits any more.
            most: how large the answer may be, in bytes.

        Raises:
            OSError: there is no answer, or half of one; TimeoutError where it takes too long.
        """
        deadline = asyncio.get_running_loop().time() + timeout
        channel = self._idle.pop() if self._idle else await self._connected(timeout)
        try:
            waiting = channel.send(self._text(method, path, body, headers), deadline, most)
            self._watch(deadline)
            answer = await waiting
        except BaseException:
            channel.drop()
            raise
        if channel.is_usable:
            self._idle.append(channel)
        return answer

    @property
    def open_count(self) -> int:
        """How many connections there are."""
        return len(self._open)

    async def close(self) -> None:
        """Drop all connections, and wait until they are gone: the loop may end next."""
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        for channel in list(self._open):
            channel.drop()
        while self._open:
            await asyncio.sleep(0)

    def _text(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str]) -> bytes:
        head = self._heads.get(key := tuple(headers.items()))
        if head is None:
            if len(self._heads) >= MOST_HEADS:
                self._heads.clear()
            said = (f"{name}: {value}\r\n" for name, value in (*self._headers.items(), *key))
            head = self._heads[key] = f" HTTP/1.1\r\n{''.join(said)}Content-Length: ".encode("latin-1")
        if not path.isascii() or not path.isprintable() or " " in path:
            path = quote(path, safe=_SAFE)
        sent = body or b""
        return b"%b%b%d\r\n\r\n%b" % (f"{method} {self._prefix}{path}".encode(), head, len(sent), sent)

    async def _connected(self, timeout: float) -> _Channel:
        """Open another connection.

        Raises:
            OSError: there is nobody, or nobody who is trusted; an UnreachableError says who it would be.
            TimeoutError: it takes too long.
        """
        loop = asyncio.get_running_loop()
        try:
            async with asyncio.timeout(timeout):
                _, channel = await loop.create_connection(
                    lambda: _Channel(self._idle, self._open),
                    self._host,
                    self._port,
                    ssl=self._tls,
                    server_hostname=self._name,
                    happy_eyeballs_delay=self._next_address,
                )
        except (TimeoutError, ssl.SSLError, socket.gaierror):
            raise
        except OSError as error:
            raise UnreachableError(error, self._host, self._port) from None
        return channel

    def _watch(self, deadline: float) -> None:
        """Have deadlines looked at once one may have passed."""
        if self._timer is not None and deadline < self._timer.when():
            self._timer.cancel()
            self._timer = None
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_at(deadline, self._expire)

    def _expire(self) -> None:
        """End what is late, and connections that nobody has used for long."""
        self._timer = None
        now = asyncio.get_running_loop().time()
        for channel in list(self._open):
            if channel.deadline <= now:
                channel.expire()
        if self._open:
            self._watch(min(channel.deadline for channel in self._open))


class _Channel(asyncio.Protocol):
    """One connection, with a request at a time.

    Args:
        idle: the connections that wait for a request; where this one breaks it is taken out.
        everywhere: all connections.
    """

    def __init__(self, idle: list[_Channel], everywhere: set[_Channel]) -> None:
        self._idle, self._everywhere = idle, everywhere
        self._transport: asyncio.Transport | None = None
        self._waiting: asyncio.Future[Answer] | None = None
        self._received: bytes | bytearray = b""
        self._most = 0
        self.deadline = 0.0
        """When the request at hand is late; without one when the connection has been idle for long enough."""
        self.is_usable = True
        """Whether another request may follow."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - a stream
        self._transport = transport
        self.deadline = asyncio.get_running_loop().time() + IDLE
        self._everywhere.add(self)

    def send(self, request: bytes, deadline: float, most: int) -> asyncio.Future[Answer]:
        """Send a request; return what becomes its answer."""
        assert self._transport is not None  # noqa: S101 - it is connected
        self.deadline, self._most, self._received = deadline, most, b""
        self._waiting = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return self._waiting

    def data_received(self, data: bytes) -> None:
        """Take a piece of an answer."""
        if self._waiting is None or self._waiting.done():
            self.drop()  # nobody has asked
            return
        if not self._received:
            self._received = data
        else:
            if isinstance(self._received, bytes):
                self._received = bytearray(self._received)
            self._received += data
        self._read(ended=False)

    def _read(self, *, ended: bool) -> None:
        try:
            found = read_answer(self._received, self._most, ended=ended)
        except (BrokenAnswerError, ValueError) as error:
            broken = error if isinstance(error, BrokenAnswerError) else BrokenAnswerError("an answer that is no HTTP")
            self._fail(broken)
            self.drop()
            return
        if found is None:
            return
        waiting, self._waiting = self._waiting, None
        answer, kept = found
        self._received = b""
        self.is_usable = self.is_usable and kept and not ended
        self.deadline = asyncio.get_running_loop().time() + IDLE
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)
        if not self.is_usable:
            self.drop()

    def connection_lost(self, error: Exception | None) -> None:
        """End; an answer may end with the connection."""
        self.is_usable = False
        self._everywhere.discard(self)
        if self in self._idle:
            self._idle.remove(self)
        if self._waiting is not None and error is None and self._received:
            self._read(ended=True)
        half = BrokenAnswerError("it closed the connection") if self._received else NoAnswerError()
        self._fail(error if isinstance(error, OSError) else half)

    def expire(self) -> None:
        """Give up what is late."""
        self._fail(TimeoutError("no answer in time"))
        self.drop()

    def drop(self) -> None:
        """End the connection at once: TLS would wait for the other side's goodbye."""
        self.is_usable = False
        if self in self._idle:
            self._idle.remove(self)
        if self._transport is not None:
            self._transport.abort()

    def _fail(self, error: OSError) -> None:
        waiting, self._waiting = self._waiting, None
        if waiting is not None and not waiting.done():
            waiting.set_exception(error)


def read_answer(received: bytes | bytearray, most: int, *, ended: bool = False) -> tuple[Answer, bool] | None:
    """Read an answer; None where more of it has to come.

    Args:
        received: what has come.
        most: how many bytes its body may have.
        ended: whether no more comes.

    Returns:
        The answer, and whether the connection may be used again.

    Raises:
        BrokenAnswerError: it is none.
        ValueError: a number in it is none.
    """
    begin, at = 0, received.find(_END)
    while at >= 0 and received[begin + 9 : begin + 10] == b"1" and begin <= LARGEST_HEAD:
        begin = at + len(_END)  # behind an interim answer follows the one that counts
        at = received.find(_END, begin)
    if len(received) > most + LARGEST_HEAD:
        raise TooLargeError("an answer that is too large")
    if at < 0:
        if ended or len(received) > LARGEST_HEAD:
            raise BrokenAnswerError("half of an answer")
        return None
    head = bytes(received[begin:at])
    version, _, rest = head.partition(_LINE)[0].partition(b" ")
    code, _, reason = rest.partition(b" ")
    if not (version.startswith(b"HTTP/1.") and code.isdigit() and len(code) == CODE_LENGTH and code >= b"200"):
        raise BrokenAnswerError("an answer that is no HTTP")
    fields = head.lower()
    body = _body(received, at + len(_END), int(code), fields, ended=ended)
    if body is None:
        return None
    if len(body) > most:
        raise TooLargeError("an answer that is too large")
    content_type = _field(fields, _TYPE).partition(b";")[0].strip().decode("latin-1")
    kept = version == b"HTTP/1.1" and b"close" not in _field(fields, _CONNECTION)
    retry_after = _field(fields, _RETRY).decode("latin-1")
    return Answer(int(code), reason.decode("latin-1"), content_type, retry_after, body), kept


def _is_address(host: str) -> bool:
    """Whether it is an address and no name: then there is no other that might answer sooner."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _field(fields: bytes, begin: bytes) -> bytes:
    """Return the value of a field of a head in lower case, empty without one; no other field is looked at."""
    _, found, rest = fields.partition(begin)
    return rest.partition(_LINE)[0].strip() if found else b""


def _body(received: bytes | bytearray, start: int, code: int, fields: bytes, *, ended: bool) -> bytes | None:
    """Return the body of an answer, None where more of it has to come."""
    if code in (HTTPStatus.NO_CONTENT, HTTPStatus.NOT_MODIFIED):
        return b""
    if _field(fields, _ENCODING) not in (b"", b"identity"):
        raise BrokenAnswerError("an answer in an encoding that was not asked for")
    if _field(fields, _TRANSFER) == b"chunked":
        return _joined(received, start) if received.endswith(_END) else None
    length = _field(fields, _LENGTH)
    if not length:
        return bytes(received[start:]) if ended else None
    end = start + int(length)
    if end < start or len(received) > end:
        raise BrokenAnswerError("an answer that is longer than it says")
    return bytes(received[start:end]) if len(received) == end else None


def _joined(received: bytes | bytearray, at: int) -> bytes | None:
    """Join the chunks of a body; None where some have to come."""
    pieces: list[bytes] = []
    while True:
        line = received.find(_LINE, at)
        if line < 0:
            return None
        size = int(bytes(received[at:line]).partition(b";")[0], 16)
        if size < 0:
            raise BrokenAnswerError("an answer that is no HTTP")
        if size == 0:
            if received.find(_END, line) + len(_END) < len(received):
                raise BrokenAnswerError("an answer that is longer than it says")
            return b"".join(pieces)
        at = line + 2 + size + 2
        if at > len(received):
            return None
        pieces.append(bytes(received[line + 2 : at - 2]))
