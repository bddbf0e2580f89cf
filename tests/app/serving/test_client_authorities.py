"""The authorities that a cluster publishes: taken, kept while they cannot be read, said once."""

from __future__ import annotations

import asyncio
import ssl
from datetime import UTC, datetime

import msgspec
import pytest

from policysched.app.serving.options import ServingOptions
from policysched.app.serving.tls import client_authorities
from policysched.app.serving.tls.certificates import ServingCertificate
from policysched.app.serving.tls.client_authorities import CONFIG_MAP, follow_client_authorities
from policysched.app.serving.tls.self_signed import self_signed
from policysched.framework import ApiError

NOW = datetime(2026, 1, 5, tzinfo=UTC)


class Publisher:
    """An API server with the ConfigMap, or without the right to read it."""

    def __init__(self) -> None:
        self.published = ""
        self.asked = 0

    async def request(self, method: str, path: str, body: bytes | None = None) -> bytes:
        assert (method, path, body) == ("GET", CONFIG_MAP, None)
        self.asked += 1
        if not self.published:
            raise ApiError(403, "Forbidden", "not for you")
        return msgspec.json.encode({"kind": "ConfigMap", "data": {"client-ca-file": self.published}})


def mode_of(certificate: ServingCertificate) -> ssl.VerifyMode:
    return certificate.context.verify_mode


async def test_published_authorities_are_followed(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    caplog.set_level("INFO")
    monkeypatch.setattr(client_authorities, "EVERY", 0.0)
    publisher, certificate = Publisher(), ServingCertificate(ServingOptions(), NOW)
    following = asyncio.create_task(follow_client_authorities(publisher, certificate))

    async def asked_again() -> None:
        seen = publisher.asked
        while publisher.asked < seen + 2:
            await asyncio.sleep(0)

    await asked_again()
    assert mode_of(certificate) is ssl.CERT_NONE
    publisher.published = "# Zertifikat für alle\n" + self_signed("authority", NOW)[0].decode()
    await asked_again()
    assert mode_of(certificate) is ssl.CERT_OPTIONAL
    publisher.published = ""
    await asked_again()
    assert mode_of(certificate) is ssl.CERT_OPTIONAL
    publisher.published = "nonsense"
    await asked_again()
    assert mode_of(certificate) is ssl.CERT_OPTIONAL
    following.cancel()
    await asyncio.gather(following, return_exceptions=True)
    assert (
        len(
            [line for line in caplog.messages if "cannot read the cluster's authorities of client certificates" in line]
        )
        == 1
    )
