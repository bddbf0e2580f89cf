"""Invalid or untrusted certificates of server and client: a clear message, and no crash."""

from __future__ import annotations

import ssl
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from policysched.errors import ConnectionProblemError
from policysched.kube.connection import Connection
from policysched.kube.transport import Transport
from tests.controlplane.certificates import Authority
from tests.kube.fake_server import Ticking
from tests.leaks import nothing_left_open

HOUR = timedelta(hours=1)


class Authorities:
    """A trusted authority, an untrusted one, and one with expired certificates."""

    def __init__(self, folder: Path) -> None:
        made = []
        for name, lifetime in (("good", HOUR), ("other", HOUR), ("old", -HOUR / 2)):
            (folder / name).mkdir()
            made.append(Authority(folder / name, lifetime))
        self.good, self.other, self.old = made


@pytest.fixture
def authorities(tmp_path: Path) -> Authorities:
    return Authorities(tmp_path)


@asynccontextmanager
async def served(authority: Authority) -> AsyncIterator[str]:
    """Serve `/version` with the server certificate of an authority; client certificates are not verified."""

    async def version(_: web.BaseRequest) -> web.StreamResponse:
        return web.json_response({"major": "1"})

    tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    tls.load_cert_chain(authority.folder / "server.crt", authority.folder / "server.key")
    runner = web.ServerRunner(web.Server(version))
    await runner.setup()
    site = web.TCPSite(runner, "127.0.0.1", 0, ssl_context=tls)
    await site.start()
    try:
        yield f"https://127.0.0.1:{runner.addresses[0][1]}"
    finally:
        await runner.cleanup()


def kubeconfig(folder: Path, cluster: dict[str, Any], user: dict[str, Any]) -> str:
    path = folder / "config"
    config = {
        "current-context": "c",
        "clusters": [{"name": "c", "cluster": cluster}],
        "users": [{"name": "u", "user": user}],
        "contexts": [{"name": "c", "context": {"cluster": "c", "user": "u"}}],
    }
    path.write_text(yaml.safe_dump(config))
    return str(path)


async def problem(path: str) -> str:
    """Return the problem of a failed connection to the server."""
    with pytest.raises(ConnectionProblemError) as raised:
        connection = await Connection.open(Ticking(), kubeconfig=path)
        try:
            await Transport(connection, timeout=5.0).server_version()
        finally:
            await connection.close()
    return str(raised.value)


@pytest.mark.parametrize(
    ("server", "trusted", "name", "said"),
    [
        ("good", "other", "", "unable to get local issuer certificate"),
        ("old", "old", "", "certificate has expired"),
        ("good", "old", "", "unable to get local issuer certificate"),
        ("good", "good", "elsewhere.example", "Hostname mismatch, certificate is not valid for 'elsewhere.example'."),
    ],
)
async def test_server_that_is_not_trusted_is_told_with_the_reason(
    authorities: Authorities, tmp_path: Path, server: str, trusted: str, name: str, said: str
) -> None:
    async with served(getattr(authorities, server)) as url:
        cluster = {"server": url, "certificate-authority": str(getattr(authorities, trusted).certificate)}
        cluster |= {"tls-server-name": name} if name else {}
        with nothing_left_open():
            found = await problem(kubeconfig(tmp_path, cluster, {}))
        assert found == f"cannot connect to {url}: certificate is not trusted: {said}"


async def test_server_that_gets_a_good_certificate_is_reached(authorities: Authorities, tmp_path: Path) -> None:
    cluster = {"certificate-authority": str(authorities.good.certificate), "server": ""}
    async with served(authorities.other) as url:
        path = kubeconfig(tmp_path, cluster | {"server": url}, {})
        connection = await Connection.open(Ticking(), kubeconfig=path)
        with pytest.raises(ConnectionProblemError, match="not trusted"):
            await Transport(connection).server_version()
    try:
        async with served(authorities.good) as connection.url:
            await Transport(connection).server_version()
    finally:
        await connection.close()


@pytest.mark.parametrize(
    ("certificate", "key", "said"),
    [
        ("good.crt", "other.key", "cannot use the client certificate: the private key does not match the certificate"),
        ("good.key", "good.key", "cannot use the client certificate: the certificate is not in PEM format"),
        ("good.crt", "good.crt", "cannot use the client certificate: the private key is not in PEM format"),
        ("gone.crt", "good.key", "File does not exists"),
    ],
)
async def test_client_certificate_that_cannot_be_used_is_told(
    authorities: Authorities, tmp_path: Path, certificate: str, key: str, said: str
) -> None:
    for name in ("good", "other"):
        pair = getattr(authorities, name).client("me", ())
        for path in pair:
            path.rename(tmp_path / f"{name}{path.suffix}")
    cluster = {"server": "https://127.0.0.1:1", "certificate-authority": str(authorities.good.certificate)}
    user = {"client-certificate": str(tmp_path / certificate), "client-key": str(tmp_path / key)}
    assert said in await problem(kubeconfig(tmp_path, cluster, user))


async def test_authority_that_is_none_is_told(authorities: Authorities, tmp_path: Path) -> None:
    (tmp_path / "ca").write_text("nonsense")
    cluster = {"server": "https://127.0.0.1:1", "certificate-authority": str(tmp_path / "ca")}
    found = await problem(kubeconfig(tmp_path, cluster, {}))
    assert found.startswith("cannot use the kubeconfig's certificate authority: ")
