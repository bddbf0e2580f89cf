"""Metrics beside those of a real kube-scheduler that had the same pods to schedule."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from tests.controlplane.plane import ControlPlane
from tests.e2e.objects import NAME, Json, node, only, pod
from tests.e2e.server import Server
from tests.e2e.test_devices import V1, claim, claiming, device_class, resource_slice, users
from tests.e2e.test_serving import ALL_OPEN, Port, serving
from tests.e2e.waiting import until
from tests.requeueing.control_plane import KubeScheduler

THEIRS = "kube"
GPU, SLOW = "example.com/gpu", "slow.example.com"
OF_CLAIMS = (
    "resourceclaim_creates",
    "dra_bindingconditions_allocations",
    "dra_bindingconditions_wait_duration_seconds",
)
FITTING = 5
SCHEDULED = (("profile", "profile"), ("result", "scheduled"))
UNSCHEDULABLE = (("profile", "profile"), ("result", "unschedulable"))
PREFIX, OF_LIBRARY = "scheduler_", "dynamic_resource_allocation_"
CLIENT = {"rest_client_requests", "rest_client_request_duration_seconds"}
NOT_HERE = {
    "batch_attempts": "batching is what pod classes do for all pods",
    "batch_cache_flushed": "as above",
    "get_node_hint_duration_seconds": "as above",
    "store_schedule_results_duration_seconds": "as above",
    "batch_rescore_attempts": "as above",
    "batch_rescore_duration_seconds": "as above",
    "store_schedule_results": "as above",
    "pre_queueing_hint_evaluations": "queueing hints have indexes",
    "volume_binder_cache_requests": "no volumes are assumed in a cache of their own",
}
"""What kube-scheduler has and we do not, by what was seen of it, and why."""


async def families(port: Port) -> dict[str, Metric]:
    """Scrape a scheduler's own metrics, by their names without the prefix."""
    code, text = await port.get("/metrics")
    assert code == 200, text
    found = text_string_to_metric_families(text)
    return {
        one.name.removeprefix(PREFIX).removeprefix(OF_LIBRARY): one
        for one in found
        if one.name.startswith((PREFIX, OF_LIBRARY)) or one.name in CLIENT
    }


def shape(metric: Metric) -> tuple[str, str, set[tuple[str, ...]], set[str]]:
    """Give what dashboards rely on: type, text, labels and buckets."""
    labels = {tuple(sorted(one.labels.keys() - {"le"})) for one in metric.samples}
    bounds = {one.labels["le"] for one in metric.samples if "le" in one.labels}
    return metric.type, metric.documentation, labels, bounds


def values(found: dict[str, Metric], name: str, suffix: str = "") -> dict[tuple[tuple[str, str], ...], float]:
    """Give the samples of a metric by their labels, both profiles under one name."""
    return dict(_samples(found[name], suffix))


def _samples(metric: Metric, suffix: str) -> Iterator[tuple[tuple[tuple[str, str], ...], float]]:
    for one in metric.samples:
        if one.name.endswith(suffix) and "le" not in one.labels and not one.name.endswith("_sum"):
            labels = {key: "profile" if key == "profile" else value for key, value in one.labels.items()}
            yield tuple(sorted(labels.items())), one.value


@pytest.mark.controlplane
async def test_metrics_are_those_of_kube_scheduler(real_server: Server, control_plane: ControlPlane) -> None:
    profile = {"schedulerName": THEIRS}
    configuration = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    await real_server.load(node("n1", cpu="16"))
    with KubeScheduler(control_plane, configuration | {"profiles": [profile]}) as kube:
        async with serving(real_server.kubeconfig, ALL_OPEN) as (_, port):
            names = []
            for name in (THEIRS, NAME):
                fitting = [f"{name}-{number}" for number in range(FITTING)]
                names += fitting
                await real_server.load(
                    *(pod(one, scheduler=name, requests={"cpu": "100m"}) for one in fitting),
                    pod(f"{name}-gated", scheduler=name, schedulingGates=[{"name": "later"}]),
                )
                await real_server.placed(*names)
                await real_server.load(pod(f"{name}-big", scheduler=name, requests={"cpu": "99"}))

            async def scraped() -> tuple[dict[str, Metric], dict[str, Metric]]:
                return await families(port), await families(Port(kube.port))

            def settled(found: tuple[dict[str, Metric], dict[str, Metric]]) -> bool:
                ours, theirs = found
                attempts = [values(one, "schedule_attempts") for one in found if "schedule_attempts" in one]
                return (
                    values(ours, "pending_pods") == values(theirs, "pending_pods")
                    and len(attempts) == 2
                    and all(one.get(SCHEDULED) == FITTING and one.get(UNSCHEDULABLE, 0) > 0 for one in attempts)
                )

            ours, theirs = await until(scraped, settled)
    assert theirs.keys() - ours.keys() <= NOT_HERE.keys()
    assert NOT_HERE.keys() & ours.keys() == set()
    assert {name: shape(ours[name]) for name in ours.keys() & theirs.keys()} == {
        name: shape(theirs[name]) for name in ours.keys() & theirs.keys()
    }
    assert values(ours, "pending_pods")[("queue", "gated"),] == 1
    for name in ("pod_scheduling_attempts", "pod_scheduling_sli_duration_seconds"):
        assert values(ours, name, "_count") == values(theirs, name, "_count"), name
    for found in (ours, theirs):
        assert values(found, "scheduling_attempt_duration_seconds", "_count")[SCHEDULED] == FITTING


