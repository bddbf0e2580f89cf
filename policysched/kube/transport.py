"""HTTP requests to the API server: `Transport` returns an answer or streams lines, and raises `ApiError`.

Every failure becomes an ApiError: the server's own Status, a body that is not a Status (a proxy's page), or a lost
connection (status 0). Only a request with expired credentials is repeated here. The caller decides about other
repetitions and pauses with `Retry`.
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
from policysched.reading.lenient_json import UNREADABLE

Body = bytes | Callable[[], bytes] | None
JSON = "application/json"
HTML, TEXT = "text/html", "text/plain"
JSON_PATCH = "application/json-patch+json"
MERGE_PATCH = "application/merge-patch+json"
STRATEGIC_PATCH = "application/strategic-merge-patch+json"
REQUEST_TIMEOUT = 30.0
"""Time limit of one request. Units: seconds."""
PATIENCE = 20
"""Longest duration of a GET request while data arrives, in multiples of the request's timeout."""
SILENT = "Silent"
"""Reason of the error for a stream that sent no line for too long."""
TOO_MANY = "TooManyRequests"
NOT_LEADING = "NotLeading"
"""Reason of the error for a request that is not sent, because another process may be the leader."""
FIRST_PAUSE, LONGEST_PAUSE = 1.0, 30.0
"""First and longest pause between attempts; each pause is twice as long as the previous one. Units: seconds."""
_MAX_DOUBLINGS = 10
REPEATS = 10
"""Number of consecutive attempts whose pause is exactly the server's Retry-After, as in client-go.

Source: k8s.io/client-go/rest/with_retry.go.
"""
MOST_ASKED = 120.0
"""Longest Retry-After that the client obeys, so that a server cannot stop a watch for hours. Units: seconds."""
MAX_LINE = 32 << 20
"""Longest line of a stream, and largest answer that is not a list; more is an error. Units: bytes."""

SLICE = 1 << 20
"""Part of an answer that is decompressed before yielding to the event loop, in some milliseconds. Units: bytes."""
LINES_SLICE = 1 << 17
"""Part of a stream that is split into lines before yielding to the event loop, in some milliseconds. Units: bytes."""


ANONYMOUS = '"system:anonymous"'
"""Name of the user in the API server's message about a forbidden request without credentials."""


class _Details(msgspec.Struct):
    retryAfterSeconds: float = 0  # noqa: N815 - the API's name


class ApiStatus(msgspec.Struct):
    """Error answer of the API server: metav1.Status."""

    kind: str = ""
    message: str = ""
    reason: str = ""
    code: int = 0
    details: _Details | None = None

    @property
    def retry_after(self) -> float | None:
        """Time after which the server asks the client to retry; None if absent. Units: seconds."""
        return (self.details.retryAfterSeconds if self.details else 0) or None


_STATUS = msgspec.json.Decoder(ApiStatus)


class _Version(msgspec.Struct):
    gitVersion: str = ""  # noqa: N815 - the API's name


_VERSION = msgspec.json.Decoder(_Version)


