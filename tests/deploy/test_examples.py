"""The examples that are whole installations: S1's plugin in a cluster, one in kube-scheduler's place, one beside it."""

from __future__ import annotations

import asyncio
from collections import Counter
from functools import partial
from itertools import takewhile
from pathlib import Path
from typing import Any

import pytest
import yaml

from tests.controlplane.api import Json
from tests.deploy.audit import forbidden
from tests.deploy.conftest import ACCOUNT, OF_STATIC_POD, Audited
from tests.deploy.installed import account_kubeconfig, running, started
from tests.deploy.rendering import DEPLOY, kustomized
from tests.deploy.test_rights import leader
from tests.e2e.real import RealServer
from tests.e2e.schedulers import Spawned
from tests.e2e.waiting import until

pytestmark = pytest.mark.controlplane
EXAMPLES = DEPLOY.parent / "examples"
NODES = ("node-1", "node-2", "node-3")


async def install(server: RealServer, example: str) -> None:
    """Make an example's nodes and apply what it installs."""
    assert server.plane is not None
    await server.load(*yaml.safe_load_all((EXAMPLES / example / "cluster.yaml").read_text()))
    installed = EXAMPLES / example if (EXAMPLES / example / "kustomization.yaml").exists() else DEPLOY / "static-pod"
    for source in (("-f", str(EXAMPLES.parent / "crds")), ("-k", str(installed))):
        await asyncio.to_thread(server.plane.kubectl, "apply", *source)


async def apply(server: RealServer, example: str, file: str) -> None:
    assert server.plane is not None
    await asyncio.to_thread(server.plane.kubectl, "apply", "-f", str(EXAMPLES / example / file))


async def run_by(server: RealServer, count: int) -> list[Json]:
    """Wait until so many pods of the default namespace run, and give them."""

    def holds(pods: list[Json]) -> bool:
        return [one["status"]["phase"] for one in pods] == ["Running"] * count

    return await until(lambda: server.objects("Pod"), holds)


async def test_plugin_is_installed_from_a_config_map(audited: Audited, cluster: RealServer, tmp_path: Path) -> None:
    example = "tour/01-tonodename"
    await install(cluster, example)
    before = len(audited.events(ACCOUNT))
    async with running(
        kustomized(EXAMPLES / example), await account_kubeconfig(cluster, tmp_path), tmp_path
    ) as installed:
        await apply(cluster, example, "deployment.yaml")
        nodes = Counter(pod["spec"]["nodeName"] for pod in await run_by(cluster, 10))
    assert nodes["piworknode001"] == max(nodes.values())
    assert set(nodes) == {"piworknode001", "piworknode002", "piworknode003"}
    said = installed.scheduler  # which has ended, so that all is read that it logged
    scores = [line.rpartition("node=")[2] for line in said.saying(" score=")[:3]]
    assert sorted(scores) == ["piworknode001 score=100", "piworknode002 score=25", "piworknode003 score=25"]
    bound = said.saying('"Successfully bound pod to node" pod="default/test-scheduler-')
    assert [line for line in bound if line.endswith("evaluatedNodes=4 feasibleNodes=3")]
    assert forbidden(audited.events(ACCOUNT)[before:]) == []


async def test_second_scheduler_places_its_own_pods_and_leaves_the_others_to_kube_scheduler(
    audited: Audited, cluster: RealServer, kube_scheduler: None, tmp_path: Path
) -> None:
    example = "tour/08-beside-kube-scheduler"
    await install(cluster, example)
    before = len(audited.events(ACCOUNT))
    async with running(
        kustomized(EXAMPLES / example), await account_kubeconfig(cluster, tmp_path), tmp_path
    ) as installed:
        await apply(cluster, example, "deployments.yaml")
        pods = {pod["metadata"]["labels"]["app"]: pod for pod in await run_by(cluster, 2)}
    said, theirs = installed.scheduler, pods["theirs"]["metadata"]["name"]
    ours, node = pods["ours"]["metadata"]["name"], pods["ours"]["spec"]["nodeName"]
    assert said.saying(f"example: PreFilter pod=default/{ours}")
    asked = [line.rpartition("node=")[2] for line in said.saying(f"example: Filter pod=default/{ours}")]
    assert sorted(asked) == sorted(NODES), "the tainted control plane is turned away before"
    assert said.saying(f"example: PreBind pod=default/{ours} node={node}")
    assert not said.saying(theirs)
    for pod, scheduler in ((ours, "tanjunchen-scheduler"), (theirs, "default-scheduler")):
        found = await until(partial(cluster.events, pod), bool)
        assert [one["reportingController"] for one in found if one["reason"] == "Scheduled"] == [scheduler]
    assert forbidden(audited.events(ACCOUNT)[before:]) == []


