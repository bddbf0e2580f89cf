"""A pod's own credentials: the API server behind TLS, a service account's token and certificate authority."""

from __future__ import annotations

import asyncio
import contextlib
import ssl
from collections.abc import AsyncIterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from ipaddress import ip_address
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import NameOID
from kubernetes.aio.config import incluster_config

from policysched.errors import ConnectionProblemError
from policysched.sandbox import Sandbox
from tests.e2e.objects import node, only, pod
from tests.e2e.schedulers import in_process
from tests.e2e.server import Server


def write_certificate(folder: Path) -> tuple[Path, Path]:
    """Make a certificate for loopback that is its own authority; give its file and that of its key."""
    key = ec.generate_private_key(ec.SECP256R1())
    name = x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, "kube-apiserver")])
    now = datetime.now(UTC)
    made = (
        x509.CertificateBuilder(name, name, key.public_key(), x509.random_serial_number())
        .not_valid_before(now - timedelta(hours=1))
        .not_valid_after(now + timedelta(hours=1))
        .add_extension(x509.SubjectAlternativeName([x509.IPAddress(ip_address("127.0.0.1"))]), critical=False)
        .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
        .sign(key, hashes.SHA256())
    )
    certificate, secret = folder / "ca.crt", folder / "tls.key"
    certificate.write_bytes(made.public_bytes(serialization.Encoding.PEM))
    form, plain = serialization.PrivateFormat.PKCS8, serialization.NoEncryption()
    secret.write_bytes(key.private_bytes(serialization.Encoding.PEM, form, plain))
    return certificate, secret


@dataclass
class Gate:
    """TLS in front of a server: passes bytes on under its address and remembers how connections began."""

    target: int
    port: int = 0
    begins: list[bytes] = field(default_factory=list)
    _tasks: set[asyncio.Task[None]] = field(default_factory=set)

    async def __call__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        inner, outer = await asyncio.open_connection("127.0.0.1", self.target)
        head = await reader.readuntil(b"\r\n\r\n")
        self.begins.append(head)
        own, theirs = (b"Host: 127.0.0.1:%d\r\n" % port for port in (self.port, self.target))
        outer.write(head.replace(own, theirs))
        await asyncio.gather(_pass_on(reader, outer, own, theirs), _pass_on(inner, writer))


async def _pass_on(
    reader: asyncio.StreamReader, writer: asyncio.StreamWriter, old: bytes = b"\r\n", new: bytes = b"\r\n"
) -> None:
    with contextlib.suppress(ConnectionError, ssl.SSLError):
        while data := await reader.read(65536):
            writer.write(data.replace(old, new))
            await writer.drain()
    writer.close()


@pytest.fixture
async def gate(
    server: Server, sandbox: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[Gate]:
    """The inside of a pod: its environment, its service account, and the server behind TLS."""
    certificate, key = write_certificate(tmp_path)
    (tmp_path / "token").write_text("of-a-service-account\n")
    tls = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    tls.load_cert_chain(certificate, key)
    made = Gate(int(server.url.rpartition(":")[2]))
    listening = await asyncio.start_server(made, "127.0.0.1", 0, ssl=tls)
    made.port = listening.sockets[0].getsockname()[1]
    monkeypatch.setattr(incluster_config, "SERVICE_TOKEN_FILENAME", str(tmp_path / "token"))
    monkeypatch.setattr(incluster_config, "SERVICE_CERT_FILENAME", str(certificate))
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "127.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", str(made.port))
    monkeypatch.setenv("HOME", str(tmp_path / "home"))
    monkeypatch.delenv("KUBECONFIG", raising=False)
    yield made
    listening.close()
    await listening.wait_closed()


async def test_scheduler_in_a_pod_uses_its_service_account(server: Server, gate: Gate) -> None:
    await server.load(node("n1"), node("n2"), only("pin", "n2"))
    async with in_process(None):
        await server.load(pod("web"))
        assert await server.placed("web") == {"web": "n2"}
    assert gate.begins
    for head in gate.begins:
        assert b"authorization: bearer of-a-service-account\r\n" in head.lower()


async def test_scheduler_in_a_pod_says_when_the_authority_is_another(
    server: Server, gate: Gate, tmp_path: Path
) -> None:
    other = tmp_path / "other"
    other.mkdir()
    (tmp_path / "ca.crt").write_bytes(write_certificate(other)[0].read_bytes())
    async with in_process(None, wait=False) as scheduler:
        await scheduler.said("certificate is not trusted: ")


async def test_scheduler_in_a_pod_without_an_account_ends(gate: Gate, tmp_path: Path) -> None:
    (tmp_path / "token").unlink()
    with pytest.raises(ConnectionProblemError, match="cannot use the pod's service account: "):
        async with in_process(None, wait=False) as scheduler:
            await scheduler.task
