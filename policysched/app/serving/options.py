"""`ServingOptions`: settings of the HTTPS port from flags, with kube-scheduler's defaults.

Source: k8s.io/apiserver/pkg/server/options/{serving,authorization}.go.
"""

from __future__ import annotations

import ipaddress
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit

from policysched.app.serving.metrics.metric_limits import NO_METRIC_LIMITS, MetricLimits
from policysched.app.serving.tls_limits import NO_LIMITS, TlsLimits
from policysched.app.serving.users import DEFAULT_PROXY, FrontProxy
from policysched.errors import UsageError

PORT: Final = 10259
ALWAYS_ALLOWED: Final = ("/healthz", "/readyz", "/livez")
ANYWHERE: Final = "0.0.0.0"  # noqa: S104 - probes and Prometheus connect from other hosts; every client is authorized


TTL: Final = 10.0
"""Default lifetime of cached reviews. Units: seconds."""


@dataclass(frozen=True, slots=True)
class ReviewOptions:
    """Kubeconfigs for TokenReviews and SubjectAccessReviews, and times for which their results are cached."""

    authentication_kubeconfig: Path | None = None
    """Kubeconfig for TokenReviews; None uses the scheduler's own connection."""
    authorization_kubeconfig: Path | None = None
    """Kubeconfig for SubjectAccessReviews; None uses the scheduler's own connection."""
    token_ttl: float = TTL
    """Time for which the user of a token is cached. Units: seconds."""
    allowed_ttl: float = TTL
    """Time for which an allowed request's SubjectAccessReview is cached. Units: seconds."""
    refused_ttl: float = TTL
    """Time for which a denied request's SubjectAccessReview is cached. Units: seconds."""
    follows_authorities: bool = True
    """Whether client certificates are checked against the CAs that the cluster publishes."""
    tolerates_failure: bool = True
    """Whether the process starts even if the CAs that the cluster publishes cannot be read."""

    def check(self) -> None:
        """Check that the kubeconfig files exist.

        Raises:
            UsageError: a file does not exist.
        """
        for name in ("authentication", "authorization"):
            path = getattr(self, f"{name}_kubeconfig")
            if path is not None and not path.is_file():
                raise UsageError(f"--{name}-kubeconfig: no kubeconfig at {path}")


DEFAULT_REVIEWS: Final = ReviewOptions()


@dataclass(frozen=True, slots=True)
class ServingOptions:
    """Address, certificate and unauthenticated paths of the port."""

    port: int = PORT
    """TCP port; 0 disables the HTTPS port."""
    bind_address: str = ""
    """Listening address; empty: loopback if the API server is on loopback, otherwise all addresses."""
    certificate_folder: Path | None = None
    """Folder in which the self-signed certificate is stored; None stores it only in memory."""
    certificate: Path | None = None
    key: Path | None = None
    named: tuple[tuple[Path, Path, tuple[str, ...]], ...] = ()
    """Further certificates with keys and server names; without server names, the certificate's own names apply."""
    client_ca: Path | None = None
    proxy_ca: Path | None = None
    """File with the CAs of front proxies; None uses the CAs and headers that the cluster publishes."""
    proxy: FrontProxy = DEFAULT_PROXY
    """Headers and allowed names of front proxies."""
    always_allowed: tuple[str, ...] = ALWAYS_ALLOWED
    """Paths that anyone may read; a trailing `*` matches any suffix."""
    shares_port: bool = False
    """Whether other processes may use the same port (SO_REUSEPORT)."""
    tls: TlsLimits = NO_LIMITS
    reviews: ReviewOptions = DEFAULT_REVIEWS
    metrics: MetricLimits = NO_METRIC_LIMITS
    is_optional: bool = False
    """Whether the scheduler runs without the HTTPS port if the TCP port is taken; true for the default port only."""

    @property
    def needs_lookup(self) -> bool:
        """Whether the start fails if the cluster's CAs for client certificates cannot be read, as in kube-scheduler."""
        reviews = self.reviews
        return reviews.follows_authorities and not reviews.tolerates_failure and self.proxy_ca is None

    def check(self) -> None:
        """Check that the flags do not contradict each other.

        Raises:
            UsageError: they contradict each other.
        """
        try:
            ipaddress.ip_address(self.bind_address or ANYWHERE)
        except ValueError as error:
            raise UsageError(f'--bind-address: "{self.bind_address}" is not an IP address') from error
        if (self.certificate is None) is not (self.key is None):
            raise UsageError("--tls-cert-file and --tls-private-key-file must be used together")
        self.tls.check()
        self.reviews.check()
        self._check_headers()
        for path in self.always_allowed:
            if not path.startswith("/") or "*" in path[:-1]:
                raise UsageError(
                    f'--authorization-always-allow-paths: "{path}" is not a path such as /healthz or /healthz/*'
                )

    def near(self, server: str) -> ServingOptions:
        """Return the options; without an address, listen on loopback if the API server does, else on all addresses.

        On a development cluster, the port is not reachable from outside.

        Args:
            server: URL of the API server.
        """
        return self if self.bind_address else replace(self, bind_address=_loopback(server) or ANYWHERE)

    def _check_headers(self) -> None:
        proxy = self.proxy
        given = {
            "username-headers": proxy.username_headers,
            "uid-headers": proxy.uid_headers,
            "group-headers": proxy.group_headers,
            "extra-headers-prefix": proxy.extra_prefixes,
            "allowed-names": proxy.allowed_names,
        }
        for name, values in given.items():
            if not all(map(str.strip, values)):
                raise UsageError(f"--requestheader-{name}: a value is empty")
        if proxy.uid_headers and "x-remote-uid" not in map(str.lower, proxy.uid_headers):
            raise UsageError("--requestheader-uid-headers must contain X-Remote-Uid")

    def allows(self, path: str) -> bool:
        """Return whether anyone may read a path."""
        return any(path == one or (one[-1] == "*" and path.startswith(one[:-1])) for one in self.always_allowed)


def _loopback(url: str) -> str:
    """Return a URL's host as a loopback address of its address family; empty if the host is another machine."""
    host = urlsplit(url).hostname or ""
    try:
        address = ipaddress.ip_address("127.0.0.1" if host == "localhost" else host)
    except ValueError:
        return ""
    if not address.is_loopback:
        return ""
    return "127.0.0.1" if address.version == 4 else "::1"
