"""Pods that need what is not ported: they stay pending, and the event names what is missing."""

from __future__ import annotations

from typing import Any

import pytest

from tests.e2e.objects import Json, no_preemption, node, pod
from tests.e2e.schedulers import InProcess
from tests.e2e.server import Server

UNPORTED: dict[str, tuple[dict[str, Any], str]] = {
    "resource claim": (
        {"resourceClaims": [{"name": "gpu", "resourceClaimName": "gpu"}]},
        "policysched does not support resource claims yet",
    ),
}


def turned_away(missing: str, nodes: int = 1) -> str:
    return f"0/{nodes} nodes are available: {missing}. {no_preemption(nodes, nodes)}"


@pytest.mark.parametrize(("spec", "missing"), UNPORTED.values(), ids=UNPORTED)
async def test_unported_demand_keeps_a_pod_pending_and_is_named(
    server: Server, scheduler: InProcess, spec: dict[str, Any], missing: str
) -> None:
    await server.load(node("n1"), pod("web", **spec))
    await server.turned_away("web", turned_away(missing))
    await server.load(node("n2"), pod("plain"))
    await server.placed("plain")
    assert (await server.nodes_of())["web"] == ""


async def test_extended_resource_of_a_device_class_waits_until_the_class_is_gone(
    server: Server, scheduler: InProcess
) -> None:
    device_class: Json = {
        "apiVersion": "resource.k8s.io/v1",
        "kind": "DeviceClass",
        "metadata": {"name": "gpus"},
        "spec": {"extendedResourceName": "example.com/gpu"},
    }
    await server.load(device_class, node("n1", extended={"example.com/gpu": "2", "example.com/fpga": "1"}))
    await server.load(pod("plain", requests={"example.com/fpga": "1"}))
    await server.placed("plain")
    await server.load(pod("web", requests={"example.com/gpu": "1"}))
    missing = "policysched does not support extended resources of a device class yet"
    await server.turned_away("web", turned_away(f"{missing}: example.com/gpu is one of device class gpus"))
    await server.delete("DeviceClass", "gpus")
    await server.placed("web")
