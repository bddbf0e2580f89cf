"""Devices as Kubernetes' integration tests of DRA have them: alternatives, devices of several nodes, broken pools.

Source: test/integration/dra of v1.36.5 (prioritizedlist.go, partitionable_devices.go, core.go, uses_all_resources.go,
binding_conditions.go), what of it needs no kubelet.
"""

from __future__ import annotations

import json
from collections import Counter
from pathlib import Path

import pytest

from tests.e2e.conftest import Spawning
from tests.e2e.objects import NO_HELP, Json, no_preemption, node
from tests.e2e.schedulers import InProcess
from tests.e2e.server import Server
from tests.e2e.test_devices import DRIVER, V1, claim, claiming, cluster, device_class, devices, resource_slice
from tests.e2e.waiting import until

NODES = ("n1", "n2", "n3", "n4")


def everywhere(name: str, *made: Json) -> Json:
    """A slice whose devices say themselves on which nodes they are."""
    pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": DRIVER, "pool": pool, "perDeviceNodeSelection": True, "devices": list(made)}
    return {"apiVersion": V1, "kind": "ResourceSlice", "metadata": {"name": name}, "spec": spec}


def on_hosts(*names: str) -> Json:
    """A selector of nodes by name."""
    expression = {"key": "kubernetes.io/hostname", "operator": "In", "values": list(names)}
    return {"nodeSelectorTerms": [{"matchExpressions": [expression]}]}


def first_of(name: str, *nodes: str) -> Json:
    """A claim for a device of the first of these nodes that serves."""
    made = claim(name)
    made["spec"]["devices"]["requests"] = [
        {
            "name": "gpus",
            "firstAvailable": [
                {
                    "name": f"on-{one}",
                    "deviceClassName": "gpu",
                    "selectors": [{"cel": {"expression": f'device.attributes["{DRIVER}"].node == "{one}"'}}],
                }
                for one in nodes
            ],
        }
    ]
    return made


async def test_the_first_alternative_that_some_node_has_decides(server: Server, scheduler: InProcess) -> None:
    await server.load(*map(node, NODES), device_class(), first_of("nowhere", "n8", "n9"), claiming("web", "nowhere"))
    missing = f"0/4 nodes are available: 4 cannot allocate all claims. {no_preemption(4, 4, NO_HELP)}"
    await server.turned_away("web", missing)
    await server.load(*(resource_slice(name, 2, attributes={"node": {"string": name}}) for name in NODES))
    for order in (("n3", "n1", "n4", "n2"), ("n8", "n2", "n3")):
        name = f"from-{order[0]}"
        await server.load(first_of(name, *order), claiming(name, name))
        wanted = next(one for one in order if one in NODES)
        assert await server.placed(name) == {name: wanted}
        held = await server.get("ResourceClaim", name)
        assert held["status"]["allocation"]["devices"]["results"][0]["request"] == f"gpus/on-{wanted}"


async def test_devices_of_one_slice_are_on_nodes_of_their_own(server: Server, scheduler: InProcess) -> None:
    await server.load(*map(node, NODES), device_class())
    await server.load(everywhere("all", *({"name": f"for-{name}", "nodeName": name} for name in NODES)))
    names = [f"p{index}" for index in range(len(NODES))]
    await server.load(*map(claim, names), *(claiming(name, name) for name in names))
    nodes = await server.placed(*names)
    assert sorted(nodes.values()) == sorted(NODES)
    for name in names:
        assert devices(await server.get("ResourceClaim", name)) == [f"all/for-{nodes[name]}"]


