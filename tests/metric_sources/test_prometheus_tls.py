"""TLS to Prometheus: which servers are trusted, and what is said of each one that is not."""

from __future__ import annotations

import asyncio
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import timedelta
from pathlib import Path

import pytest

from policysched.metric_sources.problems import QueryError, QueryOutcome
from policysched.metric_sources.prometheus_http import PrometheusClient, ServerSettings
from tests.controlplane.certificates import Authority
from tests.metric_sources.fake_prometheus import fake_prometheus

CHECK = "; check --prometheus-ca-file"


def authority(folder: Path, lifetime: timedelta = timedelta(days=1)) -> Authority:
    folder.mkdir()
    return Authority(folder, lifetime)


def serving(of: Authority) -> ssl.SSLContext:
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(of.folder / "server.crt", of.folder / "server.key")
    return tls


async def asked(url: str, ca_file: Path | None, token: Path | None = None) -> str:
    """Ask a query: return how the server answers, or the error."""
    client = PrometheusClient(ServerSettings(url, token, ca_file))
    try:
        return (await client.ask("load")).status
    except QueryError as error:
        assert error.outcome is QueryOutcome.TLS
        return str(error)
    finally:
        await client.close()


async def test_a_server_is_trusted_by_its_own_authority_and_is_sent_the_token(tmp_path: Path) -> None:
    own, token = authority(tmp_path / "own"), tmp_path / "token"
    token.write_text("secret\n")
    async with fake_prometheus(serving(own)) as fake:
        assert await asked(fake.url, own.certificate, token) == "success"
    assert [sent["Authorization"] for sent in fake.headers] == ["Bearer secret"]


async def test_an_untrusted_server_is_sent_nothing_and_the_error_names_the_cause(tmp_path: Path) -> None:
    own, token = authority(tmp_path / "own"), tmp_path / "token"
    other, ended = authority(tmp_path / "other"), authority(tmp_path / "ended", timedelta(seconds=-60))
    token.write_text("secret")
    cases = [
        (own, other.certificate, f"unable to get local issuer certificate{CHECK}"),
        (own, None, f"unable to get local issuer certificate{CHECK}"),
        (own, own.folder / "server.crt", f"unable to get local issuer certificate{CHECK}"),
        (ended, ended.certificate, "certificate has expired"),
    ]
    for server, trusted, says in cases:
        async with fake_prometheus(serving(server)) as fake:
            error = await asked(fake.url, trusted, token)
        assert error == f"cannot connect to {fake.url}: certificate is not trusted: {says}"
        assert fake.headers == []


async def test_a_server_of_another_name_is_not_trusted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    own = authority(tmp_path / "own")
    resolve = asyncio.BaseEventLoop.getaddrinfo

    async def resolved(loop: asyncio.BaseEventLoop, _: object, port: int, **kinds: int) -> object:
        return await resolve(loop, "localhost", port, **kinds)

    monkeypatch.setattr(asyncio.BaseEventLoop, "getaddrinfo", resolved)
    async with fake_prometheus(serving(own)) as fake:
        error = await asked(fake.url.replace("localhost", "prometheus.monitoring"), own.certificate)
    assert "Hostname mismatch, certificate is not valid for 'prometheus.monitoring'" in error


async def test_a_server_that_requires_a_client_certificate_is_said_to(tmp_path: Path) -> None:
    own = authority(tmp_path / "own")
    tls = serving(own)
    tls.load_verify_locations(own.certificate)
    tls.verify_mode = ssl.CERT_REQUIRED
    with handshakes(tls) as port:
        error = await asked(f"https://localhost:{port}", own.certificate)
    assert error.endswith("TLS failed: server requires a valid client certificate")


@contextmanager
def handshakes(tls: ssl.SSLContext) -> Iterator[int]:
    """Make the handshakes of TLS connections in a thread: unlike servers of asyncio, it ends bad ones with an alert."""
    listening = socket.create_server(("localhost", 0))

    def serve() -> None:
        while True:
            try:
                connection = listening.accept()[0]
            except OSError:
                return
            connection.settimeout(5)
            made = tls.wrap_socket(connection, server_side=True, do_handshake_on_connect=False)
            with made:
                try:
                    made.do_handshake()
                except ssl.SSLError:
                    socket.socket.shutdown(made, socket.SHUT_WR)
                    while socket.socket.recv(made, 4096):  # unread bytes would reset the connection before the alert
                        pass

    thread = threading.Thread(target=serve, daemon=True)
    thread.start()
    try:
        yield listening.getsockname()[1]
    finally:
        listening.shutdown(socket.SHUT_RDWR)
        listening.close()
        thread.join(5)
