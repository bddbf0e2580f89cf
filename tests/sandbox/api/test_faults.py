from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

import aiohttp
import pytest

from tests.sandbox.bodies import PODS, binding, pod

if TYPE_CHECKING:
    from policysched.sandbox import Sandbox
    from tests.sandbox.conftest import Api


@pytest.mark.parametrize("status", [403, 409, 422, 429, 500, 503])
async def test_so_many_requests_fail_and_then_all_is_well(quiet: Sandbox, quiet_api: Api, status: int) -> None:
    quiet.faults.fail("POST", "/pods$", status, times=2, message="as told", headers={"Retry-After": "1"})
    answers = [await quiet_api.post(PODS, pod("web")) for _ in range(3)]
    assert [code for code, _ in answers] == [status, status, 201]
    found = answers[0][1]
    assert (found["kind"], found["code"], found["message"]) == ("Status", status, "as told")
    assert found["details"] == {"retryAfterSeconds": 1}
    assert quiet.faults.seen == 2


async def test_faults_strike_only_what_they_name(quiet: Sandbox, quiet_api: Api) -> None:
    quiet.faults.fail("POST", "/binding$", 500, times=None)
    assert (await quiet_api.post(PODS, pod("web")))[0] == 201
    assert (await quiet_api.post(f"{PODS}/web/binding", binding("web", "n")))[0] == 500
    quiet.faults.clear()
    assert (await quiet_api.post(f"{PODS}/web/binding", binding("web", "n")))[0] == 201


async def test_a_proxy_may_answer_with_a_page(quiet: Sandbox, quiet_api: Api) -> None:
    quiet.faults.html("GET", "/pods")
    async with quiet_api.session.get(quiet_api.url + PODS) as response:
        assert (response.status, response.content_type) == (503, "text/html")


async def test_a_resource_may_be_denied(quiet: Sandbox, quiet_api: Api) -> None:
    quiet.faults.deny("/configmaps")
    for _ in range(2):
        code, found = await quiet_api.get("/api/v1/configmaps")
        assert (code, found["reason"]) == (403, "Forbidden")
    assert (await quiet_api.get("/api/v1/pods"))[0] == 200


@pytest.mark.parametrize("handled", [False, True])
async def test_a_connection_is_dropped_before_or_after(quiet: Sandbox, quiet_api: Api, *, handled: bool) -> None:
    quiet.faults.reset("POST", "/pods", handled=handled)
    with pytest.raises(aiohttp.ClientError):
        await quiet_api.post(PODS, pod("web"))
    assert ((await quiet_api.get(f"{PODS}/web"))[0] == 200) is handled


async def test_a_watch_is_cut_inside_a_line(quiet: Sandbox, quiet_api: Api) -> None:
    await quiet_api.post(PODS, pod("a"))
    quiet.faults.cut_watch("/pods")
    received = b""
    with pytest.raises(aiohttp.ClientError):
        async with quiet_api.session.get(quiet_api.url + PODS, params={"watch": "true"}) as response:
            async for chunk in response.content.iter_any():
                received += chunk
    assert not received.endswith(b"\n")
    assert [event["type"] for event in await quiet_api.watch(PODS, 1)] == ["ADDED"]


async def test_watches_may_be_closed_in_order(quiet: Sandbox, quiet_api: Api) -> None:
    await quiet_api.post(PODS, pod("a"))
    watching = asyncio.create_task(quiet_api.watch(PODS, 0))
    await asyncio.sleep(0.05)
    quiet.faults.close_watches()
    assert len(await watching) == 1


async def test_a_request_may_take_long(quiet: Sandbox, quiet_api: Api) -> None:
    quiet.faults.delay("GET", "/pods", 0.2)
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.1):
            await quiet_api.get(PODS)
    async with asyncio.timeout(30):
        await quiet_api.get(PODS)
