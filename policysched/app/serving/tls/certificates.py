"""`ServingCertificate`: the TLS settings of the port, rebuilt when a file changes.

The certificate comes from two files, or is self-signed for the host name and loopback addresses and kept in a folder if
one is given. Unusable files are an error at the start; later the previous settings stay.

Source: k8s.io/apiserver/pkg/server/options/serving.go (MaybeDefaultWithSelfSignedCerts), dynamiccertificates.
"""

from __future__ import annotations

import logging
import os
import socket
import ssl
import tempfile
from dataclasses import dataclass, replace
from datetime import datetime
from pathlib import Path
from typing import Final

from policysched.app.serving.options import ServingOptions
from policysched.app.serving.tls.named_certificates import NamedPair, by_server_name
from policysched.app.serving.tls.self_signed import self_signed
from policysched.app.serving.tls_limits import NO_LIMITS, TlsLimits
from policysched.app.serving.users import DEFAULT_PROXY, CertificateUsers, FrontProxy
from policysched.errors import UsageError
from policysched.key_pairs import key_pair_problem

log = logging.getLogger(__name__)
PAIR: Final = "policysched"
"""File name, without extension, of the self-signed certificate (.crt) and its key (.key)."""
Pair = tuple[bytes, bytes]
"""A certificate with its chain, and its private key, in PEM form."""

UNPUBLISHED: Final = ("", DEFAULT_PROXY)
"""CAs of clients and front proxies until the CAs that the cluster publishes are read: none."""


@dataclass(frozen=True, slots=True)
class _Material:
    """The contents of the certificate files and CAs from which the TLS settings are built."""

    pair: Pair
    users: str
    """CAs of users' certificates, in PEM form."""
    proxy: FrontProxy
    named: tuple[NamedPair, ...]
    """Certificates for other server names."""


class ServingCertificate:
    """The TLS settings for new connections.

    Args:
        options: The files.
        now: Time for a new self-signed certificate.

    Raises:
        UsageError: A file cannot be used.
    """

    def __init__(self, options: ServingOptions, now: datetime) -> None:
        self._options = options
        self._own: Pair | None = None
        if options.certificate is None:
            self._own = _own_pair(options.certificate_folder, now)
        self._published = UNPUBLISHED
        self._is_unpublished = True
        """Whether client CAs that the cluster publishes are not used yet; the first use is not logged as a change."""
        self._problem = ""
        try:
            self._use(self._read())
        except (OSError, ssl.SSLError, ValueError) as error:
            raise UsageError(f"cannot use the certificate of the secure port: {_error_text(error)}") from error

    @property
    def certificate(self) -> bytes:
        """The served certificate with its chain, in PEM form."""
        return self._material.pair[0]

    def trust_clients(self, authorities: str, proxy: FrontProxy) -> None:
        """Set the client CAs that the cluster publishes; the next refresh uses them.

        Args:
            authorities: Authorities of users' certificates in PEM form, in addition to --client-ca-file.
            proxy: Front proxies, unless --requestheader-client-ca-file is given.
        """
        self._published = authorities, proxy

    def refresh(self) -> None:
        """Reload changed files; an unusable file is logged once and changes nothing."""
        is_first, before = self._is_unpublished and self._published != UNPUBLISHED, self._material
        try:
            material = self._read()
            if material == before:
                return
            self._use(material)
        except (OSError, ssl.SSLError, ValueError) as error:
            if str(error) != self._problem:
                log.warning(
                    "cannot use the changed certificate of the secure port, the previous certificate stays active: %s",
                    _error_text(error),
                )
            self._problem = str(error)
            return
        self._problem = ""
        self._is_unpublished = self._published == UNPUBLISHED
        if not is_first or (material.pair, material.named) != (before.pair, before.named):
            log.info("reloaded the certificates of the secure port")

    def _use(self, material: _Material) -> None:
        """Rebuild the TLS settings.

        Raises:
            OSError, ssl.SSLError, ValueError: the inputs are invalid.
        """
        signers, limits = "\n".join(filter(None, (material.users, material.proxy.authorities))), self._options.tls
        context = server_context(material.pair, signers, limits)
        if material.named:
            others = [(one, server_context((one.certificate, one.key), signers, limits)) for one in material.named]
            context.sni_callback = by_server_name(others)
        users = CertificateUsers(material.proxy, _authorities(material.users), _authorities(material.proxy.authorities))
        self._material, self.context, self.users = material, context, users

    def _read(self) -> _Material:
        options = self._options
        published, proxy = self._published
        if self._own is not None:
            pair = self._own
        else:
            assert options.certificate is not None  # noqa: S101 - checked with the options
            assert options.key is not None  # noqa: S101 - as above
            pair = options.certificate.read_bytes(), options.key.read_bytes()
        if options.proxy_ca is not None:
            proxy = replace(options.proxy, authorities=_text(options.proxy_ca))
        proxy = replace(proxy, authorities=_plain(proxy.authorities))
        users = (_text(options.client_ca) if options.client_ca is not None else "", _plain(published))
        named = (NamedPair(one.read_bytes(), key.read_bytes(), names) for one, key, names in options.named)
        return _Material(pair, "\n".join(filter(None, users)), proxy, tuple(named))


