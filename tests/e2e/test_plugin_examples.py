"""The same reference systems as plugins: a class beside a configuration, run without a build and without an image."""

from __future__ import annotations

from contextlib import AbstractAsyncContextManager
from pathlib import Path

import pytest
import yaml

from tests.e2e.conftest import Kubectl
from tests.e2e.objects import unfit
from tests.e2e.schedulers import Spawned, spawned
from tests.e2e.server import Server
from tests.e2e.test_reference_systems import EXAMPLES, NO_TAINT, all_run
from tests.e2e.waiting import until

pytestmark = pytest.mark.kubectl


class Example:
    """An example's files, and a scheduler with its plugin and its configuration."""

    def __init__(self, folder: str, plugin: str) -> None:
        self.folder: Path = EXAMPLES / folder
        self._flags = (f"--config={self.folder / 'scheduler-config.yaml'}", f"--plugin={self.folder / plugin}")

    def file(self, name: str) -> str:
        return str(self.folder / name)

    def running(self, server: Server) -> AbstractAsyncContextManager[Spawned]:
        """Run it; with a configuration, that says which kubeconfig is used, or the environment does."""
        return spawned(*self._flags, "--v=2", environment={"KUBECONFIG": str(server.kubeconfig)})

    async def load(self, server: Server) -> None:
        await server.load(*yaml.safe_load_all((self.folder / "cluster.yaml").read_text("utf-8")))


async def test_plugin_prefers_one_node_by_name(server: Server, kubectl: Kubectl) -> None:
    example = Example("tour/01-tonodename", "tonodename.py:ToNodeName")
    await example.load(server)
    async with example.running(server) as scheduler:
        await kubectl.run("apply", "-f", example.file("deployment.yaml"))
        nodes = await all_run(server, 10)
        assert nodes["piworknode001"] == max(nodes.values())
        assert set(nodes) == {"piworknode001", "piworknode002", "piworknode003"}
        first = [line.rpartition("node=")[2] for line in scheduler.saying(" score=")[:3]]
        assert sorted(first) == ["piworknode001 score=100", "piworknode002 score=25", "piworknode003 score=25"]
        bound = await scheduler.said('"Successfully bound pod to node" pod="default/', times=10)
        assert any(line.endswith('node="piworknode001" evaluatedNodes=4 feasibleNodes=3') for line in bound)


async def test_plugin_lets_pods_of_a_name_go_to_labelled_nodes_alone(server: Server, kubectl: Kubectl) -> None:
    example = Example("tour/02-node-label-filter", "sample_plugin.py:SamplePlugin")
    await example.load(server)
    async with example.running(server) as scheduler:
        await kubectl.run("apply", "-f", example.file("pods.yaml"))
        assert await server.placed("nginx-1", "redis-1") == {"nginx-1": "worker-1", "redis-1": "worker-2"}
        await scheduler.said("prefilter pod: nginx-1")
        await scheduler.said("prebind get node : worker-1")
        await kubectl.run("label", "node", "worker-1", "test-")
        await kubectl.run("run", "nginx-2", "--image=nginx:1.25")
        await server.turned_away("nginx-2", unfit(4, NO_TAINT, "3 no match label"))
        await kubectl.run("label", "node", "worker-3", "test=test", "--overwrite")
        assert await server.placed("nginx-2") == {"nginx-2": "worker-3"}


async def test_plugin_has_the_node_of_the_highest_score_taken(server: Server, kubectl: Kubectl) -> None:
    example = Example("tour/03-namescore", "namescore.py:NameScore")
    await example.load(server)
    async with example.running(server):
        await kubectl.run("apply", "-f", example.file("pod.yaml"))
        assert await server.placed("busybox-test-scheduler") == {"busybox-test-scheduler": "k8s-node02"}


async def test_plugin_has_a_pod_never_bound_and_nothing_reserved(server: Server, kubectl: Kubectl) -> None:
    example = Example("tour/06-multipoint-communicating", "multipoint.py:MultipointCommunicating")
    await example.load(server)
    async with example.running(server):
        await kubectl.run("apply", "-f", example.file("pods.yaml"))
        placed = await server.placed("web-1", "web-2")
        assert set(placed.values()) == {"worker-1", "worker-2"}, "each takes a node that was assumed for the other pod"

        async def notes() -> list[str]:
            return [event["note"] for event in await server.events("my-test-pod")]

        assert "pod is not permitted" in await until(notes, bool)
        assert (await server.nodes_of())["my-test-pod"] == ""
