"""docs/run/install.md, followed as it is written: from an empty cluster to a policy in force, and back."""

from __future__ import annotations

import asyncio
import json
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml

from tests.deploy.conftest import installed_objects
from tests.deploy.installed import account_kubeconfig, running
from tests.deploy.operator_machine import PAGE, Operator, commands
from tests.deploy.rendering import DEPLOY, OVERLAYS, Json, kustomized, of_kind, own_roles
from tests.e2e.objects import node
from tests.e2e.real import RealServer
from tests.e2e.waiting import until
from tools.documents.markdown import ROOT, blocks_of, codes, prose, table, tables

pytestmark = pytest.mark.controlplane
SECURITY = PAGE.with_name("security.md")
OBSERVE = PAGE.with_name("observe.md")
TROUBLESHOOT = PAGE.with_name("troubleshoot.md")
UPGRADE = PAGE.with_name("upgrade.md")
REPOSITORY = "registry.example.com/policysched"
IMAGE, NEW = f"{REPOSITORY}:0.1.0", f"{REPOSITORY}:0.2.0"


@pytest.fixture
async def operator(cluster: RealServer, kube_scheduler: None, tmp_path: Path) -> AsyncIterator[Operator]:
    """A newcomer at a cluster of three nodes, where kube-scheduler is at work."""
    assert cluster.plane is not None
    await cluster.load(*(node(f"worker-{number}") for number in (1, 2, 3)))
    yield Operator(cluster.plane, tmp_path)


def names(objects: list[Json]) -> list[str]:
    """Give the names of objects."""
    return [obj["metadata"]["name"] for obj in objects]


async def images(server: RealServer) -> set[str]:
    """Return the images of the Deployments in kube-system."""
    found = (await server.call("GET", "/apis/apps/v1/namespaces/kube-system/deployments"))["items"]
    return {one["image"] for obj in found for one in obj["spec"]["template"]["spec"]["containers"]}


async def succeeds(server: RealServer, name: str) -> None:
    """End a pod of kube-system with success once it has a node."""
    path = f"/api/v1/namespaces/kube-system/pods/{name}"

    async def found() -> Json:
        pods = (await server.call("GET", "/api/v1/namespaces/kube-system/pods"))["items"]
        return next((pod for pod in pods if pod["metadata"]["name"] == name), {})

    await until(found, lambda pod: pod.get("status", {}).get("phase") == "Running")
    await server.call("PATCH", f"{path}/status", {"status": {"phase": "Succeeded"}}, "application/merge-patch+json")


async def nothing_is_left(server: RealServer, *but: str) -> None:
    """Wait until nothing of an installation is there any more, except objects of these kinds."""
    assert server.plane is not None
    plane = server.plane
    await until(
        lambda: asyncio.to_thread(installed_objects, plane), lambda left: [kind for kind, _, _ in left] == list(but)
    )


async def test_page_leads_to_a_policy_in_force_and_back(
    cluster: RealServer, operator: Operator, tmp_path: Path
) -> None:
    await operator.follows("Build the image")
    assert operator.pushed() == {IMAGE}
    *install, lease = commands("Install with kubectl")
    assert "successfully rolled out" in "".join([await operator.runs(command) for command in install])
    assert await images(cluster) == {IMAGE}
    kubeconfig = await account_kubeconfig(cluster, tmp_path)
    async with running(kustomized(operator.folder), kubeconfig, tmp_path):
        leases = "/apis/coordination.k8s.io/v1/namespaces/kube-system/leases"
        await until(lambda: cluster.call("GET", leases), lambda found: "policysched" in names(found["items"]))
        assert "policysched" in await operator.runs(lease)
        said = await operator.follows("Apply a first policy")
        assert "policy only-ssd/ssd: the node has no SSD" in said
        assert re.search(r"^first .* worker-3 ", said, re.MULTILINE)
        await operator.follows("Who can write policies", SECURITY)
        await operator.runs("kubectl apply -f first-policy.yaml")
        assert '["v1beta1"]' in await operator.follows("Upgrade", UPGRADE)
        assert names(await cluster.objects("SchedulingPolicy")) == ["only-ssd"]
        assert (await images(cluster), operator.pushed()) == ({NEW}, {IMAGE, NEW})
        await operator.follows("Roll back", UPGRADE)
        assert await images(cluster) == {IMAGE}
    *uninstall, save, delete = commands("Uninstall")
    for command in uninstall:
        await operator.runs(command)
    await operator.runs("kubectl delete clusterrole,clusterrolebinding policy-authors")
    await nothing_is_left(cluster, "CustomResourceDefinition")
    assert names(await cluster.objects("SchedulingPolicy")) == ["only-ssd"]
    await operator.runs(save)
    await operator.runs("kubectl delete schedulingpolicies --all && kubectl apply -f policies.yaml")
    await operator.runs("kubectl delete schedulingpolicies --all && kubectl apply -f first-policy.yaml")
    await operator.runs("kubectl apply -f policies.yaml")  # over an object with another UID
    await operator.runs("sed 's/the node has no SSD/no SSD/' first-policy.yaml | kubectl apply -f -")
    await operator.runs(delete)
    saved = yaml.safe_load((operator.folder / "policies.yaml").read_text())
    assert names(saved["items"]) == ["only-ssd"]
    await nothing_is_left(cluster)


