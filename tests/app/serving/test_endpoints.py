"""What the port answers to requests that are allowed and strange."""

from __future__ import annotations

import asyncio
import json

import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry, Counter

from policysched.app.serving.endpoints import Endpoints
from policysched.app.serving.health import Health
from policysched.app.serving.verbosity import VerbosityEndpoint
from tests.app.serving.ports import open_port


class Open:
    """Lets everybody read everything."""

    async def check(self, request: web.BaseRequest) -> None:
        """Let it pass."""


@pytest.mark.parametrize(
    "accepted",
    [
        "application/openmetrics-text; version=x.y",
        "text/plain;version=;escaping=nobody",
        "application/openmetrics-text;version=99999999999999999999.0,*/*",
        ";;=,",
    ],
)
async def test_metrics_are_told_whatever_form_is_asked_for(accepted: str, caplog: pytest.LogCaptureFixture) -> None:
    registry = CollectorRegistry()
    Counter("asked", "How often.", registry=registry).inc()
    endpoints = Endpoints(Open(), Health(), registry, {}, asyncio.get_running_loop())
    async with open_port(endpoints.answer) as port:
        code, text = await port.get("/metrics", headers={"Accept": accepted})
    assert code == 200 and "asked_total 1.0\n" in text
    assert caplog.messages == []


async def test_the_verbosity_is_changed_by_put_alone() -> None:
    taken: list[int] = []
    sent = {"/debug/flags/v": ("PUT", VerbosityEndpoint(taken.append).answer)}
    endpoints = Endpoints(Open(), Health(), CollectorRegistry(), {}, asyncio.get_running_loop(), sent)
    async with open_port(endpoints.answer) as port:
        answers = [
            await port.get("/debug/flags/v"),
            await port.get("/debug/flags/v", "PUT", data="5"),
            await port.get("/debug/flags/v", "PUT", data="much"),
            await port.get("/debug/flags/v", "PUT", data="-1"),
            await port.get("/debug/flags/v", "PUT", data="9" * 5000),
            await port.get("/debug/flags/other", "PUT", data="1"),
        ]
    assert [code for code, _ in answers] == [405, 200, 400, 400, 200, 405]
    assert answers[1][1] == "successfully set klog.logging.verbosity to 5"
    assert json.loads(answers[2][1])["message"] == '"much" is not a verbosity; send a number of 0 or more'
    assert taken == [5, int("9" * 64)]


async def test_documents_are_made_once_for_all_who_ask_within_a_moment(monkeypatch: pytest.MonkeyPatch) -> None:
    made = 0

    def make() -> dict[str, int]:
        nonlocal made
        made += 1
        return {"made": made}

    async def ask() -> list[str]:
        endpoints = Endpoints(Open(), Health(), CollectorRegistry(), {"/a": make}, asyncio.get_running_loop())
        async with open_port(endpoints.answer) as port:
            return [text for _, text in await asyncio.gather(*(port.get("/a") for _ in range(9)))]

    monkeypatch.setattr("policysched.app.serving.endpoints.REUSED_FOR", 3600.0)
    assert await ask() == ['{\n  "made": 1\n}\n'] * 9
    monkeypatch.setattr("policysched.app.serving.endpoints.REUSED_FOR", 0.0)
    assert len(set(await ask())) == 9
