"""docs/run/beside.md, followed as it is written: pods by namespace, and two schedulers that share no node."""

from __future__ import annotations

import asyncio
import shutil
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, Final

import pytest
import yaml

from tests.controlplane.plane import ControlPlane
from tests.deploy.definitions import definition
from tests.deploy.installed import account_kubeconfig, running
from tests.deploy.operator_machine import Operator
from tests.deploy.rendering import DEPLOY, Json, kustomized
from tests.e2e.objects import node, pod
from tests.e2e.real import RealServer
from tests.e2e.waiting import until
from tools.documents.markdown import ROOT, blocks_of

pytestmark = pytest.mark.controlplane
PAGE: Final = ROOT / "docs" / "run" / "beside.md"
ADMISSION: Final = DEPLOY / "admission"
TEAM: Final = "team-a"
TOLERATION: Final = {"key": "policysched.io/pool", "operator": "Exists", "effect": "NoSchedule"}
OTHER: Final = {"key": "a", "operator": "Exists"}
OWNED: Final = {"apiVersion": "apps/v1", "kind": "DaemonSet", "name": "agent", "uid": "1"}


def plane_of(server: RealServer) -> ControlPlane:
    assert server.plane is not None
    return server.plane


async def delete_admission(server: RealServer) -> None:
    """Delete the admission policy, and wait until it no longer applies."""
    files = str(ADMISSION / "mutating-admission-policy.yaml")
    await asyncio.to_thread(plane_of(server).kubectl, "delete", "--ignore-not-found", "-f", files)
    await until(lambda: admitted(server, pod("tried", namespace=TEAM, scheduler="")), lambda spec: not is_given(spec))


@pytest.fixture
async def team(cluster: RealServer) -> AsyncIterator[RealServer]:
    """A cluster with a namespace; the admission policy of a test is deleted at its end."""
    await cluster.load({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": TEAM}})
    yield cluster
    await delete_admission(cluster)


@pytest.fixture
async def operator(team: RealServer, tmp_path: Path) -> Operator:
    """An operator who has policysched's manifests, and the page's configuration in place of the one in deploy/base."""
    made = Operator(plane_of(team), tmp_path)
    [text] = [one.text for one in blocks_of(PAGE.read_text("utf-8")) if "file=scheduler.yaml" in one.words]
    (made.folder / "deploy/base/scheduler.yaml").write_text(text)
    return made


async def admitted(server: RealServer, obj: Json) -> Json:
    """Return the spec of a pod as the API server would store it; it stores nothing."""
    path = f"/api/v1/namespaces/{obj['metadata']['namespace']}/pods?dryRun=All"
    found: Json = (await server.call("POST", path, obj))["spec"]
    return found


def is_given(spec: Json) -> bool:
    """Return whether a pod is given to policysched."""
    return bool(spec["schedulerName"] == "policysched")


async def test_pods_by_namespace_and_no_node_shared(
    team: RealServer, kube_scheduler: None, operator: Operator, tmp_path: Path
) -> None:
    plane = plane_of(team)
    await team.load(*(node(f"worker-{number}") for number in (1, 2, 3)))
    await operator.runs("kubectl apply -f crds/")
    for title in ("Give each scheduler its own nodes", "Give namespaces to policysched"):
        await operator.follows(title, PAGE)
    await operator.runs("kubectl apply -k .")
    await until(lambda: admitted(team, pod("tried", namespace=TEAM, scheduler="")), is_given)
    async with running(kustomized(operator.folder), await account_kubeconfig(team, tmp_path), tmp_path):
        for space in (TEAM, "default"):
            of: dict[str, Any] = {"scheduler": "", "namespace": space, "requests": {"cpu": "500m"}}
            await team.load(*(pod(f"web-{number}", **of) for number in range(6)))

        async def places() -> dict[str, set[str]]:
            found = await asyncio.to_thread(plane.objects, "Pod")
            return {
                space: {one["spec"].get("nodeName", "") for one in found if one["metadata"]["namespace"] == space}
                for space in (TEAM, "default")
            }

        found = await until(places, lambda found: "" not in found[TEAM] | found["default"])
        assert found[TEAM] == {"worker-3"}
        assert found["default"] <= {"worker-1", "worker-2"}
        await team.load(pod("large", scheduler="", namespace=TEAM, requests={"cpu": "3"}))

        async def reason() -> str:
            found = await asyncio.to_thread(plane.objects, "Event", TEAM)
            return "".join(one["message"] for one in found if one["reason"] == "FailedScheduling")

        said = await until(reason, bool)
        assert "2 node(s) didn't match scheduler-enforced node affinity" in said


@pytest.mark.parametrize(
    ("given", "scheduler", "tolerations"),
    [
        ({}, "policysched", [TOLERATION]),
        ({"tolerations": [OTHER]}, "policysched", [OTHER, TOLERATION]),
        ({"schedulerName": "other"}, "other", []),
        ({"nodeName": "n1"}, "default-scheduler", []),
    ],
)  # fmt: skip
async def test_admission_gives_only_pods_without_a_scheduler_and_node(
    team: RealServer, operator: Operator, given: dict[str, Any], scheduler: str, tolerations: list[Json]
) -> None:
    await operator.follows("Give namespaces to policysched", PAGE)
    made = pod("web", namespace=TEAM, scheduler="")
    await until(lambda: admitted(team, made), is_given)
    spec = await admitted(team, made | {"spec": made["spec"] | given})
    assert spec["schedulerName"] == scheduler
    assert [one for one in spec["tolerations"] if not one["key"].startswith("node.kubernetes.io/")] == tolerations
    daemon = made | {"metadata": made["metadata"] | {"ownerReferences": [OWNED]}}
    assert not is_given(await admitted(team, daemon))
    assert not is_given(await admitted(team, made | {"metadata": {"name": "web", "namespace": "default"}}))


async def test_kyverno_s_schema_accepts_the_same_policy(cluster: RealServer, tmp_path: Path) -> None:
    plane = plane_of(cluster)
    crd = tmp_path / "crd.yaml"
    made = definition("mutatingpolicies")
    name = f"crd/{made['metadata']['name']}"
    crd.write_text(yaml.safe_dump(made))
    path, wrong = ADMISSION / "kyverno.yaml", tmp_path / "wrong.yaml"
    shutil.copy(path, wrong)
    wrong.write_text(wrong.read_text().replace("matchConditions", "matchCondition"))

    def check() -> None:
        plane.kubectl("create", "-f", str(crd))
        try:
            plane.await_use([made])
            strict = ("create", "--dry-run=server", "--validate=strict", "-f")
            plane.kubectl(*strict, str(path))
            assert 'unknown field "spec.matchCondition"' in plane.kubectl(*strict, str(wrong), code=1)
        finally:
            plane.kubectl("delete", name)

    await asyncio.to_thread(check)
    ours, _ = yaml.safe_load_all((ADMISSION / "mutating-admission-policy.yaml").read_text())
    spec = yaml.safe_load(path.read_text())["spec"]
    assert {key: spec[key] for key in spec if key in ours["spec"]} == {
        key: ours["spec"][key] for key in ours["spec"] if key != "reinvocationPolicy"
    }
