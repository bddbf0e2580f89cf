"""docs/run/install.md, followed as it is written: from an empty cluster to a policy in force, and back."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import AsyncIterator
from pathlib import Path

import pytest
import yaml

from tests.controlplane.build import binary
from tests.controlplane.plane import ControlPlane
from tests.deploy.build import helm
from tests.deploy.conftest import installed_objects
from tests.deploy.installed import account_kubeconfig, running
from tests.deploy.rendering import DEPLOY, OVERLAYS, kustomized, of_kind
from tests.e2e.objects import node
from tests.e2e.real import RealServer
from tests.e2e.waiting import until
from tests.meta.markdown import ROOT, blocks_of, codes, prose, table

pytestmark = pytest.mark.controlplane
PAGE = ROOT / "docs" / "run" / "install.md"
PROGRAMS = ("kubectl", "helm")


def commands(title: str) -> list[str]:
    """Give the commands of a section that a cluster sees, as they are written."""
    parts = re.split(r"^##+ +", PAGE.read_text("utf-8"), flags=re.MULTILINE)
    [text] = [part for part in parts if part.splitlines()[0] == title]
    lines = "".join(block.text for block in blocks_of(text) if block.kind == "sh").replace("\\\n", " ").splitlines()
    found = [line for line in lines if line.split()[0] in PROGRAMS]
    assert found, title
    return found


class Operator:
    """Somebody who follows the page, in a checkout, with an administrator's kubeconfig."""

    def __init__(self, plane: ControlPlane, folder: Path) -> None:
        (folder / "bin").mkdir()
        for name, program in (("kubectl", binary("kubectl")), ("helm", helm())):
            (folder / "bin" / name).symlink_to(program)
        self.folder = folder / "checkout"
        self.folder.mkdir()
        for name in ("deploy", "crds", "examples"):
            (self.folder / name).symlink_to(ROOT / name)
        path = f"{folder / 'bin'}:{os.environ['PATH']}"
        self._environment = os.environ | {"PATH": path, "KUBECONFIG": str(plane.kubeconfig()), "HOME": str(folder)}

    async def follows(self, title: str) -> str:
        """Run the commands of a section, each of which must succeed, and give what they print."""
        return "".join([await self.runs(command) for command in commands(title)])

    async def runs(self, command: str) -> str:
        """Run a command that must succeed, and give what it prints."""
        process = await asyncio.create_subprocess_exec(
            "sh", "-ec", command,
            cwd=self.folder, env=self._environment, stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE, stderr=asyncio.subprocess.STDOUT,
        )  # fmt: skip
        output, _ = await asyncio.wait_for(process.communicate(), 120)
        assert process.returncode == 0, f"{command}: {output.decode()}"
        return output.decode()


@pytest.fixture
async def operator(cluster: RealServer, kube_scheduler: None, tmp_path: Path) -> AsyncIterator[Operator]:
    """A newcomer at a cluster of three nodes, where kube-scheduler is at work."""
    assert cluster.plane is not None
    await cluster.load(*(node(f"piworknode00{number}") for number in (1, 2, 3)))
    yield Operator(cluster.plane, tmp_path)


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
    assert "successfully rolled out" in await operator.follows("With kubectl")
    kubeconfig = await account_kubeconfig(cluster, tmp_path)
    async with running(kustomized(DEPLOY / "beside"), kubeconfig, tmp_path):
        assert "policysched" in await operator.follows("Who leads")
        said = await operator.follows("A first policy")
        assert "pin-a-node   Enforce" in said
        assert await cluster.placed("report-1") == {"report-1": "piworknode001"}
        assert '["v1alpha1"]' in await operator.follows("Upgrade")
        [kept] = await cluster.objects("SchedulingPolicy")
        assert kept["metadata"]["name"] == "pin-a-node"
    await operator.follows("Uninstall")
    saved = yaml.safe_load((operator.folder / "policies.yaml").read_text())
    assert [obj["metadata"]["name"] for obj in saved["items"]] == ["pin-a-node"]
    await nothing_is_left(cluster)


async def test_page_leads_to_helm_s_release_and_back(cluster: RealServer, operator: Operator) -> None:
    install, upgrade, uninstall = commands("With Helm")
    deployments = "/apis/apps/v1/namespaces/kube-system/deployments"
    for command, replicas in ((install, [2]), (upgrade, [3]), (uninstall, [])):
        await operator.runs(command)
        found = (await cluster.call("GET", deployments))["items"]
        assert [obj["spec"]["replicas"] for obj in found if "deletionTimestamp" not in obj["metadata"]] == replicas
    await nothing_is_left(cluster, "CustomResourceDefinition")  # which stays, and policies with it


async def test_page_s_other_commands_are_taken(operator: Operator) -> None:
    for title in ("In kube-scheduler's place", "A static pod", "Monitoring"):
        await operator.follows(title)


def test_page_s_own_kustomization_renders(tmp_path: Path) -> None:
    [text] = [block.text for block in blocks_of(PAGE.read_text("utf-8")) if "kustomization.yaml" in block.text]
    (tmp_path / "deploy").symlink_to(DEPLOY)
    (tmp_path / "crds").symlink_to(ROOT / "crds")
    (tmp_path / "kustomization.yaml").write_text(text)
    [deployment] = of_kind(kustomized(tmp_path), "Deployment")
    [container] = deployment["spec"]["template"]["spec"]["containers"]
    assert container["image"] == "registry.example.com/policysched:0.1.0"


def test_page_s_rights_are_those_of_the_roles() -> None:
    objects = kustomized(DEPLOY / "beside")
    granted: dict[str, set[str]] = {}
    for role in (*of_kind(objects, "ClusterRole"), *of_kind(objects, "Role")):
        for rule in role["rules"]:
            for resource in rule["resources"]:
                granted.setdefault(resource, set()).update(rule["verbs"])
    told = {name: set(codes(row[1])) for row in table(PAGE, "Rights") for name in codes(row[0])}
    assert told == granted


def test_page_s_values_are_the_chart_s() -> None:
    told = {name.partition(".")[0] for row in table(PAGE, "With Helm") for name in codes(row[0])}
    assert told == set(yaml.safe_load((DEPLOY / "chart" / "values.yaml").read_text()))


def test_page_s_sizes_are_those_that_were_measured() -> None:
    measured = (ROOT / "docs" / "inside" / "performance.md").read_text("utf-8")
    rows = [re.findall(r"[\d,]+", line) for line in measured.splitlines() if line.startswith("│")]
    found = {(row[0], row[1]): (row[2], row[5]) for row in rows if len(row) == 6}
    told = table(PAGE, "Sizing")
    assert told
    for nodes, _, rules, decision, peak in told:
        assert found[nodes, rules] == (decision, peak)


def test_page_s_symptoms_are_what_the_scheduler_logs() -> None:
    sources = "".join(path.read_text("utf-8") for path in (ROOT / "policysched").rglob("*.py"))
    said = [text for row in table(PAGE, "When something is wrong") if "the log" in row[0] for text in codes(row[0])]
    assert len(said) >= 5
    servers_own = {"cannot list resource", "is forbidden"}
    assert [text for text in said if text not in sources and text not in servers_own] == []


def test_page_names_every_overlay() -> None:
    text = prose(PAGE)
    assert [name for name in (*OVERLAYS, "chart", "components", "base") if f"`deploy/{name}`" not in text] == []
