"""A connection to one API server: its URL, credentials that are renewed in time, and its HTTP connections.

The session for lists and watches is the HTTP library's own and not the generated client's, whose layers cost more than
the request does; writes go without it.
Where the server is and how it knows us is read from a kubeconfig or from the service account of the pod we run in.
Credentials are looked at again before a request when they are a minute old, so nothing has to run in the background.
A client certificate that was renewed is shown by new connections: an API server looks at the one of the connection. So
TLS is spoken with another context then, with which no connection that is open already is used again. The same holds for
the authorities of the server's certificate. Files that cannot be read, as in the middle of a rotation, change nothing.
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
from policysched.kube.short_requests import ShortRequests, is_address
from policysched.proxies import proxy_for

log = logging.getLogger(__name__)
RENEWAL = 60.0
"""How old credentials may be before they are looked at again. Units: seconds."""
RENEW_AGAIN = 5.0
"""How long nobody asks for other credentials after there were none. Units: seconds."""
CONNECTIONS = 160
HEADERS = {"User-Agent": "policysched", "Accept": "application/json"}
UNPACKED = {"Accept-Encoding": "identity"}
"""What is said besides where no network lies between: packing and unpacking takes longer than it saves."""


OnAnswer = Callable[[str, int, float], None]
"""Hears of a request that has ended: its method, the code of the answer (0 for none), and how many seconds it took."""


class Routing(TypedDict, total=False):
    """What a request needs to know of the way: a proxy, the name in the server's certificate, how TLS is spoken."""

    proxy: str
    server_hostname: str
    ssl: ssl.SSLContext


@dataclass(frozen=True, slots=True)
class Authentication:
    """What requests show of who we are. Another object is another generation, be it equal."""

    headers: Mapping[str, str] = field(default_factory=dict)
    certificate: bytes = b""
    """A digest of the server's authorities, the client certificate and its key, empty without TLS."""


class Connection:
    """A server, the way to it and the identity used there."""

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
        """Why the credentials could not be looked at, as the log knows it."""
        self._session: aiohttp.ClientSession | None = None
        self._short: ShortRequests | None = None
        self.on_answer: OnAnswer | None = None
        """Who hears of requests."""

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
        """Find the server and the credentials; no request is made yet.

        Args:
            clock: Says when credentials are looked at again.
            kubeconfig: The file; absent, KUBECONFIG, then ~/.kube/config, then the pod's service account.
            context: The context to use instead of the file's current one.
            named_by: Where the user names a kubeconfig, for messages.
            master: The server's address; absent, the kubeconfig's.

        Raises:
            ConnectionProblemError: the kubeconfig cannot be used.
        """
        credentials = await find_credentials(kubeconfig, context, named_by, master)
        configuration = credentials.configuration
        if master:
            configuration.host = master if "://" in master else f"http://{master}"
        url = _checked(configuration.host, "--master:" if master else "the kubeconfig's")
        connection = cls(url, clock, tls=_tls(configuration), routing=_routing(configuration))
        connection._credentials = credentials
        connection._authentication = Authentication(certificate=connection._certificate())
        await connection._look_again()
        return connection

    async def authentication(self) -> Authentication:
        """Return who a request is from: its headers, and the certificate that new connections show."""
        if self._credentials is not None and self._clock.monotonic() >= self._renew_at:
            try:
                await self._look_again()
            except ConnectionProblemError as error:
                self._kept(error)
            else:
                self._problem = ""
        return self._authentication

    def _kept(self, error: ConnectionProblemError) -> None:
        """Log once for each reason that credentials stay in use which may not be the newest ones."""
        if str(error) != self._problem:
            self._problem = str(error)
            log.warning("the previous credentials stay in use: %s", error)

    async def renew(self, refused: Authentication) -> bool:
        """Get new credentials after a request was refused with some; tell whether there are others now.

        Raises:
            ConnectionProblemError: there are none any more.
        """
        if self._credentials is None:
            return False
        async with self._renewing:
            # Many requests are refused at once, and may be for long: the first renews for all.
            if self._authentication is refused and self._clock.monotonic() >= self._renewable_at:
                try:
                    await self._credentials.renew()
                    await self._look_again()
                finally:
                    if self._authentication is refused:
                        self._renewable_at = self._clock.monotonic() + RENEW_AGAIN
            return self._authentication != refused

    @property
    def session(self) -> aiohttp.ClientSession:
        """The HTTP session; made at first use, because it belongs to the running loop."""
        if self._session is None:
            connector = aiohttp.TCPConnector(
                limit=CONNECTIONS,
                keepalive_timeout=60,
                # Some versions of Python hold on to closed TLS connections; these are ended with the session then.
                enable_cleanup_closed=NEEDS_CLEANUP_CLOSED,
            )
            self._session = aiohttp.ClientSession(
                connector=connector,
                headers=HEADERS | (UNPACKED if _is_here(self.url) else {}),
                # Cookies of a gateway would be sent with every request, and grow for ever.
                cookie_jar=aiohttp.DummyCookieJar(),
            )
        return self._session

    @property
    def short(self) -> ShortRequests | None:
        """What makes requests with short answers; None where they have to pass a proxy, which the session knows."""
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

    async def _look_again(self) -> None:
        assert self._credentials is not None  # noqa: S101 - only called where there are some
        self._renew_at = self._clock.monotonic() + RENEWAL
        value = await self._credentials.authorization()
        found = Authentication({"Authorization": value} if value else {}, self._certificate())
        if found.certificate != self._authentication.certificate:
            self._speak(_tls(self._credentials.configuration))
            log.info("reloaded the certificates for the API server")
        if found != self._authentication:
            self._authentication = found

    def _certificate(self) -> bytes:
        return self._credentials.certificate() if self._credentials is not None and "ssl" in self.routing else b""

    def _speak(self, tls: ssl.SSLContext | None) -> None:
        """Have TLS spoken so on new connections, and no open one used for another request."""
        if tls is not None:
            self.routing["ssl"] = tls
            if self._short is not None:
                self._short.speak(tls)


