"""Objects that no API server should give, and some do: each is reported and left out, and the rest goes on."""

from __future__ import annotations

import pytest

from policysched.sandbox import Sandbox
from tests.e2e.conftest import Running
from tests.e2e.objects import Json, node, pod, unfit
from tests.e2e.schedulers import InProcess
from tests.e2e.server import Server
from tests.e2e.waiting import until


def overwrite(sandbox: Sandbox, kind: str, obj: Json) -> None:
    """Store an object as it stands, which no request can do."""
    key, metadata = {"Node": "nodes", "Pod": "pods"}[kind], obj["metadata"]
    store = sandbox._backend.store
    old = store.get(key, metadata.get("namespace", ""), metadata["name"])
    assert old is not None
    store.write(key, obj | {"metadata": old.object["metadata"] | metadata})


def spoil_pod(sandbox: Sandbox, name: str, scheduler: str = "policysched") -> None:
    """Make a pod that asks for a quantity that is none."""
    sandbox.load([pod(name, scheduler="nobody")])
    spoiled = pod(name, scheduler=scheduler, requests={"cpu": "one core"})
    overwrite(sandbox, "Pod", spoiled | {"status": {"phase": "Pending"}})


async def test_malformed_node_is_left_out_until_it_is_mended(
    server: Server, sandbox: Sandbox, scheduler: InProcess
) -> None:
    sandbox.load([node("n1")])
    overwrite(sandbox, "Node", node("n1", cpu="lots"))
    await server.load(node("n2"), *(pod(f"p{number}", requests={"cpu": "2"}) for number in range(3)))
    await until(server.nodes_of, lambda nodes: sorted(nodes.values()) == ["", "n2", "n2"])
    left = next(name for name, at in (await server.nodes_of()).items() if not at)
    await server.turned_away(left, unfit(1, "1 Insufficient cpu"))
    (line,) = scheduler.saying('node "n1"')
    assert line.startswith("ERROR left out an object that cannot be used: node")
    assert "status.allocatable.cpu" in line
    assert "quantities must match the regular expression" in line
    await server.patch("Node", "n1", {"status": {"allocatable": {"cpu": "2"}, "capacity": {"cpu": "2"}}}, "/status")
    assert await server.placed(left) == {left: "n1"}


async def test_fifty_malformed_nodes_of_five_thousand_cost_no_other_one(
    server: Server, sandbox: Sandbox, running: Running
) -> None:
    """They are in the first list: each is named, the other 4,950 take pods, and nothing is bound to the fifty."""
    store = sandbox._backend.store
    for number in range(5000):
        store.write("nodes", node(f"n{number}", cpu="1" if number % 100 else "lots"))
    async with running("policysched") as scheduler:
        await server.load(*(pod(f"p{number}", requests={"cpu": "1"}) for number in range(100)))
        placed = await server.placed()
        assert all(int(name.removeprefix("n")) % 100 for name in placed.values())
        assert len(set(placed.values())) == 100
        left_out = await scheduler.said("left out an object that cannot be used: node", times=50)
        assert {int(line.split('"n')[1].split('"')[0]) for line in left_out} == set(range(0, 5000, 100))
        await scheduler.said("listed nodes: 4950 object(s)")
        await server.load(pod("late", requests={"cpu": "2"}))
        await server.turned_away("late", unfit(4950, "4950 Insufficient cpu", hopeless=4950))


async def test_node_that_becomes_malformed_takes_no_more_pods(
    server: Server, sandbox: Sandbox, scheduler: InProcess
) -> None:
    await server.load(node("n1"), pod("before"))
    await server.placed("before")
    overwrite(sandbox, "Node", node("n1", cpu="lots"))
    await scheduler.said('node "n1"')
    await server.load(pod("after"))
    await server.turned_away("after", "no nodes available to schedule pods")
    await server.patch("Node", "n1", {"status": {"allocatable": {"cpu": "4"}, "capacity": {"cpu": "4"}}}, "/status")
    await server.placed("after")


@pytest.mark.parametrize("at_start", [False, True])
async def test_malformed_pod_is_told_so(server: Server, sandbox: Sandbox, running: Running, at_start: bool) -> None:
    await server.load(node("n1"))
    if at_start:
        spoil_pod(sandbox, "web")
    async with running() as scheduler:
        if not at_start:
            spoil_pod(sandbox, "web")
        events = await until(lambda: server.events("web"), bool)
        assert [(one["type"], one["reason"]) for one in events] == [("Warning", "FailedScheduling")]
        assert "spec.containers[0].resources.requests.cpu" in events[0]["note"]
        assert "quantities must match the regular expression" in events[0]["note"]
        await server.load(pod("next"))
        await server.placed("next")
        assert (await server.get("Pod", "web"))["spec"].get("nodeName", "") == ""
        assert len(scheduler.saying('pod "default/web"')) == 1


async def test_malformed_pod_of_another_scheduler_gets_no_event(
    server: Server, sandbox: Sandbox, scheduler: InProcess
) -> None:
    spoil_pod(sandbox, "theirs", "default-scheduler")
    await scheduler.said('pod "default/theirs"')
    await server.load(node("n1"), pod("ours"))
    await until(lambda: server.events("ours"), bool)
    assert await server.events("theirs") == []


async def test_malformed_pod_that_is_deleted_is_forgotten(
    server: Server, sandbox: Sandbox, scheduler: InProcess
) -> None:
    spoil_pod(sandbox, "web")
    await scheduler.said('pod "default/web"')
    await server.delete("Pod", "web")
    await server.load(node("n1"), pod("web"))
    await server.placed("web")
