from __future__ import annotations

import io
import json
from typing import TYPE_CHECKING, Any

import pytest

from tests.sandbox.bodies import PODS, config_map, deployment, pod

if TYPE_CHECKING:
    from tests.sandbox.conftest import Api

MAPS = "/api/v1/namespaces/default/configmaps"
DEPLOYMENTS = "/apis/apps/v1/namespaces/default/deployments"


async def test_create_fills_in_metadata(quiet_api: Api) -> None:
    code, found = await quiet_api.post(PODS, pod("web"))
    metadata = found["metadata"]
    assert code == 201
    assert (metadata["namespace"], metadata["generation"], metadata["name"]) == ("default", 1, "web")
    assert len(metadata["uid"]) == 36
    assert metadata["creationTimestamp"].endswith("Z")
    assert int(metadata["resourceVersion"]) > 1


async def test_generate_name_adds_a_suffix(quiet_api: Api) -> None:
    made = pod()
    made["metadata"] = {"generateName": "web-"}
    names = [(await quiet_api.post(PODS, made))[1]["metadata"]["name"] for _ in range(3)]
    assert len(set(names)) == 3
    assert all(name.startswith("web-") and len(name) == 9 for name in names)


@pytest.mark.parametrize(
    ("path", "body", "code", "reason", "message"),
    [
        (PODS, pod("web"), 409, "AlreadyExists", 'pods "web" already exists'),
        ("/api/v1/namespaces/no/pods", pod("x"), 404, "NotFound", 'namespaces "no" not found'),
        (PODS, {"metadata": {}, "spec": {}}, 422, "", "name or generateName is required"),
        (PODS, pod("x", containers=[]), 422, "Invalid", "spec.containers: Required value"),
        (PODS, pod("Upper"), 422, "Invalid", 'metadata.name: Invalid value: "Upper"'),
        (PODS, pod("x", labels={"a b": ""}), 422, "Invalid", "metadata.labels: Invalid value"),
        (PODS, {"kind": "Node"}, 400, "BadRequest", "cannot be handled as a Pod"),
        (PODS, pod("x", nodeName=5), 400, "BadRequest", "PodSpec.spec.nodeName of type string"),
        (PODS, pod("x", restartPolicy="Maybe"), 422, "Invalid", "supported values"),
        (PODS, pod("x", priorityClassName="no"), 403, "Forbidden", "no PriorityClass with name no was found"),
        (PODS, pod("x", priority=7), 403, "Forbidden", "must not be provided in pod spec"),
        (PODS, pod("x", preemptionPolicy="Never"), 403, "Forbidden", "computed PreemptLowerPriority from the given"),
        (PODS, pod("x", serviceAccountName="no"), 403, "Forbidden", "error looking up service account"),
        ("/api/v1/nope", {}, 404, "NotFound", "could not find the requested resource"),
    ],
)
async def test_create_refuses(
    quiet_api: Api, path: str, body: dict[str, Any], code: int, reason: str, message: str
) -> None:
    await quiet_api.post(PODS, pod("web"))
    status, found = await quiet_api.post(path, body)
    assert status == code, found
    assert found["kind"] == "Status"
    assert found["code"] == code
    assert message in found["message"]
    assert reason in found["reason"]


async def test_invalid_objects_list_every_cause(quiet_api: Api) -> None:
    _, found = await quiet_api.post(PODS, pod("web", containers=[{"name": "c"}, {"image": "i"}]))
    causes = {cause["field"]: cause["reason"] for cause in found["details"]["causes"]}
    assert causes == {
        "spec.containers[0].image": "FieldValueRequired",
        "spec.containers[1].name": "FieldValueRequired",
    }


async def test_unknown_fields_are_an_error_a_warning_or_nothing(quiet_api: Api) -> None:
    code, found = await quiet_api.post(PODS, pod("a", nodName="n"), fieldValidation="Strict")
    assert (code, found["message"]) == (
        400,
        'Pod in version "v1" cannot be handled as a Pod: strict decoding error: unknown field "spec.nodName"',
    )
    async with quiet_api.session.post(quiet_api.url + PODS, json=pod("b", nodName="n")) as response:
        assert response.headers["Warning"] == '299 - "unknown field \\"spec.nodName\\""'
        assert "nodName" not in (await response.json())["spec"]
    async with quiet_api.session.post(
        quiet_api.url + PODS, json=pod("c", nodName="n"), params={"fieldValidation": "Ignore"}
    ) as response:
        assert "Warning" not in response.headers


