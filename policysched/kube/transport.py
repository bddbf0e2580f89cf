"""HTTP requests to the API server: one call for an answer, one for a stream of lines; `ApiError` for what goes wrong.

Whatever goes wrong becomes an ApiError: the server's own Status, a body that is none (a proxy's page), or a lost
connection (status 0). Nothing is repeated here but a request whose credentials had expired; who may repeat depends
on what is asked, and pauses between attempts as `Retry` says.
"""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncGenerator, AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus

import aiohttp
import msgspec
from yarl import URL

from policysched.connection_errors import LOST, TooLargeError, describe, without_frames
from policysched.errors import ConnectionProblemError
from policysched.framework import NO_STATUS, ApiError
from policysched.kube.connection import Authentication, Connection
from policysched.kube.request_limits import UNLIMITED, RateLimit
from policysched.kube.short_requests import Answer
from policysched.model.lenient_json import UNREADABLE

Body = bytes | Callable[[], bytes] | None
JSON = "application/json"
HTML, TEXT = "text/html", "text/plain"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
REQUEST_TIMEOUT = 30.0
"""Units: seconds."""
PATIENCE = 20
"""How many times as long an answer may take that is read, as long as something of it keeps coming."""
SILENT = "Silent"
"""The reason of a stream that was given up because no line came."""
TOO_MANY = "TooManyRequests"
NOT_LEADING = "NotLeading"
"""The reason of a request that was not sent, because another process may act now."""
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""Between attempts, doubling. Units: seconds."""
_MAX_DOUBLINGS = 10
REPEATS = 10
"""How often in a row a request is repeated just when the server says (Retry-After), as client-go does.

Source: k8s.io/client-go/rest/with_retry.go.
"""
MOST_ASKED = 120.0
"""The longest pause that a server can ask for: a watch must not stand still for hours. Units: seconds."""
MAX_LINE = 32 << 20
"""The longest line of a stream, and the largest answer that is no list; an object is 1.5 MiB at most in etcd.
Units: bytes."""

SLICE = 1 << 20
"""How much of an answer is unpacked before the loop gets its turn: some milliseconds. Units: bytes."""
LINES_SLICE = 1 << 17
"""How much of a stream is split into lines before the loop gets its turn: some milliseconds. Units: bytes."""


class _Details(msgspec.Struct):
    retryAfterSeconds: float = 0  # noqa: N815 - the API's name


class ApiStatus(msgspec.Struct):
    """The API server's answer in place of an object: metav1.Status."""

    kind: str = ""
    message: str = ""
    reason: str = ""
    code: int = 0
    details: _Details | None = None

    @property
    def retry_after(self) -> float | None:
        """When to try again. Units: seconds."""
        return (self.details.retryAfterSeconds if self.details else 0) or None


_STATUS = msgspec.json.Decoder(ApiStatus)


