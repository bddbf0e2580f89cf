"""`run --config`: profiles, plugins and backoff of a file, and the file changing under a running scheduler."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.e2e.objects import Json, node, pod
from tests.e2e.schedulers import COMMAND, spawned
from tests.e2e.server import Server, scheduled_condition
from tests.e2e.waiting import until

HEAD: Json = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
TAINT: Json = {"key": "dedicated", "value": "a", "effect": "NoSchedule"}


def profile(name: str, *off: str, **more: Any) -> Json:
    """A profile without some of the default plugins."""
    return {"schedulerName": name, "plugins": {"multiPoint": {"disabled": [{"name": one} for one in off]}}, **more}


async def rejected(server: Server, name: str) -> str:
    """Wait until a pod is not scheduled, and give the message of its condition."""

    async def condition() -> Json:
        return scheduled_condition(await server.get("Pod", name))

    message: str = (await until(condition, lambda one: one.get("reason") == "Unschedulable"))["message"]
    return message


class File:
    """A configuration file that a ConfigMap would mount: a link to a folder of one version."""

    def __init__(self, folder: Path, server: Server) -> None:
        self._folder, self._server, self._versions = folder, server, 0
        self.path = folder / "data" / "scheduler.yaml"

    def write(self, *profiles: Json, **fields: Any) -> None:
        """Swap the link to a new version."""
        connection = {"kubeconfig": str(self._server.kubeconfig), "qps": -1} | fields.pop("clientConnection", {})
        election = {"leaderElect": False} | fields.pop("leaderElection", {})
        text = yaml.safe_dump(
            {**HEAD, "profiles": profiles, "clientConnection": connection, "leaderElection": election, **fields}
        )
        self.write_text(text)

    def write_text(self, text: str) -> None:
        """Swap the link to a version with this text."""
        self._versions += 1
        version = self._folder / f"version-{self._versions}"
        version.mkdir()
        (version / "scheduler.yaml").write_text(text, "utf-8")
        link = self._folder / "new"
        link.symlink_to(version)
        link.replace(self._folder / "data")


@pytest.fixture
def file(server: Server, tmp_path: Path) -> File:
    return File(tmp_path, server)


async def test_profiles_of_a_file_schedule_the_pods_that_name_them(server: Server, file: File) -> None:
    file.write(profile("strict"), profile("lenient", "TaintToleration"))
    await server.load(node("n1", taints=[TAINT]))
    await server.load(pod("a", scheduler="strict"), pod("b", scheduler="lenient"), pod("c", scheduler="other"))
    async with spawned("--config", str(file.path), "--v=2") as scheduler:
        assert await server.placed("b") == {"b": "n1"}
        assert "untolerated taint" in await rejected(server, "a")
    assert scheduler.saying("schedulerName strict, lenient")
    assert scheduler.saying("parallelism: 16")
    assert scheduler.saying("- name: TaintToleration")


async def test_a_changed_file_takes_force_and_pods_that_its_plugins_rejected_are_tried_again(
    server: Server, file: File
) -> None:
    file.write(profile("ours"), profile("theirs"))
    await server.load(node("n1", taints=[TAINT]), pod("a", scheduler="ours"), pod("b", scheduler="theirs"))
    async with spawned("--config", str(file.path)) as scheduler:
        await rejected(server, "a")
        await rejected(server, "b")
        file.write(profile("ours", "TaintToleration"), profile("theirs"), podMaxBackoffSeconds=20)
        assert await server.placed("a") == {"a": "n1"}
        await scheduler.said("is active; changed profiles: ours; retried pods: ")
        await server.load(pod("c", scheduler="theirs"))
        await rejected(server, "c")
        file.write(profile("ours"), profile("theirs"))
        await scheduler.said("is active; changed profiles: ours; retried pods: 0")
        await server.load(pod("d", scheduler="ours"))
        await rejected(server, "d")


async def test_what_cannot_take_force_is_refused_and_the_rest_goes_on(server: Server, file: File) -> None:
    file.write(profile("ours"))
    await server.load(node("n1", taints=[TAINT]))
    async with spawned("--config", str(file.path)) as scheduler:
        file.write(profile("ours", "TaintToleration"), profile("another"))
        await scheduler.said("profiles: cannot be added, removed or reordered while the process runs")
        file.write(profile("ours", "TaintToleration"), clientConnection={"burst": 7})
        await scheduler.said("clientConnection: cannot change while the process runs")
        file.write(profile("ours", "NotThere", "TaintToleration"), podMaxBackoffSeconds=0)
        await scheduler.said("podMaxBackoffSeconds: 0 is less than podInitialBackoffSeconds 1")
        file.write_text("profiles: [")
        await scheduler.said("not valid YAML")
        (file.path.parent / "scheduler.yaml").unlink()
        await scheduler.said("cannot read the configuration file, the configuration stays as it is")
        await server.load(pod("a", scheduler="ours"))
        await rejected(server, "a")
        file.write(profile("ours", "TaintToleration"))
        assert await server.placed("a") == {"a": "n1"}


@pytest.mark.usefixtures("sandbox")
async def test_a_plugin_that_reads_what_was_not_watched_takes_force_once_that_is_listed(
    server: Server, file: File
) -> None:
    volumes = ("VolumeBinding", "VolumeZone", "VolumeRestrictions", "NodeVolumeLimits")
    file.write(profile("ours", *volumes))
    claim: Json = {"name": "data", "persistentVolumeClaim": {"claimName": "lost"}}
    await server.load(node("n1"))
    async with spawned("--config", str(file.path)) as scheduler:
        await server.load(pod("a", scheduler="ours", volumes=[claim]))
        assert await server.placed("a") == {"a": "n1"}
        file.write(profile("ours"))
        await scheduler.said("the changed configuration is active; changed profiles: ours")
        await server.load(pod("b", scheduler="ours", volumes=[claim]))
        assert 'persistentvolumeclaim "lost" not found' in await rejected(server, "b")


PLUGIN = """
from dataclasses import dataclass

