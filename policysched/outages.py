"""One line for each way in which a server cannot be reached: what happened, where, and why.

It translates the HTTP library's exceptions for those who talk to servers; nothing above them ever sees one. A leaf:
it imports nothing of ours.
"""

from __future__ import annotations

import ssl

import aiohttp

UNREACHABLE = "Unreachable"
TIMEOUT = "Timeout"
TLS = "TLS"
LOST = (aiohttp.ClientError, ssl.SSLError, OSError, TimeoutError)
"""What the HTTP library raises where there is no answer, or half of one."""
_OUTAGES: tuple[tuple[tuple[type[BaseException], ...], str, str], ...] = (
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


def describe(error: BaseException, url: str) -> tuple[str, str]:
    """Give a reason (a constant of this module) and a line of text for an exception of the HTTP library."""
    for kinds, reason, text in _OUTAGES:
        if isinstance(error, kinds):
            return reason, text.format(url=url, cause=_cause(error))
    return UNREACHABLE, f"the connection to {url} broke: {_cause(error)}"


def _cause(error: BaseException) -> str:
    inner = getattr(error, "os_error", None) or getattr(error, "certificate_error", None) or error
    if isinstance(inner, ssl.SSLCertVerificationError):
        return inner.verify_message
    text = getattr(inner, "strerror", None) or getattr(inner, "reason", None) or str(inner)
    return " ".join(str(text).split()) or type(inner).__name__
