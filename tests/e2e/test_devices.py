"""Pods with resource claims, from their creation to their devices: named claims, templates, extended resources."""

from __future__ import annotations

import asyncio
import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from tests.e2e.objects import NO_HELP, Json, no_preemption, node, pod
from tests.e2e.proxy import Proxy, proxied
from tests.e2e.schedulers import InProcess, in_process
from tests.e2e.server import Server
from tests.e2e.waiting import until, until_true

DRIVER = "gpu.example.com"
FINALIZER = "resource.kubernetes.io/delete-protection"
V1 = "resource.k8s.io/v1"
SLOWER_THAN_A_BACKOFF = 1.5
"""Units: seconds."""


def device_class(**spec: Any) -> Json:
    """A class of all devices of the driver."""
    selectors = [{"cel": {"expression": f'device.driver == "{DRIVER}"'}}]
    return {
        "apiVersion": V1,
        "kind": "DeviceClass",
        "metadata": {"name": "gpu"},
        "spec": {"selectors": selectors} | spec,
    }


def resource_slice(on: str, count: int = 1, **fields: Any) -> Json:
    """The devices of a node."""
    pool = {"name": on, "generation": 1, "resourceSliceCount": 1}
    devices = [{"name": f"d{index}"} | fields for index in range(count)]
    spec = {"driver": DRIVER, "nodeName": on, "pool": pool, "devices": devices}
    return {"apiVersion": V1, "kind": "ResourceSlice", "metadata": {"name": f"slice-{on}"}, "spec": spec}


def asking(count: int = 1) -> Json:
    """The spec of a claim."""
    return {"devices": {"requests": [{"name": "gpus", "exactly": {"deviceClassName": "gpu", "count": count}}]}}


def claim(name: str, count: int = 1) -> Json:
    """A claim for some devices."""
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": V1, "kind": "ResourceClaim", "metadata": metadata, "spec": asking(count)}


def template(count: int = 1) -> Json:
    """A template of such claims."""
    metadata = {"name": "one", "namespace": "default"}
    return {"apiVersion": V1, "kind": "ResourceClaimTemplate", "metadata": metadata, "spec": {"spec": asking(count)}}


def claiming(name: str, *claims: str, **spec: Any) -> Json:
    """A pod that names claims."""
    return pod(name, resourceClaims=[{"name": one, "resourceClaimName": one} for one in claims], **spec)


def templated(name: str) -> Json:
    """A pod with a claim of its own."""
    return pod(name, resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "one"}])


def devices(obj: Json) -> list[str]:
    """The devices of a claim."""
    results = ((obj.get("status") or {}).get("allocation") or {"devices": {"results": []}})["devices"]["results"]
    return [f"{one['pool']}/{one['device']}" for one in results]


def users(obj: Json) -> list[str]:
    """The pods that a claim is reserved for."""
    return [one["name"] for one in (obj.get("status") or {}).get("reservedFor", ())]


async def cluster(server: Server, counts: dict[str, int], **spec: Any) -> None:
    """Nodes with devices, and their class."""
    await server.load(*map(node, counts), device_class(**spec))
    await server.load(*(resource_slice(name, count) for name, count in counts.items() if count))


async def test_a_claim_is_allocated_reserved_and_given_back(server: Server, scheduler: InProcess) -> None:
    await cluster(server, {"n1": 1, "n2": 2})
    await server.load(claim("two", 2), claiming("first", "two"))
    assert await server.placed("first") == {"first": "n2"}
    held = await server.get("ResourceClaim", "two")
    assert devices(held) == ["n2/d0", "n2/d1"]
    assert users(held) == ["first"]
    assert held["metadata"]["finalizers"] == [FINALIZER]
    assert held["status"]["allocation"]["nodeSelector"]["nodeSelectorTerms"][0]["matchFields"][0]["values"] == ["n2"]
    assert held["status"]["allocation"]["allocationTimestamp"]
    await server.load(claim("more", 2), claiming("second", "more"))
    missing = f"0/2 nodes are available: 2 cannot allocate all claims. {no_preemption(2, 2, NO_HELP)}"
    await server.turned_away("second", missing)
    await server.delete("Pod", "first")
    assert await server.placed("second") == {"second": "n2"}
    freed = await until(lambda: server.get("ResourceClaim", "two"), lambda obj: not users(obj))
    assert devices(freed) == []


