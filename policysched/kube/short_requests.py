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
from collections.abc import Callable, Mapping
from http import HTTPStatus
from typing import Final, NamedTuple, TypeAlias
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
_END_SIZE, _LINE_SIZE = len(_END), len(_LINE)
_WITHOUT_BODY: Final = frozenset((int(HTTPStatus.NO_CONTENT), int(HTTPStatus.NOT_MODIFIED)))
_TYPE, _LENGTH, _ENCODING = b"\r\ncontent-type:", b"\r\ncontent-length:", b"\r\ncontent-encoding:"
_TRANSFER, _CONNECTION, _RETRY = b"\r\ntransfer-encoding:", b"\r\nconnection:", b"\r\nretry-after:"
_HEX_DIGITS: Final = b"0123456789abcdefABCDEF"
_SAFE: Final = "/%?=&+,:;@!$'()*~-._[]"


class Answer(NamedTuple):
    """What a server answers."""

    status: int
    reason: str
    """The words behind the status."""
    content_type: str
    """Without parameters."""
    retry_after: str
    """The header of that name, empty without one."""
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
        self._next_address = None if is_address(self._host) else HAPPY_EYEBALLS
        self._prefix = parts.path.rstrip("/")
        self._headers = {"Host": parts.netloc, **headers}
        self._heads: dict[tuple[tuple[str, str], ...], bytes] = {}
        self._idle: list[_Channel] = []
        self._open: set[_Channel] = set()
        self._timer: asyncio.TimerHandle | None = None

    async def request(
        self,
        method: str,
        path: str,
        body: Callable[[], bytes],
        headers: Mapping[str, str],
        *,
        timeout: float,
        most: int,
    ) -> Answer:
        """Send a request and wait for its answer; it is sent once, whatever happens.

        Args:
            method: the HTTP method.
            path: what is asked for.
            body: makes what is sent, last before it is, once there is a connection; if it raises, nothing is sent.
            headers: what the head says besides.
            timeout: after how many seconds nobody waits any more.
            most: how large the answer may be, in bytes.

        Raises:
            OSError: there is no answer, or half of one; TimeoutError where it takes too long.
        """
        deadline = asyncio.get_running_loop().time() + timeout
        channel = self._idle.pop() if self._idle else await self._connected(timeout)
        try:
            waiting = channel.send(self._text(method, path, body(), headers), deadline, most)
            self._watch(deadline)
            answer = await waiting
        except BaseException:
            channel.drop()
            raise
        if channel.is_usable:
            self._idle.append(channel)
        return answer

    def speak(self, tls: ssl.SSLContext) -> None:
        """Speak TLS so on new connections; those that are open take no further request."""
        self._tls = tls
        for channel in self._open:
            channel.is_usable = False
        for channel in list(self._idle):
            channel.drop()

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

    def _text(self, method: str, path: str, body: bytes, headers: Mapping[str, str]) -> bytes:
        head = self._heads.get(key := tuple(headers.items()))
        if head is None:
            if len(self._heads) >= MOST_HEADS:
                self._heads.clear()
            said = (f"{name}: {value}\r\n" for name, value in (*self._headers.items(), *key))
            head = self._heads[key] = f" HTTP/1.1\r\n{''.join(said)}Content-Length: ".encode("latin-1")
        if not path.isascii() or not path.isprintable() or " " in path:
            path = quote(path, safe=_SAFE)
        return b"%b%b%d\r\n\r\n%b" % (f"{method} {self._prefix}{path}".encode(), head, len(body), body)

    async def _connected(self, timeout: float) -> _Channel:
        """Open another connection.

        Raises:
            OSError: there is nobody, or nobody who is trusted; an UnreachableError says who it would be.
            TimeoutError: it takes too long.
        """
        loop, tls = asyncio.get_running_loop(), self._tls
        try:
            async with asyncio.timeout(timeout):
                _, channel = await loop.create_connection(
                    lambda: _Channel(self._idle, self._open),
                    self._host,
                    self._port,
                    ssl=tls,
                    server_hostname=self._name,
                    happy_eyeballs_delay=self._next_address,
                )
        except (TimeoutError, ssl.SSLError, socket.gaierror):
            raise
        except OSError as error:
            raise UnreachableError(error, self._host, self._port) from None
        if tls is not self._tls:
            channel.is_usable = False
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
        self._reader = AnswerReader(0)
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
        """Send a request; return what becomes its answer.

        Raises:
            NoAnswerError: the connection has ended already.
        """
        assert self._transport is not None  # noqa: S101 - it is connected
        if self not in self._everywhere:
            raise NoAnswerError
        self.deadline, self._reader = deadline, AnswerReader(most)
        self._waiting = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return self._waiting

    def data_received(self, data: bytes) -> None:
        """Take a piece of an answer."""
        if self._waiting is None or self._waiting.done():
            self.drop()  # nobody has asked
            return
        self._read(data)

    def _read(self, data: bytes | None) -> None:
        """Read on with a piece, or None for the end of all pieces."""
        try:
            found = self._reader.end() if data is None else self._reader.take(data)
        except (BrokenAnswerError, ValueError) as error:
            broken = (
                error if isinstance(error, BrokenAnswerError) else BrokenAnswerError("an answer that is not valid HTTP")
            )
            self._fail(broken)
            self.drop()
            return
        if found is None:
            return
        waiting, self._waiting = self._waiting, None
        answer, kept = found
        self._reader = AnswerReader(0)
        self.is_usable = self.is_usable and kept and data is not None
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
        has_begun = self._reader.has_begun
        if self._waiting is not None and error is None and has_begun:
            self._read(None)
        half = BrokenAnswerError("the server closed the connection") if has_begun else NoAnswerError()
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


