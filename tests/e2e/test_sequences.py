"""Random lives of pods and nodes while bindings, conditions and evictions fail in every way.

Whatever fails, no node ever holds more than it can, no binding cycle stays, what the scheduler knows in the end is what
a fresh list gives, and no pod waits that fits. POLICYSCHED_SEQUENCES sets how many lives there are.
"""

from __future__ import annotations

import asyncio
import contextlib
import os
import random
from collections import Counter
from functools import partial
from pathlib import Path

import pytest
import yaml

from policysched.kube.transport import Transport
from tests.controlplane.api import Json
from tests.e2e.failing_writes import FailingWrites
from tests.e2e.holding import watched
from tests.e2e.objects import NAME, node, pod
from tests.e2e.proxy import proxied
from tests.e2e.server import Server
from tests.e2e.waiting import until

SEQUENCES = int(os.environ.get("POLICYSCHED_SEQUENCES", "1"))
STEPS = 150
NODES = 6
CORES = 2
PATIENCE = 60.0
"""How long may pass until all is right once nothing fails any more. Units: seconds."""
PLUGIN = '''
import asyncio
from policysched.plugin import Wait


class Slow:
    """Lets some pods wait at Permit until that rejects them, once, and others in PreBind."""

    name = "slow"

    def __init__(self):
        self.rejected = set()

    def permit(self, state, pod, node_name):
        if pod.metadata.labels.get("slow") == "permit" and pod.metadata.uid not in self.rejected:
            self.rejected.add(pod.metadata.uid)
            return Wait(0.3)

    async def pre_bind(self, state, pod, node_name):
        if pod.metadata.labels.get("slow") == "prebind":
            await asyncio.sleep(0.3)
'''


def classes() -> list[Json]:
    head = {"apiVersion": "scheduling.k8s.io/v1", "kind": "PriorityClass"}
    high = head | {"metadata": {"name": "high"}, "value": 1000}
    return [high, head | {"metadata": {"name": "never"}, "value": 1000, "preemptionPolicy": "Never"}]


def configuration(folder: Path, kubeconfig: Path) -> Path:
    path = folder / "config.yaml"
    profile = {"schedulerName": NAME, "plugins": {"multiPoint": {"enabled": [{"name": "slow"}]}}}
    document = {
        "apiVersion": "kubescheduler.config.k8s.io/v1",
        "kind": "KubeSchedulerConfiguration",
        "leaderElection": {"leaderElect": False},
        "clientConnection": {"kubeconfig": str(kubeconfig)},
        "podMaxBackoffSeconds": 2,
        "profiles": [profile],
    }
    path.write_text(yaml.safe_dump(document))
    (folder / "slow.py").write_text(PLUGIN)
    return path


def cores(one: Json) -> float:
    return float(one["spec"]["containers"][0]["resources"]["requests"]["cpu"].removesuffix("m")) / 1000


class Life:
    """Pods and nodes that come, go and come anew under the same names."""

    def __init__(self, server: Server, rng: random.Random) -> None:
        self.server, self.rng = server, rng
        self.names: list[str] = []

    def pod(self, name: str) -> Json:
        priority = self.rng.choice(({}, {}, {}, {"priorityClassName": "high"}, {"priorityClassName": "never"}))
        slow = self.rng.choice(("no", "no", "no", "permit", "prebind"))
        asked = {"cpu": self.rng.choice(("100m", "200m", "400m"))}
        return pod(name, requests=asked, labels={"slow": slow}, terminationGracePeriodSeconds=0, **priority)

    async def step(self) -> None:
        """Let one thing happen; what the server refuses does not."""
        act = self.rng.choices(
            (self.comes, self.comes_anew, self.goes, self.changes, self.is_nominated, self.node_comes_anew),
            (50, 25, 10, 5, 5, 5),
        )[0]
        with contextlib.suppress(AssertionError):  # what it is about is gone, or the name is still taken
            await act()
        await asyncio.sleep(self.rng.random() * 0.06)

    async def comes(self) -> None:
        self.names.append(f"p{len(self.names)}")
        await self.server.load(self.pod(self.names[-1]))

    async def comes_anew(self) -> None:
        name = self.rng.choice(self.names)
        await self.server.delete("Pod", name)
        await self.server.load(self.pod(name))

    async def goes(self) -> None:
        await self.server.delete("Pod", self.rng.choice(self.names))

    async def changes(self) -> None:
        labels = {"changed": str(self.rng.random())}
        await self.server.patch("Pod", self.rng.choice(self.names), {"metadata": {"labels": labels}})

    async def is_nominated(self) -> None:
        change = {"status": {"nominatedNodeName": f"n{self.rng.randrange(NODES)}"}}
        await self.server.patch("Pod", self.rng.choice(self.names), change, "/status")

    async def node_comes_anew(self) -> None:
        name = f"n{self.rng.randrange(NODES)}"
        await self.server.delete("Node", name)
        await asyncio.sleep(self.rng.choice((0, 0.1, 0.5)))
        await self.server.load(node(name, cpu=str(CORES)))

    async def used(self) -> Counter[str]:
        """Give the cores that pods have of each node; no node may hold more than it can."""
        found: Counter[str] = Counter()
        for one in await self.server.objects("Pod"):
            if one["spec"].get("nodeName"):
                found[one["spec"]["nodeName"]] += cores(one)  # type: ignore[assignment]
        assert all(count < CORES + 0.01 for count in found.values()), found
        return found

    async def waiting(self) -> list[str]:
        """Name the pods that wait and fit."""
        used = await self.used()
        most = max(CORES - used[f"n{number}"] for number in range(NODES))
        pods = await self.server.objects("Pod")
        return [one["metadata"]["name"] for one in pods if not one["spec"].get("nodeName") and cores(one) < most + 0.01]


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make pauses and time limits short."""
    monkeypatch.setattr("policysched.kube.transport.FIRST_PAUSE", 0.05)
    monkeypatch.setattr("policysched.kube.transport.LONGEST_PAUSE", 0.2)
    monkeypatch.setattr("policysched.plugins.default_binder.READ_AGAIN", 0.2)
    monkeypatch.setattr("policysched.app.running.process.Transport", partial(Transport, timeout=1))


@pytest.mark.parametrize("seed", range(SEQUENCES))
async def test_no_node_is_overfilled_and_no_pod_lost(server: Server, tmp_path: Path, seed: int) -> None:
    rng = random.Random(seed)
    await server.load(*classes(), *(node(f"n{number}", cpu=str(CORES)) for number in range(NODES)))
    make, slow = partial(FailingWrites, rng=rng), f"{tmp_path / 'slow.py'}:Slow"
    async with proxied(server, tmp_path, make) as (between, kubeconfig):
        config, life = configuration(tmp_path, kubeconfig), Life(server, rng)
        await life.comes()
        async with watched(kubeconfig, config=config, plugins=[slow]) as scheduler:
            for number in range(STEPS):
                await life.step()
                if number % 10 == 0:
                    await life.used()
            between.well = True
            await until(life.waiting, lambda left: not left, PATIENCE)
            await until(partial(asyncio.sleep, 0), lambda _: not scheduler.binding(), PATIENCE)
            await scheduler.holds_what_is_listed(server, PATIENCE)
            await life.used()
        assert sum(count for what, count in between.failed.items() if what.startswith("bind")) > STEPS // 10
