"""A connection to one API server: its URL, one HTTP session, and headers that stay valid.

The session is the HTTP library's own and not the generated client's, whose layers cost more than the request does.
Credentials are looked at again before a request when they are a minute old, so nothing has to run in the background.
"""

from __future__ import annotations

import asyncio
import ssl
from collections.abc import Mapping
from typing import Any, TypedDict

import aiohttp
from yarl import URL

from policysched.errors import ConnectionProblemError, KubeconfigError
from policysched.framework import Clock
from policysched.kube.credentials import Credentials, find_credentials

RENEWAL = 60.0
"""How old credentials may be before they are looked at again. Units: seconds."""
CONNECTIONS = 128
USER_AGENT = "policysched"


class Routing(TypedDict, total=False):
    """What a request needs to know of the way: a proxy, and the name in the server's certificate."""

    proxy: str
    server_hostname: str


class Connection:
    """A server, the way to it and the identity used there."""

    def __init__(
        self, url: str, clock: Clock, *, tls: ssl.SSLContext | None = None, routing: Routing | None = None
    ) -> None:
        self.url = url.rstrip("/")
        self.routing: Routing = routing or {}
        self._clock = clock
        self._tls = tls
        self._credentials: Credentials | None = None
        self._headers: dict[str, str] = {}
        self._renew_at = 0.0
        self._renewing = asyncio.Lock()
        self._session: aiohttp.ClientSession | None = None

    @classmethod
    async def open(cls, clock: Clock, *, kubeconfig: str | None = None, context: str | None = None) -> Connection:
        """Find the server and the credentials; no request is made yet.

        Raises:
            ConnectionProblemError: the kubeconfig cannot be used.
        """
        credentials = await find_credentials(kubeconfig, context)
        configuration = credentials.configuration
        connection = cls(_checked(configuration.host), clock, tls=_tls(configuration), routing=_routing(configuration))
        connection._credentials = credentials
        await connection._look_again()
        return connection

    async def headers(self) -> Mapping[str, str]:
        """Give the headers that authenticate a request."""
        if self._credentials is not None and self._clock.monotonic() >= self._renew_at:
            await self._look_again()
        return self._headers

    async def renew(self, refused: Mapping[str, str]) -> bool:
        """Get new credentials after headers were refused; tell whether there are others now.

        Raises:
            ConnectionProblemError: there are none any more.
        """
        if self._credentials is None:
            return False
        async with self._renewing:
            # Many requests are refused at once: the first renews for all.
            if self._headers == refused:
                await self._credentials.renew()
                if self._tls is not None:
                    _load_certificate(self._tls, self._credentials.configuration)
                await self._look_again()
            return self._headers != refused

    @property
    def session(self) -> aiohttp.ClientSession:
        """The HTTP session; made at first use, because it belongs to the running loop."""
        if self._session is None:
            connector = aiohttp.TCPConnector(
                limit=CONNECTIONS, ssl=self._tls or True, keepalive_timeout=60, enable_cleanup_closed=False
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                headers={"User-Agent": USER_AGENT, "Accept": "application/json"},
                # Cookies of a gateway would be sent with every request, and grow for ever.
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session

    async def close(self) -> None:
        """Close the session's connections."""
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _look_again(self) -> None:
        assert self._credentials is not None  # noqa: S101 - only called where there are some
        self._renew_at = self._clock.monotonic() + RENEWAL
        value = await self._credentials.authorization()
        self._headers = {"Authorization": value} if value else {}


def _checked(host: object) -> str:
    """Read the server's address.

    Raises:
        KubeconfigError: it is none that can be asked.
    """
    try:
        url = URL(str(host))
        (url.host or "").encode("idna")
    except ValueError as error:
        raise KubeconfigError(f"the kubeconfig's server is no URL: {error}") from error
    if url.user is not None or url.password is not None:
        raise KubeconfigError("the kubeconfig's server has a name or password in its URL: write them under users")
    if url.scheme not in ("http", "https") or not url.host:
        raise KubeconfigError(f'the kubeconfig\'s server "{host}" is no http or https URL')
    return str(host)


def _tls(configuration: Any) -> ssl.SSLContext | None:
    if not str(configuration.host).startswith("https"):
        return None
    try:
        tls = ssl.create_default_context(cafile=configuration.ssl_ca_cert, cadata=configuration.ca_cert_data)
    except (ssl.SSLError, OSError) as error:
        raise ConnectionProblemError(f"the kubeconfig's certificate authority cannot be used: {error}") from error
    # API servers' own certificates often lack the extensions that the strict profile demands.
    tls.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if not configuration.verify_ssl:
        tls.check_hostname = False
        tls.verify_mode = ssl.CERT_NONE
    _load_certificate(tls, configuration)
    return tls


def _load_certificate(tls: ssl.SSLContext, configuration: Any) -> None:
    if not configuration.cert_file:
        return
    try:
        tls.load_cert_chain(configuration.cert_file, keyfile=configuration.key_file)
    except (ssl.SSLError, OSError) as error:
        raise ConnectionProblemError(f"the client certificate cannot be used: {error}") from error


def _routing(configuration: Any) -> Routing:
    routing: Routing = {}
    if configuration.proxy:
        routing["proxy"] = configuration.proxy
    if configuration.tls_server_name:
        routing["server_hostname"] = configuration.tls_server_name
    return routing
