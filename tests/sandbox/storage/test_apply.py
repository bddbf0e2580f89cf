from __future__ import annotations

from typing import TYPE_CHECKING, Any

import pytest

from tests.sandbox.bodies import DEFINITION, PODS, POLICIES, deployment, policy

if TYPE_CHECKING:
    from policysched.sandbox import Sandbox
    from tests.sandbox.conftest import Api, Kubectl

DEPLOYMENT = "/apis/apps/v1/namespaces/default/deployments/d"


async def apply(api: Api, path: str, body: Any, manager: str = "m", **query: str) -> tuple[int, dict[str, Any]]:
    return await api.call("PATCH", path, body, media="application/apply-patch+yaml", fieldManager=manager, **query)


async def test_apply_creates_merges_and_takes_out(quiet_api: Api) -> None:
    made = deployment("d", 1)
    made["metadata"]["labels"] = {"a": "1", "b": "1"}
    assert (await apply(quiet_api, DEPLOYMENT, made))[0] == 201
    await quiet_api.merge(DEPLOYMENT, {"metadata": {"labels": {"c": "1"}}})
    made["metadata"]["labels"] = {"a": "2"}
    code, found = await apply(quiet_api, DEPLOYMENT, made)
    assert (code, found["metadata"]["labels"]) == (200, {"a": "2", "c": "1"})


async def test_apply_merges_lists_by_their_keys(quiet_api: Api) -> None:
    made = deployment("d", 1)
    await apply(quiet_api, DEPLOYMENT, made)
    side = {"name": "side", "image": "x:1"}
    part = {"spec": {"template": {"spec": {"containers": [side]}}}}
    _, found = await apply(quiet_api, DEPLOYMENT, part, manager="other")
    names = [each["name"] for each in found["spec"]["template"]["spec"]["containers"]]
    assert names == ["c", "side"]
    part["spec"]["template"]["spec"]["containers"] = []
    _, found = await apply(quiet_api, DEPLOYMENT, part, manager="other")
    assert [each["name"] for each in found["spec"]["template"]["spec"]["containers"]] == ["c"]


async def test_apply_knows_the_keys_of_custom_lists(quiet_api: Api, quiet: Sandbox) -> None:
    quiet.load([DEFINITION])
    one, two = {"name": "one", "require": "true"}, {"name": "two", "require": "true"}
    path = f"{POLICIES}/p"
    await apply(quiet_api, path, policy(filters=[one], schedulerNames=["a"]))
    _, found = await apply(quiet_api, path, policy(filters=[two], schedulerNames=["b"]), manager="other")
    assert [each["name"] for each in found["spec"]["filters"]] == ["one", "two"]
    assert found["spec"]["schedulerNames"] == ["a", "b"]
    instances = [{"name": "x", "activeGeneration": 1}]
    _, found = await apply(quiet_api, f"{path}/status", policy() | {"status": {"instances": instances}})
    assert found["status"] == {"observedGeneration": -1, "instances": instances}


async def test_apply_stores_nothing_in_a_dry_run(quiet_api: Api) -> None:
    assert (await apply(quiet_api, DEPLOYMENT, deployment("d", 1), dryRun="All"))[0] == 201
    assert (await quiet_api.get(DEPLOYMENT))[0] == 404
    assert (await apply(quiet_api, f"{PODS}/none/status", {}))[0] == 404


async def test_what_was_applied_is_forgotten_with_its_object(quiet_api: Api, quiet: Sandbox) -> None:
    held = quiet._backend.applied
    for name in ("d", "e"):
        made = deployment(name, 1)
        await apply(quiet_api, DEPLOYMENT[:-1] + name, made)
        await apply(quiet_api, DEPLOYMENT[:-1] + name, made, manager="other")
    assert [sorted(managers) for managers in held.values()] == [["m", "other"]] * 2
    await quiet_api.delete(DEPLOYMENT)
    assert len(held) == 1
    made["metadata"]["finalizers"] = ["example.com/wait"]
    await apply(quiet_api, DEPLOYMENT[:-1] + "e", made)
    await quiet_api.delete(DEPLOYMENT[:-1] + "e")
    made["metadata"]["finalizers"] = []
    assert (await apply(quiet_api, DEPLOYMENT[:-1] + "e", made))[0] == 200
    assert (await quiet_api.get(DEPLOYMENT[:-1] + "e"))[0] == 404
    assert held == {}


@pytest.mark.kubectl
async def test_kubectl_applies_on_the_server(cli: Kubectl) -> None:
    text = '{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "c"}, "data": {"a": "1"}}'
    for word in ("serverside-applied", "serverside-applied"):
        assert word in await cli.run("apply", "--server-side", "-f", "-", stdin=text)
    assert (await cli.json("get", "cm", "c"))["data"] == {"a": "1"}