_CHUNKED: Final = -1
_UNTIL_CLOSED: Final = -2


_Head: TypeAlias = tuple[int, str, str, str, int, bool]
"""The fields of an answer but its body; how long that is in bytes, _CHUNKED or _UNTIL_CLOSED where its end shows
otherwise; whether the connection may be used again."""


class AnswerReader:
    """Reads one answer from the pieces in which it comes, and looks at nothing that has come twice.

    What it raises: a BrokenAnswerError or a ValueError where it is no answer.

    Args:
        most: how many bytes its body may have.
    """

    __slots__ = ("_at", "_begin", "_collected", "_head", "_most", "_received")

    def __init__(self, most: int) -> None:
        self._most = most
        self._received: bytes | bytearray = b""
        self._begin = 0
        """Where the answer begins that counts, behind interim ones."""
        self._at = 0
        """What was looked at: of the head, where its end may begin; then up to where the body was taken."""
        self._head: _Head | None = None
        self._collected = bytearray()
        """What has come of a body in chunks."""

    @property
    def has_begun(self) -> bool:
        """Whether anything has come."""
        return bool(self._received)

    def take(self, piece: bytes) -> tuple[Answer, bool] | None:
        """Take a piece; return the answer, and whether the connection may be used again, None before all has come."""
        if not self._received:
            self._received = piece
        else:
            if isinstance(self._received, bytes):
                self._received = bytearray(self._received)
            self._received += piece
        return self._read(ended=False)

    def end(self) -> tuple[Answer, bool] | None:
        """Return the answer where it is whole now that nothing more comes."""
        return self._read(ended=True)

    def _read(self, *, ended: bool) -> tuple[Answer, bool] | None:
        if len(self._received) > self._most + LARGEST_HEAD:
            raise TooLargeError("an answer that is too large")
        head = self._head
        if head is None and (head := self._find_head(ended=ended)) is None:
            return None
        status, reason, content_type, retry_after, length, kept = head
        body = self._body(length, ended=ended)
        if body is None:
            return None
        if len(body) > self._most:
            raise TooLargeError("an answer that is too large")
        return Answer(status, reason, content_type, retry_after, body), kept

    def _find_head(self, *, ended: bool) -> _Head | None:
        received, begin = self._received, self._begin
        at = received.find(_END, self._at)
        while at >= 0 and received[begin + 9 : begin + 10] == b"1" and begin <= LARGEST_HEAD:
            begin = at + _END_SIZE  # behind an interim answer follows the one that counts
            at = received.find(_END, begin)
        if at < 0:
            if ended or len(received) > LARGEST_HEAD:
                raise BrokenAnswerError("an incomplete answer")
            self._begin, self._at = begin, max(begin, len(received) - _END_SIZE + 1)
            return None
        self._head, self._at = _head(bytes(received[begin : at + _LINE_SIZE])), at + _END_SIZE
        return self._head

    def _body(self, length: int, *, ended: bool) -> bytes | None:
        """Return the body, None where more of it has to come."""
        if length == _CHUNKED:
            return self._join()
        received, start = self._received, self._at
        if length == _UNTIL_CLOSED:
            return bytes(received[start:]) if ended else None
        missing = start + length - len(received)
        if missing < 0:
            raise BrokenAnswerError("an answer longer than its Content-Length")
        return None if missing else bytes(received[start:])

    def _join(self) -> bytes | None:
        """Take the chunks that have come, and join them with the last one; None where some have to come."""
        received = self._received
        while (line := received.find(_LINE, self._at)) >= 0:
            size = _chunk_size(received[self._at : line])
            if not size:
                return self._joined(line)
            following = line + size + 2 * _LINE_SIZE
            if following > len(received):
                return None
            begin, end = line + _LINE_SIZE, following - _LINE_SIZE
            if received[end:following] != _LINE:
                raise BrokenAnswerError("an answer that is not valid HTTP")
            self._collected += received[begin:end]
            self._at = following
        if len(received) - self._at > LARGEST_HEAD:
            raise BrokenAnswerError("an answer that is not valid HTTP")
        return None

    def _joined(self, line: int) -> bytes | None:
        """Return the body, its last chunk having come, once the fields behind that have.

        Args:
            line: Where the line of the last chunk ends.
        """
        received = self._received
        end = received.find(_END, line)
        if end < 0 and len(received) - line <= LARGEST_HEAD:
            return None
        if end < 0 or end + _END_SIZE < len(received):
            raise BrokenAnswerError("an answer longer than its Content-Length")
        return bytes(self._collected)