async def test_put_with_an_old_version_is_a_conflict(quiet_api: Api) -> None:
    _, old = await quiet_api.post(MAPS, config_map("c", a="1"))
    assert (await quiet_api.put(f"{MAPS}/c", old | {"data": {"a": "2"}}))[0] == 200
    code, found = await quiet_api.put(f"{MAPS}/c", old | {"data": {"a": "3"}})
    assert code == 409
    assert found["message"].startswith(
        'Operation cannot be fulfilled on configmaps "c": the object has been modified; please apply'
    )
    patch = {"metadata": {"resourceVersion": old["metadata"]["resourceVersion"]}, "data": {"a": "4"}}
    assert (await quiet_api.merge(f"{MAPS}/c", patch))[0] == 409


async def test_a_uid_cannot_change(quiet_api: Api) -> None:
    await quiet_api.post(MAPS, config_map("c"))
    made = config_map("c")
    made["metadata"]["uid"] = "other"
    code, found = await quiet_api.put(f"{MAPS}/c", made)
    assert (code, found["reason"]) == (409, "Conflict")
    assert "Precondition failed: UID in precondition: other, UID in object meta: " in found["message"]
    code, found = await quiet_api.merge(f"{MAPS}/c", {"metadata": {"uid": "other"}})
    assert (code, found["details"]["causes"][0]["field"]) == (422, "metadata.uid")


async def test_an_update_without_change_keeps_the_version(quiet_api: Api) -> None:
    _, old = await quiet_api.post(MAPS, config_map("c", a="1"))
    _, new = await quiet_api.merge(f"{MAPS}/c", {"data": {"a": "1"}})
    assert new["metadata"]["resourceVersion"] == old["metadata"]["resourceVersion"]


async def test_generation_counts_changes_of_the_spec(quiet_api: Api) -> None:
    await quiet_api.post(DEPLOYMENTS, deployment("d", 1))
    _, labelled = await quiet_api.merge(f"{DEPLOYMENTS}/d", {"metadata": {"labels": {"a": "b"}}})
    _, scaled = await quiet_api.merge(f"{DEPLOYMENTS}/d", {"spec": {"replicas": 2}})
    assert (labelled["metadata"]["generation"], scaled["metadata"]["generation"]) == (1, 2)


async def test_status_is_written_apart_from_the_rest(quiet_api: Api) -> None:
    await quiet_api.post(PODS, pod("web"))
    _, found = await quiet_api.merge(f"{PODS}/web", {"status": {"phase": "Failed"}})
    assert found["status"]["phase"] == "Pending"
    change = {"status": {"phase": "Running", "nominatedNodeName": "n"}, "spec": {"nodeName": "n"}}
    code, found = await quiet_api.merge(f"{PODS}/web/status", change)
    assert (code, found["status"]["phase"], found["status"]["nominatedNodeName"]) == (200, "Running", "n")
    assert "nodeName" not in found["spec"]
    assert found["metadata"]["generation"] == 1


async def test_status_conditions_merge_by_type(quiet_api: Api) -> None:
    await quiet_api.post(PODS, pod("web"))
    for kind in ("PodScheduled", "Ready"):
        condition = {"type": kind, "status": "False", "lastProbeTime": None}
        await quiet_api.strategic(f"{PODS}/web/status", {"status": {"conditions": [condition]}})
    _, found = await quiet_api.get(f"{PODS}/web")
    assert [each["type"] for each in found["status"]["conditions"]] == ["PodScheduled", "Ready"]


