"""/metrics/resources beside that of a real kube-scheduler on the same API server."""

from __future__ import annotations

from typing import Any

import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from tests.controlplane.plane import ControlPlane
from tests.e2e.objects import NAME, node, pod
from tests.e2e.server import Server
from tests.e2e.test_serving import ALL_OPEN, Port, serving
from tests.e2e.waiting import until
from tests.requeueing.control_plane import KubeScheduler

PATH = "/metrics/resources"
IMAGE = "registry.k8s.io/pause:3.10"
Series = dict[tuple[str, ...], float]


def container(name: str, requests: dict[str, str], limits: dict[str, str] | None = None, **more: Any) -> dict[str, Any]:
    return {"name": name, "image": IMAGE, "resources": {"requests": requests, "limits": limits or {}}} | more


def with_containers(name: str, *containers: dict[str, Any], scheduler: str = NAME, **spec: Any) -> dict[str, Any]:
    return pod(name, scheduler=scheduler, **{"containers": list(containers)} | spec)


PODS = (
    pod("plain", requests={"cpu": "100m", "memory": "64Mi", "ephemeral-storage": "1Gi", "example.com/gpu": "1"}),
    pod("nothing"),
    pod("pending", requests={"cpu": "99", "memory": "1500m"}),
    pod("of-another", scheduler="nobody", requests={"cpu": "1u", "memory": "123456789"}),
    with_containers("several", container("a", {"cpu": "1"}, {"cpu": "2"}), container("b", {"memory": "1Gi"})),
    with_containers(
        "with-init",
        container("main", {"cpu": "200m"}, {"memory": "100Mi"}),
        initContainers=[
            container("beside", {"cpu": "100m"}, {"memory": "50Mi"}, restartPolicy="Always"),
            container("first", {"cpu": "900m"}, {"memory": "500Mi"}),
        ],
    ),
    with_containers(
        "as-a-whole",
        container("a", {"cpu": "100m"}, {"cpu": "300m", "memory": "1Mi"}),
        container("b", {"memory": "1Mi"}),
        resources={"requests": {"cpu": "500m"}, "limits": {"cpu": "1", "memory": "1Gi"}},
    ),
    with_containers("light", container("c", {"cpu": "10m", "memory": "1Mi"}, {"cpu": "20m"}), runtimeClassName="heavy"),
)
HEAVY = {
    "apiVersion": "node.k8s.io/v1",
    "kind": "RuntimeClass",
    "metadata": {"name": "heavy"},
    "handler": "heavy",
    "overhead": {"podFixed": {"cpu": "250m", "memory": "120Mi"}},
}
RUNTIME_CLASSES = "/apis/node.k8s.io/v1/runtimeclasses"


async def scraped(port: Port) -> dict[str, Metric]:
    code, text = await port.get(PATH)
    assert code == 200, text
    return {one.name: one for one in text_string_to_metric_families(text)}


def series(found: dict[str, Metric]) -> Series:
    """Give all values by name and labels."""
    return {
        (one.name, *(f"{name}={value}" for name, value in sorted(one.labels.items()))): one.value
        for family in found.values()
        for one in family.samples
    }


@pytest.mark.controlplane
async def test_series_of_pods_are_those_of_kube_scheduler(real_server: Server, control_plane: ControlPlane) -> None:
    await real_server.call("POST", RUNTIME_CLASSES, HEAVY)
    try:
        await _compare(real_server, control_plane)
    finally:
        await real_server.call("DELETE", f"{RUNTIME_CLASSES}/heavy")


async def _compare(server: Server, control_plane: ControlPlane) -> None:
    configuration = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    await server.load(node("n1", cpu="16", extended={"example.com/gpu": "2", "ephemeral-storage": "100Gi"}), *PODS)
    with KubeScheduler(control_plane, configuration | {"profiles": [{"schedulerName": "kube"}]}) as kube:
        async with serving(server.kubeconfig, ALL_OPEN) as (_, port):
            await server.placed("plain", "nothing", "several", "with-init", "as-a-whole", "light")

            async def both() -> tuple[dict[str, Metric], dict[str, Metric]]:
                return await scraped(port), await scraped(Port(kube.port))

            ours, theirs = await until(both, lambda found: series(found[0]).keys() == series(found[1]).keys())
    assert series(ours) == pytest.approx(series(theirs), rel=1e-12)
    assert {name: (one.type, one.documentation) for name, one in ours.items()} == {
        name: (one.type, one.documentation) for name, one in theirs.items()
    }
    told = {label for key in series(ours) for label in key if label.startswith("pod=")}
    assert told >= {f"pod={one['metadata']['name']}" for one in PODS} - {"pod=nothing"}
    assert any("scheduler=nobody" in key for key in series(ours))
