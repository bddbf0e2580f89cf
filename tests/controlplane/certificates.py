"""Certificates of a control plane that lives for one test run: an authority, the server's, and clients'.

It knows no server and writes only where it is told. The authority is known before the API server starts, so that
clients can be configured while it does; elliptic curves make all keys in milliseconds.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

_LIFETIME: Final = timedelta(days=7)
_NAMES: Final = ("localhost", "kubernetes", "kubernetes.default", "kubernetes.default.svc")
_ADDRESSES: Final = ("127.0.0.1", "10.0.0.1")
_SIGNING: Final = x509.KeyUsage(
    digital_signature=False,
    content_commitment=False,
    key_encipherment=False,
    data_encipherment=False,
    key_agreement=False,
    key_cert_sign=True,
    crl_sign=True,
    encipher_only=False,
    decipher_only=False,
)


class Authority:
    """A certificate authority, and the files that it wrote into a folder.

    `ca.crt` is its certificate, `server.crt` and `server.key` are the API server's, `sa.key` signs service accounts'
    tokens. All that it signs ends after a lifetime; one below zero has ended.
    """

    def __init__(self, folder: Path, lifetime: timedelta = _LIFETIME) -> None:
        self.folder = folder
        self._lifetime = lifetime
        self._key = ec.generate_private_key(ec.SECP256R1())
        self._name = _name("policysched-tests")
        self._certificate = self._sign(self._name, self._key, x509.BasicConstraints(ca=True, path_length=0), _SIGNING)
        self.certificate = folder / "ca.crt"
        self.certificate.write_bytes(_pem(self._certificate))
        self._issue("server", _name("kube-apiserver"), ExtendedKeyUsageOID.SERVER_AUTH)
        _write_key(folder / "sa.key", ec.generate_private_key(ec.SECP256R1()))

    def client(self, user: str, groups: Sequence[str]) -> tuple[Path, Path]:
        """Issue a client's certificate: the API server takes its names for the user and the groups."""
        return self._issue(f"client-{user.replace(':', '-')}", _name(user, groups), ExtendedKeyUsageOID.CLIENT_AUTH)

    def _issue(self, stem: str, name: x509.Name, purpose: x509.ObjectIdentifier) -> tuple[Path, Path]:
        key = ec.generate_private_key(ec.SECP256R1())
        certificate = self._sign(name, key, x509.ExtendedKeyUsage([purpose]))
        paths = self.folder / f"{stem}.crt", self.folder / f"{stem}.key"
        paths[0].write_bytes(_pem(certificate))
        _write_key(paths[1], key)
        return paths

    def _sign(self, name: x509.Name, key: ec.EllipticCurvePrivateKey, *roles: x509.ExtensionType) -> x509.Certificate:
        now = datetime.now(UTC)
        builder = (
            x509.CertificateBuilder()
            .subject_name(name)
            .issuer_name(self._name)
            .public_key(key.public_key())
            .serial_number(x509.random_serial_number())
            .not_valid_before(now - timedelta(hours=1))
            .not_valid_after(now + self._lifetime)
            .add_extension(x509.SubjectAlternativeName(_hosts()), critical=False)
            .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
            .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(self._key.public_key()), critical=False)
        )
        for role in roles:
            builder = builder.add_extension(role, critical=True)
        return builder.sign(self._key, hashes.SHA256())


def _name(user: str, groups: Sequence[str] = ()) -> x509.Name:
    parts = [x509.NameAttribute(NameOID.ORGANIZATION_NAME, each) for each in groups]
    return x509.Name([*parts, x509.NameAttribute(NameOID.COMMON_NAME, user)])


def _hosts() -> list[x509.GeneralName]:
    names: list[x509.GeneralName] = [x509.DNSName(each) for each in _NAMES]
    return names + [x509.IPAddress(ipaddress.ip_address(each)) for each in _ADDRESSES]


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _write_key(path: Path, key: ec.EllipticCurvePrivateKey) -> None:
    path.touch(mode=0o600)
    path.write_bytes(
        key.private_bytes(
            serialization.Encoding.PEM, serialization.PrivateFormat.TraditionalOpenSSL, serialization.NoEncryption()
        )
    )
