"""`ExtenderSettings`: the settings of one extender, and its TLS context.

Source: k8s.io/kube-scheduler/config/v1 (Extender, ExtenderTLSConfig), v1.36.
"""

from __future__ import annotations

import re
import ssl
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from policysched.errors import UsageError
from policysched.key_pairs import load_key_pair
from policysched.plugins.arguments import Given

_CREDENTIALS: Final = re.compile(r"(?<=://)[^/?#]*@")
DEFAULT_TIMEOUT = 5.0
"""Default timeout of a request. Units: seconds."""


class TlsSettings(Given, frozen=True):
    """The TLS settings of an extender; inline data takes precedence over files."""

    insecure: bool = False
    server_name: str = ""
    cert_file: str = ""
    key_file: str = ""
    ca_file: str = ""
    cert_data: bytes = b""
    key_data: bytes = b""
    ca_data: bytes = b""


@dataclass(frozen=True, slots=True)
class ExtenderSettings:
    """The settings of one extender; a verb with an empty path is never called."""

    url_prefix: str
    filter_verb: str = ""
    prioritize_verb: str = ""
    preempt_verb: str = ""
    bind_verb: str = ""
    weight: int = 1
    enable_https: bool = False
    tls: TlsSettings = field(default_factory=TlsSettings)
    timeout: float = DEFAULT_TIMEOUT
    """Timeout of each request. Units: seconds."""
    node_cache_capable: bool = False
    """Whether the extender caches nodes, so that requests contain node names only."""
    managed_resources: frozenset[str] = frozenset()
    """Resource names: the extender is called only for pods that request one of them; if empty, for all pods."""
    ignorable: bool = False


def shown_url(url: str) -> str:
    """Return a URL without user name and password, for logs."""
    return _CREDENTIALS.sub("", url, count=1)


def make_tls(settings: ExtenderSettings) -> ssl.SSLContext:
    """Return a TLS context that verifies the server's certificate and presents the client certificate.

    As in kube-scheduler, `enableHTTPS` without a certificate authority checks nothing.

    Raises:
        UsageError: a certificate, key or authority is invalid.
    """
    tls, place = settings.tls, f'extender "{shown_url(settings.url_prefix)}": tlsConfig'
    try:
        context = ssl.create_default_context(
            cafile=None if tls.ca_data else tls.ca_file or None, cadata=_text(tls.ca_data) or None
        )
    except (ssl.SSLError, OSError, ValueError) as error:
        raise UsageError(f"{place}: cannot use the certificate authority: {error}") from error
    # Certificate authorities of clusters often lack extensions that the strict profile requires.
    context.verify_flags &= ~ssl.VERIFY_X509_STRICT
    if tls.insecure or (settings.enable_https and not (tls.ca_data or tls.ca_file)):
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    try:
        _load_own(context, tls)
    except (ValueError, OSError) as error:
        raise UsageError(f"{place}: cannot use the client certificate: {error}") from error
    return context


def _load_own(context: ssl.SSLContext, tls: TlsSettings) -> None:
    """Load the extender's client certificate from the settings, if any, into a TLS context."""
    if not (tls.cert_data or tls.cert_file):
        return
    with tempfile.TemporaryDirectory() as folder:  # the TLS library reads keys only from files
        cert = _file(tls.cert_data, tls.cert_file, Path(folder) / "tls.crt")
        key = _file(tls.key_data, tls.key_file, Path(folder) / "tls.key")
        load_key_pair(context, cert, key)


def _file(data: bytes, path: str, made: Path) -> str:
    if not data:
        return path
    made.touch(mode=0o600)
    made.write_bytes(data)
    return str(made)


def _text(data: bytes) -> str:
    return data.decode("ascii")