async def test_a_finalizer_keeps_a_deleted_object(quiet_api: Api) -> None:
    made = config_map("c")
    made["metadata"]["finalizers"] = ["example.com/wait"]
    await quiet_api.post(MAPS, made)
    code, found = await quiet_api.delete(f"{MAPS}/c")
    assert (code, found["kind"]) == (200, "ConfigMap")
    assert found["metadata"]["deletionTimestamp"]
    assert (await quiet_api.merge(f"{MAPS}/c", {"metadata": {"finalizers": None}}))[0] == 200
    assert (await quiet_api.get(f"{MAPS}/c"))[0] == 404


async def test_delete_answers_with_a_status(quiet_api: Api) -> None:
    _, made = await quiet_api.post(MAPS, config_map("c"))
    code, found = await quiet_api.delete(f"{MAPS}/c")
    details = {"name": "c", "kind": "configmaps", "uid": made["metadata"]["uid"]}
    assert (code, found["status"], found["details"]) == (200, "Success", details)
    code, found = await quiet_api.delete(f"{MAPS}/c")
    assert (code, found["reason"], found["details"]) == (404, "NotFound", {"name": "c", "kind": "configmaps"})


@pytest.mark.parametrize("condition", [{"uid": "other"}, {"resourceVersion": "1"}])
async def test_delete_checks_preconditions(quiet_api: Api, condition: dict[str, str]) -> None:
    await quiet_api.post(MAPS, config_map("c"))
    code, found = await quiet_api.delete(f"{MAPS}/c", {"preconditions": condition})
    assert code == 409
    assert f"in the precondition ({next(iter(condition.values()))}) does not match" in found["message"]


async def test_delete_of_a_collection_takes_what_is_selected(quiet_api: Api) -> None:
    for name, team in (("a", "x"), ("b", "y"), ("c", "x")):
        await quiet_api.post(PODS, pod(name, labels={"team": team}))
    code, found = await quiet_api.delete(PODS, labelSelector="team=x")
    assert (code, [item["metadata"]["name"] for item in found["items"]]) == (200, ["a", "c"])
    _, left = await quiet_api.get(PODS)
    assert [item["metadata"]["name"] for item in left["items"]] == ["b"]


async def test_metadata_of_another_place_is_refused(quiet_api: Api) -> None:
    elsewhere = config_map("c")
    elsewhere["metadata"]["namespace"] = "kube-system"
    assert (await quiet_api.post(MAPS, elsewhere))[0] == 400
    await quiet_api.post(MAPS, config_map("c"))
    assert (await quiet_api.put(f"{MAPS}/c", elsewhere))[0] == 400
    assert (await quiet_api.put(f"{MAPS}/c", config_map("d")))[0] == 400
    versioned = config_map("e")
    versioned["metadata"]["resourceVersion"] = "5"
    assert (await quiet_api.post(MAPS, versioned))[0] == 500


async def test_a_namespace_that_ends_takes_nothing_new(quiet_api: Api) -> None:
    await quiet_api.post("/api/v1/namespaces", {"metadata": {"name": "team"}})
    await quiet_api.delete("/api/v1/namespaces/team")
    code, found = await quiet_api.post("/api/v1/namespaces/team/pods", pod("web"))
    assert code == 403
    assert "unable to create new content in namespace team because it is being terminated" in found["message"]


async def test_scale_is_a_view_of_a_workload(quiet_api: Api) -> None:
    made = deployment("d", 2)
    made["spec"]["selector"]["matchExpressions"] = [
        {"key": "app", "operator": "In", "values": ["x", "d"]},
        {"key": "app", "operator": "Exists"},
        {"key": "no", "operator": "DoesNotExist"},
        {"key": "app", "operator": "NotIn", "values": ["y"]},
    ]
    assert (await quiet_api.post(DEPLOYMENTS, made))[0] == 201
    _, scale = await quiet_api.get(f"{DEPLOYMENTS}/d/scale")
    assert (scale["kind"], scale["spec"]) == ("Scale", {"replicas": 2})
    assert scale["status"]["selector"] == "app=d,app in (d,x),app,!no,app notin (y)"
    code, found = await quiet_api.put(f"{DEPLOYMENTS}/d/scale", scale | {"spec": {"replicas": 5}})
    assert (code, found["spec"]) == (200, {"replicas": 5})
    assert (await quiet_api.put(f"{DEPLOYMENTS}/d/scale", scale | {"spec": {"replicas": 6}}))[0] == 409
    code, found = await quiet_api.merge(f"{DEPLOYMENTS}/d/scale", {"spec": {"replicas": -1}})
    assert (code, found["details"]["kind"]) == (422, "Scale")


