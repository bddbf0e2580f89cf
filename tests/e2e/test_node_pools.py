"""`addedAffinity` of a profile: pods and victims are on a part of the nodes, and an empty part is reported."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.e2e.objects import NO_CLAIMS, Json, node
from tests.e2e.schedulers import spawned
from tests.e2e.server import Server
from tests.e2e.test_configuration import File
from tests.e2e.test_preemption import of, priority_class
from tests.e2e.waiting import until

POOL = "policysched.io/pool"
OUTSIDE = "node(s) didn't match scheduler-enforced node affinity"
EMPTY = "addedAffinity of NodeAffinity matches none of 2 nodes"


@pytest.fixture
def file(server: Server, tmp_path: Path) -> File:
    return File(tmp_path, server)


def in_pool(name: str) -> Json:
    """A profile for the nodes with the label of a pool."""
    terms = [{"matchExpressions": [{"key": POOL, "operator": "In", "values": [name]}]}]
    args = {"addedAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}}}
    return {"schedulerName": "policysched", "pluginConfig": [{"name": "NodeAffinity", "args": args}]}


async def test_pods_and_victims_are_only_on_the_nodes_of_the_pool(server: Server, file: File) -> None:
    file.write(in_pool("a"))
    await server.load(*map(priority_class, ("low", "mid", "high")))
    await server.load(node("n1", labels={POOL: "a"}), node("n2"))
    await server.load(of("low", "outside", nodeName="n2"), of("mid", "inside", nodeName="n1"))
    async with spawned("--config", str(file.path)) as scheduler:
        await server.load(of("high", "urgent"))
        assert await server.placed("urgent") == {"urgent": "n1"}
        assert set(await server.nodes_of()) == {"outside", "urgent"}
        await server.load(of("low", "late"))
        await server.turned_away(
            "late",
            f"0/2 nodes are available: 1 Insufficient cpu, 1 {OUTSIDE}. {NO_CLAIMS}preemption: "
            "0/2 nodes are available: 1 No preemption victims found for incoming pod, "
            "1 Preemption is not helpful for scheduling.",
        )
        assert not scheduler.saying(EMPTY)


async def test_a_pool_without_nodes_is_reported_until_a_node_joins(server: Server, file: File) -> None:
    file.write(in_pool("none"))
    await server.load(priority_class("low"), node("n1"), node("n2"))
    await server.load(of("low", "web"))
    async with spawned("--config", str(file.path)) as scheduler:
        assert scheduler.saying(f'configuration: profile "policysched": {EMPTY}')
        await server.turned_away(
            "web",
            f"0/2 nodes are available: 2 {OUTSIDE}. {NO_CLAIMS}preemption: 0/2 nodes are available: "
            "2 Preemption is not helpful for scheduling.",
        )
        await server.patch("Node", "n2", {"metadata": {"labels": {POOL: "none"}}})
        assert await server.placed("web") == {"web": "n2"}
        file.write(in_pool("absent"))
        await scheduler.said(EMPTY, times=2)


async def test_a_pool_is_not_reported_empty_before_there_are_nodes(server: Server, file: File) -> None:
    file.write(in_pool("a"))
    async with spawned("--config", str(file.path)) as scheduler:
        assert not scheduler.saying("addedAffinity")
        await server.load(priority_class("low"), node("n1", labels={POOL: "a"}), of("low", "web"))
        assert await server.placed("web") == {"web": "n1"}
        await until(server.nodes_of, lambda found: found == {"web": "n1"})
