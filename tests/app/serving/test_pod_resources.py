"""/metrics/resources: what is told of pods, in pieces, and once for all who ask together."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from typing import Any

import pytest
from aiohttp import web
from aiohttp.test_utils import make_mocked_request
from prometheus_client import CollectorRegistry
from prometheus_client.parser import text_string_to_metric_families

from policysched.app.serving.endpoints import Endpoints
from policysched.app.serving.health import Health
from policysched.app.serving.metrics import pod_resources
from policysched.app.serving.metrics.pod_resources import CHUNK, MOST_AMOUNTS, PodResourceSeries
from policysched.app.serving.refused import RefusedError
from policysched.model.decode import decode_pod
from policysched.model.objects import Pod
from tests.app.serving.ports import open_port
from tests.app.serving.test_endpoints import Open

GET = make_mocked_request("GET", "/metrics/resources")


def a_pod(name: str, requests: dict[str, str], **spec: Any) -> Pod:
    """Make a pod with requests, and limits of its memory alone."""
    limits = {"memory": requests["memory"]} if "memory" in requests else {}
    container = {"name": "c", "resources": {"requests": requests, "limits": limits}}
    return decode_pod({"metadata": {"name": name, "namespace": "shop"}, "spec": {"containers": [container]} | spec})


async def told(*pods: Pod) -> str:
    return (await PodResourceSeries(lambda: pods).answer(GET)).text or ""


async def test_requests_and_limits_are_told_with_units_and_in_base_units() -> None:
    amounts = {"cpu": "250m", "memory": "1Ki", "hugepages-2Mi": "4Mi", "attachable-volumes-x": "2", "a.b/c": "3"}
    text = await told(a_pod("web", amounts, nodeName="n1", priority=-5, overhead={"memory": "1Ki", "cpu": "1"}))
    head = 'namespace="shop",node="n1",pod="web",priority="-5"'
    assert [line for line in text.splitlines() if not line.startswith("#")] == [
        f'kube_pod_resource_limit{{{head},resource="memory",scheduler="default-scheduler",unit="bytes"}} 2048.0',
        f'kube_pod_resource_request{{{head},resource="a.b/c",scheduler="default-scheduler",unit=""}} 3.0',
        f'kube_pod_resource_request{{{head},resource="attachable-volumes-x",scheduler="default-scheduler",'
        'unit="integer"} 2.0',
        f'kube_pod_resource_request{{{head},resource="cpu",scheduler="default-scheduler",unit="cores"}} 1.25',
        f'kube_pod_resource_request{{{head},resource="hugepages-2Mi",scheduler="default-scheduler",unit="bytes"}} '
        "4.194304e+06",
        f'kube_pod_resource_request{{{head},resource="memory",scheduler="default-scheduler",unit="bytes"}} 2048.0',
    ]


async def test_nothing_is_told_of_amounts_that_are_zero_and_of_an_empty_cluster() -> None:
    for text in (await told(), await told(a_pod("web", {"cpu": "0", "memory": "0"}))):
        assert [line.split()[:3] for line in text.splitlines()] == [
            ["#", "HELP", "kube_pod_resource_limit"],
            ["#", "TYPE", "kube_pod_resource_limit"],
            ["#", "HELP", "kube_pod_resource_request"],
            ["#", "TYPE", "kube_pod_resource_request"],
        ]


async def test_strange_names_and_amounts_are_told_so_that_a_parser_reads_them() -> None:
    text = await told(a_pod("web", {"cpu": "1e400", 'x"\\\n': "-1"}, schedulerName='a"b\\\n', nodeName=""))
    samples = [one for family in text_string_to_metric_families(text) for one in family.samples]
    assert {(one.labels["resource"], one.labels["priority"]): one.value for one in samples} == {
        ("cpu", ""): float("inf"),
        ('x"\\\n', ""): -1.0,
    }
    assert {one.labels["scheduler"] for one in samples} == {'a"b\\\n'}


async def test_others_run_between_pieces_and_all_who_ask_together_get_the_same() -> None:
    asked = 0

    def pods() -> Sequence[Pod]:
        nonlocal asked
        asked += 1
        return [a_pod(f"p{number}", {"cpu": "1"}) for number in range(10 * CHUNK)]

    resources, turns = PodResourceSeries(pods), 0
    asking = [asyncio.create_task(resources.answer(GET)) for _ in range(5)]
    while not all(one.done() for one in asking):
        turns += 1
        await asyncio.sleep(0)
    assert asked == 1
    assert turns > 10
    assert len({one.result().text for one in asking}) == 1
    await resources.answer(GET)
    assert asked == 2


async def test_who_hangs_up_takes_nothing_from_others_who_asked() -> None:
    pods = [a_pod(f"p{number}", {"cpu": "1"}) for number in range(3 * CHUNK)]
    resources = PodResourceSeries(lambda: pods)
    first, second = (asyncio.create_task(resources.answer(GET)) for _ in range(2))
    await asyncio.sleep(0)
    first.cancel()
    assert (await second).text
    with pytest.raises(asyncio.CancelledError):
        await first


async def test_pod_of_very_many_resources_is_left_out() -> None:
    absurd = a_pod("absurd", {f"a.b/c{number}": "1" for number in range(MOST_AMOUNTS + 1)})
    text = await told(a_pod("web", {"cpu": "1"}), absurd)
    assert [line.partition(" ")[2] for line in text.splitlines() if not line.startswith("#")] == ["1.0"]


async def test_series_that_are_too_long_together_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    pods = [a_pod(f"p{number}", {"cpu": "1"}) for number in range(3 * CHUNK)]
    resources = PodResourceSeries(lambda: pods)
    whole = len((await resources.answer(GET)).text or "")
    monkeypatch.setattr(pod_resources, "LARGEST", whole)
    assert len((await resources.answer(GET)).text or "") == whole
    monkeypatch.setattr(pod_resources, "LARGEST", whole - 1)
    with pytest.raises(RefusedError, match="the series of all pods are larger than") as refused:
        await resources.answer(GET)
    assert refused.value.code == 503
    gone = asyncio.create_task(resources.answer(GET))
    await asyncio.sleep(0)
    gone.cancel()
    monkeypatch.setattr(pod_resources, "LARGEST", whole)
    await asyncio.sleep(0.1)
    assert (await resources.answer(GET)).text


async def test_all_who_ask_together_share_one_body() -> None:
    resources = PodResourceSeries(lambda: [a_pod("p", {"cpu": "1"})])
    first, second = await asyncio.gather(resources.answer(GET), resources.answer(GET))
    assert first.body is second.body


async def test_path_is_read_like_the_other_metrics() -> None:
    more = {"/metrics/resources": ("", PodResourceSeries(lambda: (a_pod("web", {"cpu": "1"}),)).answer)}
    endpoints = Endpoints(Open(), Health(), CollectorRegistry(), {}, asyncio.get_running_loop(), more)
    async with open_port(endpoints.answer) as port:
        code, text = await port.get("/metrics/resources")
        refused, _ = await port.get("/metrics/resources", "DELETE")
    assert (code, refused) == (200, web.HTTPMethodNotAllowed.status_code)
    assert 'pod="web"' in text
