"""`follow_client_authorities`: the authorities whose client certificates the API server accepts, as it publishes them.

They stand in a ConfigMap of kube-system that takes a right of its own to read; without it clients are known by tokens.

Source: k8s.io/apiserver/pkg/server/options/authentication.go (DelegatingAuthenticationOptions).
"""

from __future__ import annotations

import asyncio
import logging
from typing import Final

import msgspec

from policysched.app.serving.access import Sender
from policysched.app.serving.certificates import ServingCertificate
from policysched.errors import ConnectionProblemError
from policysched.framework import ApiError

log = logging.getLogger(__name__)
CONFIG_MAP: Final = "/api/v1/namespaces/kube-system/configmaps/extension-apiserver-authentication"
EVERY: Final = 60.0
"""How often they are read. Units: seconds."""


class _ConfigMap(msgspec.Struct):
    data: dict[str, str] = {}


async def follow_client_authorities(sender: Sender, certificate: ServingCertificate) -> None:
    """Read them now and then, until cancelled; while they cannot be read those from before count."""
    said = False
    while True:
        try:
            found = msgspec.json.decode(await sender.request("GET", CONFIG_MAP), type=_ConfigMap)
        except (ApiError, ConnectionProblemError, msgspec.MsgspecError, UnicodeError) as error:
            if not said:
                log.info("secure port: clients are not known by the cluster's certificates: %s", error)
            said = True
        else:
            certificate.trust_clients(found.data.get("client-ca-file", ""))
            certificate.refresh()
        await asyncio.sleep(EVERY)
