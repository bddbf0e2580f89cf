from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from policysched.sandbox import Sandbox, sandbox_nodes
from policysched.sandbox.controllers.nodes_and_cleanup import GarbageCollector
from tests.sandbox.bodies import PODS, binding, deployment, pod

if TYPE_CHECKING:
    from tests.sandbox.conftest import Api

DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"
SETS = "/apis/apps/v1/namespaces/default/replicasets"


async def names(api: Api, path: str) -> list[str]:
    return [item["metadata"]["name"] for item in (await api.get(path))[1]["items"]]


async def test_a_bound_pod_comes_to_run(api: Api, sandbox: Sandbox) -> None:
    sandbox.load(sandbox_nodes(1))
    await api.post(PODS, pod("web"))
    await api.post(f"{PODS}/web/binding", binding("web", "node-1"))
    found = await api.until(f"{PODS}/web", lambda found: found["status"]["phase"] == "Running")
    status = found["status"]
    assert status["podIP"].startswith("10.")
    assert status["startTime"]
    assert status["containerStatuses"][0]["ready"] is True
    true = {each["type"] for each in status["conditions"] if each["status"] == "True"}
    assert {"PodScheduled", "Initialized", "ContainersReady", "Ready"} <= true


async def test_a_pod_waits_for_its_node_to_join(api: Api, sandbox: Sandbox) -> None:
    sandbox.load([pod("web", nodeName="node-1")])
    await api.post(PODS, pod("other"))
    assert (await api.get(f"{PODS}/web"))[1]["status"]["phase"] == "Pending"
    sandbox.load(sandbox_nodes(1))
    await api.until(f"{PODS}/web", lambda found: found["status"]["phase"] == "Running")


async def test_an_unbound_pod_goes_at_once(quiet_api: Api) -> None:
    await quiet_api.post(PODS, pod("web"))
    assert (await quiet_api.delete(f"{PODS}/web"))[1]["kind"] == "Pod"
    assert (await quiet_api.get(f"{PODS}/web"))[0] == 404


async def test_a_bound_pod_terminates_first(quiet_api: Api) -> None:
    await quiet_api.post(PODS, pod("web", nodeName="n", terminationGracePeriodSeconds=9))
    _, found = await quiet_api.delete(f"{PODS}/web")
    assert found["metadata"]["deletionGracePeriodSeconds"] == 9
    assert found["metadata"]["deletionTimestamp"] > found["metadata"]["creationTimestamp"]
    _, found = await quiet_api.delete(f"{PODS}/web", {"gracePeriodSeconds": 3})
    assert found["metadata"]["deletionGracePeriodSeconds"] == 3
    await quiet_api.delete(f"{PODS}/web", {"gracePeriodSeconds": 0})
    assert (await quiet_api.get(f"{PODS}/web"))[0] == 404


async def test_the_kubelet_ends_terminating_pods(api: Api, sandbox: Sandbox) -> None:
    sandbox.load([*sandbox_nodes(1), pod("web", nodeName="node-1")])
    await api.delete(f"{PODS}/web")
    await api.until(PODS, lambda found: not found["items"])


@pytest.mark.parametrize(
    ("status", "key"),
    [("False", "node.kubernetes.io/not-ready"), ("Unknown", "node.kubernetes.io/unreachable")],
)
async def test_nodes_are_tainted_by_their_conditions(api: Api, sandbox: Sandbox, status: str, key: str) -> None:
    sandbox.load(sandbox_nodes(1))
    path = "/api/v1/nodes/node-1"
    for value, taints in ((status, [key]), ("True", [])):
        change = {"status": {"conditions": [{"type": "Ready", "status": value}]}}
        await api.strategic(f"{path}/status", change)
        await api.until(path, _tainted(taints))


def _tainted(keys: list[str]) -> Any:
    return lambda node: [taint["key"] for taint in node["spec"].get("taints", [])] == keys


async def test_cordoned_nodes_are_tainted(api: Api, sandbox: Sandbox) -> None:
    sandbox.load(sandbox_nodes(1))
    own = {"key": "a", "effect": "NoSchedule"}
    await api.merge("/api/v1/nodes/node-1", {"spec": {"unschedulable": True, "taints": [own]}})
    await api.until("/api/v1/nodes/node-1", _tainted(["a", "node.kubernetes.io/unschedulable"]))
    await api.merge("/api/v1/nodes/node-1", {"spec": {"unschedulable": None}})
    await api.until("/api/v1/nodes/node-1", _tainted(["a"]))


