"""docs/run/platforms.md: what can be tested of other platforms on the control plane of the tests."""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any

import pytest
import yaml

from policysched.model.release import minor_of
from tests.controlplane.plane import ControlPlane
from tests.controlplane.releases import chosen
from tests.deploy.definitions import definition
from tests.deploy.operator_machine import PAGE
from tests.deploy.rendering import DEPLOY, Json, container, kustomized, of_kind
from tests.deploy.test_chart import ALL, released, rendered
from tests.deploy.test_pod_security import STRICT, refusal
from tests.e2e.objects import DEFINITION
from tests.e2e.real import RealServer
from tools.documents.markdown import ROOT, blocks_of

PLATFORMS = PAGE.with_name("platforms.md")
IMAGE = "registry.example.com/policysched:0.1.0"
ALLOWED_VOLUMES = {
    "configMap",
    "csi",
    "downwardAPI",
    "emptyDir",
    "ephemeral",
    "persistentVolumeClaim",
    "projected",
    "secret",
}
"""The kinds of volumes that OpenShift's restricted-v2 allows."""
USER = 1_000_680_000
"""A user of a range that OpenShift gives a namespace."""
CLOUDS = [
    "v1.{}.4-eks-3025e55",
    "v1.{}.3-gke.1211000",
    "v1.{}.2",
    "v1.{}.5+k3s1",
    "v1.{}.1+rke2r1",
    "v1.{}.6-1+a1b2c3d",
]


@pytest.mark.kubectl
@pytest.mark.parametrize("version", CLOUDS)
def test_versions_of_distributions_are_read_and_taken_by_the_chart(version: str, tmp_path: Path) -> None:
    minor = chosen().version.split(".")[1]
    assert minor_of(version.format(minor)) == f"1.{minor}"
    done = rendered(tmp_path, kube_version=version.format(minor))
    assert done.returncode == 0, done.stderr


@pytest.mark.kubectl
def test_chart_refuses_clusters_without_the_device_api(tmp_path: Path) -> None:
    assert "kubeVersion" in rendered(tmp_path, kube_version="v1.33.9-eks-3025e55").stderr


@pytest.fixture
def pods(tmp_path: Path) -> list[Json]:
    """The pods of a release of the chart with all parts, in a namespace of its own."""
    objects = released(tmp_path, "policysched", **ALL)
    specs = [obj["spec"]["template"]["spec"] for obj in of_kind(objects, "Deployment")]
    return [*specs, *(obj["spec"] for obj in of_kind(objects, "Pod"))]


@pytest.mark.kubectl
def test_pods_ask_for_nothing_that_restricted_v2_refuses(pods: list[Json]) -> None:
    assert len(pods) == 3
    for spec in pods:
        contexts = [spec["securityContext"], *(one["securityContext"] for one in spec["containers"])]
        assert not {"runAsUser", "runAsGroup", "fsGroup", "seLinuxOptions"} & {key for one in contexts for key in one}
        assert not {"hostNetwork", "hostPID", "hostIPC"} & spec.keys()
        assert {kind for volume in spec.get("volumes", ()) for kind in volume if kind != "name"} <= ALLOWED_VOLUMES
        assert all("hostPort" not in port for one in spec["containers"] for port in one.get("ports", ()))
        for one in spec["containers"]:
            assert one["securityContext"]["capabilities"] == {"drop": ["ALL"]}
            assert one["securityContext"]["allowPrivilegeEscalation"] is False


def as_openshift_changes(spec: Json) -> Json:
    """Return a pod with what restricted-v2 sets: a user and a group of the namespace's range, and an SELinux level."""
    level = {"level": "s0:c26,c5"}
    context = {**spec["securityContext"], "fsGroup": USER, "seLinuxOptions": level}
    containers = [
        {**one, "securityContext": {**one["securityContext"], "runAsUser": USER}} for one in spec["containers"]
    ]
    return {**spec, "securityContext": context, "containers": containers}