async def test_dry_run_stores_nothing(quiet_api: Api) -> None:
    assert (await quiet_api.post(PODS, pod("web"), dryRun="All"))[0] == 201
    assert (await quiet_api.get(f"{PODS}/web"))[0] == 404
    await quiet_api.post(PODS, pod("web"))
    _, found = await quiet_api.merge(f"{PODS}/web", {"metadata": {"labels": {"a": "b"}}}, dryRun="All")
    assert found["metadata"]["labels"] == {"a": "b"}
    assert "labels" not in (await quiet_api.get(f"{PODS}/web"))[1]["metadata"]
    await quiet_api.delete(f"{PODS}/web", dryRun="All")
    assert (await quiet_api.get(f"{PODS}/web"))[0] == 200


async def test_methods_that_make_no_sense_are_refused(quiet_api: Api) -> None:
    await quiet_api.post(PODS, pod("web"))
    assert (await quiet_api.post(f"{PODS}/web", pod("web")))[0] == 405
    assert (await quiet_api.put(PODS, pod("web")))[0] == 405
    assert (await quiet_api.get("/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"))[0] == 405
    assert (await quiet_api.post("/version", {}))[0] == 404


async def test_reviews_allow_everything(quiet_api: Api) -> None:
    path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews"
    code, found = await quiet_api.post(path, {"spec": {"resourceAttributes": {"verb": "get"}}})
    assert (code, found["status"]["allowed"], found["kind"]) == (201, True, "SelfSubjectAccessReview")


async def test_a_broken_body_is_a_bad_request(quiet_api: Api) -> None:
    async with quiet_api.session.post(quiet_api.url + PODS, data="{nope") as response:
        assert response.status == 400
        assert (await response.json())["reason"] == "BadRequest"
    yaml = "kind: Pod\nmetadata: {name: y}\nspec: {containers: [{name: c, image: i}]}"
    async with quiet_api.session.post(
        quiet_api.url + PODS, data=yaml, headers={"Content-Type": "application/yaml"}
    ) as response:
        assert response.status == 201


async def test_bodies_are_limited(quiet_api: Api) -> None:
    for size, code in ((2_000_000, 201), (4_000_000, 413)):
        body = io.BytesIO(json.dumps(config_map(f"c{size}", a="x" * size)).encode())
        async with quiet_api.session.post(quiet_api.url + MAPS, data=body) as response:
            assert response.status == code
            assert (await response.json())["kind"] == ("ConfigMap" if code == 201 else "Status")


NESTED = "{" * 3 + '"a":[' * 50_000
DOUBLED = "a0: &a0 [x, x, x]\n" + "".join(f"a{n}: &a{n} [*a{n - 1}, *a{n - 1}]\n" for n in range(1, 40))


@pytest.mark.parametrize(
    ("media", "body", "message"),
    [
        ("application/json", NESTED.encode(), "error decoding the request's body"),
        ("application/json", b'{"kind": "Pod\xff"}', "error decoding the request's body"),
        ("application/json", b'{"metadata": ' * 20_000 + b"1" + b"}" * 20_000, "exceeded max depth"),
        ("application/yaml", b"[" * 5000, "exceeded max depth"),
        ("application/yaml", b"&a [*a]", "exceeded max depth"),
        ("application/yaml", DOUBLED.encode(), "excessive aliasing"),
    ],
)
async def test_bodies_that_are_made_to_be_too_much_are_bad_requests(
    quiet_api: Api, media: str, body: bytes, message: str, caplog: pytest.LogCaptureFixture
) -> None:
    for method, path in (("POST", PODS), ("POST", MAPS)):
        sent = quiet_api.session.request(method, quiet_api.url + path, data=body, headers={"Content-Type": media})
        async with sent as response:
            assert response.status == 400
            assert message in (await response.json())["message"]
    assert not caplog.messages
