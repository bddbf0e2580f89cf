"""Every recipe of the cookbook on an API server: kubectl applies it to its cluster, and pods go where it says."""

from __future__ import annotations

from pathlib import Path

import pytest

from policysched.sandbox import Sandbox
from tests.controlplane.plane import ControlPlane
from tests.e2e.conftest import Kubectl
from tests.e2e.real import real_server
from tests.e2e.schedulers import in_process
from tests.e2e.server import Server
from tests.e2e.waiting import until
from tests.examples.cases import CLUSTER, EXAMPLES, POLICY, Case, cases, documents
from tools.cookbook import RECIPES


async def plays(server: Server, kubectl: Kubectl, recipe: str) -> None:
    """Apply a recipe on its cluster and try its tests, as far as they hold on any server."""
    await server.load(*documents(recipe, CLUSTER))
    await kubectl.run("apply", "-f", str(EXAMPLES / recipe / POLICY))
    [policy] = documents(recipe, POLICY)
    name = policy["metadata"]["name"]
    status = await server.policy_says(name, 1, Compiled="Compiled", Active="Enforce")
    assert [one for one in status.get("diagnostics", ()) if one["code"] != "W0705"] == []
    for number, case in enumerate(one for one in cases(recipe) if one.holds_anywhere and recipe != "cookbook/warm-up"):
        await _tries(server, case, f"new-{number}")


async def _tries(server: Server, case: Case, name: str) -> None:
    """Make the pod of a test, see where it goes, and take it away again."""
    namespace = case.pod["metadata"]["namespace"]
    await server.load({**case.pod, "metadata": {**case.pod["metadata"], "name": name}})
    if case.best:
        path = f"/api/v1/namespaces/{namespace}/pods/{name}"
        found = await until(lambda: server.call("GET", path), lambda one: "nodeName" in one["spec"])
        assert found["spec"]["nodeName"] in case.best, case.given
        await server.call("DELETE", path, {"gracePeriodSeconds": 0})
        gone = f"/api/v1/namespaces/{namespace}/pods"
        await until(
            lambda: server.call("GET", gone),
            lambda listed: name not in [one["metadata"]["name"] for one in listed["items"]],
        )
        return
    await until(lambda: server.events(name), lambda seen: any(one["reason"] == "FailedScheduling" for one in seen))


@pytest.mark.kubectl
@pytest.mark.parametrize("recipe", RECIPES)
async def test_a_recipe_works_on_the_sandbox(
    sandbox: Sandbox, sandbox_server: Server, kubectl_program: Path, tmp_path: Path, recipe: str
) -> None:
    async with in_process(sandbox_server.kubeconfig):
        kubectl = Kubectl(kubectl_program, sandbox_server.kubeconfig, tmp_path / "cache")
        await plays(sandbox_server, kubectl, recipe)


@pytest.mark.controlplane
@pytest.mark.parametrize("half", [0, 1])
async def test_recipes_work_on_a_control_plane(
    control_plane: ControlPlane, kubectl_program: Path, tmp_path: Path, half: int
) -> None:
    for recipe in list(RECIPES)[half::2]:
        async with real_server(control_plane, bare=False) as server:
            kubectl = Kubectl(kubectl_program, server.kubeconfig, tmp_path / "cache")
            async with in_process(server.kubeconfig):
                await plays(server, kubectl, recipe)
