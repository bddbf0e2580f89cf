"""HTTP client of one Prometheus server: returns a query's answer, or raises `QueryError` with a one-line reason.

Any server with Prometheus' query API works. The bearer token is read again for every query, so a rotated token applies
at once. Redirects are not followed, because the token is only for the configured address.
"""

from __future__ import annotations

import ssl
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Final

import aiohttp
from aiohttp.connector import NEEDS_CLEANUP_CLOSED
from yarl import URL

from policysched.connection_errors import LOST, TIMEOUT, TLS, describe
from policysched.errors import UsageError
from policysched.metric_sources.problems import QueryError, QueryOutcome, one_line
from policysched.metric_sources.vector import Envelope, open_envelope

API: Final = "api/v1/query"
QUERY_TIMEOUT: Final = 10.0
"""Default timeout of a query. Units: seconds."""
LARGEST: Final = 32 << 20
"""Largest answer; more is an error. Units: bytes. 50,000 nodes with a dozen labels each need half."""
_PIECE: Final = 1 << 16
_OUTCOMES: Final = {TIMEOUT: QueryOutcome.TIMEOUT, TLS: QueryOutcome.TLS}
_UNKNOWN_ISSUER: Final = ("issuer certificate", "self-signed certificate", "self signed certificate")
"""Parts of the TLS library's messages about a certificate with an untrusted issuer."""
_NOT_ALLOWED: Final = frozenset((HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN))
_NOT_THERE: Final = frozenset((HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED))


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Address and credentials of the Prometheus server."""

    url: str
    token_file: Path | None = None
    ca_file: Path | None = None
    timeout: float = QUERY_TIMEOUT
    """Timeout of a query. Units: seconds."""


class PrometheusClient:
    """A client of one Prometheus server, with its HTTP session."""

    def __init__(self, settings: ServerSettings) -> None:
        """Check the settings; send no request.

        Raises:
            UsageError: the URL, the token file or the certificate authority is invalid.
        """
        self._settings = settings
        url = _checked(settings.url)
        self.url = str(url).rstrip("/")
        self._query = url / API
        self._tls = _tls(url, settings.ca_file)
        self._timeout = aiohttp.ClientTimeout(total=settings.timeout)
        self._session: aiohttp.ClientSession | None = None
        if settings.token_file is not None:
            try:
                _token(settings.token_file)
            except QueryError as error:
                raise UsageError(f"--prometheus-token-file: {error}") from error

    async def ask(self, query: str) -> Envelope:
        """Run an instant query.

        Raises:
            QueryError: there is no answer, or the server rejects the query. `read_series` checks the result.
        """
        headers = self._headers()
        sent = {"query": query, "timeout": f"{self._settings.timeout:g}s"}
        try:
            async with self._opened().post(
                self._query, data=sent, headers=headers, timeout=self._timeout, allow_redirects=False
            ) as response:
                body = await self._body(response)
        except LOST as error:
            reason, text = describe(error, self.url)
            outcome = _OUTCOMES.get(reason, QueryOutcome.UNREACHABLE)
            raise QueryError(outcome, text + _advice(text)) from error
        return self._judge(response, body)

    async def close(self) -> None:
        """Close the session's connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    def _headers(self) -> dict[str, str]:
        # Compression would use more time than it saves, and could hide any size.
        headers = {"Accept": "application/json", "Accept-Encoding": "identity", "User-Agent": "policysched"}
        if self._settings.token_file is not None:
            headers["Authorization"] = f"Bearer {_token(self._settings.token_file)}"
        return headers

    def _opened(self) -> aiohttp.ClientSession:
        """Return the session; created at first use, because it belongs to the running event loop."""
        if self._session is None:
            connector = aiohttp.TCPConnector(
                ssl=self._tls or True, keepalive_timeout=60, enable_cleanup_closed=NEEDS_CLEANUP_CLOSED
            )
            self._session = aiohttp.ClientSession(
                connector=connector, auto_decompress=False, cookie_jar=aiohttp.DummyCookieJar()
            )
        return self._session

    async def _body(self, response: aiohttp.ClientResponse) -> bytes:
        body = bytearray()
        async for piece in response.content.iter_chunked(_PIECE):
            body += piece
            if len(body) > LARGEST:
                response.close()
                size = f"more than {LARGEST >> 20} MiB"
                raise QueryError(
                    QueryOutcome.TOO_LARGE, f"the answer has {size}; aggregate by the node's label in the query"
                )
        return bytes(body)

    def _judge(self, response: aiohttp.ClientResponse, body: bytes) -> Envelope:
        status = response.status
        answer = f"{status} {one_line(response.reason or 'without a reason')}"
        if status in _NOT_ALLOWED:
            raise QueryError(
                QueryOutcome.CREDENTIALS,
                f"{self.url} refuses the credentials ({answer}); check --prometheus-token-file",
            )
        if 300 <= status < 400:
            there = one_line(response.headers.get("Location", "nowhere"))
            raise QueryError(
                QueryOutcome.REFUSED, f"{self.url} redirects to {there}; set --prometheus-url to that address"
            )
        envelope = open_envelope(body)
        if envelope is not None and envelope.status == "error":
            why = f"{one_line(envelope.error_type)}: {one_line(envelope.error)}"
            raise QueryError(QueryOutcome.REFUSED, f"the server refuses the query ({why})")
        if status in _NOT_THERE:
            raise QueryError(
                QueryOutcome.REFUSED, f"{self.url} has no /{API} ({answer}); check the path of --prometheus-url"
            )
        if status != HTTPStatus.OK or envelope is None:
            kind = one_line(response.content_type)
            raise QueryError(
                QueryOutcome.MALFORMED if status == HTTPStatus.OK else QueryOutcome.REFUSED,
                f"{self.url} answers {answer} with {kind}, not an answer of Prometheus; check --prometheus-url",
            )
        return envelope


