"""`renewed`: rotation of the webhook's certificate authority and serving certificate, one step at a time.

A new authority is trusted before it is used. It enters the bundle first; it signs the serving certificate some time
after API servers trust it; the old one leaves the bundle some time after that. So every replica is trusted at all
times, whichever certificate it still uses.
"""

from __future__ import annotations

import ipaddress
from collections.abc import Sequence
from datetime import UTC, datetime, timedelta
from typing import Final

import msgspec
from cryptography import x509
from cryptography.exceptions import InvalidSignature, UnsupportedAlgorithm
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID
from msgspec.structs import replace

AUTHORITY_LIFETIME: Final = timedelta(days=730)
SERVING_LIFETIME: Final = timedelta(days=90)
LEFT: Final = 3
"""Divisor of a certificate's lifetime: the certificate is renewed when less than 1/LEFT of its lifetime remains."""
SETTLED: Final = timedelta(minutes=10)
"""Time after a rotation step within which all replicas and API servers apply the step."""
EARLIER: Final = timedelta(hours=1)
"""Time by which a certificate's validity starts before its creation, because clocks differ."""
MOST_TRUSTED: Final = 4
"""Largest number of trusted authorities, so that replicas with wrong clocks cannot add more forever."""
_UNREADABLE: Final = (
    ValueError,
    TypeError,
    IndexError,
    OverflowError,
    UnsupportedAlgorithm,
    x509.DuplicateExtension,
    x509.ExtensionNotFound,
    x509.UnsupportedGeneralNameType,
)
"""Exceptions that reading an invalid key or certificate raises."""


class Material(msgspec.Struct, frozen=True):
    """The certificates and keys that all replicas of the webhook share, in PEM form."""

    bundle: tuple[bytes, ...]
    """Certificates, in PEM form, of the authorities that API servers have to trust, newest first."""
    authority_key: bytes
    """Private key of the newest authority."""
    certificate: bytes
    key: bytes


def renewed(before: Material | None, names: Sequence[str], now: datetime, *, trusted: bool) -> Material:
    """Return the certificates to serve now; return `before` itself if no rotation step is due.

    Args:
        before: Current state; None if there is none.
        names: Host names of the webhook's Service.
        now: Current time.
        trusted: Whether the API servers trust the newest authority.
    """
    if before is None or not _is_usable(before):
        return _begun(names, now)
    newest = x509.load_pem_x509_certificate(before.bundle[0])
    serving = x509.load_pem_x509_certificate(before.certificate)
    if _is_old(newest, now):
        authority, key = _new_authority(now)
        return replace(before, bundle=(authority, *before.bundle)[:MOST_TRUSTED], authority_key=key)
    by_newest = _is_signed(serving, newest)
    settled = trusted and now >= _made(newest) + SETTLED
    expired = not serving.not_valid_before_utc <= now < serving.not_valid_after_utc
    wanted = not by_newest or _is_old(serving, now) or _names_of(serving) != sorted(names)
    if wanted and (by_newest or settled or expired):
        certificate, serving_key = _new_serving(before.bundle[0], before.authority_key, names, now)
        return replace(before, certificate=certificate, key=serving_key)
    if by_newest and len(before.bundle) > 1 and now >= _made(serving) + SETTLED:
        return replace(before, bundle=before.bundle[:1])
    return before


def _begun(names: Sequence[str], now: datetime) -> Material:
    authority, key = _new_authority(now)
    certificate, serving_key = _new_serving(authority, key, names, now)
    return Material((authority,), key, certificate, serving_key)


