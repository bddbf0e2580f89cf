"""Policies of both API versions, and schedulers whose definition of the resource is older or newer than they are."""

from __future__ import annotations

import asyncio
import copy
from collections.abc import AsyncIterator

import pytest

from tests.controlplane import loading
from tests.controlplane.api import Api, RefusedError
from tests.e2e.conftest import Kubectl, Running
from tests.e2e.objects import DEFINITION, Json, node, only, pod
from tests.e2e.real import RealServer
from tests.e2e.schedulers import in_process
from tests.e2e.server import MERGE, Server
from tests.e2e.waiting import until, until_true

ALPHA, BETA = "v1alpha1", "v1beta1"
NAME = DEFINITION["metadata"]["name"]
DEFINITIONS = "/apis/apiextensions.k8s.io/v1/customresourcedefinitions"


def definition(*versions: str, stored: str) -> Json:
    """The definition of a release that serves these versions."""
    made = copy.deepcopy(DEFINITION)
    made["spec"]["versions"] = [
        one | {"storage": one["name"] == stored} for one in made["spec"]["versions"] if one["name"] in versions
    ]
    return made


def of_version(version: str, policy: Json) -> Json:
    return policy | {"apiVersion": f"policysched.io/{version}"}


def avoiding(name: str, avoided: str) -> Json:
    """A policy that keeps pods from a node."""
    return only(name, avoided) | {"spec": {"filters": [{"name": "away", "require": f'node.name != "{avoided}"'}]}}


def path(version: str, name: str = "") -> str:
    return f"/apis/policysched.io/{version}/schedulingpolicies" + (f"/{name}" if name else "")


@pytest.mark.kubectl
async def test_policies_of_both_versions_are_in_force_together(
    server: Server, kubectl: Kubectl, running: Running
) -> None:
    await server.load(*(node(name) for name in ("n1", "n2", "n3")))
    await kubectl.apply(of_version(ALPHA, avoiding("alpha", "n1")), of_version(BETA, avoiding("beta", "n2")))
    async with running():
        for name in ("alpha", "beta"):
            await server.policy_says(name, 1, Active="Enforce")
        await server.load(pod("web"))
        assert await server.placed("web") == {"web": "n3"}
        # The other version of the same object, as by somebody who converted the file.
        await kubectl.apply(of_version(BETA, avoiding("alpha", "n3")), of_version(ALPHA, avoiding("beta", "n2")))
        await server.policy_says("alpha", 2, Active="Enforce")
        await server.load(pod("app"))
        assert await server.placed("app") == {"app": "n1"}
    for version in (ALPHA, BETA):
        found = (await server.call("GET", path(version)))["items"]
        assert {one["apiVersion"] for one in found} == {f"policysched.io/{version}"}
        assert all(one["status"]["activeGeneration"] == one["metadata"]["generation"] for one in found)


@pytest.fixture
async def cluster(real_server: Server) -> AsyncIterator[RealServer]:
    """A real API server whose definition a test replaces."""
    assert isinstance(real_server, RealServer)
    yield real_server
    assert real_server.plane is not None
    real_server.plane.kubectl("delete", "crd", NAME, "--wait")


async def serve(server: RealServer, *versions: str, stored: str) -> None:
    """Replace the definition, and wait until these versions are served and no others."""
    assert server.plane is not None
    api = server.plane.api
    await server.call("PATCH", f"{DEFINITIONS}/{NAME}", definition(*versions, stored=stored), MERGE)
    wanted = {version: version in versions for version in (ALPHA, BETA)}
    await until_true(lambda: {version: api.answers(path(version)) for version in wanted} == wanted)


def store_all_as(api: Api, version: str) -> None:
    """Write each policy as it is, then have the definition say that no other version is stored."""

    def write(name: str) -> bool:
        try:
            api.call("PUT", path(version, name), api.call("GET", path(version, name)))
        except RefusedError as error:
            assert error.status == 409, error  # a status was written meanwhile
            return False
        return True

    for one in api.call("GET", path(version))["items"]:
        name = one["metadata"]["name"]
        loading.until(lambda name=name: write(name), f"policy {name} is written")  # type: ignore[misc]
    api.call("PATCH", f"{DEFINITIONS}/{NAME}/status", {"status": {"storedVersions": [version]}}, MERGE)


async def moves(server: RealServer, number: int, avoided: str, expected: str, version: str) -> None:
    """Change the policy in a version, and see from a pod and from the status that it is used."""
    change = {"spec": avoiding("p", avoided)["spec"]}
    made = await server.call("PATCH", path(version, "p"), change, MERGE)

    async def status() -> Json:
        found: Json = (await server.call("GET", path(version, "p"))).get("status") or {}
        return found

    await until(status, lambda seen: seen.get("activeGeneration") == made["metadata"]["generation"])
    await server.load(pod(f"web-{number}"))
    assert await server.placed(f"web-{number}") == {f"web-{number}": expected}


@pytest.mark.controlplane
async def test_definition_is_replaced_under_a_running_scheduler(cluster: RealServer) -> None:
    """From a definition without the new version to one without the old version, and back; the scheduler stays."""
    assert cluster.plane is not None
    api = cluster.plane.api
    await serve(cluster, ALPHA, BETA, stored=ALPHA)
    await asyncio.to_thread(store_all_as, api, ALPHA)
    await serve(cluster, ALPHA, stored=ALPHA)
    await cluster.load(node("n1"), node("n2"))
    await cluster.call("POST", path(ALPHA), of_version(ALPHA, avoiding("p", "n1")))
    async with in_process(cluster.kubeconfig) as scheduler:
        await scheduler.said("schedulingpolicies: the API server serves policysched.io/v1alpha1, not policysched.io/v1")
        await moves(cluster, 1, "n2", "n1", ALPHA)
        await serve(cluster, ALPHA, BETA, stored=BETA)
        await moves(cluster, 2, "n1", "n2", BETA)
        await asyncio.to_thread(store_all_as, api, BETA)
        await serve(cluster, BETA, stored=BETA)
        await scheduler.said("schedulingpolicies: the API server serves policysched.io/v1beta1")
        await moves(cluster, 3, "n2", "n1", BETA)
        await serve(cluster, ALPHA, BETA, stored=ALPHA)
        await asyncio.to_thread(store_all_as, api, ALPHA)
        await serve(cluster, ALPHA, stored=ALPHA)
        await scheduler.said("schedulingpolicies: the API server serves policysched.io/v1alpha1", times=2)
        await moves(cluster, 4, "n1", "n2", ALPHA)
        assert not scheduler.saying("ERROR")
