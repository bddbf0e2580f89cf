"""Requests to the API server, as client-go counts them, and how old metrics are."""

from __future__ import annotations

import platform

import pytest
from aiohttp import web
from prometheus_client import CollectorRegistry

import policysched
from policysched.app.clock import SystemClock
from policysched.app.running.metrics.process_metrics import MetricAges, ProcessMetrics
from policysched.app.running.metrics.request_metrics import RequestMetrics
from policysched.framework import ApiError
from policysched.kube.connection import Connection
from policysched.kube.transport import Transport
from policysched.model.release import RELEASES, Release
from tests.app.test_scheduler_metrics import shown
from tests.controlplane.programs import free_port
from tests.fake_server import posts_served
from tests.work import calls


async def busy(_: web.Request) -> web.Response:
    return web.json_response({"kind": "Status", "message": "too much"}, status=429)


async def made(_: web.Request) -> web.Response:
    return web.json_response({})


def requests(metrics: RequestMetrics) -> set[str]:
    return {line for line in shown(metrics) if line.startswith("rest_client_requests_total{")}


@pytest.mark.parametrize(("respond", "code"), [(busy, "429"), (made, "200")])
async def test_answers_are_counted_by_code_method_and_host(respond: object, code: str) -> None:
    metrics = RequestMetrics()
    async with posts_served("/pods", respond) as url:  # type: ignore[arg-type]
        connection = metrics.count(Connection(url, SystemClock()))
        try:
            await Transport(connection).request("POST", "/pods", b"{}")
        except ApiError as error:
            assert str(error.status) == code
        await connection.close()
    host = url.removeprefix("http://")
    assert requests(metrics) == {f'rest_client_requests_total{{code="{code}",host="{host}",method="POST"}} 1.0'}
    assert f'rest_client_request_duration_seconds_count{{host="{host}",verb="POST"}} 1.0' in shown(metrics)


async def test_requests_without_an_answer_are_counted_streams_too() -> None:
    metrics, host = RequestMetrics(), f"127.0.0.1:{free_port()}"
    connection = metrics.count(Connection(f"http://{host}", SystemClock()))
    with pytest.raises(ApiError):
        await Transport(connection).request("POST", "/pods", b"{}")
    with pytest.raises(ApiError):
        async for _ in Transport(connection).lines("/pods", 5):
            raise AssertionError
    await connection.close()
    line = f'rest_client_requests_total{{code="<error>",host="{host}",method='
    assert requests(metrics) == {f'{line}"POST"}} 1.0', f'{line}"GET"}} 1.0'}


def test_connections_are_added_up() -> None:
    metrics = RequestMetrics()
    for _ in range(2):
        connection = metrics.count(Connection("https://api:6443", SystemClock()))
        assert connection.on_answer is not None
        connection.on_answer("GET", 200, 0.3)
    assert requests(metrics) == {'rest_client_requests_total{code="200",host="api:6443",method="GET"} 2.0'}
    lines = shown(metrics)
    of = 'host="api:6443"'
    assert f'rest_client_request_duration_seconds_bucket{{{of},le="0.25",verb="GET"}} 0.0' in lines
    assert f'rest_client_request_duration_seconds_bucket{{{of},le="0.5",verb="GET"}} 2.0' in lines


def test_metrics_cost_the_same_after_many_connections() -> None:
    def cost(connections: int) -> int:
        metrics = RequestMetrics()
        for _ in range(connections):
            connection = metrics.count(Connection("https://api:6443", SystemClock()))
            assert connection.on_answer is not None
            connection.on_answer("GET", 200, 0.3)
        return calls(lambda: requests(metrics))

    assert cost(50) == cost(2)


def test_metrics_have_an_age_by_policy_and_name() -> None:
    lines = shown(MetricAges(lambda: {"hot/load": 12.5}))
    assert 'policysched_metric_age_seconds{metric="load",policy="hot"} 12.5' in lines


@pytest.mark.parametrize("release", RELEASES.values())
def test_build_is_shown_with_its_versions(release: Release) -> None:
    registry = CollectorRegistry()
    ProcessMetrics(SystemClock(), registry, release)
    labels = {"version": policysched.__version__, "kubernetes": release.version, "python": platform.python_version()}
    assert registry.get_sample_value("policysched_build_info", labels) == 1
