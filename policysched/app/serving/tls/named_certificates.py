"""`by_server_name`: the certificate that a client asks for by the name of the server, where there are several.

Names that a flag gives count before those in certificates, exact ones before `*.` of one label, and earlier pairs
before later ones; who asks for none of them gets the port's own certificate.

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
    """A certificate with its chain, its private key, both in PEM form, and the names that it is for."""

    certificate: bytes
    key: bytes
    names: tuple[str, ...]
    """None: those in the certificate."""


def by_server_name(
    pairs: Iterable[tuple[NamedPair, ssl.SSLContext]],
) -> Callable[[Any, str | None, ssl.SSLContext], None]:
    """Make what chooses the TLS settings of a connection by the name that a client asks for.

    Args:
        pairs: The certificates, those that come first before others, with the settings that have them.

    Raises:
        ValueError: a certificate is none.
    """
    said: dict[str, ssl.SSLContext] = {}
    found: dict[str, ssl.SSLContext] = {}
    for pair, context in pairs:
        for name in pair.names:
            said.setdefault(name.lower(), context)
        for name in () if pair.names else _names_in(pair.certificate):
            found.setdefault(name.lower(), context)
    known = found | said

    def choose(connection: Any, name: str | None, _: ssl.SSLContext) -> None:
        context = _matching(known, (name or "").lower())
        if context is not None:
            connection.context = context

    return choose


def _matching(known: Mapping[str, ssl.SSLContext], name: str) -> ssl.SSLContext | None:
    _, dot, rest = name.partition(".")
    return known.get(name) or known.get(f"*{dot}{rest}")


def _names_in(certificate: bytes) -> list[str]:
    """Return the names of a certificate: the common name where it may be one of a server, and its DNS names."""
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
