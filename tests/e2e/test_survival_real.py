"""Trouble of a real control plane while pods are bound: none is lost, none is counted twice, none stays counted.

After each trouble the scheduler's state must be what a fresh list of the server gives, pod by pod and node by node.
"""

from __future__ import annotations

import asyncio
import signal
from collections import Counter
from pathlib import Path

import pytest

from tests.controlplane.plane import ControlPlane
from tests.e2e.holding import Watched, watched
from tests.e2e.objects import Json, node, pod, unfit
from tests.e2e.server import Server
from tests.e2e.test_permissions import POLICIES, SCHEDULING, rule
from tests.e2e.waiting import until_true

pytestmark = pytest.mark.controlplane

A_NODE = 20
"""How many of the pods fill a node."""
PATIENCE = 50.0
"""How long the pauses of a scheduler may take that found no server for a while. Units: seconds."""


def nodes(count: int) -> list[Json]:
    return [node(f"n{number:02}") for number in range(count)]


def pods(first: int, end: int) -> list[Json]:
    return [pod(f"p{number:03}", requests={"cpu": "200m"}) for number in range(first, end)]


async def no_node_is_overfull(server: Server) -> Counter[str]:
    """Check that no node holds more than it can; give how many pods each has."""
    counts = Counter((await server.nodes_of()).values())
    assert max(counts.values()) <= A_NODE, counts
    return counts


async def announced(server: Server) -> Counter[str]:
    """Count each pod's Scheduled events."""
    return Counter(one["regarding"]["name"] for one in await server.objects("Event") if one["reason"] == "Scheduled")


async def test_server_that_is_away_for_ten_seconds_costs_no_pod(
    real_server: Server, control_plane: ControlPlane
) -> None:
    await real_server.load(*nodes(15), *pods(0, 300))
    async with watched(real_server.kubeconfig) as scheduler:
        await until_true(lambda: scheduler.confirmed() >= 50)
        await asyncio.to_thread(control_plane.stop_apiserver, signal.SIGKILL)
        assert scheduler.confirmed() < 300
        await asyncio.sleep(10)
        await asyncio.to_thread(control_plane.start_apiserver)
        assert len(await real_server.placed(seconds=PATIENCE)) == 300
        await scheduler.holds_what_is_listed(real_server, PATIENCE)
    assert scheduler.saying("could not bind")
    assert set((await no_node_is_overfull(real_server)).values()) == {A_NODE}