def _head(head: bytes) -> _Head:
    """Read a head with the ends of its lines.

    Raises:
        BrokenAnswerError: it is none.
        ValueError: a number in it is none.
    """
    version, _, rest = head.partition(_LINE)[0].partition(b" ")
    code, _, reason = rest.partition(b" ")
    if not (version.startswith(b"HTTP/1.") and code.isdigit() and len(code) == CODE_LENGTH and code >= b"200"):
        raise BrokenAnswerError("an answer that is not valid HTTP")
    fields = head.lower()
    content_type = str(_field(fields, _TYPE).partition(b";")[0].strip(), "latin-1")
    retry_after = str(_field(fields, _RETRY), "latin-1")
    kept = version == b"HTTP/1.1" and b"close" not in _field(fields, _CONNECTION)
    status = int(code)
    return status, str(reason, "latin-1"), content_type, retry_after, _length(status, fields), kept


def is_address(host: str) -> bool:
    """Whether it is an address and no name: then there is no other that might answer sooner."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _field(fields: bytes, begin: bytes) -> bytes:
    """Return the value of a field of a head in lower case, empty without one; no other field is looked at."""
    at = fields.find(begin)
    if at < 0:
        return b""
    at += len(begin)
    return fields[at : fields.find(_LINE, at)].strip()


def _length(code: int, fields: bytes) -> int:
    """Return how long the body is by its head, or how its end shows."""
    if code in _WITHOUT_BODY:
        return 0
    if _field(fields, _ENCODING) not in (b"", b"identity"):
        raise BrokenAnswerError("an answer in an encoding that was not requested")
    if _field(fields, _TRANSFER) == b"chunked":
        return _CHUNKED
    length = _field(fields, _LENGTH)
    if not length:
        return _UNTIL_CLOSED
    if not length.isdigit() or fields.count(_LENGTH) > 1:
        raise BrokenAnswerError("an answer that is not valid HTTP")
    return int(length)


def _chunk_size(line: bytes | bytearray) -> int:
    """Read the size of a chunk from its line; what is behind a semicolon is for nobody here."""
    size = line.partition(b";")[0].strip()
    if not size or size.strip(_HEX_DIGITS):
        raise BrokenAnswerError("an answer that is not valid HTTP")
    return int(size, 16)
