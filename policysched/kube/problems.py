"""One line for each way in which a server cannot be reached: what happened, where, and what to look at.

It translates the HTTP library's exceptions; nothing above this package ever sees one.
"""

from __future__ import annotations

import ssl

import aiohttp

from policysched.framework import ApiError

UNREACHABLE = "Unreachable"
TIMEOUT = "Timeout"
TLS = "TLS"
_PROBLEMS: tuple[tuple[tuple[type[BaseException], ...], str, str], ...] = (
    (
        (aiohttp.ClientConnectorCertificateError,),
        TLS,
        "{url} has a certificate that is not trusted: {cause}",
    ),
    ((aiohttp.ClientSSLError, ssl.SSLError), TLS, "no TLS connection to {url}: {cause}"),
    ((aiohttp.ClientConnectorDNSError,), UNREACHABLE, "{url} cannot be reached: its name does not resolve"),
    (
        (aiohttp.ClientConnectorError, ConnectionRefusedError),
        UNREACHABLE,
        "{url} cannot be reached: {cause}",
    ),
    ((TimeoutError,), TIMEOUT, "{url} did not answer in time"),
    ((aiohttp.ServerDisconnectedError,), UNREACHABLE, "{url} closed the connection without an answer"),
)
"""The first that matches speaks; the order is from the special to the general."""


def lost(error: BaseException, url: str) -> ApiError:
    """Translate an exception of the HTTP library into an ApiError of status 0."""
    for kinds, reason, text in _PROBLEMS:
        if isinstance(error, kinds):
            return ApiError(0, reason, text.format(url=url, cause=_cause(error)))
    return ApiError(0, UNREACHABLE, f"the connection to {url} broke: {_cause(error)}")


def _cause(error: BaseException) -> str:
    inner = getattr(error, "os_error", None) or getattr(error, "certificate_error", None) or error
    if isinstance(inner, ssl.SSLCertVerificationError):
        return inner.verify_message
    text = getattr(inner, "strerror", None) or getattr(inner, "reason", None) or str(inner)
    return " ".join(str(text).split()) or type(inner).__name__
