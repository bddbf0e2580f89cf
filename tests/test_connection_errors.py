"""Every way in which a server is not there is said in words."""

from __future__ import annotations

import errno
import ssl

import aiohttp
import pytest
from aiohttp.client_reqrep import ConnectionKey

from policysched.connection_errors import TIMEOUT, TLS, UNREACHABLE, describe

KEY = ConnectionKey("api.example", 6443, True, True, None, None, None)
URL = "https://api.example:6443"
NO_CLIENT = "TLS failed: server requires a valid client certificate"


def _refused(number: int) -> aiohttp.ClientConnectorError:
    return aiohttp.ClientConnectorError(KEY, OSError(number, "Connect call failed ('10.0.0.1', 6443)"))


def _alert(reason: str) -> ssl.SSLError:
    made = ssl.SSLError(1, f"[SSL: {reason}] something (_ssl.c:1000)")
    made.reason = reason
    return made


def _tls(reason: str) -> aiohttp.ClientConnectorSSLError:
    return aiohttp.ClientConnectorSSLError(KEY, _alert(reason))


def _late(reason: str) -> aiohttp.ClientOSError:
    """Make the error of a connection that the server ends with an alert after the handshake."""
    alert = _alert(reason)
    made = aiohttp.ClientOSError(*alert.args)
    made.__cause__ = alert
    return made


@pytest.mark.parametrize(
    ("error", "reason", "text"),
    [
        (_refused(errno.ECONNREFUSED), UNREACHABLE, f"cannot connect to {URL}: connection refused by api.example:6443"),
        (_refused(errno.EHOSTUNREACH), UNREACHABLE, f"cannot connect to {URL}: no route to api.example:6443"),
        (_refused(errno.ETIMEDOUT), UNREACHABLE, f"cannot connect to {URL}: no response from api.example:6443"),
        (
            aiohttp.ClientConnectorDNSError(KEY, OSError(-2, "Name or service not known")),
            UNREACHABLE,
            f"cannot connect to {URL}: host name does not resolve",
        ),
        (TimeoutError(), TIMEOUT, f"no response from {URL} in time"),
        (
            aiohttp.ClientOSError(errno.ECONNRESET, "Connection reset by peer"),
            UNREACHABLE,
            f"connection to {URL} failed: api.example:6443 reset the connection",
        ),
        (_tls("WRONG_VERSION_NUMBER"), TLS, f"cannot connect to {URL}: TLS failed: server does not use TLS"),
        (_tls("TLSV1_ALERT_UNKNOWN_CA"), TLS, f"cannot connect to {URL}: TLS failed: tlsv1 alert unknown ca"),
        (_tls("SSLV3_ALERT_BAD_CERTIFICATE"), TLS, f"cannot connect to {URL}: {NO_CLIENT}"),
        (_late("SSLV3_ALERT_BAD_CERTIFICATE"), TLS, f"cannot connect to {URL}: {NO_CLIENT}"),
        (_late("TLSV13_ALERT_CERTIFICATE_REQUIRED"), TLS, f"cannot connect to {URL}: {NO_CLIENT}"),
    ],
)
def test_an_outage_is_said_in_words(error: BaseException, reason: str, text: str) -> None:
    assert describe(error, URL) == (reason, text)


@pytest.mark.parametrize(
    ("url", "place"), [("http://a", "a:80"), ("https://a/b", "a:443"), ("http://[::1]:7", "[::1]:7")]
)
def test_the_place_is_that_of_the_url_where_the_error_has_none(url: str, place: str) -> None:
    assert describe(ConnectionRefusedError(errno.ECONNREFUSED, "x"), url)[1].endswith(f"connection refused by {place}")
