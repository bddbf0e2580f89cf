"""HTTP/1.1 client for short requests over persistent connections, with one write for each request.

A pod needs two requests, binding and event, and they dominate the scheduler's processor time. aiohttp uses 2.5 times
the processor time. This client supports only what these requests need: no proxy, redirects, cookies or compression;
answers are read whole. Lists, watches and requests through a proxy use aiohttp.

One timer watches the deadlines of all requests, because almost none is ever reached.

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
"""Time after which an unused connection is closed. Units: seconds."""
LARGEST_HEAD: Final = 64 << 10
"""Largest header of an answer; more is an error. Units: bytes."""
HAPPY_EYEBALLS: Final = 0.25
"""Time without a connection after which the next address of a host name is tried in parallel. Units: seconds."""
MOST_HEADS: Final = 16
"""Largest number of cached request headers, which change with the credentials; beyond it the cache is cleared."""
CODE_LENGTH: Final = 3
"""Number of digits of an HTTP status code."""
_END, _LINE = b"\r\n\r\n", b"\r\n"
_END_SIZE, _LINE_SIZE = len(_END), len(_LINE)
_WITHOUT_BODY: Final = frozenset((int(HTTPStatus.NO_CONTENT), int(HTTPStatus.NOT_MODIFIED)))
_TYPE, _LENGTH, _ENCODING = b"\r\ncontent-type:", b"\r\ncontent-length:", b"\r\ncontent-encoding:"
_TRANSFER, _CONNECTION, _RETRY = b"\r\ntransfer-encoding:", b"\r\nconnection:", b"\r\nretry-after:"
_HEX_DIGITS: Final = b"0123456789abcdefABCDEF"
_SAFE: Final = "/%?=&+,:;@!$'()*~-._[]"


class Answer(NamedTuple):
    """A whole HTTP answer."""

    status: int
    reason: str
    """Reason phrase of the status line."""
    content_type: str
    """Media type without parameters."""
    retry_after: str
    """The Retry-After header; empty if absent."""
    body: bytes


class ShortRequests:
    """A client for one server that reuses connections, the most recently used one first.

    Args:
        url: The server; a path in it is prepended to the paths of requests.
        tls: The TLS context, for an https URL.
        server_hostname: The name in the server's certificate, if it is not the host of the URL.
        headers: Headers of every request.
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
        """Send a request, exactly once, and return its answer.

        Args:
            method: The HTTP method.
            path: Path and query of the request.
            body: Returns the body; called when the connection is open; if it raises, nothing is sent.
            headers: Additional headers.
            timeout: Limit of the request. Units: seconds.
            most: Largest answer; more is an error. Units: bytes.

        Raises:
            OSError: no answer or an incomplete one arrived; TimeoutError after the limit.
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

    def use_tls(self, tls: ssl.SSLContext) -> None:
        """Use a TLS context for new connections; open connections get no further request."""
        self._tls = tls
        for channel in self._open:
            channel.is_usable = False
        for channel in list(self._idle):
            channel.drop()

    @property
    def open_count(self) -> int:
        """Number of open connections to the server."""
        return len(self._open)

    async def close(self) -> None:
        """Abort all connections and wait until they are closed, because the event loop may end next."""
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
            lines = (f"{name}: {value}\r\n" for name, value in (*self._headers.items(), *key))
            head = self._heads[key] = f" HTTP/1.1\r\n{''.join(lines)}Content-Length: ".encode("latin-1")
        if not path.isascii() or not path.isprintable() or " " in path:
            path = quote(path, safe=_SAFE)
        return b"%b%b%d\r\n\r\n%b" % (f"{method} {self._prefix}{path}".encode(), head, len(body), body)

    async def _connected(self, timeout: float) -> _Channel:
        """Open a connection and return it.

        Raises:
            OSError: the server is unreachable (UnreachableError names it) or not trusted.
            TimeoutError: the connection takes too long.
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
        """Set the timer to a deadline if the deadline is earlier than the timer's."""
        if self._timer is not None and deadline < self._timer.when():
            self._timer.cancel()
            self._timer = None
        if self._timer is None:
            self._timer = asyncio.get_running_loop().call_at(deadline, self._expire)

    def _expire(self) -> None:
        """Abort connections whose request is late or that are unused for too long, and set the next timer."""
        self._timer = None
        now = asyncio.get_running_loop().time()
        for channel in list(self._open):
            if channel.deadline <= now:
                channel.expire()
        if self._open:
            self._watch(min(channel.deadline for channel in self._open))


