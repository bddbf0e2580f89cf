"""Certificates and keys that cannot be used: the reason is in words, wherever they are loaded."""

from __future__ import annotations

import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec, rsa
from cryptography.hazmat.primitives.serialization import (
    BestAvailableEncryption,
    Encoding,
    KeySerializationEncryption,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import NameOID

from policysched.app.serving.tls.certificates import server_context
from policysched.errors import ConnectionProblemError, UsageError
from policysched.extenders.settings import ExtenderSettings, TlsSettings, make_tls
from policysched.key_pairs import load_key_pair
from policysched.kube.connection import _load_certificate

BEGIN = datetime(2026, 1, 1, tzinfo=UTC)
RSA, OTHER_RSA = (rsa.generate_private_key(65537, 2048) for _ in range(2))
SHORT = rsa.generate_private_key(65537, 1024)  # noqa: S505 - TLS refuses it
P256, OTHER_P256 = (ec.generate_private_key(ec.SECP256R1()) for _ in range(2))


def certificate(key: Any) -> bytes:
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "a")])
    end = BEGIN + timedelta(days=3650)
    made = x509.CertificateBuilder(name, name, key.public_key(), 7, BEGIN, end).sign(key, hashes.SHA256())
    return made.public_bytes(Encoding.PEM)


def pem(key: Any, encryption: KeySerializationEncryption | None = None) -> bytes:
    made: bytes = key.private_bytes(Encoding.PEM, PrivateFormat.PKCS8, encryption or NoEncryption())
    return made


MISMATCH = "the private key does not match the certificate"
PAIRS = {
    "another key": (certificate(RSA), pem(OTHER_RSA), MISMATCH),
    "another key of a curve": (certificate(P256), pem(OTHER_P256), MISMATCH),
    "a key of another algorithm": (certificate(RSA), pem(P256), MISMATCH),
    "an encrypted key": (certificate(RSA), pem(RSA, BestAvailableEncryption(b"x")), "the private key is encrypted"),
    "a short key": (certificate(SHORT), pem(SHORT), "the key of the certificate is too short"),
    "no certificate": (b"hello", pem(RSA), "the certificate is not in PEM format"),
    "no key": (certificate(RSA), b"", "the private key is not in PEM format"),
    "a cut certificate": (certificate(RSA)[:400], pem(RSA), "the certificate is malformed"),
    "a changed certificate": (certificate(RSA).replace(b"MII", b"QQQ"), pem(RSA), "the certificate is malformed"),
    "a changed key": (certificate(RSA), pem(RSA).replace(b"MII", b"QQQ"), "the private key is malformed"),
}


@pytest.fixture(params=PAIRS)
def bad(request: pytest.FixtureRequest, tmp_path: Path) -> tuple[Path, Path, str]:
    made, key, problem = PAIRS[request.param]
    (tmp_path / "tls.crt").write_bytes(made)
    (tmp_path / "tls.key").write_bytes(key)
    return tmp_path / "tls.crt", tmp_path / "tls.key", problem


def test_certificate_of_a_server(bad: tuple[Path, Path, str]) -> None:
    made, key, problem = bad
    with pytest.raises(ValueError, match=f"^{problem}"):
        server_context((made.read_bytes(), key.read_bytes()))


def test_certificate_of_an_extenders_client(bad: tuple[Path, Path, str]) -> None:
    made, key, problem = bad
    settings = ExtenderSettings(
        url_prefix="https://a", enable_https=True, tls=TlsSettings(cert_file=str(made), key_file=str(key))
    )
    with pytest.raises(UsageError, match=f"cannot use the client certificate: {problem}"):
        make_tls(settings)


def test_certificate_of_a_kubeconfig(bad: tuple[Path, Path, str]) -> None:
    made, key, problem = bad
    with pytest.raises(ConnectionProblemError, match=f"cannot use the client certificate: {problem}"):
        _load_certificate(ssl.create_default_context(), SimpleNamespace(cert_file=str(made), key_file=str(key)))


def test_good_pairs_load_from_one_file_or_two(tmp_path: Path) -> None:
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    one, two = tmp_path / "tls.crt", tmp_path / "tls.key"
    one.write_bytes(certificate(RSA))
    two.write_bytes(pem(RSA))
    load_key_pair(context, str(one), str(two))
    one.write_bytes(pem(RSA) + certificate(RSA))
    load_key_pair(context, str(one), None)
    with pytest.raises(FileNotFoundError):
        load_key_pair(context, str(tmp_path / "none"), None)
