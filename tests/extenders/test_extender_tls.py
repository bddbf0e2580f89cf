"""TLS with an extender: whose certificate is trusted, and which one is shown to it."""

from __future__ import annotations

import ssl
from pathlib import Path
from typing import Any

import pytest

from policysched.errors import UsageError
from policysched.extenders.settings import ExtenderSettings, TlsSettings, make_tls
from policysched.framework.extender import ExtenderError
from tests.controlplane.certificates import Authority
from tests.extenders.fake_extender import fake_extender
from tests.extenders.test_http_extender import NODES, asking, pod


@pytest.fixture
def authority(tmp_path: Path) -> Authority:
    return Authority(tmp_path)


def server(authority: Authority, *, asks_for_clients: bool = False) -> ssl.SSLContext:
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(authority.folder / "server.crt", authority.folder / "server.key")
    if asks_for_clients:
        tls.load_verify_locations(authority.certificate)
        tls.verify_mode = ssl.CERT_REQUIRED
    return tls


async def passes(server_tls: ssl.SSLContext, **settings: Any) -> bool:
    async with fake_extender(server_tls) as fake, asking(fake, node_cache_capable=True, **settings) as extender:
        fake.answers["filter"] = lambda asked: {"NodeNames": asked["NodeNames"]}
        return (await extender.filter(pod(), NODES)).nodes == set(NODES)


async def test_the_configured_authority_is_trusted_from_a_file_or_as_data(authority: Authority) -> None:
    assert await passes(server(authority), tls=TlsSettings(ca_file=str(authority.certificate)))
    assert await passes(server(authority), tls=TlsSettings(ca_data=authority.certificate.read_bytes()))


async def test_another_authority_is_not_trusted(authority: Authority, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = Authority(tmp_path / "other")
    for settings in ({}, {"tls": TlsSettings(ca_file=str(other.certificate))}):
        with pytest.raises(ExtenderError, match="not trusted"):
            await passes(server(authority), **settings)


@pytest.mark.parametrize("settings", [{"tls": TlsSettings(insecure=True)}, {"enable_https": True}])
async def test_nothing_is_checked_where_the_configuration_says_so(authority: Authority, settings: Any) -> None:
    assert await passes(server(authority), **settings)


async def test_enabling_https_with_an_authority_checks_it(authority: Authority, tmp_path: Path) -> None:
    (tmp_path / "other").mkdir()
    other = TlsSettings(ca_file=str(Authority(tmp_path / "other").certificate))
    with pytest.raises(ExtenderError, match="not trusted"):
        await passes(server(authority), enable_https=True, tls=other)


async def test_our_certificate_is_shown_from_files_or_as_data(authority: Authority) -> None:
    cert, key = authority.client("scheduler", ["schedulers"])
    ca, asking_server = str(authority.certificate), server(authority, asks_for_clients=True)
    with pytest.raises(ExtenderError):
        await passes(asking_server, tls=TlsSettings(ca_file=ca))
    assert await passes(asking_server, tls=TlsSettings(ca_file=ca, cert_file=str(cert), key_file=str(key)))
    shown = TlsSettings(ca_file=ca, cert_data=cert.read_bytes(), key_data=key.read_bytes())
    assert await passes(asking_server, tls=shown)


async def test_the_server_is_checked_by_the_configured_name(authority: Authority) -> None:
    ca = str(authority.certificate)
    assert await passes(server(authority), tls=TlsSettings(ca_file=ca, server_name="kubernetes.default.svc"))
    with pytest.raises(ExtenderError, match="not trusted"):
        await passes(server(authority), tls=TlsSettings(ca_file=ca, server_name="elsewhere"))


@pytest.mark.parametrize(
    ("tls", "says"),
    [
        (TlsSettings(ca_file="/nowhere"), "cannot use the certificate authority"),
        (TlsSettings(ca_data=b"no PEM"), "cannot use the certificate authority"),
        (TlsSettings(ca_data=b"\xff"), "cannot use the certificate authority"),
        (TlsSettings(cert_file="/nowhere", key_file="/nowhere"), "cannot use the client certificate"),
        (TlsSettings(cert_data=b"no PEM", key_data=b"no PEM"), "cannot use the client certificate"),
    ],
)
def test_certificates_that_cannot_be_used_are_refused_at_the_start(tls: TlsSettings, says: str) -> None:
    with pytest.raises(UsageError, match=says):
        make_tls(ExtenderSettings("https://x", tls=tls))
