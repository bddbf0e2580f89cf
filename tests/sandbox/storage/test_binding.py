from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from policysched.sandbox import Sandbox, sandbox_nodes
from tests.sandbox.bodies import PODS, binding, pod

if TYPE_CHECKING:
    from tests.sandbox.conftest import Api


async def test_binding_assigns_the_node(quiet_api: Api, quiet: Sandbox) -> None:
    quiet.load(sandbox_nodes(2))
    await quiet_api.post(PODS, pod("web"))
    await quiet_api.merge(f"{PODS}/web/status", {"status": {"nominatedNodeName": "node-1"}})
    code, found = await quiet_api.post(f"{PODS}/web/binding", binding("web", "node-2", annotations={"a": "b"}))
    assert (code, found["status"]) == (201, "Success")
    _, bound = await quiet_api.get(f"{PODS}/web")
    assert bound["spec"]["nodeName"] == "node-2"
    assert bound["metadata"]["annotations"] == {"a": "b"}
    assert bound["metadata"]["labels"]["topology.kubernetes.io/zone"] == "zone-b"
    condition = bound["status"]["conditions"][0]
    assert (condition["type"], condition["status"]) == ("PodScheduled", "True")
    assert "message" not in condition
    assert "nominatedNodeName" not in bound["status"]


@pytest.mark.parametrize(
    ("made", "bound", "code", "message"),
    [
        (
            pod("web", nodeName="n1"),
            binding("web", "n2"),
            409,
            'Operation cannot be fulfilled on pods/binding "web": pod web is already assigned to node "n1"',
        ),
        (
            pod("web", schedulingGates=[{"name": "g"}]),
            binding("web", "n2"),
            409,
            'Operation cannot be fulfilled on pods/binding "web": pod web has non-empty .spec.schedulingGates',
        ),
        (pod("web"), binding("web", "n2", uid="other"), 409, "Precondition failed: UID in precondition: other"),
        (
            pod("web"),
            binding("web", "n2", resourceVersion="1"),
            409,
            "Precondition failed: ResourceVersion in precondition: 1",
        ),
        (pod("web"), {"target": {"name": "n2"}}, 400, "name in URL does not match name in Binding object"),
        (pod("web"), binding("other", "n2"), 400, "name in URL does not match name in Binding object"),
        (pod("web"), binding("web", ""), 422, "target.name: Required value"),
        (pod("web"), {"kind": "Pod"}, 400, "not a Binding object"),
        (pod("other"), binding("web", "n2"), 404, 'pods "web" not found'),
    ],
)
async def test_binding_refuses(
    quiet_api: Api, made: dict[str, Any], bound: dict[str, Any], code: int, message: str
) -> None:
    await quiet_api.post(PODS, made)
    status, found = await quiet_api.post(f"{PODS}/web/binding", bound)
    assert status == code
    assert message in found["message"]


async def test_binding_a_pod_that_goes_is_refused(quiet_api: Api) -> None:
    made = pod("web")
    made["metadata"]["finalizers"] = ["example.com/wait"]
    await quiet_api.post(PODS, made)
    await quiet_api.delete(f"{PODS}/web")
    code, found = await quiet_api.post(f"{PODS}/web/binding", binding("web", "n"))
    assert code == 409
    assert "pod web is being deleted, cannot be assigned to a host" in found["message"]


async def test_binding_by_the_collection_works_too(quiet_api: Api) -> None:
    await quiet_api.post(PODS, pod("web"))
    code, _ = await quiet_api.post("/api/v1/namespaces/default/bindings", binding("web", "n"))
    assert code == 201
    assert (await quiet_api.get(f"{PODS}/web"))[1]["spec"]["nodeName"] == "n"


async def test_a_dry_binding_assigns_nothing(quiet_api: Api) -> None:
    await quiet_api.post(PODS, pod("web"))
    assert (await quiet_api.post(f"{PODS}/web/binding", binding("web", "n"), dryRun="All"))[0] == 201
    assert "nodeName" not in (await quiet_api.get(f"{PODS}/web"))[1]["spec"]
