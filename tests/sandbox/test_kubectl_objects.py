from __future__ import annotations

from typing import TYPE_CHECKING

import pytest
import yaml

from policysched.model.release import DEFAULT
from policysched.sandbox import Sandbox, sandbox_nodes
from tests.controlplane.releases import compared
from tests.sandbox.bodies import DEFINITION, config_map, deployment, pod, policy

if TYPE_CHECKING:
    from pathlib import Path

    from tests.sandbox.conftest import Api, Kubectl

pytestmark = pytest.mark.kubectl
every_minor = pytest.mark.parametrize("kubectl", compared(), indirect=True)


@every_minor
async def test_kubectl_lists_what_the_server_serves(cli: Kubectl, kubectl: Path) -> None:
    versions = await cli.run("version")
    assert f"Client Version: {kubectl.parent.name}" in versions
    assert f"Server Version: {DEFAULT.version}" in versions
    resources = await cli.run("api-resources")
    for word in ("pods", "po", "events.k8s.io/v1", "schedulingpolicies"):
        assert (word in resources) is (word != "schedulingpolicies")
    assert "is running at" in await cli.run("cluster-info")


@every_minor
async def test_kubectl_get_shows_tables(cli: Kubectl, sandbox: Sandbox) -> None:
    sandbox.load([*sandbox_nodes(3), pod("web", labels={"app": "web"}, nodeName="node-2")])
    nodes = (await cli.run("get", "nodes", "-L", "topology.kubernetes.io/zone")).splitlines()
    assert nodes[0].split() == ["NAME", "STATUS", "ROLES", "AGE", "VERSION", "ZONE"]
    assert [line.split()[0::5] for line in nodes[1:]] == [
        ["node-1", "zone-a"],
        ["node-2", "zone-b"],
        ["node-3", "zone-c"],
    ]
    wide = (await cli.run("get", "pods", "-A", "-o", "wide")).splitlines()
    assert "NOMINATED NODE" in wide[0]
    assert "node-2" in wide[1]
    assert await cli.run("get", "pods", "-l", "app!=web", "-o", "name") == ""
    assert await cli.run("get", "pods", "--field-selector", "spec.nodeName=node-2", "-o", "name") == "pod/web\n"


async def test_kubectl_pages_with_limit(cli: Kubectl, sandbox: Sandbox) -> None:
    sandbox.load(sandbox_nodes(7))
    assert len((await cli.run("get", "nodes", "--chunk-size=3", "-o", "name")).splitlines()) == 7


@every_minor
async def test_kubectl_run_describe_and_delete_a_pod(cli: Kubectl, sandbox: Sandbox) -> None:
    sandbox.load(sandbox_nodes(1))
    overrides = '{"spec": {"nodeName": "node-1"}}'
    assert await cli.run("run", "web", "--image=nginx", f"--overrides={overrides}") == "pod/web created\n"
    await cli.run("wait", "--for=condition=Ready", "pod/web", "--timeout=10s")
    text = await cli.run("describe", "pod", "web")
    assert "Node:             node-1" in text
    assert "Status:           Running" in text
    assert "Non-terminated Pods:" in await cli.run("describe", "node", "node-1")
    assert await cli.run("delete", "pod", "web") == 'pod "web" deleted from default namespace\n'
    assert "not found" in await cli.run("get", "pod", "web", code=1)


@every_minor
async def test_kubectl_apply_changes_only_what_differs(cli: Kubectl) -> None:
    assert await cli.apply(config_map("c", a="1")) == "configmap/c created\n"
    assert await cli.apply(config_map("c", a="1")) == "configmap/c unchanged\n"
    assert await cli.apply(config_map("c", b="2")) == "configmap/c configured\n"
    assert (await cli.json("get", "cm", "c"))["data"] == {"b": "2"}
    listed = {"apiVersion": "v1", "kind": "List", "items": [config_map("d", a="1"), config_map("e")]}
    assert await cli.apply(listed) == "configmap/d created\nconfigmap/e created\n"


async def test_kubectl_changes_nodes(cli: Kubectl, sandbox: Sandbox) -> None:
    sandbox.load(sandbox_nodes(1))
    await cli.run("label", "node", "node-1", "disk=ssd")
    await cli.run("annotate", "node", "node-1", "note=x")
    await cli.run("taint", "node", "node-1", "a=b:NoSchedule", "c=d:NoExecute")
    await cli.run("taint", "node", "node-1", "a-")
    await cli.run("cordon", "node-1")
    node = await cli.json("get", "node", "node-1")
    assert node["metadata"]["labels"]["disk"] == "ssd"
    assert node["metadata"]["annotations"] == {"note": "x"}
    assert node["spec"]["unschedulable"] is True
    assert node["spec"]["taints"][0] == {"key": "c", "value": "d", "effect": "NoExecute"}
    await cli.run("uncordon", "node-1")
    assert "unschedulable" not in (await cli.json("get", "node", "node-1"))["spec"]


