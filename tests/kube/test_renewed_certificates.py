"""Renewed certificates apply at once to all connections, and each is obtained once."""

from __future__ import annotations

import asyncio
import ssl
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest
import yaml
from aiohttp import web

from policysched.framework import ApiError
from policysched.kube.connection import RENEW_AGAIN, RENEWAL, Connection, find_credentials
from policysched.kube.transport import Transport
from tests.controlplane.certificates import Authority
from tests.kube.fake_server import Ticking, status
from tests.kube.test_kube_connection import kubeconfig

PLUGIN = """
import json, pathlib, sys
folder = pathlib.Path(sys.argv[1])
calls = folder / "calls"
calls.write_text(calls.read_text() + "x" if calls.exists() else "x")
of = (folder / "of").read_text()
status = {"clientCertificateData": (folder / f"client-{of}.crt").read_text(),
          "clientKeyData": (folder / f"client-{of}.key").read_text()}
print(json.dumps({"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}))
"""


class Guarded:
    """A TLS server that checks at each request that the connection's client certificate is the current one."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.authority = Authority(folder)
        for name in ("old", "new"):
            self.authority.client(name, ())
        self.trusted = self.authority.certificate
        """Certificate of the authority that clients trust."""
        self.holds = "old"
        self.came: Counter[str] = Counter()
        self.url = ""
        self.tls = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
        self.tls.load_cert_chain(folder / "server.crt", folder / "server.key")
        self.tls.verify_mode = ssl.CERT_REQUIRED
        self.tls.load_verify_locations(self.authority.certificate)

    async def answer(self, request: web.BaseRequest) -> web.StreamResponse:
        assert request.transport is not None
        shown = request.transport.get_extra_info("ssl_object").getpeercert()
        [name] = [value for [[field, value]] in shown["subject"] if field == "commonName"]
        self.came[name] += 1
        if "watch" in request.query:
            response = web.StreamResponse()
            await response.prepare(request)
            await response.write(b"{}\n")
            await asyncio.sleep(60)
        if name != self.holds:
            return web.json_response(status(401, "Unauthorized", f"{name} has expired"), status=401)
        return web.json_response({})

    def plugin_gives(self, name: str) -> None:
        (self.folder / "of").write_text(name)

    @property
    def plugin_calls(self) -> int:
        return len((self.folder / "calls").read_text())

    def config(self, user: dict[str, Any]) -> str:
        path = self.folder / "config"
        authority = {"certificate-authority": str(self.trusted)}
        path.write_text(yaml.safe_dump(kubeconfig(self.url, user, **authority)))
        return str(path)

    def exec_user(self) -> dict[str, Any]:
        self.plugin_gives("old")
        code = self.folder / "plugin.py"
        code.write_text(PLUGIN)
        version = "client.authentication.k8s.io/v1"
        return {"exec": {"apiVersion": version, "command": "python3", "args": [str(code), str(self.folder)]}}

    def file_user(self) -> dict[str, Any]:
        self.replace("old")
        return {"client-certificate": str(self.folder / "now.crt"), "client-key": str(self.folder / "now.key")}

    def replace(self, name: str, *ends: str) -> None:
        """Replace the files that the kubeconfig names."""
        for end in ends or ("crt", "key"):
            (self.folder / f"now.{end}").write_bytes((self.folder / f"client-{name}.{end}").read_bytes())


@pytest.fixture
async def guarded(tmp_path: Path) -> AsyncIterator[Guarded]:
    made = Guarded(tmp_path)
    runner = web.ServerRunner(web.Server(made.answer, handler_cancellation=True), shutdown_timeout=0.01)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0, ssl_context=made.tls).start()
    made.url = f"https://127.0.0.1:{runner.addresses[0][1]}"
    yield made
    await runner.cleanup()


Ask = Callable[[str], Awaitable[int]]


async def opened(guarded: Guarded, user: dict[str, Any]) -> tuple[Connection, Ticking, Ask]:
    clock = Ticking()
    connection = await Connection.open(clock, kubeconfig=guarded.config(user))
    transport = Transport(connection)

    async def ask(method: str) -> int:
        try:
            await transport.request(method, "/x", b"{}" if method == "POST" else None)
        except ApiError as error:
            return error.status
        return 200

    return connection, clock, ask


async def test_certificate_that_a_plugin_renews_is_shown_by_all_requests_after_one_call(guarded: Guarded) -> None:
    connection, _, ask = await opened(guarded, guarded.exec_user())
    lines = Transport(connection).lines("/x?watch=1", 60)
    assert [await anext(lines), await anext(lines)] == [[], [b"{}"]]
    assert await asyncio.gather(*map(ask, ("POST", "GET") * 20)) == [200] * 40
    guarded.holds = "new"
    guarded.plugin_gives("new")
    guarded.came.clear()
    assert await asyncio.gather(*map(ask, ("POST", "GET") * 20)) == [200] * 40
    assert guarded.came == {"old": 40, "new": 40}
    assert [await ask("POST"), await ask("GET")] == [200, 200]
    assert (guarded.came, guarded.plugin_calls) == ({"old": 40, "new": 42}, 2)
    await lines.aclose()
    await connection.close()


async def test_plugin_that_has_nothing_new_is_not_called_for_each_refusal(guarded: Guarded) -> None:
    connection, clock, ask = await opened(guarded, guarded.exec_user())
    guarded.holds = "new"
    assert await asyncio.gather(*map(ask, ("POST", "GET") * 20)) == [401] * 40
    assert [await ask("POST") for _ in range(5)] == [401] * 5
    assert guarded.plugin_calls == 2
    guarded.plugin_gives("new")
    clock.at += RENEW_AGAIN
    assert [await ask("POST") for _ in range(5)] == [200] * 5
    assert guarded.plugin_calls == 3
    await connection.close()


async def test_certificate_files_that_were_replaced_are_read_when_refused_and_every_minute(guarded: Guarded) -> None:
    connection, clock, ask = await opened(guarded, guarded.file_user())
    assert await ask("POST") == 200
    guarded.replace("new")
    clock.at += RENEWAL
    guarded.came.clear()
    assert [await ask("POST"), await ask("GET")] == [401, 401]
    assert guarded.came == {"new": 2}
    guarded.replace("old")
    clock.at += RENEW_AGAIN
    assert [await ask("POST"), await ask("GET")] == [200, 200]
    await connection.close()


async def test_certificate_without_its_key_leaves_the_one_before_in_use(
    guarded: Guarded, caplog: pytest.LogCaptureFixture
) -> None:
    connection, clock, ask = await opened(guarded, guarded.file_user())
    assert await ask("POST") == 200
    guarded.replace("new", "crt")
    for _ in range(2):
        clock.at += RENEWAL
        assert [await ask("POST"), await ask("GET")] == [200, 200]
    assert [one.message for one in caplog.records if "credentials" in one.message] == [
        "the previous credentials stay in use: cannot use the client certificate: "
        "the private key does not match the certificate"
    ]
    guarded.replace("new", "key")
    guarded.holds = "new"
    clock.at += RENEWAL
    assert [await ask("POST"), await ask("GET")] == [200, 200]
    await connection.close()


async def test_authorities_that_were_replaced_are_read_every_minute(guarded: Guarded, tmp_path: Path) -> None:
    file, other = tmp_path / "authorities.crt", tmp_path / "other"
    other.mkdir()
    old, new = guarded.authority.certificate.read_bytes(), Authority(other).certificate.read_bytes()
    file.write_bytes(old)
    guarded.trusted = file
    connection, clock, ask = await opened(guarded, guarded.file_user())
    assert [await ask("POST"), await ask("GET")] == [200, 200]
    guarded.tls.load_cert_chain(other / "server.crt", other / "server.key")
    for content, code in ((b"", 200), (old + new, 200), (old, 0), (new, 200)):
        file.write_bytes(content)
        clock.at += RENEWAL
        assert [await ask("POST"), await ask("GET")] == [code, code]
    file.unlink()
    clock.at += RENEWAL
    assert [await ask("POST"), await ask("GET")] == [200, 200]
    await connection.close()


async def test_files_of_certificates_go_when_the_last_one_who_uses_them_has_others(
    guarded: Guarded, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    written = tmp_path / "written"
    written.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(written))
    config = guarded.config(guarded.exec_user())
    first, second = await find_credentials(config), await find_credentials(config)
    assert first.files == second.files
    old = first.certificate()
    for name in ("new", "old", "new"):
        guarded.plugin_gives(name)
        await first.renew()
        assert second.certificate() == old
        assert {str(one) for one in written.iterdir()} == {
            one for one in first.files | second.files if one.startswith(str(written))
        }
    await second.renew()
    assert second.certificate() == first.certificate() != old
    assert len(list(written.iterdir())) == 2  # a certificate and its key
