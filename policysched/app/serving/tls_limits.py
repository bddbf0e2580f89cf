"""`TlsLimits`: which versions and cipher suites of TLS the port speaks, by the names that Go has for them.

Source: k8s.io/component-base/cli/flag/ciphersuites_flag.go.
"""

from __future__ import annotations

import re
import ssl
from dataclasses import dataclass
from typing import Final

from policysched.errors import UsageError

TLS_12: Final = "VersionTLS12"
_VERSIONS: Final = {"VersionTLS13": ssl.TLSVersion.TLSv1_3}
_ALWAYS: Final = frozenset({"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"})
"""The suites of TLS 1.3: all are offered, as Go does it."""
_SUITE: Final = re.compile(
    r"TLS_(ECDHE_ECDSA|ECDHE_RSA|RSA)_WITH_(?:AES_(128|256)_(GCM_SHA256|GCM_SHA384|CBC_SHA256|CBC_SHA)|CHACHA20_POLY1305(?:_SHA256)?)"
)


@dataclass(frozen=True, slots=True)
class TlsLimits:
    """What clients have to speak."""

    lowest: str = TLS_12
    """The lowest version; below TLS 1.2 none is spoken."""
    suites: tuple[str, ...] = ()
    """The suites of TLS 1.2; none stands for OpenSSL's own choice."""

    def apply(self, context: ssl.SSLContext) -> None:
        """Limit what a context speaks.

        Raises:
            UsageError: there is no such suite.
        """
        context.minimum_version = _VERSIONS.get(self.lowest, ssl.TLSVersion.TLSv1_2)
        chosen = [_openssl_name(one) for one in self.suites if one not in _ALWAYS]
        if not chosen:
            return
        try:
            context.set_ciphers(":".join(chosen))
        except ssl.SSLError as error:
            raise UsageError(f"--tls-cipher-suites: OpenSSL has none of {', '.join(self.suites)}") from error


NO_LIMITS: Final = TlsLimits()


def _openssl_name(suite: str) -> str:
    """Return OpenSSL's name of a suite.

    Raises:
        UsageError: there is none of the name that is safe enough.
    """
    found = _SUITE.fullmatch(suite)
    if found is None:
        raise UsageError(f'--tls-cipher-suites: "{suite}" is no suite that can be had here')
    exchange, size, mode = found.groups()
    cipher = f"AES{size}-{mode.removeprefix('CBC_').replace('_', '-')}" if size else "CHACHA20-POLY1305"
    return cipher if exchange == "RSA" else f"{exchange.replace('_', '-')}-{cipher}"