async def test_a_node_without_conditions_becomes_ready(api: Api) -> None:
    await api.post("/api/v1/nodes", {"metadata": {"name": "n"}})
    found = await api.until("/api/v1/nodes/n", lambda node: "conditions" in node["status"])
    assert found["status"]["conditions"][0]["type"] == "Ready"


async def test_a_deployment_makes_and_replaces_pods(api: Api, sandbox: Sandbox) -> None:
    sandbox.load(sandbox_nodes(1))
    await api.post(DEPLOYMENTS, deployment("d", 3))
    found = await api.until(PODS, lambda found: len(found["items"]) == 3)
    first = found["items"][0]
    owner = first["metadata"]["ownerReferences"][0]
    assert (owner["kind"], owner["controller"]) == ("ReplicaSet", True)
    assert first["metadata"]["labels"]["pod-template-hash"] == owner["name"].removeprefix("d-")
    name = first["metadata"]["name"]
    await api.delete(f"{PODS}/{name}")
    found = await api.until(PODS, lambda found: len(found["items"]) == 3)
    assert name not in [item["metadata"]["name"] for item in found["items"]]


async def test_a_deployment_reports_what_is_available(api: Api, sandbox: Sandbox) -> None:
    sandbox.load(sandbox_nodes(1))
    await api.post(DEPLOYMENTS, deployment("d", 2))
    await api.until(PODS, lambda found: len(found["items"]) == 2)
    _, found = await api.get(f"{DEPLOYMENTS}/d")
    assert _condition(found, "Available") == ("False", "MinimumReplicasUnavailable")
    for name in await names(api, PODS):
        await api.post(f"{PODS}/{name}/binding", binding(name, "node-1"))
    found = await api.until(f"{DEPLOYMENTS}/d", lambda found: found["status"].get("availableReplicas") == 2)
    assert _condition(found, "Available") == ("True", "MinimumReplicasAvailable")
    assert _condition(found, "Progressing") == ("True", "NewReplicaSetAvailable")
    assert found["status"]["observedGeneration"] == found["metadata"]["generation"]


def _condition(found: dict[str, Any], kind: str) -> tuple[str, str]:
    return next((each["status"], each["reason"]) for each in found["status"]["conditions"] if each["type"] == kind)


async def test_a_rollout_keeps_the_old_pods_until_new_ones_are_ready(api: Api, sandbox: Sandbox) -> None:
    sandbox.load(sandbox_nodes(1))
    made = deployment("d", 2)
    made["spec"]["template"]["spec"]["nodeName"] = "node-1"
    await api.post(DEPLOYMENTS, made)
    await api.until(f"{DEPLOYMENTS}/d", lambda found: found.get("status", {}).get("availableReplicas") == 2)
    stuck = {"spec": {"template": {"spec": {"nodeName": "nowhere"}}}}
    await api.strategic(f"{DEPLOYMENTS}/d", stuck)
    await api.until(PODS, lambda found: len(found["items"]) == 3)
    _, sets = await api.get(SETS)
    assert sorted(each["spec"]["replicas"] for each in sets["items"]) == [1, 2]
    freed = {"spec": {"template": {"spec": {"nodeName": "node-1"}}}}
    await api.strategic(f"{DEPLOYMENTS}/d", freed)
    await api.until(SETS, lambda found: sorted(each["spec"]["replicas"] for each in found["items"]) == [0, 2])
    _, found = await api.get(f"{DEPLOYMENTS}/d")
    assert found["metadata"]["annotations"]["deployment.kubernetes.io/revision"] == "3"


async def test_recreate_ends_the_old_pods_first(api: Api, sandbox: Sandbox) -> None:
    sandbox.load(sandbox_nodes(1))
    made = deployment("d", 2)
    made["spec"]["strategy"] = {"type": "Recreate"}
    await api.post(DEPLOYMENTS, made)
    await api.until(PODS, lambda found: len(found["items"]) == 2)
    change = {"spec": {"template": {"spec": {"containers": [{"name": "c", "image": "nginx:2"}]}}}}
    await api.strategic(f"{DEPLOYMENTS}/d", change)
    images = await api.until(PODS, lambda found: _images(found) == ["nginx:2", "nginx:2"])
    assert len(images["items"]) == 2