from policysched.plugin import Status, unschedulable


@dataclass
class Arguments:
    only: str = "nowhere"


class OnlyNode:
    def __init__(self, args: Arguments, handle):
        self.args = args

    def filter(self, state, pod, node):
        return None if node.name == self.args.only else unschedulable(f"not {self.args.only}")
"""


def only(node: str) -> Json:
    """A profile with a plugin of our own."""
    plugins: Json = {"multiPoint": {"enabled": [{"name": "OnlyNode"}]}}
    return profile("ours") | {"plugins": plugins, "pluginConfig": [{"name": "OnlyNode", "args": {"only": node}}]}


@pytest.mark.usefixtures("sandbox")
async def test_other_arguments_of_a_plugin_of_others_take_force(server: Server, file: File, tmp_path: Path) -> None:
    (tmp_path / "only_node.py").write_text(PLUGIN, "utf-8")
    file.write(only("n2"))
    await server.load(node("n1"), pod("a", scheduler="ours"))
    async with spawned("--config", str(file.path), "--plugin", f"{tmp_path}/only_node.py:OnlyNode") as scheduler:
        assert "not n2" in await rejected(server, "a")
        file.write(only("n1") | {"pluginConfig": [{"name": "OnlyNode", "args": {"none": 1}}]})
        await scheduler.said("profiles[0].pluginConfig[0].args: plugin OnlyNode: args.none: unknown field")
        file.write(only("n1"))
        assert await server.placed("a") == {"a": "n1"}
        await scheduler.said("is active; changed profiles: ours; retried pods: 1")


@pytest.mark.usefixtures("sandbox")
async def test_a_start_with_a_file_that_cannot_be_used_ends_with_all_that_is_wrong(server: Server, file: File) -> None:
    file.write(
        profile("ours", pluginConfig=[{"name": "VolumeBinding", "args": {"bindTimeoutSeconds": -1}}]), parallelism=0
    )
    process = await asyncio.create_subprocess_exec(
        str(COMMAND), "run", "--config", str(file.path), stderr=asyncio.subprocess.PIPE
    )
    _, said = await process.communicate()
    assert process.returncode == 2
    assert b"pluginConfig[0].args.bindTimeoutSeconds: -1 is less than 0" in said
    assert b"parallelism: 0 is not greater than 0" in said


@pytest.mark.usefixtures("sandbox")
async def test_what_has_no_effect_or_is_likely_a_mistake_is_said_at_the_start(server: Server, file: File) -> None:
    connection = {"kubeconfig": str(server.kubeconfig)}
    file.write(profile("ours"), leaderElection={"leaderElect": True}, clientConnection=connection)
    await server.load(node("n1"), pod("a", scheduler="ours"))
    async with spawned("--config", str(file.path), "--kubeconfig", str(server.kubeconfig)) as scheduler:
        assert await server.placed("a") == {"a": "n1"}
        for text in (
            "leaderElection.resourceName: kube-scheduler is the Lease of kube-scheduler",
            "--kubeconfig is ignored",
        ):
            assert scheduler.saying(text), text
    file.write(profile("ours"), delayCacheUntilActive=True)
    async with spawned("--config", str(file.path)) as scheduler:
        assert scheduler.saying("delayCacheUntilActive: has no effect")