def _checked(text: str) -> URL:
    """Parse and validate the server's URL.

    Raises:
        UsageError: the text is not a usable URL.
    """
    example = "write it as http://prometheus.monitoring:9090"
    try:
        url = URL(text)
    except ValueError as error:
        raise UsageError(f'--prometheus-url "{text}" is not a URL ({error}); {example}') from error
    if url.user is not None or url.password is not None:
        raise UsageError("--prometheus-url contains a user name or password; use --prometheus-token-file")
    if url.scheme not in ("http", "https") or not url.host:
        raise UsageError(f'--prometheus-url "{text}" is not an http or https URL; {example}')
    if url.query_string or url.fragment:
        raise UsageError(f'--prometheus-url "{text}" has a query or fragment; remove it')
    return url


def _tls(url: URL, ca_file: Path | None) -> ssl.SSLContext | None:
    """Return a TLS context that trusts the CAs in a file; None for the system's CAs, or without TLS.

    Raises:
        UsageError: the file contains no certificate, or the URL is not https.
    """
    if ca_file is None:
        return None
    if url.scheme != "https":
        raise UsageError("--prometheus-ca-file needs an https URL, but --prometheus-url begins with http")
    try:
        tls = ssl.create_default_context(cafile=str(ca_file))
    except ssl.SSLError as error:
        raise UsageError(f"--prometheus-ca-file: {ca_file} contains no certificate in PEM format") from error
    except OSError as error:
        raise UsageError(f"--prometheus-ca-file: {ca_file} cannot be read: {_why(error)}") from error
    # Certificate authorities of clusters often lack extensions that the strict profile requires.
    tls.verify_flags &= ~ssl.VERIFY_X509_STRICT
    return tls


def _advice(text: str) -> str:
    """Return a hint at a flag if an error is about an untrusted certificate issuer, otherwise an empty text."""
    unknown = any(one in text for one in _UNKNOWN_ISSUER)
    return "; check --prometheus-ca-file" if unknown else ""


def _token(path: Path) -> str:
    """Read the bearer token.

    Raises:
        QueryError: the file contains no usable token.
    """
    try:
        token = path.read_text("ascii").strip()
    except OSError as error:
        raise QueryError(QueryOutcome.CREDENTIALS, f"{path} cannot be read: {_why(error)}") from error
    except UnicodeDecodeError as error:
        raise QueryError(QueryOutcome.CREDENTIALS, f"{path} contains no token: it is not plain text") from error
    if not token:
        raise QueryError(QueryOutcome.CREDENTIALS, f"{path} contains no token: it is empty")
    if not token.isprintable() or " " in token:
        raise QueryError(QueryOutcome.CREDENTIALS, f"{path} contains no token: it has more than one word")
    return token


def _why(error: OSError) -> str:
    return (error.strerror or str(error)).lower()
