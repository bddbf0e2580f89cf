"""A connection to one API server: URL, credentials that are renewed in time, HTTP connections.

Lists and watches use an aiohttp session, not the generated client, whose layers cost more than the request. Writes use
`ShortRequests`.

Server and credentials come from a kubeconfig or from the pod's service account. Credentials older than a minute are
read again before the next request, so no background task is needed.

An API server checks the client certificate of a connection, not of a request. After a certificate or the authorities
changed, new connections use a new TLS context, and no open connection is used again. Unreadable files, for example
during a rotation, change nothing.
"""

from __future__ import annotations

import asyncio
import ipaddress
import logging
import os
import shutil
import ssl
import threading
from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any, TypedDict
from weakref import WeakSet

import aiohttp
from aiohttp.connector import NEEDS_CLEANUP_CLOSED
from yarl import URL

from policysched.errors import ConnectionProblemError, KubeconfigError, NoKubeconfigError
from policysched.framework import Clock
from policysched.key_pairs import load_key_pair
from policysched.kube.client_library import ConfigException, Configuration, config
from policysched.kube.exec_plugin import ExecPlugin
from policysched.kube.kubeconfig import Kubeconfigs, check
from policysched.kube.short_requests import ShortRequests, is_address
from policysched.proxies import proxy_for

log = logging.getLogger(__name__)
RENEWAL = 60.0
"""Age of credentials above which they are read again before a request. Units: seconds."""
RENEW_AGAIN = 5.0
"""Pause after a renewal of rejected credentials that changed nothing, before the next renewal. Units: seconds."""
CONNECTIONS = 160
HEADERS = {"User-Agent": "policysched", "Accept": "application/json"}
UNCOMPRESSED = {"Accept-Encoding": "identity"}
"""Request headers for a server on this machine: no compression, because compressing takes longer than copying."""


OnAnswer = Callable[[str, int, float], None]
"""Callback for an ended request: HTTP method, status code (0 without an answer), duration in seconds."""


class Routing(TypedDict, total=False):
    """Arguments of aiohttp's request that select the route: proxy, server name in the certificate, TLS context."""

    proxy: str
    server_hostname: str
    ssl: ssl.SSLContext


@dataclass(frozen=True, slots=True)
class Authentication:
    """The headers and the client certificate that authenticate requests.

    Renewed credentials are another object, even if they are equal.
    """

    headers: Mapping[str, str] = field(default_factory=dict)
    certificate: bytes = b""
    """Digest of the server's CAs, the client certificate and its key; empty without TLS."""


