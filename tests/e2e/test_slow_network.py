"""A slow network between a scheduler and a real API server, and lists whose history is compacted on the way."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from pathlib import Path

import pytest
from aiohttp import web

from tests.controlplane.plane import ControlPlane
from tests.e2e.holding import watched
from tests.e2e.objects import node, pod
from tests.e2e.proxy import proxied
from tests.e2e.server import Server
from tests.e2e.stuttering import network
from tests.e2e.waiting import DEADLINE
from tests.faults.proxy import FaultyProxy

pytestmark = pytest.mark.controlplane
A_NODE = 20
"""How many of the pods fill a node."""


async def each_is_bound_once(server: Server, nodes: int) -> None:
    """Check that all pods are placed, every node is full, and no pod has two Scheduled events."""
    assert Counter((await server.placed()).values()) == {f"n{number}": A_NODE for number in range(nodes)}
    events = [one for one in await server.objects("Event") if one["reason"] == "Scheduled"]
    assert not [one for one in events if one.get("series")]
    assert set(Counter(one["regarding"]["name"] for one in events).values()) <= {1}


async def test_slow_network_that_stutters_and_breaks_costs_no_pod(real_server: Server, tmp_path: Path) -> None:
    chance = random.Random(5)

    async def slow(_: FaultyProxy, __: web.Request) -> bool:
        await asyncio.sleep(chance.uniform(0.1, 0.4))
        return True

    pods = [pod(f"p{number}", requests={"cpu": "200m"}) for number in range(2 * A_NODE)]
    async with proxied(real_server, tmp_path, FaultyProxy) as (proxy, _):
        proxy.before = slow
        async with network(proxy.port, tmp_path) as (between, kubeconfig), watched(kubeconfig) as scheduler:
            between.stutters = True
            await real_server.load(node("n0"), node("n1"), *pods)
            await real_server.placed()
            between.stutters = False
            proxy.before = None
            await scheduler.holds_what_is_listed(real_server, DEADLINE)
        assert between.broken
    await each_is_bound_once(real_server, 2)


async def test_history_that_is_compacted_between_pages_costs_no_object(
    real_server: Server, control_plane: ControlPlane, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("policysched.kube.reflector.FIRST_PAGE", 10)
    asked: list[str] = []

    async def compact(_: FaultyProxy, request: web.Request) -> bool:
        if request.path == "/api/v1/pods" and "limit" in request.query:
            asked.append("next" if "continue" in request.query else request.query["limit"])
            if asked == ["10", "next"]:
                await real_server.delete("Pod", "p0")
                await asyncio.to_thread(control_plane.expire)
        return True

    await real_server.load(*(pod(f"p{number}", requests={"cpu": "200m"}) for number in range(A_NODE + 1)))
    async with proxied(real_server, tmp_path, FaultyProxy) as (proxy, kubeconfig):
        proxy.before = compact
        async with watched(kubeconfig) as scheduler:
            await real_server.load(node("n0"))
            await real_server.placed()
            await scheduler.holds_what_is_listed(real_server, DEADLINE)
    assert asked[:3] == ["10", "next", "0"]
    await each_is_bound_once(real_server, 1)
