"""`by_server_name`: selects the certificate for the server name that a client requests (SNI).

Names in flags have priority over names in certificates, exact names over `*.` for one label, and earlier pairs over
later ones. Other clients get the default certificate.

Source: k8s.io/apiserver/pkg/server/dynamiccertificates/named_certificates.go.
"""

from __future__ import annotations

import ipaddress
import re
import ssl
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import Any, Final

from cryptography import x509
from cryptography.x509.oid import NameOID

_DOMAIN: Final = re.compile(r"\*|(\*\.)?[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*")


@dataclass(frozen=True, slots=True)
class NamedPair:
    """A certificate with its chain and private key in PEM form, and its server names."""

    certificate: bytes
    key: bytes
    names: tuple[str, ...]
    """Server names for which the certificate is served; empty for the names in the certificate."""


def by_server_name(
    pairs: Iterable[tuple[NamedPair, ssl.SSLContext]],
) -> Callable[[Any, str | None, ssl.SSLContext], None]:
    """Return a callback that selects the TLS settings by the requested server name.

    Args:
        pairs: Certificates with their TLS settings, in order of priority.

    Raises:
        ValueError: a certificate is invalid.
    """
    stated: dict[str, ssl.SSLContext] = {}
    found: dict[str, ssl.SSLContext] = {}
    for pair, context in pairs:
        for name in pair.names:
            stated.setdefault(name.lower(), context)
        for name in () if pair.names else _names_in(pair.certificate):
            found.setdefault(name.lower(), context)
    known = found | stated

    def choose(connection: Any, name: str | None, _: ssl.SSLContext) -> None:
        context = _matching(known, (name or "").lower())
        if context is not None:
            connection.context = context

    return choose


def _matching(known: Mapping[str, ssl.SSLContext], name: str) -> ssl.SSLContext | None:
    _, dot, rest = name.partition(".")
    return known.get(name) or known.get(f"*{dot}{rest}")


def _names_in(certificate: bytes) -> list[str]:
    """Return the names of a certificate: the common name if it can be a host name, and the DNS names."""
    first = x509.load_pem_x509_certificate(certificate)
    common = [str(one.value) for one in first.subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    names = [one for one in common[-1:] if _DOMAIN.fullmatch(one) and not _is_address(one)]
    try:
        given = first.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return names
    return names + given.get_values_for_type(x509.DNSName)


def _is_address(text: str) -> bool:
    try:
        ipaddress.ip_address(text)
    except ValueError:
        return False
    return True
