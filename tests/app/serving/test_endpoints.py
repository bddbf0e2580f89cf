"""What the port answers to requests that are allowed and strange."""

from __future__ import annotations

import asyncio
import json

import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry, Counter

from policysched.app.running.run import RunOptions, _changeable_flags
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


async def test_a_flag_is_changed_by_put_alone() -> None:
    taken: list[int] = []
    flags = _changeable_flags(RunOptions(set_verbosity=taken.append))
    loop = asyncio.get_running_loop()
    endpoints = Endpoints(Open(), Health(), CollectorRegistry(), {}, loop, flags)
    async with open_port(endpoints.answer) as port:
        answers = [
            await port.get("/debug/flags/v"),
            await port.get("/debug/flags/v", "PUT", data="5"),
            await port.get("/debug/flags/v", "PUT", data="much"),
            await port.get("/debug/flags/v", "PUT", data="-1"),
            await port.get("/debug/flags/other", "PUT", data="1"),
        ]
    assert [code for code, _ in answers] == [406, 200, 400, 400, 405]
    assert answers[1][1] == "successfully set klog.logging.verbosity to 5"
    assert json.loads(answers[2][1])["message"] == '"much" is no verbosity: send a number of 0 or more'
    assert taken == [5]


def test_without_a_log_of_its_own_a_process_has_no_flag_to_change() -> None:
    assert _changeable_flags(RunOptions()) == {}