def _error_text(error: Exception) -> str:
    if isinstance(error, OSError) and error.filename is not None:
        return f'cannot read "{error.filename}": {error.strerror}'
    return str(error)


def _text(path: Path) -> str:
    """Read a certificate file, whose comments can have any encoding."""
    return path.read_text("ascii", "ignore")


def _plain(certificates: str) -> str:
    return certificates.encode("ascii", "ignore").decode()


def _authorities(certificates: str) -> frozenset[bytes]:
    """Return the certificates in a PEM text, each in DER form."""
    if not certificates:
        return frozenset()
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    context.load_verify_locations(cadata=certificates)
    return frozenset(context.get_ca_certs(binary_form=True))


def server_context(pair: Pair, clients: str = "", limits: TlsLimits = NO_LIMITS) -> ssl.SSLContext:
    """Return a TLS context for a server.

    Args:
        pair: A certificate and its key.
        clients: Authorities of clients' certificates in PEM form; empty: no client certificates are requested.
        limits: Versions, cipher suites and curves.

    Raises:
        ValueError: the certificate, its key or the authorities are invalid.
        OSError: no temporary file can be created.
    """
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    limits.apply(context)
    context.options |= ssl.OP_NO_RENEGOTIATION | ssl.OP_NO_TICKET
    context.num_tickets = 0  # a resumed session would present a client certificate without verification
    try:
        _load_pair(context, b"\n".join(pair))
    except ssl.SSLError as error:
        raise ValueError(key_pair_problem(error, *pair)) from error
    if clients:
        context.load_verify_locations(cadata=clients)
        context.verify_mode = ssl.CERT_OPTIONAL
    return context


def _load_pair(context: ssl.SSLContext, pair: bytes) -> None:
    """Load a certificate and its key, which the TLS library reads only from a file."""
    if hasattr(os, "memfd_create"):
        descriptor = os.memfd_create("certificate")
        with open(descriptor, "wb") as file:  # noqa: PTH123 - it has no path of its own
            file.write(pair)
            file.flush()
            context.load_cert_chain(f"/proc/self/fd/{descriptor}", password="")  # an encrypted key must not prompt
        return
    with tempfile.NamedTemporaryFile() as file:
        file.write(pair)
        file.flush()
        context.load_cert_chain(file.name, password="")


def _own_pair(folder: Path | None, now: datetime) -> Pair:
    """Return the self-signed certificate and key in a folder; create and store both if the folder has none.

    Raises:
        UsageError: the folder cannot be used.
    """
    if folder is None:
        return self_signed(socket.gethostname(), now)
    certificate, key = folder / f"{PAIR}.crt", folder / f"{PAIR}.key"
    try:
        if certificate.exists() and key.exists():
            return certificate.read_bytes(), key.read_bytes()
        made = self_signed(socket.gethostname(), now)
        folder.mkdir(parents=True, exist_ok=True)
        key.touch(mode=0o600)
        key.write_bytes(made[1])
        certificate.write_bytes(made[0])
    except OSError as error:
        raise UsageError(f'--cert-dir: cannot use "{folder}": {error.strerror}') from error
    return made
