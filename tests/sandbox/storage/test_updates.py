from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.sandbox.bodies import PODS, deployment, pod

if TYPE_CHECKING:
    from tests.sandbox.conftest import Api

POD_GROUPS = "/apis/scheduling.k8s.io/v1beta1/namespaces/default/podgroups"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"spec": {"nodeName": "n"}}, "pod updates may not change fields other than"),
        ({"spec": {"schedulerName": "n"}}, "pod updates may not change fields other than"),
        ({"spec": {"tolerations": []}}, "existing toleration can not be modified"),
        ({"spec": {"schedulingGates": [{"name": "new"}]}}, "only deletion is allowed"),
    ],
)
async def test_pods_keep_their_spec(quiet_api: Api, change: dict[str, Any], why: str) -> None:
    await quiet_api.post(PODS, pod("web"))
    code, found = await quiet_api.merge(f"{PODS}/web", change)
    assert code == 422
    assert why in found["message"]


async def test_a_gated_pod_may_be_directed_and_released(quiet_api: Api) -> None:
    gated = pod("web", schedulingGates=[{"name": "a"}, {"name": "b"}])
    _, found = await quiet_api.post(PODS, gated)
    condition = found["status"]["conditions"][0]
    assert (condition["type"], condition["status"], condition["reason"]) == (
        "PodScheduled",
        "False",
        "SchedulingGated",
    )
    assert condition["message"] == "Scheduling is blocked due to non-empty scheduling gates"
    change = {"spec": {"schedulingGates": [{"name": "b"}], "nodeSelector": {"disk": "ssd"}}}
    code, found = await quiet_api.merge(f"{PODS}/web", change)
    assert (code, found["spec"]["nodeSelector"]) == (200, {"disk": "ssd"})
    assert (await quiet_api.merge(f"{PODS}/web", {"spec": {"schedulingGates": None}}))[0] == 200


async def test_immutable_fields_are_named(quiet_api: Api) -> None:
    await quiet_api.post(DEPLOYMENTS, deployment("d", 1))
    change = {"spec": {"selector": {"matchLabels": {"x": "y"}}, "template": {"metadata": {"labels": {"x": "y"}}}}}
    code, found = await quiet_api.merge(f"{DEPLOYMENTS}/d", change)
    assert code == 422
    assert found["details"]["causes"][0]["field"] == "spec.selector"


async def test_only_the_threshold_of_a_pod_group_changes(quiet_api: Api) -> None:
    spec = {"schedulingPolicy": {"gang": {"minCount": 2}}, "priority": 7}
    code, made = await quiet_api.post(POD_GROUPS, {"metadata": {"name": "g"}, "spec": spec})
    assert (code, made["spec"]["disruptionMode"]) == (201, {"single": {}})
    code, found = await quiet_api.merge(f"{POD_GROUPS}/g", {"spec": {"schedulingPolicy": {"gang": {"minCount": 5}}}})
    assert (code, found["spec"]["schedulingPolicy"]) == (200, {"gang": {"minCount": 5}})
    for change, field in (
        ({"priority": 8}, "spec.priority: Invalid value: 8: field is immutable"),
        ({"schedulingPolicy": {"gang": None, "basic": {}}}, "spec.schedulingPolicy: Invalid value"),
    ):
        code, found = await quiet_api.merge(f"{POD_GROUPS}/g", {"spec": change})
        assert code == 422
        assert field in found["message"]