def _checked(host: object, whose: str) -> str:
    """Read the server's address.

    Raises:
        KubeconfigError: it is none that can be asked.
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


def _is_here(url: str) -> bool:
    """Whether a server is on this machine."""
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
    """Say how requests go: through the kubeconfig's proxy, else that of the environment."""
    routing: Routing = {}
    proxy = configuration.proxy or proxy_for(URL(str(configuration.host)), os.environ)
    if proxy:
        routing["proxy"] = proxy
    if configuration.tls_server_name:
        routing["server_hostname"] = configuration.tls_server_name
    return routing


_LOADERS: Any = config
"""The loaders carry no types."""
EXEC_EXPIRY = "exec_plugin_expiry"
RENEWABLE_PROVIDERS = frozenset(("oidc", "gcp"))
SERVICE_HOST = "KUBERNETES_SERVICE_HOST"
DEFAULT = "~/.kube/config"
TOKEN = "BearerToken"  # noqa: S105 - the name of the token's slot in the client's configuration, no secret


class Credentials:
    """A loaded configuration, and the means to renew what expires in it."""

    def __init__(self, configuration: Any, loader: Any | None) -> None:
        self.configuration = configuration
        self._loader = loader
        with _LOCK:
            _IN_USE.add(self)

    @property
    def files(self) -> frozenset[str]:
        """The files that certificates and keys are read from."""
        return frozenset(self._named)

    @property
    def _named(self) -> list[str]:
        named = (self.configuration.ssl_ca_cert, self.configuration.cert_file, self.configuration.key_file)
        return [str(one) for one in named if one]

    async def authorization(self) -> str | None:
        """Return the value of the Authorization header, after a look at what may have expired: a token, a file.

        Raises:
            ConnectionProblemError: there are no credentials any more.
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
        """Digest the authorities of the server's certificate, the client certificate and its key.

        Raises:
            ConnectionProblemError: they cannot be read.
        """
        try:
            return sha256(b"".join(Path(one).read_bytes() for one in self._named)).digest()
        except OSError as error:
            raise ConnectionProblemError(f"cannot read {error.filename}: {error.strerror}") from error

    async def renew(self) -> None:
        """Get new credentials where the kubeconfig says how, because the old ones were refused.

        Raises:
            ConnectionProblemError: that failed.
        """
        if self._loader is not None:
            # The loader keeps an exec plugin's answer until then, and the server has just said that it is wrong.
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
"""Of all threads."""


def _remove_unused(files: Collection[str]) -> None:
    """Remove files that the loader wrote for certificates and keys which nobody uses any more.

    It keeps them until the process ends, also the keys of certificates that were renewed long ago, and those of equal
    content once.
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
    """Load what a kubeconfig says, or a pod's service account where there is none.

    Args:
        path: the kubeconfig; absent, KUBECONFIG, then ~/.kube/config, then the pod's service account.
        context: the context to use instead of the file's current one.
        named_by: where the user names a kubeconfig, for messages.
        master: a server that is asked without credentials where there is no kubeconfig, as kube-scheduler does.

    Raises:
        ConnectionProblemError: there is nothing usable.
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
    """Return those files of a path list that are there; `~` is the home directory, where there is one."""
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
    from policysched.kube.exec_plugin import ExecPlugin  # noqa: PLC0415 - a pod's own credentials need neither
    from policysched.kube.kubeconfig import Kubeconfigs, check  # noqa: PLC0415

    _LOADERS.kube_config.ExecProvider, _LOADERS.kube_config.KubeConfigMerger = ExecPlugin, Kubeconfigs
    check(files, context)
    paths = os.pathsep.join(files)
    configuration = Configuration()
    try:
        loader = await _LOADERS.load_kube_config(
            config_file=paths, context=context, client_configuration=configuration, persist_config=False
        )
    except Exception as error:  # the loader lets through whatever a malformed file makes it do
        raise KubeconfigError(f"cannot use kubeconfig {paths}: {_one_line(error)}") from error
    credentials = Credentials(configuration, loader)
    _check_user(loader, configuration, f"kubeconfig {paths}")
    return credentials


async def _load(loader: Any, configuration: Any) -> None:
    try:
        await loader.load_and_set(configuration)
    except Exception as error:  # the loader lets through whatever a plugin or file makes it do
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
    """Refuse who acts as another one, and an exec plugin that gave nothing: the loader goes on without either."""
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