async def test_page_leads_to_helm_s_release_and_back(cluster: RealServer, operator: Operator, tmp_path: Path) -> None:
    await operator.follows("Build the image")
    package, install, test, change, uninstall = commands("Helm")
    assert "symbolic" not in await operator.runs(package) + await operator.runs(install)
    assert await images(cluster) == {IMAGE}
    async with running(kustomized(operator.folder), await account_kubeconfig(cluster, tmp_path), tmp_path):
        tested, _ = await asyncio.gather(operator.runs(test), succeeds(cluster, "policysched-test"))
    assert "Succeeded" in tested
    deployments = "/apis/apps/v1/namespaces/kube-system/deployments"
    chart = operator.folder / "deploy" / "chart" / "Chart.yaml"
    chart.write_text(chart.read_text("utf-8").replace("ersion: 0.1.0", "ersion: 0.2.0"))
    for command, replicas in ((change, [3]), (" && ".join(commands("Helm", UPGRADE)), [3]), (uninstall, [])):
        await operator.runs(command)
        assert await images(cluster) == {IMAGE if command == change else NEW} or command == uninstall
        found = (await cluster.call("GET", deployments))["items"]
        assert [obj["spec"]["replicas"] for obj in found if "deletionTimestamp" not in obj["metadata"]] == replicas
    _, *leases, _, _ = commands("Uninstall")
    for command in leases:
        await operator.runs(command)
    await nothing_is_left(cluster, "CustomResourceDefinition")  # which stays, and policies with it


async def test_page_s_other_commands_are_taken(operator: Operator) -> None:
    lease = {"apiVersion": "coordination.k8s.io/v1", "kind": "Lease"}
    metadata = {"name": "kube-scheduler", "namespace": "kube-system"}
    (operator.folder / "lease.json").write_text(json.dumps({**lease, "metadata": metadata}))
    await operator.runs("kubectl create -f lease.json")  # kube-scheduler of the fixture has none
    await operator.follows("Outside the cluster")
    operator.on_host("manifests/kube-scheduler.yaml").write_text("kube-scheduler's own")
    await operator.follows("Replace kube-scheduler")
    assert not operator.on_host("manifests/kube-scheduler.yaml").exists()
    await operator.follows("Scrape the metrics", OBSERVE)
    verify = "openssl verify -CAfile tls.crt -verify_hostname policysched.kube-system.svc tls.crt"
    assert "OK" in await operator.runs(verify)
    await operator.runs("kubectl -n kube-system delete secret policysched-tls")
    [deployment] = of_kind(kustomized(operator.folder), "Deployment")
    assert "in-place" in (operator.folder / "kustomization.yaml").read_text("utf-8")
    await operator.runs("kubectl delete -f lease.json")
    assert deployment["spec"]["template"]["spec"]["containers"][0]["image"] == IMAGE


