"""`TlsLimits`: allowed versions, cipher suites and curves of TLS, by Go's names.

Source: k8s.io/component-base/cli/flag/{ciphersuites_flag,curves_flag}.go.
"""

from __future__ import annotations

import logging
import re
import ssl
from dataclasses import dataclass
from typing import Final

from policysched.errors import UsageError

log = logging.getLogger(__name__)
TLS_12: Final = "VersionTLS12"
_VERSIONS: Final = {"VersionTLS13": ssl.TLSVersion.TLSv1_3}
_ALWAYS: Final = frozenset({"TLS_AES_128_GCM_SHA256", "TLS_AES_256_GCM_SHA384", "TLS_CHACHA20_POLY1305_SHA256"})
"""Cipher suites of TLS 1.3, which are always enabled, as in Go."""
_SUITE: Final = re.compile(
    r"TLS_(ECDHE_ECDSA|ECDHE_RSA|RSA)_WITH_(?:AES_(128|256)_(GCM_SHA256|GCM_SHA384|CBC_SHA256|CBC_SHA)|CHACHA20_POLY1305(?:_SHA256)?)"
)
_CURVES: Final = {
    23: "prime256v1",
    24: "secp384r1",
    25: "secp521r1",
    29: "X25519",
    4587: "SecP256r1MLKEM768",
    4588: "X25519MLKEM768",
    4589: "SecP384r1MLKEM1024",
}
"""OpenSSL's names of key exchanges by Go's numbers (CurveID); some OpenSSL versions support fewer."""


@dataclass(frozen=True, slots=True)
class TlsLimits:
    """Restrictions of TLS for clients."""

    lowest: str = TLS_12
    """Lowest allowed TLS version; TLS 1.2 is the minimum."""
    suites: tuple[str, ...] = ()
    """Allowed cipher suites of TLS 1.2; empty for OpenSSL's defaults."""
    curves: tuple[int, ...] = ()
    """Allowed key exchanges by Go's numbers; empty for OpenSSL's defaults."""

    def check(self) -> None:
        """Check that all suites and curves exist; log a curve restriction that OpenSSL cannot apply.

        Raises:
            UsageError: a suite or curve does not exist.
        """
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.apply(context)
        for place, number in enumerate(self.curves):
            if number not in _CURVES:
                raise UsageError(f"--tls-curve-preferences: {number} is not a curve of Go")
            if number in self.curves[:place]:
                raise UsageError(f"--tls-curve-preferences: {number} is listed twice")
        supported = _supported(self.curves)
        if self.curves and not supported:
            raise UsageError(f"--tls-curve-preferences: {ssl.OPENSSL_VERSION} supports none of {_listed(self.curves)}")
        if len(supported) > 1:
            log.warning(
                "--tls-curve-preferences is ignored, as only one curve can be set and OpenSSL supports several: %s",
                _listed(supported),
            )
        elif supported != self.curves:
            log.warning("--tls-curve-preferences: OpenSSL supports only %s", _listed(supported))

    def apply(self, context: ssl.SSLContext) -> None:
        """Apply the restrictions to a TLS context.

        Raises:
            UsageError: a suite does not exist.
        """
        context.minimum_version = _VERSIONS.get(self.lowest, ssl.TLSVersion.TLSv1_2)
        curves = _supported(self.curves)
        if len(curves) == 1:  # the library supports only one curve
            context.set_ecdh_curve(_CURVES[curves[0]])
        chosen = [_openssl_name(one) for one in self.suites if one not in _ALWAYS]
        if not chosen:
            return
        try:
            context.set_ciphers(":".join(chosen))
        except ssl.SSLError as error:
            raise UsageError(f"--tls-cipher-suites: OpenSSL supports none of {', '.join(self.suites)}") from error


NO_LIMITS: Final = TlsLimits()


def _supported(curves: tuple[int, ...]) -> tuple[int, ...]:
    """Return the curves that OpenSSL supports."""
    return tuple(one for one in curves if one in _CURVES and _is_supported(_CURVES[one]))


def _is_supported(curve: str) -> bool:
    try:
        ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER).set_ecdh_curve(curve)
    except (ValueError, ssl.SSLError):
        return False
    return True


def _listed(curves: tuple[int, ...]) -> str:
    return ", ".join(f"{one} ({_CURVES[one]})" for one in curves)


def _openssl_name(suite: str) -> str:
    """Return OpenSSL's name of a cipher suite.

    Raises:
        UsageError: no secure suite has this name.
    """
    found = _SUITE.fullmatch(suite)
    if found is None:
        raise UsageError(f'--tls-cipher-suites: "{suite}" is not a supported cipher suite')
    exchange, size, mode = found.groups()
    cipher = f"AES{size}-{mode.removeprefix('CBC_').replace('_', '-')}" if size else "CHACHA20-POLY1305"
    return cipher if exchange == "RSA" else f"{exchange.replace('_', '-')}-{cipher}"
