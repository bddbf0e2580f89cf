"""`GivenCertificate`: the webhook's certificate of --tls-cert-file, with warnings about its dates and names."""

from __future__ import annotations

import logging
import ssl
from collections.abc import Iterator
from datetime import datetime, timedelta
from pathlib import Path
from typing import Final

from cryptography import x509

from policysched.app.serving.options import ServingOptions
from policysched.app.serving.tls.certificates import ServingCertificate
from policysched.framework import Clock

log = logging.getLogger(__name__)
WARN_BEFORE: Final = timedelta(days=30)
"""Remaining lifetime below which a certificate is reported as expiring soon; a tenth of its lifetime if shorter."""
_TIME: Final = "%Y-%m-%d %H:%M:%SZ"


class GivenCertificate:
    """TLS settings from a certificate file and a key file; logs wrong dates and names in the certificate once.

    Args:
        options: The files.
        name: The host name by which the API server calls the webhook through its Service.
        clock: Says whether a certificate is expired.

    Raises:
        UsageError: a file cannot be used.
    """

    def __init__(self, options: ServingOptions, name: str, clock: Clock) -> None:
        self._serving = ServingCertificate(options, clock.now())
        self.context: ssl.SSLContext = self._serving.context
        self._file, self._name, self._clock = options.certificate, name, clock
        self._logged: frozenset[str] = frozenset()
        self._warn()

    def refresh(self) -> None:
        """Reload changed files and check the dates again."""
        self._serving.refresh()
        self.context = self._serving.context
        self._warn()

    def _warn(self) -> None:
        found = frozenset(certificate_problems(self._serving.certificate, self._name, self._clock.now()))
        for problem in sorted(found - self._logged):
            log.warning('certificate "%s" %s', self._file or Path(), problem)
        self._logged = found


def certificate_problems(pem: bytes, name: str, now: datetime) -> Iterator[str]:
    """Yield the reasons why API servers reject a certificate now or soon.

    Args:
        pem: The certificate, optionally with its chain.
        name: Host name that it must contain.
        now: Current time.
    """
    try:
        found = x509.load_pem_x509_certificate(pem)
        names = _names(found)
    except ValueError:
        return  # TLS serves it nevertheless
    begin, end = found.not_valid_before_utc, found.not_valid_after_utc
    if now < begin:
        yield f"is not valid before {begin:{_TIME}}; API servers reject it"
    elif now > end:
        yield f"expired at {end:{_TIME}}; API servers reject it"
    elif end - now < min(WARN_BEFORE, (end - begin) / 10):
        yield f"expires at {end:{_TIME}}"
    if not any(_is_named(name, one) for one in names):
        yield f'does not contain the name "{name}"; API servers cannot call the webhook through its Service'


def _names(certificate: x509.Certificate) -> list[str]:
    try:
        found = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return []
    return found.get_values_for_type(x509.DNSName)


def _is_named(name: str, pattern: str) -> bool:
    """Return whether a name in a certificate matches a host name; a leading * matches one label."""
    if pattern.startswith("*."):
        return name.partition(".")[2].lower() == pattern[2:].lower()
    return name.lower() == pattern.lower()