async def test_page_replaces_the_manifest_of_kube_scheduler_and_keeps_it(operator: Operator) -> None:
    manifest, saved = (
        operator.on_host(name) for name in ("manifests/kube-scheduler.yaml", "kube-scheduler.yaml.saved")
    )
    manifest.write_text("kube-scheduler's own")
    await operator.follows("Build the image")
    *steps, back = commands("Static pod")
    for command in steps:
        await operator.runs(command)
    assert saved.read_text() == "kube-scheduler's own"
    [container] = yaml.safe_load(manifest.read_text())["spec"]["containers"]
    assert {container["image"]} == operator.pushed()
    assert operator.on_host("policysched.yaml").exists()
    source = operator.folder / "deploy/static-pod/kube-scheduler.yaml"
    source.write_text(source.read_text().replace("0.1.0", "0.2.0"))
    await operator.follows("Static pods", UPGRADE)
    [container] = yaml.safe_load(manifest.read_text())["spec"]["containers"]
    assert container["image"] == NEW
    await operator.runs(back)
    assert manifest.read_text() == "kube-scheduler's own"


def test_page_s_own_kustomization_renders(tmp_path: Path) -> None:
    page = blocks_of(PAGE.read_text("utf-8"))
    [text] = [block.text for block in page if "file=kustomization.yaml" in block.words]
    [components] = [block.text for block in page if block.text.startswith("components:")]
    (tmp_path / "deploy").symlink_to(DEPLOY)
    (tmp_path / "crds").symlink_to(ROOT / "crds")
    (tmp_path / "kustomization.yaml").write_text(text + components)
    found = of_kind(kustomized(tmp_path), "Deployment")
    images = [one["image"] for obj in found for one in obj["spec"]["template"]["spec"]["containers"]]
    assert images == [IMAGE, IMAGE]
    parts = sorted(path.name for path in (DEPLOY / "components").iterdir())
    assert sorted(re.findall(r"deploy/components/([\w-]+)", components)) == parts


def test_page_builds_the_image_that_it_applies() -> None:
    text = PAGE.read_text("utf-8")
    assert re.findall(r"docker (?:build|buildx build|push) .*?(\S+:\S+\.\d+)", text) == [IMAGE] * 3
    assert REPOSITORY in commands("Helm")[1]


def test_page_s_rights_are_those_of_the_roles() -> None:
    objects = kustomized(DEPLOY / "beside")
    granted: dict[str, set[str]] = {}
    for role in own_roles(objects):
        for rule in role["rules"]:
            for resource in rule["resources"]:
                granted.setdefault(resource, set()).update(rule["verbs"])
    told = {name: set(codes(row[1])) for row in table(SECURITY, "Rights") for name in codes(row[0])}
    assert told == granted


def test_page_s_values_are_the_chart_s() -> None:
    told = {name.partition(".")[0] for row in table(PAGE, "Helm") for name in codes(row[0])}
    assert told == set(yaml.safe_load((DEPLOY / "chart" / "values.yaml").read_text()))


def test_page_s_sizes_are_those_that_were_measured() -> None:
    measured = (ROOT / "docs" / "inside" / "performance.md").read_text("utf-8")
    rows = [re.findall(r"[\d,]+", line) for line in measured.splitlines() if line.startswith("│")]
    found = {(row[0], row[1]): (row[2], row[5]) for row in rows if len(row) == 6}
    told = table(PAGE, "Resources")
    assert told
    for nodes, rules, decision, peak in told:
        assert found[nodes, rules] == (decision, peak)


def test_page_s_symptoms_are_what_the_scheduler_logs() -> None:
    sources = "".join(path.read_text("utf-8") for path in (ROOT / "policysched").rglob("*.py"))
    rows = [row for rows in tables(TROUBLESHOOT) for row in rows]
    said = [text for row in rows if "log" in row["you see"] for text in codes(row["you see"]) if " " in text]
    assert len(said) >= 5
    servers_own = {"cannot list resource", "is forbidden"}
    assert [text for text in said if text not in sources and text not in servers_own] == []


def test_page_names_every_overlay() -> None:
    text = prose(PAGE)
    assert [name for name in (*OVERLAYS, "chart", "components", "base") if f"`deploy/{name}`" not in text] == []
