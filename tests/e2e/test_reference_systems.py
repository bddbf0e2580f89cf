"""Schedulers that were written, compiled and deployed to change one rule: each is an example that kubectl applies."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest
import yaml

from tests.e2e.conftest import Kubectl, Spawning
from tests.e2e.objects import Json, deployment, pod, unfit
from tests.e2e.server import Server
from tests.e2e.waiting import until

pytestmark = pytest.mark.kubectl
EXAMPLES = Path(__file__).parents[2] / "examples"
NO_TAINT = "1 node(s) had untolerated taint(s)"


async def all_run(server: Server, count: int) -> Counter[str]:
    """Wait until so many pods run, and count those on each node."""

    def holds(pods: list[Json]) -> bool:
        return [one["status"]["phase"] for one in pods] == ["Running"] * count

    return Counter(one["spec"]["nodeName"] for one in await until(lambda: server.objects("Pod"), holds))


async def set_up(server: Server, kubectl: Kubectl, example: str, policy: str) -> None:
    """Load an example's cluster and let its policy take force."""
    await server.load(*yaml.safe_load_all((EXAMPLES / example / "cluster.yaml").read_text("utf-8")))
    await kubectl.run("apply", "-f", str(EXAMPLES / example / "policy.yaml"))
    await server.policy_says(policy, 1, Active="Enforce")


async def test_one_node_is_preferred_by_name(server: Server, kubectl: Kubectl, spawning: Spawning) -> None:
    async with spawning("--scheduler-name=sample-scheduler", "--v=2") as scheduler:
        await set_up(server, kubectl, "tour/01-tonodename", "tonodename")
        await kubectl.run("apply", "-f", str(EXAMPLES / "tour/01-tonodename" / "deployment.yaml"))
        await kubectl.run("rollout", "status", "deployment/test-scheduler", "--timeout=30s")
        nodes = await all_run(server, 10)
        assert nodes["piworknode001"] == max(nodes.values())
        assert set(nodes) == {"piworknode001", "piworknode002", "piworknode003"}
        bound = await scheduler.said('"Successfully bound pod to node" pod="default/test-scheduler-', times=10)
        assert len(bound) == 10
        assert any(line.endswith('node="piworknode001" evaluatedNodes=4 feasibleNodes=3') for line in bound)


async def test_pods_of_a_name_go_to_labelled_nodes_alone(server: Server, kubectl: Kubectl, spawning: Spawning) -> None:
    async with spawning("--scheduler-name=default-scheduler"):
        await set_up(server, kubectl, "tour/02-node-label-filter", "node-label")
        await kubectl.run("apply", "-f", str(EXAMPLES / "tour/02-node-label-filter" / "pods.yaml"))
        assert await server.placed("nginx-1", "redis-1") == {"nginx-1": "worker-1", "redis-1": "worker-2"}
        await kubectl.run("label", "node", "worker-1", "test-")
        await server.load(deployment("nginx", 3, "default-scheduler"))
        pods = await until(lambda: server.objects("Pod"), lambda pods: len(pods) == 5)
        waiting = [one["metadata"]["name"] for one in pods if one["metadata"]["name"].startswith("nginx-")]
        waiting.remove("nginx-1")
        for name in waiting:
            await server.turned_away(name, unfit(4, NO_TAINT, "3 policy node-label/node-label: no match label"))
        await kubectl.run("label", "node", "worker-3", "test=test", "--overwrite")
        assert set((await server.placed(*waiting)).values()) == {"worker-3"}
        await all_run(server, 5)


async def test_node_of_the_highest_score_by_name_is_taken(server: Server, kubectl: Kubectl, spawning: Spawning) -> None:
    async with spawning("--scheduler-name=namescore-scheduler"):
        await set_up(server, kubectl, "tour/03-namescore", "namescore")
        await kubectl.run("apply", "-f", str(EXAMPLES / "tour/03-namescore" / "pod.yaml"))
        await server.load(pod("beside", scheduler="default-scheduler"))
        assert await server.placed("busybox-test-scheduler") == {"busybox-test-scheduler": "k8s-node02"}
        assert (await server.nodes_of())["beside"] == ""
