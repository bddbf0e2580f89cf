from __future__ import annotations

import asyncio
import json
import os
import sys
from pathlib import Path
from typing import Any

import pytest
import yaml

from policysched.errors import ConnectionProblemError
from policysched.framework import ApiError
from policysched.kube.connection import Connection
from policysched.kube.transport import Transport
from tests.kube.fake_server import Answer, Kube, Ticking, answer, refuse


def kubeconfig(server: str, user: dict[str, Any] | None = None, **cluster: Any) -> dict[str, Any]:
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "contexts": [
            {"name": "here", "context": {"cluster": "c", "user": "u"}},
            {"name": "there", "context": {"cluster": "c", "user": "u"}},
        ],
        "clusters": [{"name": "c", "cluster": {"server": server, **cluster}}],
        "users": [{"name": "u", "user": user or {}}],
    }


@pytest.fixture(autouse=True)
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A home directory without a kubeconfig, outside of any pod."""
    for name in ("KUBECONFIG", "KUBERNETES_SERVICE_HOST", "KUBERNETES_SERVICE_PORT"):
        monkeypatch.delenv(name, raising=False)
    monkeypatch.setenv("HOME", str(tmp_path))
    return tmp_path


def write(folder: Path, content: Any, name: str = "config") -> str:
    path = folder / name
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
    return str(path)


async def authorization(kube: Kube, path: str | None, clock: Ticking | None = None, **options: Any) -> str | None:
    """Open a connection, send a request and return its Authorization header."""
    kube.server.on("GET", "/a", answer({}))
    connection = await Connection.open(clock or Ticking(), kubeconfig=path, **options)
    try:
        await Transport(connection).request("GET", "/a")
    finally:
        await connection.close()
    return kube.server.asked[-1].headers.get("Authorization")


MISSING_PLUGIN = {"apiVersion": "client.authentication.k8s.io/v1", "command": "no-such"}


@pytest.mark.parametrize("way", ["argument", "variable", "home"])
async def test_kubeconfig_is_found(kube: Kube, home: Path, way: str, monkeypatch: pytest.MonkeyPatch) -> None:
    content = kubeconfig(kube.server.url, {"token": "secret"})
    path = write(home, content, ".kube/config" if way == "home" else "elsewhere")
    if way == "variable":
        monkeypatch.setenv("KUBECONFIG", f"/nowhere:{path}")
    assert await authorization(kube, path if way == "argument" else None) == "Bearer secret"


async def test_context_chooses_another_user(kube: Kube, home: Path) -> None:
    content = kubeconfig(kube.server.url, {"token": "secret"})
    content["contexts"][1]["context"]["user"] = "v"
    content["users"].append({"name": "v", "user": {"username": "me", "password": "pass"}})
    path = write(home, content)
    assert await authorization(kube, path, context="there") == "Basic bWU6cGFzcw=="


@pytest.mark.parametrize(
    ("content", "context", "message"),
    [
        (None, None, r"no kubeconfig at .*/config; set --kubeconfig or the variable KUBECONFIG"),
        ("{", None, r"kubeconfig .*/config is not YAML: line 1, column 2: expected the node content"),
        ("just text", None, r"kubeconfig .*/config is not a kubeconfig: expected a mapping"),
        ({}, None, r"kubeconfig .*/config has no current-context; choose one with --context \(none\)"),
        (kubeconfig("http://x"), "moon", r'kubeconfig .*/config has no context "moon"; it has here, there'),
        (
            kubeconfig("http://x") | {"clusters": []},
            None,
            r'config: context "here" names cluster "c", which does not exist',
        ),
        (kubeconfig("http://me:pass@x"), None, "^the kubeconfig's server has a user name or password in its URL"),
        (kubeconfig("https://[::1"), None, "^the kubeconfig's server is not a URL: "),
        (kubeconfig("http://x:99999"), None, "^the kubeconfig's server is not a URL: "),
        (kubeconfig(f"http://{'x' * 300}"), None, "^the kubeconfig's server is not a URL: "),
        (kubeconfig("file:///etc/passwd"), None, "is not an http or https URL"),
        (
            kubeconfig("http://x", {"token": "a\nX-Other: b"}),
            None,
            "the token has characters that an HTTP header must not have",
        ),
        (
            kubeconfig("https://x", None, **{"certificate-authority": "/nowhere/ca.crt"}),
            None,
            r"cannot use kubeconfig .*/config: .*/nowhere/ca.crt",
        ),
        (
            kubeconfig("https://x", None, **{"certificate-authority-data": "bm90IGEgY2VydA=="}),
            None,
            r"cannot use the kubeconfig's certificate authority: ",
        ),
        (
            kubeconfig("https://x", {"client-certificate-data": "bm8=", "client-key-data": "bm8="}),
            None,
            r"cannot use the client certificate: ",
        ),
        (
            kubeconfig("http://x", {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "/no/such"}}),
            None,
            r'kubeconfig .*/config: the exec plugin "/no/such" of user "u" is not installed$',
        ),
        (
            kubeconfig("http://x", {"exec": {**MISSING_PLUGIN, "installHint": "Install it:\n\n  brew install x\n"}}),
            None,
            r'the exec plugin "no-such" of user "u" is not installed: Install it: brew install x$',
        ),
        (
            kubeconfig("http://x", {"exec": {**MISSING_PLUGIN, "command": "false", "installHint": "Log in first"}}),
            None,
            r'the exec plugin "false" of user "u" returned no credentials: Log in first$',
        ),
    ],
)
async def test_mistake_in_a_kubeconfig_is_one_line(home: Path, content: Any, context: str | None, message: str) -> None:
    path = str(home / "config") if content is None else write(home, content)
    with pytest.raises(ConnectionProblemError, match=message) as caught:
        await Connection.open(Ticking(), kubeconfig=path, context=context)
    assert "\n" not in str(caught.value)


async def test_unreadable_kubeconfig_is_named(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write(home, {})

    def denied(*_: Any) -> str:
        raise PermissionError(13, "Permission denied")

    monkeypatch.setattr(Path, "read_text", denied)
    with pytest.raises(ConnectionProblemError, match="cannot be read: Permission denied"):
        await Connection.open(Ticking(), kubeconfig=path)


def plugin(home: Path, **status: str) -> dict[str, Any]:
    """Return a user with an exec plugin that counts its calls and returns the number in its token."""
    calls = home / "calls"
    script = f"""
