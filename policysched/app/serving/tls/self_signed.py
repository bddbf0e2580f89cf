"""`self_signed`: creates a certificate for this host, for a port without a certificate from files."""

from __future__ import annotations

import ipaddress
from datetime import UTC, datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

LIFETIME: Final = timedelta(days=365)
EARLIER: Final = timedelta(hours=1)
"""Time by which a certificate's validity starts before its creation, because clocks differ."""


def self_signed(host: str, now: datetime) -> tuple[bytes, bytes]:
    """Return a certificate for a host and its loopback addresses, and its key, in PEM form."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, f"{host}@{int(now.timestamp())}"[:64])])
    loopback = [x509.IPAddress(ipaddress.ip_address(one)) for one in ("127.0.0.1", "::1")]
    names = [x509.DNSName(one) for one in dict.fromkeys((host, "localhost")) if one.isascii()]
    made = (
        x509.CertificateBuilder()
        .subject_name(name)
        .issuer_name(name)
        .public_key(key.public_key())
        .serial_number(x509.random_serial_number())
        .not_valid_before(now.astimezone(UTC) - EARLIER)
        .not_valid_after(now.astimezone(UTC) + LIFETIME)
        .add_extension(x509.SubjectAlternativeName([*names, *loopback]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
        .sign(key, hashes.SHA256())
    )
    private = key.private_bytes(
        serialization.Encoding.PEM, serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    )
    return made.public_bytes(serialization.Encoding.PEM), private
