"""`describe`: converts exceptions of the HTTP library and of plain requests into a reason and a one-line message."""

from __future__ import annotations

import errno
import socket
import ssl
from urllib.parse import urlsplit

import aiohttp

UNREACHABLE = "Unreachable"
TIMEOUT = "Timeout"
TLS = "TLS"
LOST = (aiohttp.ClientError, ssl.SSLError, OSError, TimeoutError)
"""Exceptions of the HTTP library for a missing or incomplete response."""


class UnreachableError(OSError):
    """Error: a connection to `host` and `port` failed with `os_error`."""

    def __init__(self, os_error: OSError, host: str, port: int) -> None:
        super().__init__(os_error.errno, os_error.strerror)
        self.os_error, self.host, self.port = os_error, host, port


class NoAnswerError(OSError):
    """Error: the server closed the connection without a response."""


class BrokenAnswerError(OSError):
    """Error: a response is incomplete or not HTTP."""


class TooLargeError(BrokenAnswerError):
    """Error: a response is larger than the limit."""


_OUTAGES: tuple[tuple[tuple[type[BaseException], ...], str, str], ...] = (
    (
        (aiohttp.ClientConnectorCertificateError, ssl.SSLCertVerificationError),
        TLS,
        "cannot connect to {url}: certificate is not trusted: {cause}",
    ),
    ((aiohttp.ClientSSLError, ssl.SSLError), TLS, "cannot connect to {url}: TLS failed: {cause}"),
    (
        (aiohttp.ClientConnectorDNSError, socket.gaierror),
        UNREACHABLE,
        "cannot connect to {url}: host name does not resolve",
    ),
    (
        (aiohttp.ClientConnectorError, UnreachableError, ConnectionRefusedError),
        UNREACHABLE,
        "cannot connect to {url}: {cause}",
    ),
    ((TimeoutError,), TIMEOUT, "no response from {url} in time"),
    (
        (aiohttp.ServerDisconnectedError, NoAnswerError),
        UNREACHABLE,
        "{url} closed the connection without a response",
    ),
)
"""Exception types with their reasons and messages; the first match applies, subclasses before their bases."""
_WORDS = {
    errno.ECONNREFUSED: "connection refused by {place}",
    errno.ECONNRESET: "{place} reset the connection",
    errno.EPIPE: "{place} closed the connection",
    errno.EHOSTUNREACH: "no route to {place}",
    errno.ENETUNREACH: "network of {place} is unreachable",
    errno.ETIMEDOUT: "no response from {place}",
}
_CUT = "Response payload is not completed"
"""Start of the HTTP library's message if the connection ends before the response does."""
_NO_TLS = frozenset(("WRONG_VERSION_NUMBER", "UNKNOWN_PROTOCOL", "HTTP_REQUEST"))
"""Reasons of the TLS library for a server that does not use TLS."""
_CLIENT_CERTIFICATE = ("ALERT_BAD_CERTIFICATE", "ALERT_CERTIFICATE_REQUIRED")
"""Ends of the TLS library's reasons if the server requires a client certificate and got none or an invalid one."""


def describe(error: BaseException, url: str) -> tuple[str, str]:
    """Return a reason (a constant of this module) and a one-line message for an exception."""
    if isinstance(error, aiohttp.ClientOSError) and isinstance(error.__cause__, ssl.SSLError):
        error = error.__cause__  # TLS 1.3 servers check client certificates after the connection is made
    for kinds, reason, text in _OUTAGES:
        if isinstance(error, kinds):
            return reason, text.format(url=url, cause=_cause(error, url))
    return UNREACHABLE, f"connection to {url} failed: {_cause(error, url)}"


def without_frames(error: BaseException) -> BaseException:
    """Remove the tracebacks of an exception and its causes; return the exception.

    Frames of the HTTP library refer to the exception. Such a cycle stays in memory until a full garbage collection.
    """
    found: BaseException | None = error
    while found is not None:
        found.__traceback__ = None
        found = found.__cause__ or found.__context__
    return error


def _cause(error: BaseException, url: str) -> str:
    inner = getattr(error, "os_error", None) or getattr(error, "certificate_error", None) or error
    if isinstance(inner, ssl.SSLCertVerificationError):
        return inner.verify_message
    if isinstance(inner, ssl.SSLError) and inner.reason:
        return _tls_failure(inner.reason)
    if isinstance(inner, OSError) and inner.errno in _WORDS:
        return _WORDS[inner.errno].format(place=_place(error, url))
    if isinstance(inner, aiohttp.ClientPayloadError) and str(inner).startswith(_CUT):
        return "connection closed in the middle of the response"
    text = getattr(inner, "strerror", None) or getattr(inner, "reason", None) or str(inner)
    return " ".join(str(text).split()) or type(inner).__name__


def _tls_failure(reason: str) -> str:
    if reason.endswith(_CLIENT_CERTIFICATE):
        return "server requires a valid client certificate"
    return "server does not use TLS" if reason in _NO_TLS else reason.lower().replace("_", " ")


def _place(error: BaseException, url: str) -> str:
    """Return the host and port to which a failed request connected: those of the server or of the proxy."""
    parts = urlsplit(url)
    host = getattr(error, "host", None) or parts.hostname or url
    port = getattr(error, "port", None) or parts.port or {"https": 443}.get(parts.scheme, 80)
    return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"
