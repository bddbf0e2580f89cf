"""`User`: who asks, by the names in a client's certificate, or by what a front proxy says of whom it asks for.

A front proxy is known by a certificate of an authority of its own, which proves nothing of who asks: one that the
proxies' authority signed is no user's, and one of the users' authority no proxy's.

Source: k8s.io/apiserver/pkg/authentication/request/headerrequest/requestheader.go, request/x509/x509.go.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, Final
from urllib.parse import unquote

import msgspec

if TYPE_CHECKING:
    from aiohttp import web

AUTHENTICATED: Final = "system:authenticated"
UNAUTHENTICATED: Final = "system:unauthenticated"
_DER: Final = 2
"""What the interpreter's TLS library calls the form."""


class User(msgspec.Struct, frozen=True):
    """Who asks, as a TokenReview describes him."""

    username: str = ""
    uid: str = ""
    groups: tuple[str, ...] = ()
    extra: dict[str, tuple[str, ...]] = {}


ANONYMOUS: Final = User("system:anonymous", groups=(UNAUTHENTICATED,))


@dataclass(frozen=True, slots=True)
class FrontProxy:
    """Who may say for whom it asks, and in which headers."""

    authorities: str = ""
    """Those that sign its certificates, in PEM form."""
    allowed_names: tuple[str, ...] = ()
    """The common names of its certificates; none stands for any."""
    username_headers: tuple[str, ...] = ("x-remote-user",)
    uid_headers: tuple[str, ...] = ()
    group_headers: tuple[str, ...] = ("x-remote-group",)
    extra_prefixes: tuple[str, ...] = ("x-remote-extra-",)

    def user_of(self, certificate: Mapping[str, Any], request: web.BaseRequest) -> User | None:
        """Return for whom a proxy asks whose certificate one of its authorities signed; None where it does not say."""
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
    """Says who asks by the certificate that he shows."""

    proxy: FrontProxy = DEFAULT_PROXY
    authorities: frozenset[bytes] = frozenset()
    """Those of users, in DER form."""
    proxy_authorities: frozenset[bytes] = frozenset()
    """Those of front proxies, likewise; where there are none, every verified certificate is a user's."""

    def user_of(self, certificate: Mapping[str, Any], request: web.BaseRequest) -> User | None:
        """Return who asks; None where a verified certificate does not say it."""
        if not self.proxy_authorities:
            return user_of_certificate(certificate)
        signer = _signer(request.get_extra_info("ssl_object"))
        user = self.proxy.user_of(certificate, request) if signer in self.proxy_authorities else None
        if user is None and signer in self.authorities:
            return user_of_certificate(certificate)
        return user


def _signer(connection: Any) -> bytes:
    """Return the authority in which a connection's verified chain ends, in DER form; empty where there is none."""
    public = getattr(connection, "get_verified_chain", None)  # Python 3.13
    if public is not None:
        chain = public()
    else:
        chain = [one.public_bytes(_DER) for one in connection._sslobj.get_verified_chain() or ()]
    return chain[-1] if chain else b""


def user_of_certificate(certificate: Mapping[str, Any]) -> User:
    """Return who a verified client certificate says that he is: its last common name, as Go's, and organisations."""
    groups = [value for name, value in _subject(certificate) if name == "organizationName"]
    name = _common_name(certificate)
    return User(name, groups=(*groups, AUTHENTICATED)) if name else ANONYMOUS


def _common_name(certificate: Mapping[str, Any]) -> str:
    names = [value for name, value in _subject(certificate) if name == "commonName"]
    return str(names[-1]) if names else ""


def _subject(certificate: Mapping[str, Any]) -> list[tuple[str, str]]:
    return [pair for part in certificate.get("subject", ()) for pair in part]
