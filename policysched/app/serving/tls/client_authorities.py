"""`follow_client_authorities`: reads the CAs that the cluster publishes for client certificates.

A ConfigMap in kube-system contains the authorities of users and of front proxies, with the proxies' headers. Reading it
needs a separate permission; without it, clients authenticate with tokens.

Source: k8s.io/apiserver/pkg/server/options/authentication.go (DelegatingAuthenticationOptions),
authentication_dynamic_request_header.go.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from typing import Final

import msgspec

from policysched.app.serving.access import Sender
from policysched.app.serving.tls.certificates import ServingCertificate
from policysched.app.serving.users import FrontProxy
from policysched.errors import ConnectionProblemError
from policysched.framework import ApiError
from policysched.reading.lenient_json import UNREADABLE

log = logging.getLogger(__name__)
CONFIG_MAP: Final = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
EVERY: Final = 60.0
"""Interval between two reads of the published CAs. Units: seconds."""
FAILURES: Final = (ApiError, ConnectionProblemError, *UNREADABLE)


class _ConfigMap(msgspec.Struct):
    data: dict[str, str] = {}


async def read_client_authorities(sender: Sender) -> tuple[str, FrontProxy]:
    """Read the CAs for users' certificates, in PEM form, and the front proxies.

    Raises:
        ApiError, ConnectionProblemError: the ConfigMap cannot be read.
        MsgspecError, UnicodeError: its content is invalid.
    """
    data = msgspec.json.decode(await sender.request("GET", CONFIG_MAP), type=_ConfigMap).data
    proxy = FrontProxy(
        data.get("requestheader-client-ca-file", ""),
        _listed(data, "allowed-names"),
        _listed(data, "username-headers"),
        _listed(data, "uid-headers"),
        _listed(data, "group-headers"),
        _listed(data, "extra-headers-prefix"),
    )
    return data.get("client-ca-file", ""), proxy


def _listed(data: Mapping[str, str], name: str) -> tuple[str, ...]:
    text = data.get(f"requestheader-{name}", "")
    return msgspec.json.decode(text, type=tuple[str, ...]) if text else ()


async def follow_client_authorities(sender: Sender, certificate: ServingCertificate) -> None:
    """Read the client CAs of the cluster periodically until cancelled; after a failure the previous CAs stay valid."""
    is_logged = False
    while True:
        try:
            certificate.trust_clients(*await read_client_authorities(sender))
        except FAILURES as error:
            if not is_logged:
                log.info("secure port: cannot read the cluster's authorities of client certificates: %s", error)
            is_logged = True
        else:
            certificate.refresh()
        await asyncio.sleep(EVERY)