def _images(found: dict[str, Any]) -> list[str]:
    return [item["spec"]["containers"][0]["image"] for item in found["items"]]


async def test_scaling_down_takes_pods_without_a_node_first(api: Api, sandbox: Sandbox) -> None:
    sandbox.load(sandbox_nodes(1))
    await api.post(DEPLOYMENTS, deployment("d", 3))
    await api.until(PODS, lambda found: len(found["items"]) == 3)
    kept = (await names(api, PODS))[1]
    await api.post(f"{PODS}/{kept}/binding", binding(kept, "node-1"))
    await api.merge(f"{DEPLOYMENTS}/d/scale", {"spec": {"replicas": 1}})
    found = await api.until(PODS, lambda found: len(found["items"]) == 1)
    assert found["items"][0]["metadata"]["name"] == kept


@pytest.mark.parametrize(("policy", "left"), [("Background", 0), ("Foreground", 0), ("Orphan", 2)])
async def test_what_an_owner_leaves_follows_or_stays(api: Api, policy: str, left: int) -> None:
    await api.post(DEPLOYMENTS, deployment("d", 2))
    await api.until(PODS, lambda found: len(found["items"]) == 2)
    name = (await names(api, SETS))[0]
    await api.merge(f"{DEPLOYMENTS}/d", {"spec": {"paused": True}})
    await api.delete(f"{SETS}/{name}", {"propagationPolicy": policy})
    await api.until(SETS, lambda found: not found["items"])
    found = await api.until(PODS, lambda found: len(found["items"]) == left)
    assert not any(item["metadata"].get("ownerReferences") for item in found["items"])


@pytest.mark.parametrize("policy", ["Background", "Foreground", "Orphan"])
async def test_the_garbage_collector_forgets_deleted_owners(api: Api, sandbox: Sandbox, policy: str) -> None:
    await api.post(DEPLOYMENTS, deployment("d", 2))
    await api.until(PODS, lambda found: len(found["items"]) == 2)
    await api.delete(f"{DEPLOYMENTS}/d", {"propagationPolicy": policy})
    await api.until(DEPLOYMENTS, lambda found: not found["items"])
    for path in (SETS, PODS):
        for name in await names(api, path):
            await api.delete(f"{path}/{name}")
        await api.until(path, lambda found: not found["items"])
    [collector] = [one for one in sandbox._controllers._controllers if isinstance(one, GarbageCollector)]
    assert (len(collector._dependents), collector._owners) == (0, {})


async def test_a_deleted_namespace_is_emptied(api: Api, sandbox: Sandbox) -> None:
    sandbox.load(sandbox_nodes(1))
    await api.post("/api/v1/namespaces", {"metadata": {"name": "team"}})
    accounts = "/api/v1/namespaces/team/serviceaccounts"
    await api.until(accounts, lambda found: len(found["items"]) == 1)
    pods = "/api/v1/namespaces/team/pods"
    await api.post(pods, pod("web", nodeName="node-1"))
    code, found = await api.delete("/api/v1/namespaces/team")
    assert (code, found["status"]["phase"]) == (200, "Terminating")
    await api.until("/api/v1/namespaces/team", lambda found: found.get("code") == 404)
    assert (await api.get(pods))[1]["items"] == []


async def test_evictions_keep_to_budgets(api: Api, sandbox: Sandbox) -> None:
    sandbox.load([*sandbox_nodes(1), pod("web", labels={"app": "web"}, nodeName="node-1")])
    await api.until(f"{PODS}/web", lambda found: found["status"]["phase"] == "Running")
    budgets = "/apis/policy/v1/namespaces/default/poddisruptionbudgets"
    spec = {"minAvailable": 1, "selector": {"matchLabels": {"app": "web"}}}
    await api.post(budgets, {"metadata": {"name": "b"}, "spec": spec})
    eviction = {"apiVersion": "policy/v1", "kind": "Eviction", "metadata": {"name": "web"}}
    code, found = await api.post(f"{PODS}/web/eviction", eviction)
    assert (code, found["reason"]) == (429, "TooManyRequests")
    await api.merge(f"{budgets}/b/status", {"status": {"disruptionsAllowed": 1}})
    assert (await api.post(f"{PODS}/web/eviction", eviction))[0] == 201
    await api.until(PODS, lambda found: not found["items"])