@every_minor
async def test_kubectl_patches_in_three_ways(cli: Kubectl) -> None:
    await cli.run("create", "-f", "-", stdin=_yaml(pod("p")))
    await cli.run("patch", "pod", "p", "-p", '{"spec": {"containers": [{"name": "c", "image": "nginx:2"}]}}')
    await cli.run("patch", "pod", "p", "--type=merge", "-p", '{"metadata": {"labels": {"a": "b"}}}')
    operation = '[{"op": "add", "path": "/metadata/labels/c", "value": "d"}]'
    await cli.run("patch", "pod", "p", "--type=json", "-p", operation)
    found = await cli.json("get", "pod", "p")
    assert found["metadata"]["labels"] == {"a": "b", "c": "d"}
    assert [each["image"] for each in found["spec"]["containers"]] == ["nginx:2"]


@every_minor
async def test_kubectl_rolls_a_deployment_out(cli: Kubectl, sandbox: Sandbox, api: Api) -> None:
    sandbox.load(sandbox_nodes(1))
    made = deployment("d", 2)
    made["spec"]["template"]["spec"]["nodeName"] = "node-1"
    await cli.apply(made)
    assert "successfully rolled out" in await cli.run("rollout", "status", "deploy/d", "--timeout=10s")
    await cli.run("scale", "deploy/d", "--replicas=3")
    await cli.run("set", "image", "deploy/d", "c=nginx:2")
    assert "successfully rolled out" in await cli.run("rollout", "status", "deploy/d", "--timeout=10s")
    await api.until("/api/v1/namespaces/default/pods", lambda found: len(found["items"]) == 3)
    images = {item["spec"]["containers"][0]["image"] for item in (await cli.json("get", "pods"))["items"]}
    assert images == {"nginx:2"}
    assert "Scaled up replica set" in await cli.run("describe", "deploy", "d")
    assert "ScalingReplicaSet" in await cli.run("events")
    await cli.run("delete", "deploy", "d")
    await api.until("/api/v1/namespaces/default/pods", lambda found: not found["items"])


@every_minor
async def test_kubectl_creates_by_protobuf(cli: Kubectl) -> None:
    assert await cli.run("create", "namespace", "team") == "namespace/team created\n"
    await cli.run("create", "deployment", "d", "--image=nginx", "--replicas=0", "-n", "team")
    found = await cli.json("get", "deploy", "d", "-n", "team")
    assert found["spec"]["replicas"] == 0
    assert found["spec"]["template"]["spec"]["containers"][0]["image"] == "nginx"
    assert await cli.run("auth", "can-i", "create", "pods") == "yes\n"
    await cli.run("delete", "namespace", "team")
    assert "not found" in await cli.run("get", "namespace", "team", code=1)


async def test_kubectl_drains_a_node(cli: Kubectl, sandbox: Sandbox) -> None:
    sandbox.load([*sandbox_nodes(1), pod("p", nodeName="node-1")])
    assert "node/node-1 drained" in await cli.run("drain", "node-1", "--force", "--timeout=10s")
    assert await cli.run("get", "pods", "-o", "name") == ""


async def test_kubectl_diff_and_dry_run_store_nothing(cli: Kubectl) -> None:
    await cli.apply(config_map("c", a="1"))
    assert "+  b: " in await cli.run("diff", "-f", "-", stdin=_yaml(config_map("c", b="2")), code=1)
    await cli.run("delete", "cm", "c", "--dry-run=server")
    await cli.run("create", "-f", "-", "--dry-run=server", stdin=_yaml(pod("p")))
    assert (await cli.json("get", "cm", "c"))["data"] == {"a": "1"}
    assert await cli.run("get", "pods", "-o", "name") == ""


@every_minor
async def test_kubectl_uses_a_custom_resource(cli: Kubectl) -> None:
    await cli.apply(DEFINITION)
    await cli.run("wait", "--for=condition=Established", f"crd/{DEFINITION['metadata']['name']}", "--timeout=10s")
    made = policy(filters=[{"name": "ssd", "require": 'node.labels["disk"] == "ssd"'}], weight=3)
    assert "created" in await cli.apply(made)
    assert "unchanged" in await cli.apply(made)
    await cli.run("patch", "spol", "p", "--subresource=status", "--type=merge", "-p", _ACTIVE)
    lines = (await cli.run("get", "spol")).splitlines()
    assert lines[0].split() == ["NAME", "MODE", "WEIGHT", "RULES", "COMPILED", "ACTIVE", "AGE"]
    assert lines[1].split()[:4] == ["p", "Enforce", "3", "True"]
    assert "Require:  node.labels" in await cli.run("describe", "spol", "p")
    assert "ENUM:" in await cli.run("explain", "spol.spec.mode")


_ACTIVE = '{"status": {"conditions": [{"type": "Active", "status": "True"}]}}'


def _yaml(obj: object) -> str:
    text: str = yaml.safe_dump(obj)
    return text
