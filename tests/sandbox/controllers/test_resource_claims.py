"""The sandbox's resource claim controller: claims of templates, and devices given back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from policysched.sandbox import Sandbox
from policysched.sandbox.controllers.resource_claims import FINALIZER, POD_CLAIM, ReservationController
from tests.sandbox.bodies import PODS, pod

if TYPE_CHECKING:
    from tests.sandbox.conftest import Api

V1, GROUPS = "resource.k8s.io/v1", "scheduling.k8s.io/v1beta1"
CLAIMS = f"/apis/{V1}/namespaces/default/resourceclaims"
TEMPLATES = f"/apis/{V1}/namespaces/default/resourceclaimtemplates"
SPEC = {"devices": {"requests": [{"name": "gpu", "exactly": {"deviceClassName": "gpu"}}]}}


def template(name: str = "one") -> dict[str, Any]:
    spec = {"metadata": {"labels": {"a": "b"}}, "spec": SPEC}
    return {"apiVersion": V1, "kind": "ResourceClaimTemplate", "metadata": {"name": name}, "spec": spec}


def claim(name: str = "c", **more: Any) -> dict[str, Any]:
    metadata = {"name": name, "namespace": "default", "finalizers": [FINALIZER]}
    return {"apiVersion": V1, "kind": "ResourceClaim", "metadata": metadata, "spec": SPEC} | more


def templated(name: str = "web", **spec: Any) -> dict[str, Any]:
    return pod(name, resourceClaims=[{"name": "gpu", "resourceClaimTemplateName": "one"}], **spec)


def held_by(*pods: dict[str, Any]) -> dict[str, Any]:
    users = [{"resource": "pods", "name": one["metadata"]["name"], "uid": one["metadata"]["uid"]} for one in pods]
    results = [{"request": "gpu", "driver": "d", "pool": "p", "device": "g"}]
    return {"reservedFor": users, "allocation": {"devices": {"results": results}}}


async def test_a_pod_gets_a_claim_of_its_template_once_that_is_there(api: Api) -> None:
    await api.post(PODS, templated())
    await api.post(TEMPLATES, template())
    found = await api.until(f"{PODS}/web", lambda found: "resourceClaimStatuses" in found["status"])
    [told] = found["status"]["resourceClaimStatuses"]
    assert told["name"] == "gpu"
    _, made = await api.get(f"{CLAIMS}/{told['resourceClaimName']}")
    assert made["metadata"]["name"].startswith("web-gpu-")
    assert made["metadata"]["labels"] == {"a": "b"}
    assert made["metadata"]["annotations"] == {POD_CLAIM: "gpu"}
    [owner] = made["metadata"]["ownerReferences"]
    assert (owner["kind"], owner["uid"], owner["controller"]) == ("Pod", found["metadata"]["uid"], True)
    assert made["spec"]["devices"]["requests"][0]["exactly"]["count"] == 1


async def test_long_names_of_pods_leave_room_for_that_of_the_claim(api: Api) -> None:
    await api.post(TEMPLATES, template())
    await api.post(PODS, templated("w" * 63))
    found = await api.until(CLAIMS, lambda found: found["items"])
    name = found["items"][0]["metadata"]["name"]
    assert len(name) <= 63
    assert "-g" in name


async def test_the_claim_of_a_pod_goes_with_it(api: Api) -> None:
    await api.post(TEMPLATES, template())
    await api.post(PODS, templated())
    await api.until(CLAIMS, lambda found: found["items"])
    await api.delete(f"{PODS}/web")
    await api.until(CLAIMS, lambda found: not found["items"])


async def test_devices_are_given_back_when_the_last_pod_is_gone(api: Api, sandbox: Sandbox) -> None:
    users = [(await api.post(PODS, pod(name)))[1] for name in ("a", "b")]
    sandbox.load([claim(status=held_by(*users))])
    await api.delete(f"{PODS}/a")
    found = await api.until(f"{CLAIMS}/c", lambda found: len(found["status"]["reservedFor"]) == 1)
    assert found["status"]["allocation"]
    await api.delete(f"{PODS}/b")
    found = await api.until(f"{CLAIMS}/c", lambda found: "allocation" not in found["status"])
    assert "finalizers" not in found["metadata"]


async def test_the_controller_forgets_deleted_users_of_claims(api: Api, sandbox: Sandbox) -> None:
    await api.post(TEMPLATES, template())
    _, made = await api.post(PODS, templated())
    name = (await api.until(CLAIMS, lambda found: found["items"]))["items"][0]["metadata"]["name"]
    _, found = await api.merge(f"{CLAIMS}/{name}", {"metadata": {"finalizers": [FINALIZER]}})
    await api.put(f"{CLAIMS}/{name}/status", found | {"status": held_by(made)})
    await api.delete(f"{PODS}/web")
    await api.until(CLAIMS, lambda found: not found["items"])
    [controller] = [one for one in sandbox._controllers._controllers if isinstance(one, ReservationController)]
    assert len(controller._claims) == 0


async def test_a_pod_that_is_finished_uses_no_devices(api: Api, sandbox: Sandbox) -> None:
    _, user = await api.post(PODS, pod("a"))
    sandbox.load([claim(status=held_by(user))])
    await api.put(f"{PODS}/a/status", user | {"status": user["status"] | {"phase": "Succeeded"}})
    await api.until(f"{CLAIMS}/c", lambda found: "allocation" not in found["status"])


async def test_a_claim_that_is_allocated_and_used_by_nobody_stays_so(api: Api, sandbox: Sandbox) -> None:
    sandbox.load([claim(status=held_by()), claim("other", status=held_by())])
    await api.delete(f"{CLAIMS}/other")
    await api.until(CLAIMS, lambda found: len(found["items"]) == 1)
    _, found = await api.get(f"{CLAIMS}/c")
    assert found["status"]["allocation"]


async def test_a_claim_is_not_left_to_a_pod_made_anew(api: Api, sandbox: Sandbox) -> None:
    _, user = await api.post(PODS, pod("a"))
    gone = user | {"metadata": user["metadata"] | {"uid": "another"}}
    sandbox.load([claim(status=held_by(gone))])
    await api.until(f"{CLAIMS}/c", lambda found: "allocation" not in found["status"])


def group(*names: str) -> dict[str, Any]:
    claims = [{"name": name, "resourceClaimTemplateName": "one"} for name in names]
    spec = {"schedulingPolicy": {"gang": {"minCount": 2}}, "resourceClaims": claims}
    return {"apiVersion": GROUPS, "kind": "PodGroup", "metadata": {"name": "train"}, "spec": spec}


async def test_the_pods_of_a_group_use_its_claim(api: Api) -> None:
    for name in ("a", "b"):
        await api.post(PODS, templated(name, schedulingGroup={"podGroupName": "train"}))
    await api.post(TEMPLATES, template())
    _, made = await api.post(f"/apis/{GROUPS}/namespaces/default/podgroups", group("gpu"))
    told = [
        (await api.until(f"{PODS}/{name}", lambda found: "resourceClaimStatuses" in found["status"]))["status"]
        for name in ("a", "b")
    ]
    _, listed = await api.get(CLAIMS)
    [owned] = listed["items"]
    name = owned["metadata"]["name"]
    assert name.startswith("train-gpu-")
    [owner] = owned["metadata"]["ownerReferences"]
    assert owner == {
        "apiVersion": GROUPS, "kind": "PodGroup", "name": "train", "uid": made["metadata"]["uid"], "controller": True
    }  # fmt: skip
    assert [one["resourceClaimStatuses"] for one in told] == [[{"name": "gpu", "resourceClaimName": name}]] * 2
    await api.delete(f"/apis/{GROUPS}/namespaces/default/podgroups/train")
    await api.until(CLAIMS, lambda found: not found["items"])


async def test_a_claim_that_only_the_pod_states_is_its_own(api: Api) -> None:
    await api.post(TEMPLATES, template())
    await api.post(f"/apis/{GROUPS}/namespaces/default/podgroups", group("other"))
    await api.post(PODS, templated(schedulingGroup={"podGroupName": "train"}))
    found = await api.until(f"{PODS}/web", lambda found: "resourceClaimStatuses" in found["status"])
    assert found["status"]["resourceClaimStatuses"][0]["resourceClaimName"].startswith("web-gpu-")


async def test_devices_are_given_back_when_the_group_is_gone(api: Api, sandbox: Sandbox) -> None:
    _, made = await api.post(f"/apis/{GROUPS}/namespaces/default/podgroups", group())
    uid = made["metadata"]["uid"]
    user = {"apiGroup": "scheduling.k8s.io", "resource": "podgroups", "name": "train", "uid": uid}
    sandbox.load([claim(status=held_by() | {"reservedFor": [user]})])
    path = f"/apis/{GROUPS}/namespaces/default/podgroups/train"
    await api.put(path, made | {"metadata": made["metadata"] | {"finalizers": ["example.com/kept"]}})
    await api.delete(path)
    assert (await api.get(f"{CLAIMS}/c"))[1]["status"]["allocation"]
    _, kept = await api.get(path)
    await api.put(path, kept | {"metadata": kept["metadata"] | {"finalizers": []}})
    await api.until(f"{CLAIMS}/c", lambda found: "allocation" not in found["status"])


async def test_claims_of_a_group_are_validated(api: Api) -> None:
    status, found = await api.post(f"/apis/{GROUPS}/namespaces/default/podgroups", group(*"abcde"))
    assert status == 422
    assert "spec.resourceClaims: Too many: 5: must have at most 4 items" in found["message"]
    wrong = group("", "b")
    wrong["spec"]["resourceClaims"][0]["resourceClaimName"] = "c"
    del wrong["spec"]["resourceClaims"][1]["resourceClaimTemplateName"]
    _, found = await api.post(f"/apis/{GROUPS}/namespaces/default/podgroups", wrong)
    assert "spec.resourceClaims[0].name: Required value" in found["message"]
    assert "must specify exactly one of: `resourceClaimName`, `resourceClaimTemplateName`" in found["message"]
    assert "must specify one of: `resourceClaimName`, `resourceClaimTemplateName`" in found["message"]