class Transport:
    """Requests to the API server over one connection.

    Args:
        connection: The connection.
        timeout: Limit of one request. Units: seconds.
        limit: Limit of requests per second.
        may_write: Whether requests other than GET may be sent; called when the connection is open, just before sending.
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
        """Send a request and return the body of its answer.

        A GET may take long while data keeps arriving, because the size of lists is not ours to limit.

        Args:
            method: the HTTP method.
            path: path and query.
            body: the body, or a function that returns it when the request is sent.
            content_type: media type of the body.
            most: largest decompressed answer in bytes.
            last: whether the request has low priority in the limit.

        Raises:
            ApiError: the server rejected the request, or was unreachable.
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

    async def server_version(self) -> str:
        """Return the server's `gitVersion`; empty if the server reports none or rejects the request.

        Raises:
            ConnectionProblemError: the server is unreachable, or rejects the credentials.
        """
        url = self._connection.url
        try:
            return _VERSION.decode(await self.request("GET", "/version")).gitVersion
        except UNREADABLE:
            return ""
        except ApiError as error:
            if error.status == HTTPStatus.UNAUTHORIZED:
                raise ConnectionProblemError(f"{url} rejects the credentials: {error}") from error
            if error.status == 0:
                raise ConnectionProblemError(str(error)) from error
            return ""  # any other answer shows that the server works; rejected requests are reported later

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
            if isinstance(error.__cause__, ApiError):  # aiohttp wraps the exception that the body raised
                raise error.__cause__ from None
            raise ApiError(0, *describe(error, self._connection.url)) from without_frames(error)
        finally:
            self._ended(method, code, began)
        if code >= HTTPStatus.MULTIPLE_CHOICES:
            raise self._refusal(answer)
        if answer.content_type == HTML:
            # A gateway's HTML page is no success, even with status 200: a pod would be treated as bound and be
            # lost.
            raise self._malformed(HTML)
        return answer.body

    async def _answer(
        self, method: str, path: str, body: bytes | None, headers: Mapping[str, str], most: int
    ) -> Answer:
        """Send a request through aiohttp and return the answer; the lease is checked just before a body is sent."""
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
        """Scheme, host and port of the server, for messages."""
        return str(URL(self._connection.url).origin())

    def _malformed(self, what: str) -> ApiError:
        return ApiError(0, "Malformed", f"{self._origin} answered with {what}, which an API server does not do")

    def _now(self) -> float:
        return asyncio.get_running_loop().time()

    def _ended(self, method: str, code: int, began: float) -> None:
        """Call the callback for an ended request, whether it was answered, rejected or lost."""
        if self._connection.on_answer is not None:
            self._connection.on_answer(method, code, self._now() - began)

    async def lines(self, path: str, timeout: float, silence: float | None = None) -> AsyncGenerator[list[bytes], None]:
        """Yield the complete lines of a streamed answer, as many at a time as have arrived.

        An incomplete last line is dropped. The first item is empty; it shows that the server has begun to answer.

        Args:
            path: path and query.
            timeout: longest life of the stream in seconds.
            silence: longest time without a complete line in seconds.

        Raises:
            ApiError: the server rejected the request, or the stream broke; reason SILENT after `silence` seconds.
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
        """Return the error of a rejected stream, and renew the credentials if the server rejected them."""
        try:
            answer = await _answer_of(response, MAX_LINE)
        except TooLargeError:
            return self._malformed(f"more than {MAX_LINE >> 20} MiB")
        if response.status == HTTPStatus.UNAUTHORIZED:
            await self._connection.renew(authentication)
        return self._refusal(answer)

    def _refusal(self, answer: Answer) -> ApiError:
        """Return the error of a rejected request, with the remedy if the credentials are the cause."""
        error = refusal(answer, self._origin)
        if self._connection.anonymous and (error.status == HTTPStatus.UNAUTHORIZED or ANONYMOUS in error.message):
            remedy = "the kubeconfig gives no credentials; set a token with `kubectl config set-credentials`"
        elif error.status == HTTPStatus.UNAUTHORIZED:
            remedy = "the token or the client certificate may have expired; create a new one"
        else:
            return error
        return ApiError(error.status, error.reason, f"{error.message}; {remedy}", error.retry_after)


async def _answer_of(response: aiohttp.ClientResponse, most: int) -> Answer:
    """Read an answer to its end and return it.

    Raises:
        TooLargeError: the decompressed answer is larger than `most`.
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
        for begin in range(0, len(packet), LINES_SLICE):  # a compressed packet can expand a thousandfold
            chunk = packet[begin : begin + LINES_SLICE]
            lines: list[bytes] = []
            if b"\n" in chunk:
                *lines, last = (bytes(rest) + chunk).split(b"\n")
                rest = bytearray(last)
            else:
                rest += chunk
            if any(lines):  # empty lines do not show that the server works
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
    """Enable TCP keepalive, which detects a dead peer of a silent stream within a minute."""
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
    """Abort the connection of a stream that is not read to its end; an orderly TLS shutdown would wait for the peer."""
    transport = response.connection.transport if response.connection else None
    if transport is not None:
        transport.abort()


def refusal(answer: Answer, origin: str) -> ApiError:
    """Convert an HTTP answer of status 300 or higher into an `ApiError`.

    API servers do not redirect. Following a redirect could turn a binding into a GET, whose answer would be believed.
    """
    retry_after = float(answer.retry_after) if answer.retry_after.isdecimal() else None
    try:
        status = _STATUS.decode(answer.body)
    except UNREADABLE:
        status = ApiStatus()
    if status.kind != "Status" and answer.status == HTTPStatus.TOO_MANY_REQUESTS and answer.content_type == TEXT:
        # An overloaded API server rejects in plain text; it has not processed the request.
        text = f"{origin} has received too many requests and asks to try again later"
        return ApiError(answer.status, TOO_MANY, text, retry_after)
    if status.kind != "Status":
        reason, kind = answer.reason or "no reason", answer.content_type
        text = f"{origin} answered {answer.status} {reason} with {kind}, which is not a Kubernetes Status"
        return ApiError(answer.status, NO_STATUS, text, retry_after)
    return ApiError(answer.status, status.reason, status.message, status.retry_after or retry_after)


@dataclass(frozen=True, slots=True)
class Pacing:
    """Functions for random numbers and for sleeping, with which requests are repeated after pauses."""

    random: Callable[[], float]
    """Function that returns a random number from 0 to below 1."""
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep


class Retry:
    """Growing, randomized pauses between repeated attempts of a request.

    Units: seconds.
    """

    def __init__(self, pacing: Pacing) -> None:
        self._pacing = pacing
        self.failures = 0

    def reset(self) -> None:
        """Set the next pause to the shortest pause, after a success."""
        self.failures = 0

    async def pause(self, at_least: float = 0.0) -> None:
        """Sleep for a doubled pause, or for the server's Retry-After within limits."""
        doubled = FIRST_PAUSE * 2.0 ** min(self.failures, _MAX_DOUBLINGS)
        own = 0.0 if at_least and self.failures < REPEATS else min(doubled * self._spread(), LONGEST_PAUSE)
        self.failures += 1
        await self._pacing.sleep(max(own, min(at_least * self._spread(), MOST_ASKED)))

    def _spread(self) -> float:
        """Return a random factor from 1 to 1.5, so that clients that wait together retry at different times."""
        return 1 + self._pacing.random() / 2


def passes(error: ApiError) -> bool:
    """Return whether an error is temporary: the server was busy, failing or unreachable."""
    return error.status in (0, 429) or error.status >= 500
