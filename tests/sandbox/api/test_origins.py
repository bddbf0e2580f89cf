"""Who may ask the sandbox: requests as programs and as browsers send them."""

from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

if TYPE_CHECKING:
    from policysched.sandbox import Sandbox
    from tests.sandbox.conftest import Api

PODS = "/api/v1/pods"
UPGRADE = {
    "Upgrade": "websocket",
    "Connection": "Upgrade",
    "Sec-WebSocket-Version": "13",
    "Sec-WebSocket-Key": "dGhlIHNhbXBsZSBub25jZQ==",
}


async def ask(api: Api, headers: dict[str, str], method: str = "GET", path: str = PODS) -> tuple[int, str]:
    """Send headers, `PORT` in them being the sandbox's own."""
    port = api.url.rpartition(":")[2]
    sent = {name: value.replace("PORT", port) for name, value in headers.items()}
    async with api.session.request(method, api.url + path, headers=sent) as response:
        assert not [name for name in response.headers if name.startswith("Access-Control")]
        return response.status, await response.text()


@pytest.mark.parametrize(
    "headers",
    [
        {},
        {"Host": "localhost:PORT"},
        {"Host": "[::1]:PORT"},
        {"Host": "LOCALHOST:PORT", "Origin": "http://localhost:PORT"},
        {"Origin": "http://127.0.0.1:PORT", "Sec-Fetch-Site": "same-origin"},
        {"Sec-Fetch-Site": "none"},
    ],
    ids=str,
)
async def test_programs_of_this_machine_are_answered(quiet_api: Api, headers: dict[str, str]) -> None:
    assert (await ask(quiet_api, headers))[0] == 200


@pytest.mark.parametrize("path", [PODS, "/version", "/healthz", "/openapi/v2"])
@pytest.mark.parametrize(
    "headers",
    [
        {"Host": "evil.example:PORT"},
        {"Host": "evil.example"},
        {"Host": "127.0.0.1"},
        {"Host": "127.0.0.1:1"},
        {"Host": "localhost.evil.example:PORT"},
        {"Host": ""},
        {"Origin": "http://evil.example"},
        {"Origin": "http://evil.example:PORT"},
        {"Origin": "https://127.0.0.1:PORT"},
        {"Origin": "http://127.0.0.1:1"},
        {"Origin": "null"},
        {"Sec-Fetch-Site": "cross-site"},
        {"Sec-Fetch-Site": "same-site"},
    ],
    ids=str,
)
async def test_a_foreign_page_is_refused(quiet_api: Api, headers: dict[str, str], path: str) -> None:
    status, text = await ask(quiet_api, headers, path=path)
    assert status == 403
    assert '"kind":"Status"' in text
    assert '"items"' not in text


async def test_a_foreign_page_changes_nothing(quiet_api: Api) -> None:
    status, _ = await ask(quiet_api, {"Origin": "http://evil.example"}, "DELETE", "/api/v1/namespaces/default")
    assert status == 403
    assert (await quiet_api.get("/api/v1/namespaces/default"))[1]["metadata"].get("deletionTimestamp") is None


async def test_a_preflight_gets_no_permission(quiet_api: Api) -> None:
    asked = {"Origin": "http://evil.example", "Access-Control-Request-Method": "DELETE"}
    assert (await ask(quiet_api, asked, "OPTIONS"))[0] == 403


@pytest.mark.parametrize("headers", [{"Origin": "http://evil.example"}, {"Host": "evil.example:PORT"}], ids=str)
async def test_a_web_socket_of_a_foreign_page_is_refused(quiet_api: Api, headers: dict[str, str]) -> None:
    assert (await ask(quiet_api, UPGRADE | headers, path=f"{PODS}?watch=true"))[0] == 403


async def test_what_a_refusal_repeats_cannot_run_on(quiet: Sandbox, quiet_api: Api) -> None:
    _, text = await ask(quiet_api, {"Host": "x" * 5000})
    assert len(text) < 600
    assert quiet.url.removeprefix("http://") in text