def _is_usable(material: Material) -> bool:
    """Return whether certificates and keys are readable, match each other, and are as this module creates them."""
    try:
        trusted = [x509.load_pem_x509_certificate(one) for one in material.bundle]
        serving = x509.load_pem_x509_certificate(material.certificate)
        _names_of(serving)
        for one in (trusted[0], serving):
            _made(one) + SETTLED
        constraints = trusted[0].extensions.get_extension_for_class(x509.BasicConstraints).value
        pairs = (trusted[0], material.authority_key), (serving, material.key)
        return (
            constraints.ca
            and material.certificate == serving.public_bytes(serialization.Encoding.PEM)  # without trailing data
            and isinstance(serving.signature_hash_algorithm, hashes.SHA256)
            and all(_is_pair(*pair) for pair in pairs)
            and any(_is_signed(serving, one) for one in trusted)
        )
    except _UNREADABLE:
        return False


def _is_pair(certificate: x509.Certificate, pem: bytes) -> bool:
    key = serialization.load_pem_private_key(pem, None)
    if not isinstance(key, ec.EllipticCurvePrivateKey) or not isinstance(key.curve, ec.SECP256R1):
        return False
    return pem == _pem(key) and key.public_key() == certificate.public_key()


def _is_signed(serving: x509.Certificate, authority: x509.Certificate) -> bool:
    try:
        serving.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature, UnsupportedAlgorithm):
        return False
    return True


def _made(certificate: x509.Certificate) -> datetime:
    return certificate.not_valid_before_utc + EARLIER


def _is_old(certificate: x509.Certificate, now: datetime) -> bool:
    """Return whether a certificate must be renewed: it expires soon, or is not valid yet because a clock was wrong."""
    life = certificate.not_valid_after_utc - _made(certificate)
    return now < certificate.not_valid_before_utc or certificate.not_valid_after_utc - now < life / LEFT


def _names_of(certificate: x509.Certificate) -> list[str]:
    found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    return sorted(found.get_values_for_type(x509.DNSName))


def _new_authority(now: datetime) -> tuple[bytes, bytes]:
    key = ec.generate_private_key(ec.SECP256R1())
    name = _name(f"policysched-webhook-ca@{int(now.timestamp())}")
    usage = x509.KeyUsage(
        digital_signature=True, content_commitment=False, key_encipherment=False, data_encipherment=False,
        key_agreement=False, key_cert_sign=True, crl_sign=True, encipher_only=False, decipher_only=False,
    )  # fmt: skip
    made = (
        _builder(name, name, key, now, AUTHORITY_LIFETIME)
        .add_extension(x509.BasicConstraints(ca=True, path_length=0), critical=True)
        .add_extension(usage, critical=True)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key.public_key()), critical=False)
        .sign(key, hashes.SHA256())
    )
    return made.public_bytes(serialization.Encoding.PEM), _pem(key)


def _new_serving(authority: bytes, authority_key: bytes, names: Sequence[str], now: datetime) -> tuple[bytes, bytes]:
    issuer = x509.load_pem_x509_certificate(authority)
    signing = serialization.load_pem_private_key(authority_key, None)
    assert isinstance(signing, ec.EllipticCurvePrivateKey)  # noqa: S101 - its public key was compared
    key = ec.generate_private_key(ec.SECP256R1())
    loopback = [x509.IPAddress(ipaddress.ip_address(one)) for one in ("127.0.0.1", "::1")]
    made = (
        _builder(_name("policysched-webhook"), issuer.subject, key, now, SERVING_LIFETIME)
        .add_extension(x509.SubjectAlternativeName([*map(x509.DNSName, names), *loopback]), critical=False)
        .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .add_extension(x509.AuthorityKeyIdentifier.from_issuer_public_key(signing.public_key()), critical=False)
        .sign(signing, hashes.SHA256())
    )
    return made.public_bytes(serialization.Encoding.PEM), _pem(key)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: ec.EllipticCurvePrivateKey, now: datetime, lifetime: timedelta
) -> x509.CertificateBuilder:
    begin = now.astimezone(UTC)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(begin - EARLIER)
        .not_valid_after(begin + lifetime)
    )


def _name(text: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, text)])


def _pem(key: ec.EllipticCurvePrivateKey) -> bytes:
    return key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