async def test_pods_share_a_claim(server: Server, scheduler: InProcess) -> None:
    await cluster(server, {"n1": 1, "n2": 1})
    names = [f"p{index}" for index in range(5)]
    await server.load(claim("shared"), *(claiming(name, "shared") for name in names))
    nodes = await server.placed(*names)
    assert len(set(nodes.values())) == 1
    held = await until(lambda: server.get("ResourceClaim", "shared"), lambda obj: len(users(obj)) == 5)
    assert sorted(users(held)) == names


async def test_a_claim_is_shared_by_256_pods_and_no_more(server: Server, scheduler: InProcess) -> None:
    await server.load(node("n1", cpu="64", extended={"pods": "300"}), device_class(), resource_slice("n1"))
    await server.load(claim("shared"), claiming("p0", "shared"))
    assert await server.placed("p0") == {"p0": "n1"}
    await server.load(*(claiming(f"p{index}", "shared", nodeName="n1") for index in range(1, 252)))
    pods = [one["metadata"] for one in await server.objects("Pod")]
    reserved = [{"resource": "pods", "name": one["name"], "uid": one["uid"]} for one in pods]
    await server.patch("ResourceClaim", "shared", {"status": {"reservedFor": reserved}}, "/status")
    last = [f"p{index}" for index in range(252, 256)]
    await server.load(*(claiming(name, "shared") for name in last))
    assert await server.placed(*last) == dict.fromkeys(last, "n1")
    await server.load(claiming("late", "shared"))
    refused = (
        'running PreBind plugin "DynamicResources": add reservation to claim default/shared: '
        'ResourceClaim.resource.k8s.io "shared" is invalid: '
        "status.reservedFor: Too many: 257: must have at most 256 items"
    )
    await until(lambda: server.events("late"), lambda events: any(one["note"] == refused for one in events))
    held = await server.get("ResourceClaim", "shared")
    assert sorted(users(held)) == sorted(f"p{index}" for index in range(256))
    assert devices(held) == ["n1/d0"]
    assert (await server.nodes_of())["late"] == ""
    await server.delete("Pod", "p7")
    assert await server.placed("late") == {"late": "n1"}
    held = await until(lambda: server.get("ResourceClaim", "shared"), lambda obj: "late" in users(obj))
    assert len(users(held)) == 256
    assert "p7" not in users(held)
    await server.load(claim("own"), claiming("other", "own"))  # the device is taken for good
    await until(lambda: server.events("other"), lambda events: any("cannot allocate" in one["note"] for one in events))


async def test_pods_of_a_template_get_a_claim_each_and_no_device_twice(server: Server, scheduler: InProcess) -> None:
    await cluster(server, {"n1": 3, "n2": 2, "n3": 0})
    names = [f"p{index}" for index in range(5)]
    await server.load(template(), *map(templated, names))
    nodes = await server.placed(*names)
    assert Counter(nodes.values()) == {"n1": 3, "n2": 2}
    claims = await server.objects("ResourceClaim")
    taken = Counter(one for obj in claims for one in devices(obj))
    assert taken == Counter(f"{name}/d{index}" for name, count in (("n1", 3), ("n2", 2)) for index in range(count))
    await server.load(templated("late"))
    await until(lambda: server.events("late"), lambda events: any("cannot allocate" in one["note"] for one in events))
    await server.delete("Pod", "p0")
    assert (await server.placed("late"))["late"] == nodes["p0"]


async def test_a_pod_waits_for_its_claim_its_class_and_its_devices(server: Server, scheduler: InProcess) -> None:
    await server.load(node("n1"), claiming("web", "late"), node("n2"))
    await server.load(pod("plain"))
    await server.placed("plain")
    assert (await server.nodes_of())["web"] == ""
    await server.load(claim("late"))
    missing = "request gpus: device class gpu does not exist"
    await server.turned_away("web", f"0/2 nodes are available: {missing}. {no_preemption(2, 2)}")
    await server.load(device_class())
    missing = "2 cannot allocate all claims"
    await until(lambda: server.events("web"), lambda events: any(missing in one["note"] for one in events))
    await server.load(resource_slice("n2"))
    assert await server.placed("web") == {"web": "n2"}


