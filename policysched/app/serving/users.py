"""`User`: the client's identity from its certificate, or from headers of a front proxy.

A front proxy has a certificate of a separate authority, which does not identify users. A certificate of the proxies'
authority is never a user's, and one of the users' authority never a proxy's.

Source: k8s.io/apiserver/pkg/authentication/request/headerrequest/requestheader.go, request/x509/x509.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Protocol
from urllib.parse import unquote

import msgspec
from multidict import MultiMapping

AUTHENTICATED: Final = "system:authenticated"
UNAUTHENTICATED: Final = "system:unauthenticated"
_DER: Final = 2
"""The TLS library's constant for certificates in DER form."""


class ClientRequest(Protocol):
    """Interface of the parts of aiohttp's BaseRequest that identify the client."""

    @property
    def headers(self) -> MultiMapping[str]:
        """The headers of the request."""

    def get_extra_info(self, name: str, default: Any = None) -> Any:
        """Return information about the connection, such as `ssl_object`."""


class User(msgspec.Struct, frozen=True):
    """A client as a TokenReview describes it."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = {}


ANONYMOUS: Final = User("system:anonymous", groups=(UNAUTHENTICATED,))


@dataclass(frozen=True, slots=True)
class FrontProxy:
    """The front proxies that may act for users, and the headers in which they name the users."""

    authorities: str = ""
    """CAs of the front proxies' certificates, in PEM form."""
    allowed_names: tuple[str, ...] = ()
    """Allowed common names of the front proxies' certificates; empty allows any name."""
    username_headers: tuple[str, ...] = ("x-remote-user",)
    uid_headers: tuple[str, ...] = ()
    group_headers: tuple[str, ...] = ("x-remote-group",)
    extra_prefixes: tuple[str, ...] = ("x-remote-extra-",)

    def user_of(self, certificate: Mapping[str, Any], request: ClientRequest) -> User | None:
        """Return the user for whom a verified front proxy acts; None if the headers name no user."""
        headers = request.headers
        name = _first(headers, self.username_headers)
        if not name or (self.allowed_names and _common_name(certificate) not in self.allowed_names):
            return None
        groups = tuple(group for header in self.group_headers for group in headers.getall(header, ()) if group)
        if not {AUTHENTICATED, UNAUTHENTICATED}.intersection(groups) and name != ANONYMOUS.username:
            groups = (*groups, AUTHENTICATED)
        return User(name, _first(headers, self.uid_headers), groups, self._extra(headers))

    def _extra(self, headers: Mapping[str, str]) -> dict[str, tuple[str, ...]]:
        found: dict[str, tuple[str, ...]] = {}
        for prefix in self.extra_prefixes:
            for header, value in headers.items():
                if header.lower().startswith(prefix.lower()):
                    key = unquote(header[len(prefix) :].lower())
                    found[key] = (*found.get(key, ()), value)
        return found


DEFAULT_PROXY: Final = FrontProxy()


def _first(headers: Mapping[str, str], names: tuple[str, ...]) -> str:
    return next((value for name in names if (value := headers.get(name, ""))), "")


@dataclass(frozen=True, slots=True)
class CertificateUsers:
    """Identifies clients by their certificates."""

    proxy: FrontProxy = DEFAULT_PROXY
    authorities: frozenset[bytes] = frozenset()
    """CAs of users' certificates, in DER form."""
    proxy_authorities: frozenset[bytes] = frozenset()
    """CAs of front proxies, in DER form; if empty, every verified certificate belongs to a user."""

    def user_of(self, certificate: Mapping[str, Any], request: ClientRequest) -> User | None:
        """Return the user of a request; None if the verified client certificate identifies no user."""
        if not self.proxy_authorities:
            return user_of_certificate(certificate)
        signer = _signer(request.get_extra_info("ssl_object"))
        user = self.proxy.user_of(certificate, request) if signer in self.proxy_authorities else None
        if user is None and signer in self.authorities:
            return user_of_certificate(certificate)
        return user


def _signer(connection: Any) -> bytes:
    """Return the root certificate of a connection's verified chain in DER form; empty without a verified chain."""
    public = getattr(connection, "get_verified_chain", None)  # Python 3.13
    if public is not None:
        chain = public()
    else:
        chain = [one.public_bytes(_DER) for one in connection._sslobj.get_verified_chain() or ()]
    return chain[-1] if chain else b""


def user_of_certificate(certificate: Mapping[str, Any]) -> User:
    """Return the user in a verified client certificate: last common name, as in Go, and organizations."""
    groups = [value for name, value in _subject(certificate) if name == "organizationName"]
    name = _common_name(certificate)
    return User(name, groups=(*groups, AUTHENTICATED)) if name else ANONYMOUS


def _common_name(certificate: Mapping[str, Any]) -> str:
    names = [value for name, value in _subject(certificate) if name == "commonName"]
    return str(names[-1]) if names else ""


def _subject(certificate: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [pair for part in certificate.get("subject", ()) for pair in part]