class Transport:
    """Requests over one connection.

    Args:
        connection: The connection.
        timeout: How long an answer may take. Units: seconds.
        limit: How many requests there may be in a time.
        may_write: Whether anything but questions may be sent; asked last before a request is, once there is a
            connection.
    """

    def __init__(
        self,
        connection: Connection,
        timeout: float = REQUEST_TIMEOUT,
        *,
        limit: RateLimit = UNLIMITED,
        may_write: Callable[[], bool] = lambda: True,
    ) -> None:
        self._connection = connection
        self._may_write = may_write
        self._limit = limit
        self._seconds = timeout
        self._timeout = aiohttp.ClientTimeout(total=timeout)
        self._patience = aiohttp.ClientTimeout(total=PATIENCE * timeout, sock_connect=timeout, sock_read=timeout)

    async def request(
        self,
        method: str,
        path: str,
        body: Body = None,
        *,
        content_type: str = JSON,
        most: int = MAX_LINE,
        last: bool = False,
    ) -> bytes:
        """Send a request and give the body of its answer.

        An answer that is read may take long while something of it keeps coming: others decide how large lists are.

        Args:
            method: the HTTP method.
            path: what is asked for.
            body: what is sent, or what makes it once the request's turn has come.
            content_type: what that is.
            most: how large the answer may be, unpacked, in bytes.
            last: whether others go first where requests are limited.

        Raises:
            ApiError: the server refused, or could not be reached.
            ConnectionProblemError: the credentials expired and cannot be renewed.
        """
        await self._limit.wait(last=last)
        authentication = await self._connection.authentication()
        body = body() if callable(body) else body
        sent = {} if body is None else {"Content-Type": content_type}
        try:
            return await self._once(method, path, body, {**authentication.headers, **sent}, most)
        except ApiError as error:
            if error.status != HTTPStatus.UNAUTHORIZED or not await self._connection.renew(authentication):
                raise
        authentication = await self._connection.authentication()
        return await self._once(method, path, body, {**authentication.headers, **sent}, most)

    async def check(self) -> bytes:
        """Check that the server answers and accepts the credentials; return its version document, if it has one.

        Raises:
            ConnectionProblemError: it is not, or it does not.
        """
        url = self._connection.url
        try:
            return await self.request("GET", "/version")
        except ApiError as error:
            if error.status == HTTPStatus.UNAUTHORIZED:
                raise ConnectionProblemError(f"{url} rejects the credentials: {error}") from error
            if error.status == 0:
                raise ConnectionProblemError(str(error)) from error
            return b""  # any other answer is one: requests that are refused are reported when they are made

    async def _once(self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], most: int) -> bytes:
        short = self._connection.short if method != "GET" else None
        began, code = self._now(), 0
        try:
            if short is not None:
                sent = partial(self._if_it_may_write, body or b"")
                answer = await short.request(method, path, sent, headers, timeout=self._seconds, most=most)
            else:
                answer = await self._answer(method, path, body, headers, most)
            code = answer.status
        except TooLargeError as error:
            raise self._malformed(f"more than {most >> 20} MiB") from without_frames(error)
        except LOST as error:
            if isinstance(error.__cause__, ApiError):  # the library's own error lies around what its body raised
                raise error.__cause__ from None
            raise ApiError(0, *describe(error, self._connection.url)) from without_frames(error)
        finally:
            self._ended(method, code, began)
        if code >= HTTPStatus.MULTIPLE_CHOICES:
            raise refusal(answer, self._origin)
        if answer.content_type == HTML:
            # A gateway's page is no success, whatever its status says: a binding would be believed and its pod lost.
            raise self._malformed(HTML)
        return answer.body

    async def _answer(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], most: int
    ) -> Answer:
        """Send a request through the HTTP library, which asks for what is written once it is connected."""
        data: bytes | AsyncIterator[bytes] | None = body
        if method != "GET":
            data, headers = self._written(body or b""), {**headers, "Content-Length": str(len(body or b""))}
        async with self._connection.session.request(
            method,
            URL(self._connection.url + path, encoded=True),
            data=data,
            headers=headers,
            timeout=self._patience if method == "GET" else self._timeout,
            allow_redirects=False,
            **self._connection.routing,
        ) as response:
            return await _answer_of(response, most)

    def _if_it_may_write(self, body: bytes) -> bytes:
        if not self._may_write():
            raise ApiError(
                0, NOT_LEADING, "the lease has expired and another process may lead; the request is not sent"
            )
        return body

    async def _written(self, body: bytes) -> AsyncIterator[bytes]:
        yield self._if_it_may_write(body)

    @property
    def _origin(self) -> str:
        """Which server it is, for messages."""
        return str(URL(self._connection.url).origin())

    def _malformed(self, what: str) -> ApiError:
        return ApiError(0, "Malformed", f"{self._origin} answered with {what}, which an API server does not do")

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def _ended(self, method: str, code: int, began: float) -> None:
        """Tell who listens of a request, be it refused, broken off or answered."""
        if self._connection.on_answer is not None:
            self._connection.on_answer(method, code, self._now() - began)

    async def lines(self, path: str, timeout: float, silence: float | None = None) -> AsyncGenerator[list[bytes], None]:
        """Stream the complete lines of an answer, as many at a time as have arrived; a half line is left out.

        Nothing comes first, as soon as the server has begun to answer.

        Args:
            path: what is asked for.
            timeout: how long the stream may live, in seconds.
            silence: how long it may go without a whole line, in seconds.

        Raises:
            ApiError: the server refused, or the stream broke; its reason is SILENT after such a silence.
            ConnectionProblemError: the credentials expired and cannot be renewed.
        """
        await self._limit.wait()
        authentication = await self._connection.authentication()
        url = URL(self._connection.url + path, encoded=True)
        limit = aiohttp.ClientTimeout(total=timeout, sock_connect=self._timeout.total, sock_read=silence)
        began, answered = self._now(), False
        try:
            async with self._connection.session.get(
                url, headers=authentication.headers, timeout=limit, allow_redirects=False, **self._connection.routing
            ) as response:
                self._ended("GET", response.status, began)
                answered = True
                if response.status >= HTTPStatus.MULTIPLE_CHOICES:
                    raise await self._refused(response, authentication)
                _keep_alive(response)
                try:
                    yield []
                    async for lines in _split(response.content, silence):
                        yield lines
                finally:
                    _drop(response)
        except aiohttp.SocketTimeoutError as error:
            raise ApiError(0, SILENT, f"{self._connection.url} sent nothing for {silence:.0f} s") from error
        except LOST as error:
            raise ApiError(0, *describe(error, self._connection.url)) from without_frames(error)
        finally:
            if not answered:
                self._ended("GET", 0, began)

    async def _refused(self, response: aiohttp.ClientResponse, authentication: Authentication) -> ApiError:
        """Read why a stream was refused; credentials that are not accepted are renewed for the next one."""
        try:
            answer = await _answer_of(response, MAX_LINE)
        except TooLargeError:
            return self._malformed(f"more than {MAX_LINE >> 20} MiB")
        if response.status == HTTPStatus.UNAUTHORIZED:
            await self._connection.renew(authentication)
        return refusal(answer, self._origin)