def slow_devices() -> list[Json]:
    """Two devices that have to be made ready, behind a class of their own."""
    conditions = {"bindingConditions": ["Attached"], "bindingFailureConditions": ["Failed"]}
    devices = [{"name": f"d{index}"} | conditions for index in range(2)]
    pool = {"name": "slow", "generation": 1, "resourceSliceCount": 1}
    spec = {"driver": SLOW, "nodeName": "n1", "pool": pool, "devices": devices}
    selector = {"cel": {"expression": f'device.driver == "{SLOW}"'}}
    return [
        {"apiVersion": V1, "kind": "ResourceSlice", "metadata": {"name": "slow"}, "spec": spec},
        {"apiVersion": V1, "kind": "DeviceClass", "metadata": {"name": "slow"}, "spec": {"selectors": [selector]}},
    ]


def slow_claim(name: str) -> Json:
    """A claim for one of them."""
    made = claim(name)
    made["spec"]["devices"]["requests"][0]["exactly"]["deviceClassName"] = "slow"
    return made


async def driver_says(server: Server, name: str, condition: str) -> None:
    """Wait until a claim's device counts for its pod, and let the driver say a condition of it."""
    held = await until(lambda: server.get("ResourceClaim", name), lambda obj: users(obj) and not spoken(obj))
    [got] = held["status"]["allocation"]["devices"]["results"]
    told = {
        "type": condition, "status": "True", "reason": "Said", "message": "",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
    }  # fmt: skip
    said = {key: got[key] for key in ("driver", "pool", "device")} | {"conditions": [told]}
    await server.patch("ResourceClaim", name, {"status": {"devices": [said]}}, "/status")


def spoken(obj: Json) -> bool:
    """Whether a driver has said something of a claim's devices."""
    return bool((obj.get("status") or {}).get("devices"))


@pytest.mark.controlplane
async def test_metrics_of_claims_are_those_of_kube_scheduler(real_server: Server, control_plane: ControlPlane) -> None:
    configuration = {"apiVersion": "kubescheduler.config.k8s.io/v1", "kind": "KubeSchedulerConfiguration"}
    await real_server.load(node("n1", cpu="16"), device_class(extendedResourceName=GPU), resource_slice("n1", 4))
    await real_server.load(*slow_devices())
    with KubeScheduler(control_plane, configuration | {"profiles": [{"schedulerName": THEIRS}]}) as kube:
        async with serving(real_server.kubeconfig, ALL_OPEN) as (_, port):
            for name in (THEIRS, NAME):
                slow = f"{name}-slow"
                await real_server.load(
                    pod(f"{name}-extended", scheduler=name, requests={GPU: "2"}),
                    slow_claim(slow),
                    claiming(slow, slow, schedulerName=name),
                )
                await driver_says(real_server, slow, "Failed")
                await driver_says(real_server, slow, "Attached")
                await real_server.placed(f"{name}-extended", slow)
            ours, theirs = await families(port), await families(Port(kube.port))
    for metric in OF_CLAIMS:
        assert shape(ours[metric]) == shape(theirs[metric])
        counted = [
            values(found, metric, "_count" if metric.endswith("seconds") else "_total") for found in (ours, theirs)
        ]
        assert counted[0] == counted[1], metric
        assert all(count == 1 for count in counted[0].values()), metric
        assert len(counted[0]) == (1 if metric == "resourceclaim_creates" else 2)


@pytest.mark.controlplane
async def test_policies_are_counted_by_name(real_server: Server) -> None:
    await real_server.load(node("n1"), only("pin", "n2"), pod("web"))
    async with serving(real_server.kubeconfig, ALL_OPEN) as (_, port):

        async def count() -> str:
            return (await port.get("/metrics"))[1]

        wanted = 'policysched_policy_rejections_total{policy="pin",profile="policysched"} '
        text = await until(count, lambda text: wanted in text)
        assert 'policysched_policy_generation{policy="pin"} 1.0' in text
        assert 'policysched_policy_active_generation{policy="pin"} 1.0' in text
        assert 'policysched_policy_errors{policy="pin"} 0.0' in text
        assert 'pod="' not in text
