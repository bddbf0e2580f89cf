"""Loading of a certificate with its private key, and reasons why TLS rejects the pair."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Final

_MISMATCH: Final = "the private key does not match the certificate"
_REASONS: Final = {
    "KEY_VALUES_MISMATCH": _MISMATCH,
    "KEY_TYPE_MISMATCH": _MISMATCH,
    "NO_CERTIFICATE_ASSIGNED": _MISMATCH,
    "EE_KEY_TOO_SMALL": "the key of the certificate is too short",
    "CA_KEY_TOO_SMALL": "the key of an intermediate certificate is too short",
    "CA_MD_TOO_WEAK": "the signature algorithm of the certificate is too weak",
}
"""Texts for OpenSSL's reason codes; NO_CERTIFICATE_ASSIGNED: key and certificate have different algorithms."""
_BEGIN: Final = b"-----BEGIN CERTIFICATE-----"
_END: Final = b"-----END CERTIFICATE-----"


def load_key_pair(context: ssl.SSLContext, certificate: str, key: str | None) -> None:
    """Load a certificate and its private key from files; without a key file, both are in one file.

    Raises:
        OSError: a file cannot be read.
        ValueError: the certificate or its key cannot be used.
    """
    try:
        context.load_cert_chain(certificate, key or None, password="")  # no prompt for an encrypted key
    except ssl.SSLError as error:
        files = Path(certificate).read_bytes(), Path(key or certificate).read_bytes()
        raise ValueError(key_pair_problem(error, *files)) from error


def key_pair_problem(error: Exception, certificate: bytes, key: bytes) -> str:
    """Return why a certificate and its key cannot be used.

    Args:
        error: The error of the TLS library.
        certificate: The content of the certificate file.
        key: The content of the key file.
    """
    if not isinstance(error, ssl.SSLError):
        return str(error)
    if _BEGIN not in certificate:
        return "the certificate is not in PEM format"
    if b" PRIVATE KEY-----" not in key:
        return "the private key is not in PEM format"
    if b"ENCRYPTED" in key:
        return "the private key is encrypted; decrypt it first"
    if error.reason:
        return _REASONS.get(error.reason, str(error))
    return "the private key is malformed" if _is_certificate(certificate) else "the certificate is malformed"


def _is_certificate(pem: bytes) -> bool:
    first = pem[pem.index(_BEGIN) :].partition(_END)[0] + _END
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).load_verify_locations(cadata=first.decode("ascii", "replace"))
    except (ssl.SSLError, ValueError):
        return False
    return True