async def test_an_extended_resource_is_had_of_devices(server: Server, scheduler: InProcess) -> None:
    await cluster(server, {"n1": 0, "n2": 2}, extendedResourceName="example.com/gpu")
    await server.load(pod("web", requests={"example.com/gpu": "2"}))
    assert await server.placed("web") == {"web": "n2"}
    web = await server.get("Pod", "web")
    told = web["status"]["extendedResourceClaimStatus"]
    held = await server.get("ResourceClaim", told["resourceClaimName"])
    assert devices(held) == ["n2/d0", "n2/d1"]
    assert users(held) == ["web"]
    assert held["metadata"]["annotations"] == {"resource.kubernetes.io/extended-resource-claim": "true"}
    [mapping] = told["requestMappings"]
    assert mapping == {"containerName": "c", "resourceName": "example.com/gpu", "requestName": "container-0-request-0"}


async def test_a_node_with_a_device_plugin_needs_no_claim(server: Server, scheduler: InProcess) -> None:
    await server.load(
        node("n1", extended={"example.com/gpu": "2"}), device_class(extendedResourceName="example.com/gpu")
    )
    await server.load(pod("web", requests={"example.com/gpu": "2"}))
    assert await server.placed("web") == {"web": "n1"}
    assert await server.objects("ResourceClaim") == []


