"""Pods that are spread: by their own constraints, and by their workload where they state none."""

from __future__ import annotations

from collections import Counter

import pytest

from tests.e2e.conftest import Running
from tests.e2e.objects import Json, deployment, node, pod, unfit
from tests.e2e.schedulers import InProcess
from tests.e2e.server import Server
from tests.e2e.waiting import until

ZONE = "topology.kubernetes.io/zone"
UNEVEN = "node(s) didn't match pod topology spread constraints"
WEB = {"app": "web"}


def zoned(name: str, cpu: str = "4") -> Json:
    return node(name, labels={ZONE: name[0]}, cpu=cpu)


def over(key: str, action: str = "DoNotSchedule") -> Json:
    selector = {"matchLabels": WEB}
    return {"maxSkew": 1, "topologyKey": key, "whenUnsatisfiable": action, "labelSelector": selector}


def web(name: str, *constraints: Json, cpu: str = "1") -> Json:
    return pod(name, labels=WEB, requests={"cpu": cpu}, topologySpreadConstraints=list(constraints))


async def test_pods_are_spread_evenly_over_zones_of_any_size(server: Server, scheduler: InProcess) -> None:
    await server.load(zoned("a1"), zoned("b1"), zoned("b2"), zoned("c1", "64"), zoned("c2", "64"))
    names = [f"web-{number}" for number in range(9)]
    await server.load(*(web(name, over(ZONE), cpu="100m") for name in names))
    placed = await server.placed(*names)
    assert Counter(on[0] for on in placed.values()) == {"a": 3, "b": 3, "c": 3}


async def test_a_pod_waits_where_only_full_domains_have_room(server: Server, scheduler: InProcess) -> None:
    await server.load(zoned("a1"), zoned("b1", "500m"), web("one", over(ZONE)))
    assert await server.placed("one") == {"one": "a1"}
    await server.load(web("two", over(ZONE)))
    await server.turned_away("two", unfit(2, "1 Insufficient cpu", f"1 {UNEVEN}", hopeless=1))
    await server.delete("Pod", "one")
    assert await server.placed("two") == {"two": "a1"}


async def test_a_pod_waits_until_a_node_has_the_label(server: Server, scheduler: InProcess) -> None:
    await server.load(node("n1"), node("n2"), web("one", over("rack")))
    await server.turned_away("one", unfit(2, f"2 {UNEVEN} (missing required label)"))
    await server.patch("Node", "n2", {"metadata": {"labels": {"rack": "r"}}})
    assert await server.placed("one") == {"one": "n2"}


async def test_domains_that_are_missing_keep_pods_waiting_until_one_comes(server: Server, scheduler: InProcess) -> None:
    constraint = over(ZONE) | {"minDomains": 3}
    await server.load(zoned("a1"), zoned("b1"), web("one", constraint), web("two", constraint))
    assert set((await server.placed("one", "two")).values()) == {"a1", "b1"}
    await server.load(web("three", constraint))
    await server.turned_away("three", unfit(2, f"2 {UNEVEN}"))
    await server.load(zoned("c1"))
    assert await server.placed("three") == {"three": "c1"}


async def test_replicas_are_spread_though_one_node_is_much_emptier(server: Server, scheduler: InProcess) -> None:
    await server.load(node("n1", cpu="64"), *(node(f"n{number}") for number in (2, 3, 4)))
    await server.load(deployment("web", 4, requests={"cpu": "500m"}))
    nodes = await until(server.nodes_of, lambda found: len(found) == 4 and all(found.values()))
    assert set(nodes.values()) == {"n1", "n2", "n3", "n4"}


@pytest.mark.parametrize("selector", [WEB, {"app": "other"}])
async def test_pods_of_a_service_are_spread(server: Server, running: Running, selector: Json) -> None:
    await server.load(node("n1", cpu="64"), *(node(f"n{number}") for number in (2, 3, 4)))
    metadata = {"name": "web", "namespace": "default"}
    spec = {"selector": selector, "ports": [{"port": 80}]}
    await server.load({"apiVersion": "v1", "kind": "Service", "metadata": metadata, "spec": spec})
    await server.load(pod("first", labels=WEB, requests={"cpu": "500m"}, nodeName="n1"))
    async with running():
        for number in range(3):
            await server.load(pod(f"web-{number}", labels=WEB, requests={"cpu": "500m"}))
            await server.placed()
    spread = {"n1", "n2", "n3", "n4"} if selector == WEB else {"n1"}
    assert set((await server.nodes_of()).values()) == spread