async def test_pods_of_one_claim_go_to_all_nodes_of_its_device(server: Server, scheduler: InProcess) -> None:
    await server.load(*map(node, (*NODES, "n5", "n6")), device_class(), claim("shared"))
    await server.load(everywhere("all", {"name": "large", "nodeSelector": on_hosts(*NODES)}))
    labels = {"app": "multi-host"}
    apart = {"labelSelector": {"matchLabels": labels}, "topologyKey": "kubernetes.io/hostname"}
    affinity = {"podAntiAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [apart]}}
    names = [f"p{index}" for index in range(len(NODES))]
    await server.load(*(claiming(name, "shared", labels=labels, affinity=affinity) for name in names))
    assert sorted((await server.placed(*names)).values()) == sorted(NODES)


def broken(on: str) -> list[Json]:
    """Two slices of a pool with a device that both have."""
    made = []
    for index in range(2):
        one = resource_slice(on)
        one["metadata"]["name"] += f"-{index}"
        one["spec"]["pool"]["resourceSliceCount"] = 2
        made.append(one)
    return made


@pytest.mark.parametrize(("invalid", "valid"), [(1, 1), (1, 0), (4, 0)])
async def test_an_invalid_pool_is_left_out(server: Server, scheduler: InProcess, invalid: int, valid: int) -> None:
    await server.load(*map(node, NODES), device_class(), claim("one"))
    await server.load(*(one for name in NODES[:invalid] for one in broken(name)))
    await server.load(*(resource_slice(name) for name in NODES[invalid : invalid + valid]))
    await server.load(claiming("web", "one"))
    if valid:
        assert await server.placed("web") == {"web": NODES[invalid]}
        return
    rest = f", {4 - invalid} cannot allocate all claims" if invalid < 4 else ""
    reasons = f"{invalid} invalid resource pools were encountered{rest}"
    missing = f"0/4 nodes are available: {reasons}. {no_preemption(4, 4, NO_HELP)}"
    await server.turned_away("web", missing)


async def test_every_device_of_a_cluster_is_used_and_none_twice(server: Server, scheduler: InProcess) -> None:
    await cluster(server, dict.fromkeys(NODES, 20))
    names = [f"p{index:02}" for index in range(20 * len(NODES))]
    await server.load(*map(claim, names))
    await server.load(*(claiming(name, name) for name in names))
    nodes = await server.placed(*names)
    assert Counter(nodes.values()) == dict.fromkeys(NODES, 20)
    taken = Counter(one for obj in await server.objects("ResourceClaim") for one in devices(obj))
    assert taken == Counter(f"{name}/d{index}" for name in NODES for index in range(20))


async def test_a_device_that_is_not_ready_in_time_is_given_up(
    server: Server, spawning: Spawning, tmp_path: Path
) -> None:
    config = tmp_path / "config.yaml"
    arguments = {"name": "DynamicResources", "args": {"bindingTimeout": "2s"}}
    head = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    connection = {"clientConnection": {"kubeconfig": str(server.kubeconfig)}, "leaderElection": {"leaderElect": False}}
    profile = {"schedulerName": "policysched", "pluginConfig": [arguments]}
    config.write_text(json.dumps({**head, **connection, "profiles": [profile]}), "utf-8")
    await server.load(node("n1"), node("n2"), device_class(), claim("slow"))
    await server.load(resource_slice("n1", bindingConditions=["Attached"], bindingFailureConditions=["Failed"]))
    async with spawning(f"--config={config}"):
        await server.load(claiming("web", "slow"))
        held = await until(lambda: server.get("ResourceClaim", "slow"), devices)
        assert devices(held) == ["n1/d0"]
        late = "binding timeout"
        await until(lambda: server.events("web"), lambda events: any(late in one["note"] for one in events))
        assert (await server.nodes_of())["web"] == ""
        await server.load(resource_slice("n2"))
        await server.delete("ResourceSlice", "slice-n1")
        assert await server.placed("web") == {"web": "n2"}
    assert devices(await server.get("ResourceClaim", "slow")) == ["n2/d0"]


async def test_a_device_that_failed_and_is_tainted_is_given_up(server: Server, scheduler: InProcess) -> None:
    await server.load(node("n1"), node("n2"), device_class(), claim("slow"))
    await server.load(resource_slice("n1", bindingConditions=["Attached"], bindingFailureConditions=["Failed"]))
    await server.load(claiming("web", "slow"))
    await until(lambda: server.get("ResourceClaim", "slow"), devices)
    tainted = resource_slice("n1", bindingConditions=["Attached"], bindingFailureConditions=["Failed"])["spec"][
        "devices"
    ]
    tainted[0]["taints"] = [{"key": "example.com/failed", "value": "true", "effect": "NoSchedule"}]
    await server.patch("ResourceSlice", "slice-n1", {"spec": {"devices": tainted}})
    await server.load(resource_slice("n2"))
    condition = {
        "type": "Failed", "status": "True", "reason": "Broken", "message": "no power",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    said = {"driver": DRIVER, "pool": "n1", "device": "d0", "conditions": [condition]}
    await server.patch("ResourceClaim", "slow", {"status": {"devices": [said]}}, "/status")
    assert await server.placed("web") == {"web": "n2"}
    held = await server.get("ResourceClaim", "slow")
    assert devices(held) == ["n2/d0"]
    assert not held["status"].get("devices")