async def test_filter_of_one_s_own_runs_in_kube_scheduler_s_place(
    audited: Audited, cluster: RealServer, tmp_path: Path
) -> None:
    example = "tour/07-node-filter"
    await install(cluster, example)
    [container] = yaml.safe_load((EXAMPLES / example / "kube-scheduler.yaml").read_text())["spec"]["containers"]
    place = "/etc/kubernetes/policysched"
    names = ("scheduler-config.yaml", "node_filter.py")
    files = {f"{place}/{name}": (EXAMPLES / example / name).read_text() for name in names}
    kubeconfig = audited.plane.certificate_kubeconfig(tmp_path / "scheduler.conf", OF_STATIC_POD)
    before = len(audited.events(OF_STATIC_POD))
    master = f"--master={audited.plane.url}"
    async with started(container["args"], files, kubeconfig, tmp_path, master) as installed:
        assert await leader(cluster, "kube-scheduler")
        await apply(cluster, example, "deployment.yaml")
        [nginx] = await run_by(cluster, 1)
        for path in ("/metrics", "/healthz", "/readyz", "/livez"):
            assert (await installed.port.get(path))[0] == 200, "anybody may read it"
        assert (await installed.port.get("/configz"))[0] == 403
    said, name = installed.scheduler, nginx["metadata"]["name"]
    says_at_its_start(said, [arg for arg in container["args"][1:] if not arg.startswith("--kubeconfig=")])
    [bound] = said.saying(f'"Successfully bound pod to node" pod="default/{name}"')
    assert bound.endswith("evaluatedNodes=4 feasibleNodes=3")
    seen = [line.partition("current_node=")[2] for line in said.saying(f"nodeFilter filter pod_name={name}")]
    assert sorted(seen) == [f"{node} cpu=1900 memory=8020500480" for node in NODES]
    assert forbidden(audited.events(OF_STATIC_POD)[before:]) == []


WEIGHTS = {
    "TaintToleration": 3,
    "NodeAffinity": 2,
    "PodTopologySpread": 2,
    "InterPodAffinity": 2,
    "NodeResourcesFit": 1,
    "NodeResourcesBalancedAllocation": 1,
    "ImageLocality": 1,
}
ARGS: dict[str, dict[str, Any]] = {
    "DefaultPreemption": {"minCandidateNodesPercentage": 10, "minCandidateNodesAbsolute": 100},
    "InterPodAffinity": {"hardPodAffinityWeight": 1},
    "NodeResourcesBalancedAllocation": {"resources": [{"name": "cpu", "weight": 1}, {"name": "memory", "weight": 1}]},
    "PodTopologySpread": {"defaultingType": "System"},
    "VolumeBinding": {"bindTimeoutSeconds": 600},
}
ELECTION = {"leaseDuration": "15s", "renewDeadline": "10s", "retryPeriod": "2s", "resourceName": "kube-scheduler"}


def says_at_its_start(said: Spawned, args: list[str]) -> None:
    """Check what the original logs at its start: every flag, and the whole configuration with its defaults."""
    assert [arg for arg in args if not said.saying(f"FLAG: {arg.partition('=')[0]}=")] == []
    lines = iter(said.lines)
    assert any('"Using component config"' in line for line in lines)
    block = takewhile(lambda line: line.startswith("\t"), lines)
    config = yaml.safe_load("\n".join(line.removeprefix("\t") for line in block))
    assert (config["parallelism"], config["podInitialBackoffSeconds"], config["podMaxBackoffSeconds"]) == (16, 1, 10)
    assert ELECTION.items() <= config["leaderElection"].items()
    assert (config["clientConnection"]["qps"], config["clientConnection"]["burst"]) == (100, 100)
    [profile] = config["profiles"]
    weights = {one["name"]: one["weight"] for one in profile["plugins"]["multiPoint"]["enabled"]}
    assert (profile["schedulerName"], WEIGHTS.items() <= weights.items()) == ("my-scheduler", True)
    found = {one["name"]: one["args"] for one in profile["pluginConfig"]}
    assert {name: {key: found[name][key] for key in wanted} for name, wanted in ARGS.items()} == ARGS
    strategy = found["NodeResourcesFit"]["scoringStrategy"]
    assert strategy == {"type": "LeastAllocated"} | ARGS["NodeResourcesBalancedAllocation"]
    assert said.saying("leaderElection.resourceName: kube-scheduler is the Lease of kube-scheduler")