class _Channel(asyncio.Protocol):
    """One connection with at most one request at a time.

    Args:
        idle: The list of unused connections; a broken connection removes itself.
        open_channels: All open connections.
    """

    def __init__(self, idle: list[_Channel], open_channels: set[_Channel]) -> None:
        self._idle, self._open_channels = idle, open_channels
        self._transport: asyncio.Transport | None = None
        self._waiting: asyncio.Future[Answer] | None = None
        self._reader = AnswerReader(0)
        self.deadline = 0.0
        """Deadline of the current request; without a request, the time at which the connection is closed."""
        self.is_usable = True
        """Whether another request may use the connection."""

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Register the open connection."""
        assert isinstance(transport, asyncio.Transport)  # noqa: S101 - a stream
        self._transport = transport
        self.deadline = asyncio.get_running_loop().time() + IDLE
        self._open_channels.add(self)

    def send(self, request: bytes, deadline: float, most: int) -> asyncio.Future[Answer]:
        """Send a request; return the future of its answer.

        Raises:
            NoAnswerError: the connection is closed.
        """
        assert self._transport is not None  # noqa: S101 - it is connected
        if self not in self._open_channels:
            raise NoAnswerError
        self.deadline, self._reader = deadline, AnswerReader(most)
        self._waiting = asyncio.get_running_loop().create_future()
        self._transport.write(request)
        return self._waiting

    def data_received(self, data: bytes) -> None:
        """Process received bytes of an answer; abort the connection if no request waits."""
        if self._waiting is None or self._waiting.done():
            self.drop()  # no request was sent
            return
        self._read(data)

    def _read(self, data: bytes | None) -> None:
        """Parse received bytes; pass a complete answer to the waiting request. None means the end of the stream."""
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
        answer, is_reusable = found
        self._reader = AnswerReader(0)
        self.is_usable = self.is_usable and is_reusable and data is not None
        self.deadline = asyncio.get_running_loop().time() + IDLE
        if waiting is not None and not waiting.done():
            waiting.set_result(answer)
        if not self.is_usable:
            self.drop()

    def connection_lost(self, error: Exception | None) -> None:
        """Complete the current request if its answer ends with the connection; otherwise fail the request."""
        self.is_usable = False
        self._open_channels.discard(self)
        if self in self._idle:
            self._idle.remove(self)
        has_begun = self._reader.has_begun
        if self._waiting is not None and error is None and has_begun:
            self._read(None)
        incomplete = BrokenAnswerError("the server closed the connection") if has_begun else NoAnswerError()
        self._fail(error if isinstance(error, OSError) else incomplete)

    def expire(self) -> None:
        """Fail the current request because of its deadline, and abort the connection."""
        self._fail(TimeoutError("no answer in time"))
        self.drop()

    def drop(self) -> None:
        """Abort the connection at once; an orderly TLS shutdown would wait for the other side."""
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
"""Parsed header of an answer: status, reason, content type, Retry-After, body length, if the connection is reusable."""


class AnswerReader:
    """Parses one HTTP answer incrementally, without scanning received bytes twice.

    Methods raise BrokenAnswerError or ValueError if the bytes are not a valid answer.

    Args:
        most: Largest body; more is an error. Units: bytes.
    """

    __slots__ = ("_at", "_begin", "_collected", "_head", "_most", "_received")

    def __init__(self, most: int) -> None:
        self._most = most
        self._received: bytes | bytearray = b""
        self._begin = 0
        """Offset at which the final answer begins, after interim answers (1xx)."""
        self._at = 0
        """Offset up to which bytes were scanned, for the end of the header or the chunks of the body."""
        self._head: _Head | None = None
        self._collected = bytearray()
        """Decoded part of a chunked body."""

    @property
    def has_begun(self) -> bool:
        """Whether any byte of the answer has arrived."""
        return bool(self._received)

    def take(self, data: bytes) -> tuple[Answer, bool] | None:
        """Add received bytes to the answer; return the answer when it is complete, else None.

        Returns the answer and whether the connection can be reused; None if the answer is incomplete.
        """
        if not self._received:
            self._received = data
        else:
            if isinstance(self._received, bytes):
                self._received = bytearray(self._received)
            self._received += data
        return self._read(ended=False)

    def end(self) -> tuple[Answer, bool] | None:
        """Return the answer at the end of the stream, if the answer is complete."""
        return self._read(ended=True)

    def _read(self, *, ended: bool) -> tuple[Answer, bool] | None:
        if len(self._received) > self._most + LARGEST_HEAD:
            raise TooLargeError("an answer that is too large")
        head = self._head
        if head is None and (head := self._find_head(ended=ended)) is None:
            return None
        status, reason, content_type, retry_after, length, is_reusable = head
        body = self._body(length, ended=ended)
        if body is None:
            return None
        if len(body) > self._most:
            raise TooLargeError("an answer that is too large")
        return Answer(status, reason, content_type, retry_after, body), is_reusable

    def _find_head(self, *, ended: bool) -> _Head | None:
        received, begin = self._received, self._begin
        at = received.find(_END, self._at)
        while at >= 0 and received[begin + 9 : begin + 10] == b"1" and begin <= LARGEST_HEAD:
            begin = at + _END_SIZE  # the final answer follows an interim answer
            at = received.find(_END, begin)
        if at < 0:
            if ended or len(received) > LARGEST_HEAD:
                raise BrokenAnswerError("an incomplete answer")
            self._begin, self._at = begin, max(begin, len(received) - _END_SIZE + 1)
            return None
        self._head, self._at = _head(bytes(received[begin : at + _LINE_SIZE])), at + _END_SIZE
        return self._head

    def _body(self, length: int, *, ended: bool) -> bytes | None:
        """Return the body of the answer, or None if the body is incomplete."""
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
        """Decode the received chunks; return the whole body after the last chunk, otherwise None."""
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
        """Return the body once the trailer after the last chunk has arrived, otherwise None.

        Args:
            line: Offset of the end of the last chunk's size line.
        """
        received = self._received
        end = received.find(_END, line)
        if end < 0 and len(received) - line <= LARGEST_HEAD:
            return None
        if end < 0 or end + _END_SIZE < len(received):
            raise BrokenAnswerError("an answer longer than its Content-Length")
        return bytes(self._collected)


def _head(head: bytes) -> _Head:
    """Parse the header of an answer.

    Raises:
        BrokenAnswerError: it is not a valid header.
        ValueError: a number in it is invalid.
    """
    version, _, rest = head.partition(_LINE)[0].partition(b" ")
    code, _, reason = rest.partition(b" ")
    if not (version.startswith(b"HTTP/1.") and code.isdigit() and len(code) == CODE_LENGTH and code >= b"200"):
        raise BrokenAnswerError("an answer that is not valid HTTP")
    fields = head.lower()
    content_type = str(_field(fields, _TYPE).partition(b";")[0].strip(), "latin-1")
    retry_after = str(_field(fields, _RETRY), "latin-1")
    is_reusable = version == b"HTTP/1.1" and b"close" not in _field(fields, _CONNECTION)
    status = int(code)
    return status, str(reason, "latin-1"), content_type, retry_after, _length(status, fields), is_reusable


def is_address(host: str) -> bool:
    """Return whether a host is an IP address; a host name can have several addresses."""
    try:
        ipaddress.ip_address(host)
    except ValueError:
        return False
    return True


def _field(fields: bytes, begin: bytes) -> bytes:
    """Return the value of one field of a lower-case header; empty if absent."""
    at = fields.find(begin)
    if at < 0:
        return b""
    at += len(begin)
    return fields[at : fields.find(_LINE, at)].strip()


def _length(code: int, fields: bytes) -> int:
    """Return the length of the body from the header, `_CHUNKED` or `_UNTIL_CLOSED`."""
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
    """Parse the size line of a chunk, ignoring chunk extensions."""
    size = line.partition(b";")[0].strip()
    if not size or size.strip(_HEX_DIGITS):
        raise BrokenAnswerError("an answer that is not valid HTTP")
    return int(size, 16)
