"""What `kubectl describe` says of pods that wait, beside pods like them of a real kube-scheduler, word by word."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest

from tests.controlplane.plane import ControlPlane
from tests.e2e.objects import NAME, node, pod
from tests.e2e.schedulers import in_process
from tests.e2e.server import Server
from tests.e2e.test_volumes_real import claim, claiming, storage_class
from tests.e2e.waiting import until
from tests.requeueing.control_plane import KubeScheduler

pytestmark = pytest.mark.controlplane
THEIRS = "kube"
CONFIGURATION = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
ZONE = "topology.kubernetes.io/zone"
TAINT = {"key": "team", "value": "other", "effect": "NoSchedule"}
NODES = (
    node("n1", labels={ZONE: "a"}),
    node("n2", labels={ZONE: "b"}),
    node("tainted", labels={ZONE: "c"}, taints=[TAINT]),
)
CLAIMS = (storage_class("now", "Immediate", "made.example.com"), claim("unbound", "now"))
URGENT = {
    "apiVersion": "scheduling.k8s.io/v1",
    "kind": "PriorityClass",
    "metadata": {"name": "urgent"},
    "value": 10,
    "preemptionPolicy": "PreemptLowerPriority",
}
APART = {"labelSelector": {"matchLabels": {"app": "x"}}, "topologyKey": ZONE}
PENDING: dict[str, dict[str, Any]] = {
    "cpu": pod("cpu", requests={"cpu": "5"}),
    "several-reasons": pod("several-reasons", requests={"cpu": "5", "memory": "9Gi"}, nodeSelector={ZONE: "a"}),
    "taints": pod("taints", nodeSelector={ZONE: "c"}),
    "selector": pod("selector", nodeSelector={"disk": "ssd"}),
    "affinity": pod("affinity", affinity={"podAffinity": {"requiredDuringSchedulingIgnoredDuringExecution": [APART]}}),
    "extended": pod("extended", requests={"example.com/gpu": "1"}),
    "no-claim": claiming("no-claim", "none"),
    "unbound": claiming("unbound", "unbound"),
    "no-victims": pod("no-victims", requests={"cpu": "3"}, priorityClassName="urgent", nodeSelector={ZONE: "a"}),
    "gated": pod("gated", schedulingGates=[{"name": "later"}]),
}
"""Pods that wait, by why they do."""
TAKEN = pod("taken", requests={"cpu": "2"}, priorityClassName="urgent", nodeSelector={ZONE: "a"})
SILENT = {"gated"}
"""Those of whom no event tells."""


def of(scheduler: str, found: dict[str, Any]) -> dict[str, Any]:
    """Make a pod that one of the schedulers is asked about."""
    name = f"{scheduler}-{found['metadata']['name']}"
    return {
        **found,
        "metadata": found["metadata"] | {"name": name},
        "spec": found["spec"] | {"schedulerName": scheduler},
    }


def told(text: str, scheduler: str) -> dict[str, Any]:
    """Read what is described: the status, the conditions and the events, without ages and names."""
    text = text.replace(scheduler, "SCHEDULER")
    head, _, events = text.partition("Events:")
    lines = [re.split(r"\s{2,}", line.strip(), maxsplit=4) for line in events.splitlines()[2:]]
    return {
        "status": re.findall(r"^(?:Status|Node|Priority|IP|QoS Class):.*$", head, re.MULTILINE),
        "conditions": head.partition("Conditions:")[2].partition("Volumes:")[0].split(),
        "events": {(kind, reason, by, message) for kind, reason, _, by, message in filter(None, lines)}
        if "<none>" not in events
        else set(),
    }


async def test_pending_pods_are_described_as_those_of_kube_scheduler(
    real_server: Server, control_plane: ControlPlane
) -> None:
    async def described(scheduler: str) -> dict[str, dict[str, Any]]:
        names = [f"{scheduler}-{name}" for name in PENDING]
        texts = [await asyncio.to_thread(control_plane.kubectl, "describe", "pod", name) for name in names]
        return {name: told(text, scheduler) for name, text in zip(PENDING, texts, strict=True)}

    await real_server.load(*NODES, *CLAIMS, URGENT, of(NAME, TAKEN))
    with KubeScheduler(control_plane, CONFIGURATION | {"profiles": [{"schedulerName": THEIRS}]}):
        async with in_process(real_server.kubeconfig):
            await real_server.placed(f"{NAME}-taken")
            for scheduler in (THEIRS, NAME):
                await real_server.load(*(of(scheduler, one) for one in PENDING.values()))

            async def both() -> list[dict[str, dict[str, Any]]]:
                return [await described(scheduler) for scheduler in (THEIRS, NAME)]

            def settled(found: list[dict[str, dict[str, Any]]]) -> bool:
                """Return whether all is shown; kubectl reads a pod before its events, so its condition may lack."""
                complete = [
                    one["conditions"] and (one["events"] or name in SILENT)
                    for each in found
                    for name, one in each.items()
                ]
                return all(complete)

            theirs, ours = await until(both, settled)
    assert ours == theirs
    assert {name for name, one in ours.items() if not one["events"]} == SILENT
