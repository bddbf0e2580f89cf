"""What the port answers to requests that are allowed and strange."""

from __future__ import annotations

import asyncio

import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry, Counter

from policysched.app.serving.endpoints import Endpoints
from policysched.app.serving.health import Health
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