import json, pathlib
calls = pathlib.Path({str(calls)!r})
calls.write_text(calls.read_text() + "x" if calls.exists() else "x")
status = {{"token": "token-%d" % len(calls.read_text()), **{status!r}}}
print(json.dumps({{"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}}))
"""
    code = write(home, script, "plugin.py")
    return {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": sys.executable, "args": [code]}}


async def test_exec_plugin_is_asked_again_when_its_token_is_refused(kube: Kube, home: Path) -> None:
    path = write(home, kubeconfig(kube.server.url, plugin(home)))
    connection = await Connection.open(Ticking(), kubeconfig=path)
    transport = Transport(connection)
    kube.server.on("GET", "/a", refuse(401, "Unauthorized"), refuse(401, "Unauthorized"), answer({}))
    await asyncio.gather(*(transport.request("GET", "/a") for _ in range(2)))
    kube.server.on("WATCH", "/a", refuse(401, "Unauthorized"))
    with pytest.raises(ApiError):
        await anext(transport.lines("/a?watch=1", 5))
    await transport.request("GET", "/a")
    seen = [asked.headers["Authorization"] for asked in kube.server.asked]
    await connection.close()
    first, second, third = (f"Bearer token-{number}" for number in (1, 2, 3))
    assert seen == [first, first, second, second, second, third]


async def test_exec_plugin_is_asked_again_when_its_token_expires(kube: Kube, home: Path) -> None:
    user = plugin(home, expirationTimestamp="2020-01-01T00:00:00Z")
    clock = Ticking()
    connection = await Connection.open(clock, kubeconfig=write(home, kubeconfig(kube.server.url, user)))
    before = await connection.authentication()
    clock.at += 61
    assert before != await connection.authentication()
    await connection.close()


@pytest.mark.parametrize(
    ("status", "why"),
    [
        ({"token": 1}, "status.token: expected text, got int"),
        ({"token": {}}, "status.token: expected text, got object"),
        (
            {"clientCertificateData": ["x"], "clientKeyData": "x"},
            "status.clientCertificateData: expected text, got array",
        ),
        ({"token": "x", "expirationTimestamp": 5}, "status.expirationTimestamp: expected text, got int"),
        ([], "status: expected object, got array"),
        ("x", "status: expected object, got str"),
        ({"token": None}, "missing token or clientCertificateData"),
        ({"token": ""}, "missing token or clientCertificateData"),
    ],
)
async def test_credentials_of_wrong_types_are_refused(
    home: Path, caplog: pytest.LogCaptureFixture, status: Any, why: str
) -> None:
    credential = {"apiVersion": "client.authentication.k8s.io/v1", "kind": "ExecCredential", "status": status}
    code = f"print({json.dumps(json.dumps(credential))})"
    user = {"exec": {"apiVersion": credential["apiVersion"], "command": sys.executable, "args": ["-c", code]}}
    with pytest.raises(ConnectionProblemError, match="returned no credentials"):
        await Connection.open(Ticking(), kubeconfig=write(home, kubeconfig("http://x", user)))
    assert why in caplog.text


@pytest.mark.parametrize(
    ("code", "why"),
    [
        ("import time; time.sleep(60)", "did not end within 0.5 s"),
        ("print('x' * 2_000_000)", "printed more than 1024 KiB"),
        ("import sys; sys.stderr.write('x' * 2_000_000)", "printed more than 1024 KiB"),
        ("import sys; sys.exit('no\\x1b[31m login')", r"ended with code 1: no\x1b[31m login"),
        ("print('[]')", "printed no ExecCredential: apiVersion is missing"),
        ("print('[' * 100_000)", "printed no JSON"),
    ],
)
async def test_exec_plugin_that_goes_wrong_is_ended(
    home: Path, monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture, code: str, why: str
) -> None:
    monkeypatch.setattr("policysched.kube.exec_plugin.PATIENCE", 0.5 if "sleep" in code else 30)
    noting = f"import os, pathlib; pathlib.Path({str(home / 'pid')!r}).write_text(str(os.getpid())); {code}"
    user = {"exec": {"apiVersion": "v1", "command": sys.executable, "args": ["-c", noting]}}
    with pytest.raises(ConnectionProblemError, match="returned no credentials"):
        await Connection.open(Ticking(), kubeconfig=write(home, kubeconfig("http://x", user)))
    assert why in caplog.text
    with pytest.raises(ProcessLookupError):
        for _ in range(200):
            os.kill(int((home / "pid").read_text()), 0)
            await asyncio.sleep(0.01)


async def test_token_file_is_read_again(kube: Kube, home: Path, caplog: pytest.LogCaptureFixture) -> None:
    token = home / "token"
    token.write_text("one\n")
    path = write(home, kubeconfig(kube.server.url, {"tokenFile": str(token)}))
    clock = Ticking()
    connection = await Connection.open(clock, kubeconfig=path)
    seen = []
    for content, at in (("one\n", 100), ("two\n", 120), ("two\n", 161)):
        token.write_text(content)
        clock.at = at
        seen.append((await connection.authentication()).headers["Authorization"])
    token.unlink()
    for at in (300, 400):
        clock.at = at
        seen.append((await connection.authentication()).headers["Authorization"])
    assert seen == ["Bearer one"] * 2 + ["Bearer two"] * 3
    [line] = [one.message for one in caplog.records if one.levelname == "WARNING"]
    assert line.startswith("the previous credentials stay in use: cannot renew the credentials of the kubeconfig: ")


async def test_token_file_that_was_rotated_is_read_when_the_token_is_refused(kube: Kube, home: Path) -> None:
    token = home / "token"
    token.write_text("expired")
    connection = await Connection.open(
        Ticking(), kubeconfig=write(home, kubeconfig(kube.server.url, {"tokenFile": str(token)}))
    )
    transport = Transport(connection)
    refused = refuse(401, "Unauthorized", "token has expired")
    kube.server.on("GET", "/version", refused, answer({}))
    try:
        token.write_text("rotated")
        await transport.server_version()
        sent = [one.headers["Authorization"] for one in kube.server.asked]
        assert sent == ["Bearer expired", "Bearer rotated"]
        kube.server.on("GET", "/version", refused)
        with pytest.raises(ConnectionProblemError, match="rejects the credentials: token has expired"):
            await transport.server_version()
        assert len(kube.server.asked) == 3, "the same token is not tried again"
    finally:
        await connection.close()


async def test_service_account_is_used_inside_a_pod(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("KUBERNETES_SERVICE_HOST", "10.0.0.1")
    monkeypatch.setenv("KUBERNETES_SERVICE_PORT", "443")
    with pytest.raises(ConnectionProblemError, match="cannot use the pod's service account: Service token file"):
        await Connection.open(Ticking())
    path = write(home, kubeconfig("http://elsewhere"))
    connection = await Connection.open(Ticking(), kubeconfig=path)
    assert connection.url == "http://elsewhere"


def way(connection: Connection) -> dict[str, object]:
    """Return the routing of a connection without its TLS context."""
    return {name: value for name, value in connection.routing.items() if name != "ssl" or not value}


@pytest.mark.parametrize("name", ["", "api.example"])
async def test_way_to_the_server_is_taken_from_the_kubeconfig(home: Path, name: str) -> None:
    cluster: dict[str, Any] = {"proxy-url": "http://proxy:3128", "insecure-skip-tls-verify": True}
    if name:
        cluster["tls-server-name"] = name
    connection = await Connection.open(Ticking(), kubeconfig=write(home, kubeconfig("https://x:6443/", **cluster)))
    assert connection.url == "https://x:6443"
    expected = {"proxy": "http://proxy:3128"} | ({"server_hostname": name} if name else {})
    assert way(connection) == expected


async def test_environment_names_the_proxy_where_the_kubeconfig_names_none(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    path = write(home, kubeconfig("https://x:6443/"))
    assert way(await Connection.open(Ticking(), kubeconfig=path)) == {"proxy": "http://proxy:3128"}
    monkeypatch.setenv("NO_PROXY", "x")
    assert way(await Connection.open(Ticking(), kubeconfig=path)) == {}


async def test_missing_kubeconfig_is_told_where_it_is_named(home: Path) -> None:
    with pytest.raises(ConnectionProblemError, match=r"set clientConnection\.kubeconfig of c\.yaml or"):
        await Connection.open(
            Ticking(), kubeconfig=str(home / "nowhere"), named_by="clientConnection.kubeconfig of c.yaml"
        )


@pytest.mark.parametrize(
    ("document", "version"),
    [
        ({"major": "1", "minor": "37+", "gitVersion": "v1.37.2-gke.1"}, "v1.37.2-gke.1"),
        *((one, "") for one in (b"", b"v1.37.2", b'{"a":' + b"[" * 100_000, b'{"gitVersion":"\xff"}', b"[]", b"{}")),
        ({"gitVersion": 1}, ""),
        ({"gitVersion": None}, ""),
    ],
)
async def test_version_is_that_of_the_document(kube: Kube, document: Any, version: str) -> None:
    kube.server.on("GET", "/version", answer(document))
    assert await kube.transport.server_version() == version


NONE = "the kubeconfig gives no credentials; set a token with `kubectl config set-credentials`"
OLD = "the token or the client certificate may have expired; create a new one"
NOBODY = 'nodes is forbidden: User "system:anonymous" cannot list resource "nodes"'


@pytest.mark.parametrize(
    ("user", "refused", "said"),
    [
        ({}, refuse(401, "Unauthorized", "Unauthorized"), f"Unauthorized; {NONE}"),
        ({"token": ""}, refuse(403, "Forbidden", NOBODY), f"{NOBODY}; {NONE}"),
        ({"token": "t"}, refuse(401, "Unauthorized", "Unauthorized"), f"Unauthorized; {OLD}"),
        ({"token": "t"}, refuse(403, "Forbidden", "no"), "no"),
        ({}, refuse(403, "Forbidden", 'User "joe" of the proxy'), 'User "joe" of the proxy'),
    ],
)
async def test_rejected_credentials_come_with_a_remedy(
    kube: Kube, home: Path, user: dict[str, Any], refused: Answer, said: str
) -> None:
    path = write(home, kubeconfig(kube.server.url, user))
    kube.server.on("GET", "/api/v1/nodes", refused)
    kube.server.on("POST", "/api/v1/nodes", refused)
    connection = await Connection.open(Ticking(), kubeconfig=path)
    try:
        for method in ("GET", "POST"):
            with pytest.raises(ApiError) as caught:
                await Transport(connection).request(method, "/api/v1/nodes")
            assert str(caught.value) == said
    finally:
        await connection.close()


async def test_check_tells_a_wrong_user_from_a_missing_server(kube: Kube) -> None:
    kube.server.on("GET", "/version", refuse(401, "Unauthorized", "Unauthorized"))
    with pytest.raises(ConnectionProblemError, match="rejects the credentials: Unauthorized"):
        await kube.transport.server_version()
    kube.server.on("GET", "/version", refuse(403, "Forbidden"))
    assert await kube.transport.server_version() == ""
    await kube.server.stop()
    with pytest.raises(ConnectionProblemError, match=r"cannot connect to http://127\.0\.0\.1:\d+"):
        await kube.transport.server_version()
    await kube.server.start()


@pytest.mark.parametrize(
    ("url", "packed"),
    [
        ("https://127.0.0.1:6443", False),
        ("http://localhost:8080", False),
        ("https://[::1]:6443", False),
        ("https://10.0.0.1", True),
        ("https://localhost.example.com", True),
    ],
)
async def test_lists_are_not_packed_where_no_network_lies_between(url: str, packed: bool) -> None:
    connection = Connection(url, Ticking())
    try:
        assert ("Accept-Encoding" not in connection.session.headers) is packed
    finally:
        await connection.close()