class Connection:
    """One API server with its URL, TLS settings, credentials and HTTP connections."""

    def __init__(
        self, url: str, clock: Clock, *, tls: ssl.SSLContext | None = None, routing: Routing | None = None
    ) -> None:
        self.url = url.rstrip("/")
        self.routing: Routing = {**(routing or {})}
        if tls is not None:
            self.routing["ssl"] = tls
        self._clock = clock
        self._credentials: Credentials | None = None
        self._authentication = Authentication()
        self._renew_at = 0.0
        self._renewable_at = 0.0
        self._renewing = asyncio.Lock()
        self._problem = ""
        """The reason why reading the credentials failed, as logged last; empty after a success."""
        self._session: aiohttp.ClientSession | None = None
        self._short: ShortRequests | None = None
        self.on_answer: OnAnswer | None = None
        """Callback for ended requests, or None."""

    @classmethod
    async def open(
        cls,
        clock: Clock,
        *,
        kubeconfig: str | None = None,
        context: str | None = None,
        named_by: str = "--kubeconfig",
        master: str | None = None,
    ) -> Connection:
        """Find the API server and the credentials; send no request.

        Args:
            clock: Decides when credentials are read again.
            kubeconfig: The file; absent, KUBECONFIG, then ~/.kube/config, then the pod's service account.
            context: The context to use instead of the file's current one.
            named_by: Flag or field with which the user names a kubeconfig, for messages.
            master: The server's address; absent, the kubeconfig's.

        Raises:
            ConnectionProblemError: the kubeconfig cannot be used.
        """
        credentials = await find_credentials(kubeconfig, context, named_by, master)
        configuration = credentials.configuration
        if master:
            configuration.host = master if "://" in master else f"http://{master}"
        url = _checked_url(configuration.host, "--master:" if master else "the kubeconfig's")
        connection = cls(url, clock, tls=_tls(configuration), routing=_routing(configuration))
        connection._credentials = credentials
        connection._authentication = Authentication(certificate=connection._certificate())
        await connection._refresh()
        return connection

    @property
    def anonymous(self) -> bool:
        """Whether the kubeconfig gives neither a token nor a client certificate."""
        given = self._credentials
        return given is not None and not self._authentication.headers and not given.configuration.cert_file

    async def authentication(self) -> Authentication:
        """Return the headers and the certificate for a request, after reading credentials again if they are old."""
        if self._credentials is not None and self._clock.monotonic() >= self._renew_at:
            try:
                await self._refresh()
            except ConnectionProblemError as error:
                self._log_failed_refresh(error)
            else:
                self._problem = ""
        return self._authentication

    def _log_failed_refresh(self, error: ConnectionProblemError) -> None:
        """Log, once per reason, that credentials could not be read and the previous credentials are still used."""
        if str(error) != self._problem:
            self._problem = str(error)
            log.warning("the previous credentials stay in use: %s", error)

    async def renew(self, refused: Authentication) -> bool:
        """Renew credentials that the server rejected; return whether the new credentials are different.

        Raises:
            ConnectionProblemError: no credentials are available any more.
        """
        if self._credentials is None:
            return False
        async with self._renewing:
            # Many requests can be rejected at the same time. The first renews the credentials for all.
            if self._authentication is refused and self._clock.monotonic() >= self._renewable_at:
                try:
                    await self._credentials.renew()
                    await self._refresh()
                finally:
                    if self._authentication is refused:
                        self._renewable_at = self._clock.monotonic() + RENEW_AGAIN
            return self._authentication != refused

    @property
    def session(self) -> aiohttp.ClientSession:
        """The aiohttp session; created at first use, because it belongs to the running event loop."""
        if self._session is None:
            connector = aiohttp.TCPConnector(
                limit=CONNECTIONS,
                keepalive_timeout=60,
                # Some versions of Python leak closed TLS connections until aiohttp cleans them up.
                enable_cleanup_closed=NEEDS_CLEANUP_CLOSED,
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                headers=HEADERS | (UNCOMPRESSED if _is_loopback(self.url) else {}),
                # A gateway's cookies would be sent with every request and accumulate.
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session

    @property
    def short(self) -> ShortRequests | None:
        """Client for requests with short answers; None behind a proxy, which only `session` supports."""
        if self._short is None and "proxy" not in self.routing:
            self._short = ShortRequests(self.url, self.routing.get("ssl"), self.routing.get("server_hostname"), HEADERS)
        return self._short

    async def close(self) -> None:
        """Close all connections."""
        if self._short is not None:
            short, self._short = self._short, None
            await short.close()
        if self._session is not None:
            await self._session.close()
            self._session = None

    async def _refresh(self) -> None:
        """Read the credentials again; after a change of certificates, use a new TLS context."""
        assert self._credentials is not None  # noqa: S101 - callers have checked it
        self._renew_at = self._clock.monotonic() + RENEWAL
        value = await self._credentials.authorization()
        found = Authentication({"Authorization": value} if value else {}, self._certificate())
        if found.certificate != self._authentication.certificate:
            self._use_tls(_tls(self._credentials.configuration))
            log.info("reloaded the certificates for the API server")
        if found != self._authentication:
            self._authentication = found

    def _certificate(self) -> bytes:
        return self._credentials.certificate() if self._credentials is not None and "ssl" in self.routing else b""

    def _use_tls(self, tls: ssl.SSLContext | None) -> None:
        """Use a TLS context for new connections; send no further request through open connections."""
        if tls is not None:
            self.routing["ssl"] = tls
            if self._short is not None:
                self._short.use_tls(tls)


def _checked_url(host: object, whose: str) -> str:
    """Return the URL of a server after checking it.

    Raises:
        KubeconfigError: the address is not an http or https URL, or contains a user name.
    """
    try:
        url = URL(str(host))
        (url.host or "").encode("idna")
    except ValueError as error:
        raise KubeconfigError(f"{whose} server is not a URL: {error}") from error
    if url.user is not None or url.password is not None:
        raise KubeconfigError(f"{whose} server has a user name or password in its URL; write them under users")
    if url.scheme not in ("http", "https") or not url.host:
        raise KubeconfigError(f'{whose} server "{host}" is not an http or https URL')
    return str(host)


def _is_loopback(url: str) -> bool:
    """Return whether a URL's host is this machine."""
    host = URL(url).host or ""
    return host == "localhost" or (is_address(host) and ipaddress.ip_address(host).is_loopback)


def _tls(configuration: Any) -> ssl.SSLContext | None:
    if not str(configuration.host).startswith("https"):
        return None
    try:
        tls = ssl.create_default_context(cafile=configuration.ssl_ca_cert, cadata=configuration.ca_cert_data)
    except (ssl.SSLError, OSError) as error:
        raise ConnectionProblemError(f"cannot use the kubeconfig's certificate authority: {error}") from error
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
        load_key_pair(tls, configuration.cert_file, configuration.key_file)
    except (ValueError, OSError) as error:
        raise ConnectionProblemError(f"cannot use the client certificate: {error}") from error


def _routing(configuration: Any) -> Routing:
    """Return the route of requests: through the kubeconfig's proxy, else through the environment's proxy, if any."""
    routing: Routing = {}
    proxy = configuration.proxy or proxy_for(URL(str(configuration.host)), os.environ)
    if proxy:
        routing["proxy"] = proxy
    if configuration.tls_server_name:
        routing["server_hostname"] = configuration.tls_server_name
    return routing


_LOADERS: Any = config
"""The client library's loaders, which have no type annotations."""
EXEC_EXPIRY = "exec_plugin_expiry"
RENEWABLE_PROVIDERS = frozenset(("oidc", "gcp"))
SERVICE_HOST = "KUBERNETES_SERVICE_HOST"
DEFAULT = "~/.kube/config"
TOKEN = "BearerToken"  # noqa: S105 - the name of the token's slot in the client's configuration, no secret


class Credentials:
    """The loaded client configuration of a kubeconfig or service account, with the means to renew it."""

    def __init__(self, configuration: Any, loader: Any | None) -> None:
        self.configuration = configuration
        self._loader = loader
        with _LOCK:
            _IN_USE.add(self)

    @property
    def files(self) -> frozenset[str]:
        """Paths of the files with certificates and keys that this configuration reads."""
        return frozenset(self._named)

    @property
    def _named(self) -> list[str]:
        named = (self.configuration.ssl_ca_cert, self.configuration.cert_file, self.configuration.key_file)
        return [str(one) for one in named if one]

    async def authorization(self) -> str | None:
        """Return the value of the Authorization header, renewing an expired token first; None without a token.

        Raises:
            ConnectionProblemError: the credentials cannot be read any more.
        """
        if self._loader is not None and _expires(self._loader):
            await self._reload(self._loader)
        try:
            value = await self.configuration.get_api_key_with_prefix(TOKEN)
        except (ConfigException, OSError) as error:
            raise ConnectionProblemError(f"cannot read the service account's token: {error}") from error
        header = str(value).strip() if value else ""
        if not header.isprintable():
            raise ConnectionProblemError("the token has characters that an HTTP header must not have")
        return header or None

    def certificate(self) -> bytes:
        """Return a digest of the server's CAs, the client certificate and its key.

        Raises:
            ConnectionProblemError: a file cannot be read.
        """
        try:
            return sha256(b"".join(Path(one).read_bytes() for one in self._named)).digest()
        except OSError as error:
            raise ConnectionProblemError(f"cannot read {error.filename}: {error.strerror}") from error

    async def renew(self) -> None:
        """Renew credentials that the server rejected, if the kubeconfig defines a way to renew them.

        Raises:
            ConnectionProblemError: the renewal failed.
        """
        if self._loader is not None:
            # The loader caches an exec plugin's answer until it expires, although the server has just rejected it.
            vars(self._loader).pop(EXEC_EXPIRY, None)
            await self._reload(self._loader)

    async def _reload(self, loader: Any) -> None:
        before = self.files
        try:
            await _load(loader, self.configuration)
        finally:
            _remove_unused(before - self.files)


_LOCK = threading.Lock()
_IN_USE: WeakSet[Credentials] = WeakSet()
"""Credentials that any thread of this process uses; their certificate files must not be removed."""


def _remove_unused(files: Collection[str]) -> None:
    """Remove certificate and key files that the loader wrote and that no credentials use any more.

    The loader itself keeps these files until the process ends, and shares one file between credentials of equal
    content.
    """
    written: dict[str, str] = _LOADERS.kube_config._temp_files
    with _LOCK:
        unused = set(files).difference(*(one.files for one in _IN_USE))
        for content, name in tuple(written.items()):
            if name in unused:
                del written[content]
                Path(name).unlink(missing_ok=True)


async def find_credentials(
    path: str | None = None,
    context: str | None = None,
    named_by: str = "--kubeconfig",
    master: str | None = None,
) -> Credentials:
    """Load the credentials of a kubeconfig, or of the pod's service account without a kubeconfig.

    Args:
        path: The kubeconfig; absent, KUBECONFIG, then ~/.kube/config, then the pod's service account.
        context: The context to use instead of the file's current one.
        named_by: Flag or field with which the user names a kubeconfig, for messages.
        master: Server to use without credentials if no kubeconfig exists, as kube-scheduler does.

    Raises:
        ConnectionProblemError: no usable credentials exist.
    """
    chosen = path or os.environ.get("KUBECONFIG") or DEFAULT
    files = _existing(chosen)
    if path is None and not files:
        if master:
            return Credentials(Configuration(), None)
        if SERVICE_HOST in os.environ:
            return _in_cluster()
    if not files:
        raise NoKubeconfigError(f"no kubeconfig at {chosen}; set {named_by} or the variable KUBECONFIG")
    return await _from_files(files, context)


def _existing(paths: str) -> list[str]:
    """Return the existing files of a path list; `~` is expanded to the home directory."""
    named = map(os.path.expanduser, filter(None, paths.split(os.pathsep)))
    return [file for file in named if os.path.isfile(file)]  # noqa: PTH113 - Path raises where a name has a NUL


def _in_cluster() -> Credentials:
    configuration = Configuration()
    try:
        _LOADERS.load_incluster_config(client_configuration=configuration)
    except (ConfigException, OSError) as error:
        raise ConnectionProblemError(f"cannot use the pod's service account: {error}") from error
    return Credentials(configuration, None)


async def _from_files(files: Sequence[str], context: str | None) -> Credentials:
    _LOADERS.kube_config.ExecProvider, _LOADERS.kube_config.KubeConfigMerger = ExecPlugin, Kubeconfigs
    check(files, context)
    paths = os.pathsep.join(files)
    configuration = Configuration()
    try:
        loader = await _LOADERS.load_kube_config(
            config_file=paths, context=context, client_configuration=configuration, persist_config=False
        )
    except Exception as error:  # the loader raises any exception for a malformed file
        raise KubeconfigError(f"cannot use kubeconfig {paths}: {_one_line(error)}") from error
    credentials = Credentials(configuration, loader)
    _check_user(loader, configuration, f"kubeconfig {paths}")
    return credentials


async def _load(loader: Any, configuration: Any) -> None:
    try:
        await loader.load_and_set(configuration)
    except Exception as error:  # the loader raises any exception for a failing plugin or file
        raise ConnectionProblemError(f"cannot renew the credentials of the kubeconfig: {_one_line(error)}") from error
    _check_user(loader, configuration, "the kubeconfig")


def _expires(loader: Any) -> bool:
    user = getattr(loader, "_user", None)
    return (
        loader.provider in RENEWABLE_PROVIDERS
        or hasattr(loader, EXEC_EXPIRY)
        or (user is not None and "tokenFile" in user)
    )


def _check_user(loader: Any, configuration: Any, name: str) -> None:
    """Raise an error if a kubeconfig's user impersonates another user, or its exec plugin gave no credentials."""
    user = loader.current_context["context"].get("user")
    stated = getattr(loader, "_user", None)
    if stated is None:
        return
    if any(stated.value.get(one) for one in ("as", "as-uid", "as-groups", "as-user-extra")):
        raise ConnectionProblemError(f'{name}: user "{user}" impersonates another user (as), which is not supported')
    if not stated.value.get("exec"):
        return
    if TOKEN not in configuration.api_key and not configuration.cert_file:
        plugin = stated.value["exec"]
        what = "returned no credentials" if shutil.which(plugin.get("command", "")) else "is not installed"
        hint = f": {' '.join(plugin['installHint'].split())}" if plugin.get("installHint") else ""
        raise ConnectionProblemError(f'{name}: the exec plugin "{plugin.get("command")}" of user "{user}" {what}{hint}')


def _one_line(error: BaseException) -> str:
    return " ".join(str(error).split()) or type(error).__name__