async def _answer_of(response: aiohttp.ClientResponse, most: int) -> Answer:
    """Read an answer to its end, which a packed one may hide.

    Raises:
        TooLargeError: it is larger than that of any API server.
    """
    pieces, size, turn = [], 0, SLICE
    while piece := await response.content.readany():
        size += len(piece)
        if size > most:
            response.close()
            raise TooLargeError
        pieces.append(piece)
        if size >= turn:
            turn = size + SLICE
            await asyncio.sleep(0)
    retry_after = response.headers.get("Retry-After", "")
    return Answer(response.status, response.reason or "", response.content_type, retry_after, b"".join(pieces))


async def _split(content: aiohttp.StreamReader, silence: float | None) -> AsyncIterator[list[bytes]]:
    rest, clock = bytearray(), asyncio.get_running_loop().time
    spoke, since_turn = clock(), 0
    async for packet in content.iter_any():
        for begin in range(0, len(packet), LINES_SLICE):  # a packet may be unpacked from one of a thousandth
            chunk = packet[begin : begin + LINES_SLICE]
            lines: list[bytes] = []
            if b"\n" in chunk:
                *lines, last = (bytes(rest) + chunk).split(b"\n")
                rest = bytearray(last)
            else:
                rest += chunk
            if any(lines):  # empty ones say nothing, however many there are
                spoke = clock()
                yield lines
            elif silence is not None and clock() - spoke > silence:
                raise aiohttp.SocketTimeoutError("a line of the stream takes too long")
            if len(rest) > MAX_LINE:
                raise aiohttp.ClientPayloadError("a line of the stream is too long")
            since_turn += len(chunk)
            if since_turn >= LINES_SLICE:
                since_turn = 0
                await asyncio.sleep(0)


def _keep_alive(response: aiohttp.ClientResponse) -> None:
    """Notice within a minute that the other side is gone: a silent stream looks like a quiet cluster."""
    connection = response.connection
    transport = connection.transport if connection else None
    sock = transport.get_extra_info("socket") if isinstance(transport, asyncio.Transport) else None
    if sock is None:
        return
    sock.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in (("TCP_KEEPIDLE", 30), ("TCP_KEEPINTVL", 10), ("TCP_KEEPCNT", 3)):
        if hasattr(socket, name):
            sock.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)


def _drop(response: aiohttp.ClientResponse) -> None:
    """Drop the connection of a stream that is left before its end: TLS would wait for the other side's goodbye."""
    transport = response.connection.transport if response.connection else None
    if transport is not None:
        transport.abort()


def refusal(answer: Answer, origin: str) -> ApiError:
    """Translate an answer of status 300 or more: a redirect is none of an API server.

    Following it could turn a binding into a question, whose answer would be believed.
    """
    retry_after = float(answer.retry_after) if answer.retry_after.isdecimal() else None
    try:
        status = _STATUS.decode(answer.body)
    except UNREADABLE:
        status = ApiStatus()
    if status.kind != "Status" and answer.status == HTTPStatus.TOO_MANY_REQUESTS and answer.content_type == TEXT:
        # An API server that is overloaded refuses in plain text; such a request was not carried out.
        text = f"{origin} has received too many requests and asks to try again later"
        return ApiError(answer.status, TOO_MANY, text, retry_after)
    if status.kind != "Status":
        reason, kind = answer.reason or "no reason", answer.content_type
        text = f"{origin} answered {answer.status} {reason} with {kind}, which is not a Kubernetes Status"
        return ApiError(answer.status, NO_STATUS, text, retry_after)
    return ApiError(answer.status, status.reason, status.message, status.retry_after or retry_after)


@dataclass(frozen=True, slots=True)
class Pacing:
    """Where randomness and waiting come from."""

    random: Callable[[], float]
    """Gives numbers from 0 to below 1."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


class Retry:
    """The pauses of one loop.

    Units: seconds.
    """

    def __init__(self, pacing: Pacing) -> None:
        self._pacing = pacing
        self.failures = 0

    def reset(self) -> None:
        """Start over after a success."""
        self.failures = 0

    async def pause(self, at_least: float = 0.0) -> None:
        """Wait longer than the last time; where a server says how long, that long within limits for some times."""
        doubled = FIRST_PAUSE * 2.0 ** min(self.failures, _MAX_DOUBLINGS)
        own = 0.0 if at_least and self.failures < REPEATS else min(doubled * self._spread(), LONGEST_PAUSE)
        self.failures += 1
        await self._pacing.sleep(max(own, min(at_least * self._spread(), MOST_ASKED)))

    def _spread(self) -> float:
        """Return a factor that keeps those apart that begin to wait together."""
        return 1 + self._pacing.random() / 2


def passes(error: ApiError) -> bool:
    """Return whether the same request may succeed later: the server was busy, failing or out of reach."""
    return error.status in (0, 429) or error.status >= 500
