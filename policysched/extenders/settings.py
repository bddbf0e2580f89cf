"""`ExtenderSettings`: where an extender is, what it does and for which pods.

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
"""How long a request may take where the configuration does not say. Units: seconds."""


class TlsSettings(Given, frozen=True):
    """How the server's certificate is checked, and which one is shown to it; data goes before files."""

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
    """What a configuration says of one extender; a verb that is empty is not asked for."""

    url_prefix: str
    filter_verb: str = ""
    prioritize_verb: str = ""
    preempt_verb: str = ""
    bind_verb: str = ""
    weight: int = 1
    enable_https: bool = False
    tls: TlsSettings = field(default_factory=TlsSettings)
    timeout: float = DEFAULT_TIMEOUT
    """How long a request may take. Units: seconds."""
    node_cache_capable: bool = False
    """Whether it knows the nodes, so that their names are enough."""
    managed_resources: frozenset[str] = frozenset()
    """The resources of which a pod has to ask for one for the extender to be asked; without any it always is."""
    ignorable: bool = False


def shown_url(url: str) -> str:
    """Return a URL as it may be logged: without a name and password."""
    return _CREDENTIALS.sub("", url, count=1)


def make_tls(settings: ExtenderSettings) -> ssl.SSLContext:
    """Make what checks the server's certificate and has our own.

    As in kube-scheduler, `enableHTTPS` without a certificate authority checks nothing.

    Raises:
        UsageError: a certificate, key or authority cannot be used.
    """
    tls, place = settings.tls, f'extender "{shown_url(settings.url_prefix)}": tlsConfig'
    try:
        context = ssl.create_default_context(
            cafile=None if tls.ca_data else tls.ca_file or None, cadata=_text(tls.ca_data) or None
        )
    except (ssl.SSLError, OSError, ValueError) as error:
        raise UsageError(f"{place}: cannot use the certificate authority: {error}") from error
    # Authorities made for one cluster often lack the extensions that the strict profile demands.
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
    """Load the certificate that is shown to the server, if there is one."""
    if not (tls.cert_data or tls.cert_file):
        return
    with tempfile.TemporaryDirectory() as folder:  # the TLS library reads keys from files only
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