async def test_binding_waits_until_the_device_is_ready(server: Server, scheduler: InProcess) -> None:
    await server.load(node("n1"), device_class())
    await server.load(
        resource_slice("n1", bindingConditions=["Attached"], bindingFailureConditions=["Failed"], bindsToNode=True)
    )
    await server.load(claim("slow"), claiming("web", "slow"))
    held = await until(lambda: server.get("ResourceClaim", "slow"), users)
    pending = await until(lambda: server.events("web"), bool)
    assert ("BindingConditionsPending", "waiting for binding conditions for device on node n1") in [
        (one["reason"], one["note"]) for one in pending
    ]
    assert (await server.nodes_of())["web"] == ""
    condition = {
        "type": "Attached", "status": "True", "reason": "Done", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    said = {"driver": DRIVER, "pool": "n1", "device": "d0", "conditions": [condition]}
    await server.patch("ResourceClaim", "slow", {"status": {"devices": [said]}}, "/status")
    assert devices(held) == ["n1/d0"]
    assert await server.placed("web") == {"web": "n1"}


async def test_a_device_that_fails_is_given_up_for_another(server: Server, scheduler: InProcess) -> None:
    await server.load(node("n1"), device_class())
    await server.load(resource_slice("n1", bindingConditions=["Attached"], bindingFailureConditions=["Failed"]))
    await server.load(claim("slow"), claiming("web", "slow"))
    held = await until(lambda: server.get("ResourceClaim", "slow"), users)
    condition = {
        "type": "Failed", "status": "True", "reason": "Broken", "message": "no power",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    said = {"driver": DRIVER, "pool": "n1", "device": "d0", "conditions": [condition]}
    await server.load(node("n2"))
    await server.load(resource_slice("n2"))
    await server.delete("ResourceSlice", "slice-n1")
    await server.patch("ResourceClaim", "slow", {"status": {"devices": [said]}}, "/status")
    assert devices(held) == ["n1/d0"]
    assert await server.placed("web") == {"web": "n2"}
    assert devices(await server.get("ResourceClaim", "slow")) == ["n2/d0"]


VERBATIM = (
    b'{"b":null,"a":[null,{"c":null}]}',
    b'{"a":"\\ud800","\\udfff":"\\ud83d\\ude00"}',
    b'{"a":[0.10000000000000000555,1e-400,1E2]}',
    b'{"a":' + b"[" * 90 + b"]" * 90 + b"}",
)


@pytest.mark.controlplane
async def test_drivers_are_told_what_the_claim_says_to_the_byte(real_server: Server) -> None:
    await cluster(real_server, {"n1": len(VERBATIM)})
    async with in_process(real_server.kubeconfig):
        for number, parameters in enumerate(VERBATIM):
            config = b'[{"opaque":{"driver":"%b","parameters":%b}}]' % (DRIVER.encode(), parameters)
            made = claim(f"c{number}")
            made["spec"]["devices"]["config"] = "here"
            body = json.dumps(made).encode().replace(b'"here"', config)
            path = f"{real_server.url}/apis/{V1}/namespaces/default/resourceclaims"
            async with real_server.session.post(
                path, data=body, headers={"Content-Type": "application/json"}
            ) as answer:
                assert answer.status == 201, await answer.text()
            await real_server.load(claiming(f"p{number}", f"c{number}"))
            assert await real_server.placed(f"p{number}") == {f"p{number}": "n1"}
            async with real_server.session.get(f"{path}/c{number}") as answer:
                assert (await answer.read()).count(b'"parameters":' + parameters) == 2  # as asked, and as allocated


class SlowToDeallocate(Proxy):
    """The way to a server that takes its time to take a claim's devices back."""

    asked = done = 0

    async def _answer_or_strike(self, request: web.Request) -> web.StreamResponse:
        takes_back = request.method == "PATCH" and request.path.endswith("/resourceclaims/c/status")
        if not takes_back or b'"allocation":null' not in await request.read():
            return await self.forward(request)
        self.asked += 1
        await asyncio.sleep(SLOWER_THAN_A_BACKOFF)
        answer = await self.forward(request)
        self.done += 1
        return answer


async def test_a_pod_is_not_bound_with_a_device_that_is_being_taken_back_from_it(
    server: Server, tmp_path: Path
) -> None:
    await cluster(server, {"n1": 1})
    await server.load(node("n2"), pod("filler", nodeName="n1", requests={"cpu": "4"}))
    await server.load(claim("c"), claiming("p", "c", requests={"cpu": "2"}))
    uid = (await server.get("Pod", "p"))["metadata"]["uid"]
    await server.patch("ResourceClaim", "c", {"metadata": {"finalizers": [FINALIZER]}})
    terms = [{"matchFields": [{"key": "metadata.name", "operator": "In", "values": ["n1"]}]}]
    results = [{"request": "gpus", "driver": DRIVER, "pool": "n1", "device": "d0"}]
    allocation = {"devices": {"results": results}, "nodeSelector": {"nodeSelectorTerms": terms}}
    reserved = [{"resource": "pods", "name": "p", "uid": uid}]
    await server.patch("ResourceClaim", "c", {"status": {"allocation": allocation, "reservedFor": reserved}}, "/status")
    async with proxied(server, tmp_path, SlowToDeallocate) as (proxy, kubeconfig), in_process(kubeconfig):
        await until_true(lambda: proxy.asked == 1)
        await server.delete("Pod", "filler")
        assert await server.placed("p") == {"p": "n1"}
        assert proxy.done == 1
        held = await server.get("ResourceClaim", "c")
        assert (devices(held), users(held)) == (["n1/d0"], ["p"])


class SlowToAllocate(Proxy):
    """The way to a server that takes its time over the first claim's allocation, whether its client waits or not."""

    asked = 0

    async def _answer_or_strike(self, request: web.Request) -> web.StreamResponse:
        if request.method != "PATCH" or not request.path.endswith("/resourceclaims/first/status") or self.asked:
            return await self.forward(request)
        self.asked += 1
        await request.read()

        async def later() -> web.StreamResponse:
            await asyncio.sleep(SLOWER_THAN_A_BACKOFF)
            return await self.forward(request)

        return await asyncio.shield(asyncio.create_task(later()))


async def test_a_device_whose_allocation_is_being_written_goes_to_nobody_else_as_its_pod_is_preempted(
    server: Server, tmp_path: Path
) -> None:
    await cluster(server, {"n1": 1})
    high = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass", "metadata": {"name": "high"}, "value": 9}
    await server.load(high, claim("first"), claim("second"))
    async with proxied(server, tmp_path, SlowToAllocate) as (proxy, kubeconfig), in_process(kubeconfig) as scheduler:
        await server.load(claiming("first", "first", requests={"cpu": "3"}))
        await until_true(lambda: proxy.asked == 1)
        await server.load(claiming("second", "second"), pod("high", requests={"cpu": "3"}, priorityClassName="high"))
        assert await server.placed("high") == {"high": "n1"}
        assert scheduler.saying('preempted victim "default/first"')
        await until(lambda: server.events("first"), lambda told: any("Insufficient cpu" in one["note"] for one in told))
        claims = [await server.get("ResourceClaim", name) for name in ("first", "second")]
        assert Counter(one for obj in claims for one in devices(obj)) == {"n1/d0": 1}