@pytest.mark.controlplane
async def test_pods_with_a_user_of_openshift_pass_where_pods_are_restricted(
    cluster: RealServer, pods: list[Json]
) -> None:
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    await cluster.load({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": STRICT, "labels": labels}})
    for spec in pods:
        assert await refusal(cluster, as_openshift_changes(spec)) == ""
        root = as_openshift_changes(spec)
        root["containers"][0]["securityContext"]["runAsUser"] = 0
        assert "violates PodSecurity" in await refusal(cluster, root)


def manifests(title: str) -> list[Json]:
    """Return the objects that a section of the page shows."""
    parts = re.split(r"^## +", PLATFORMS.read_text("utf-8"), flags=re.MULTILINE)
    [part] = [part for part in parts if part.splitlines()[0] == title]
    return [*yaml.safe_load_all("".join(block.text for block in blocks_of(part) if block.kind == "yaml"))]


@pytest.fixture
async def deliverers(cluster: RealServer) -> AsyncIterator[ControlPlane]:
    """A control plane with the definitions of Argo CD and Flux."""
    plane = cluster.plane
    assert plane is not None
    made = [definition(name) for name in ("applications", "gitrepositories", "kustomizations")]
    names = [f"crd/{one['metadata']['name']}" for one in made]
    await cluster.load(*made)
    await asyncio.to_thread(plane.kubectl, "create", "namespace", "argocd")
    await asyncio.to_thread(plane.kubectl, "create", "namespace", "flux-system")
    yield plane
    await asyncio.to_thread(plane.kubectl, "delete", *names)


@pytest.mark.controlplane
async def test_manifests_for_argo_cd_and_flux_are_taken_by_their_definitions(deliverers: ControlPlane) -> None:
    check = ("apply", "--dry-run=server", "--validate=strict", "-f", "-")
    for title, count in (("Argo CD", 1), ("Flux", 3)):
        objects = manifests(title)
        said = await asyncio.to_thread(deliverers.kubectl, *check, stdin=objects)
        assert said.count("created (server dry run)") == count
        objects[-1]["spec"]["pathh"] = "crds"
        refused = await asyncio.to_thread(deliverers.kubectl, *check, stdin=objects, code=1)
        assert 'unknown field "spec.pathh"' in refused


@pytest.mark.kubectl
def test_folders_of_argo_cd_s_application_are_an_installation(tmp_path: Path) -> None:
    [application] = manifests("Argo CD")
    crds, installation = application["spec"]["sources"]
    assert kustomized(ROOT / crds["path"]) == [DEFINITION]
    [image] = installation["kustomize"]["images"]
    name, _, given = image.partition("=")
    repository, _, tag = given.rpartition(":")
    objects = _with_image(tmp_path, installation["path"], {"name": name, "newName": repository, "newTag": tag})
    assert container(objects)["image"] == IMAGE
    assert application["spec"]["destination"]["namespace"] == "kube-system"


@pytest.mark.kubectl
def test_kustomizations_of_flux_are_an_installation_that_never_deletes_the_definition(tmp_path: Path) -> None:
    source, crds, installation = manifests("Flux")
    assert (crds["spec"]["prune"], kustomized(ROOT / crds["spec"]["path"])) == (False, [DEFINITION])
    assert installation["spec"]["dependsOn"] == [{"name": crds["metadata"]["name"]}]
    for one in (crds, installation):
        assert one["spec"]["sourceRef"] == {"kind": source["kind"], "name": source["metadata"]["name"]}
    [image] = installation["spec"]["images"]
    assert container(_with_image(tmp_path, installation["spec"]["path"], image))["image"] == IMAGE


def _with_image(folder: Path, path: str, image: dict[str, Any]) -> list[Json]:
    """Return the objects of a folder of the repository with another image."""
    (folder / "deploy").symlink_to(DEPLOY)
    content = {"resources": [path], "images": [image]}
    (folder / "kustomization.yaml").write_text(yaml.safe_dump(content), "utf-8")
    return kustomized(folder)
