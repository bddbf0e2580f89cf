from __future__ import annotations

from typing import TYPE_CHECKING

import pytest

from policysched.apimachinery.resources import BUILTIN
from policysched.model.release import DEFAULT, RELEASES, minor_of
from tests.sandbox.bodies import DEFINITION

if TYPE_CHECKING:
    from policysched.sandbox import Sandbox
    from tests.sandbox.conftest import Api

AGGREGATED = {"Accept": "application/json;g=apidiscovery.k8s.io;v=v2;as=APIGroupDiscoveryList,application/json"}


@pytest.mark.parametrize("path", ["/healthz", "/readyz", "/livez", "/readyz/ping"])
async def test_the_sandbox_is_healthy(quiet_api: Api, path: str) -> None:
    async with quiet_api.session.get(quiet_api.url + path) as response:
        assert (response.status, await response.text()) == (200, "ok")


@pytest.mark.parametrize("version", ["", *(one.version for one in RELEASES.values())])
async def test_the_version_is_that_of_the_release(quiet_api: Api, quiet: Sandbox, version: str) -> None:
    quiet.kubernetes = version or quiet.kubernetes
    _, found = await quiet_api.get("/version")
    assert f"{found['major']}.{found['minor']}" == minor_of(version or DEFAULT.version)
    assert found["gitVersion"].startswith(version or DEFAULT.version)
    _, index = await quiet_api.get("/openapi/v3")
    _, document = await quiet_api.get(next(iter(index["paths"].values()))["serverRelativeURL"])
    assert document["info"]["version"] == (version or DEFAULT.version)
    async with quiet_api.session.get(f"{quiet_api.url}/openapi/v2") as response:
        body = await response.read()
    assert (
        body
        == b"\x0a\x032.0\x12"
        + bytes([14 + len(quiet.kubernetes)])
        + b"\x0a\x0aKubernetes\x12"
        + bytes([len(quiet.kubernetes)])
        + quiet.kubernetes.encode()
    )


async def test_plain_and_aggregated_discovery_agree(quiet_api: Api, quiet: Sandbox) -> None:
    quiet.load([DEFINITION])
    plain = set()
    _, groups = await quiet_api.get("/apis")
    for group in groups["groups"]:
        assert (await quiet_api.get(f"/apis/{group['name']}"))[1]["name"] == group["name"]
        for version in (each["groupVersion"] for each in group["versions"]):
            _, found = await quiet_api.get(f"/apis/{version}")
            plain |= {(version, each["name"]) for each in found["resources"]}
    _, found = await quiet_api.get("/api/v1")
    plain |= {("v1", each["name"]) for each in found["resources"]}
    assert plain == await _aggregated(quiet_api)
    assert (await quiet_api.get("/api"))[1]["versions"] == ["v1"]


async def _aggregated(api: Api) -> set[tuple[str, str]]:
    listed = set()
    for path in ("/api", "/apis"):
        async with api.session.get(api.url + path, headers=AGGREGATED) as response:
            assert "as=APIGroupDiscoveryList" in response.headers["Content-Type"]
            found = await response.json(content_type=None)
        for group in found["items"]:
            for version in group["versions"]:
                name = "/".join(filter(None, (group["metadata"].get("name"), version["version"])))
                for each in version["resources"]:
                    listed.add((name, each["resource"]))
                    listed |= {
                        (name, f"{each['resource']}/{sub['subresource']}") for sub in each.get("subresources", ())
                    }
    return listed


@pytest.mark.parametrize("path", ["/apis/nope", "/apis/apps/v2", "/api/v2", "/openapi/v3/apis/nope/v1", "/nope"])
async def test_what_is_not_served_is_not_found(quiet_api: Api, path: str) -> None:
    assert (await quiet_api.get(path))[0] == 404


async def test_openapi_tells_that_the_server_validates(quiet_api: Api, quiet: Sandbox) -> None:
    _, before = await quiet_api.get("/openapi/v3")
    quiet.load([DEFINITION])
    _, index = await quiet_api.get("/openapi/v3")
    assert set(index["paths"]) - set(before["paths"]) == {"apis/policysched.io/v1beta1", "apis/policysched.io/v1alpha1"}
    for entry in index["paths"].values():
        code, document = await quiet_api.get(entry["serverRelativeURL"])
        assert code == 200
        patches = [path["patch"] for path in document["paths"].values() if "patch" in path]
        assert all("fieldValidation" in str(patch["parameters"]) for patch in patches)
        assert _references(document) <= set(document["components"]["schemas"])


def _references(value: object) -> set[str]:
    if isinstance(value, dict):
        own = {value["$ref"].rpartition("/")[2]} if isinstance(value.get("$ref"), str) else set()
        return own.union(*map(_references, value.values()))
    if isinstance(value, list):
        return set().union(*map(_references, value))
    return set()


def test_every_resource_of_the_table_is_whole() -> None:
    assert len({(row.group, row.version, row.plural) for row in BUILTIN}) == len(BUILTIN)
    assert all(row.list_kind == f"{row.kind}List" for row in BUILTIN)
