"""Metrics beside those of a real kube-scheduler that had the same pods to schedule."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from prometheus_client import Metric
from prometheus_client.parser import text_string_to_metric_families

from tests.controlplane.plane import ControlPlane
from tests.e2e.objects import NAME, node, only, pod
from tests.e2e.server import Server
from tests.e2e.test_serving import ALL_OPEN, Port, serving
from tests.e2e.waiting import until
from tests.requeueing.control_plane import KubeScheduler

THEIRS = "kube"
FITTING = 5
SCHEDULED = (("profile", "profile"), ("result", "scheduled"))
UNSCHEDULABLE = (("profile", "profile"), ("result", "unschedulable"))
PREFIX = "scheduler_"
CLIENT = {"rest_client_requests", "rest_client_request_duration_seconds"}
NOT_HERE = {
    "batch_attempts": "batching is what pod classes do for all pods",
    "batch_cache_flushed": "as above",
    "get_node_hint_duration_seconds": "as above",
    "store_schedule_results_duration_seconds": "as above",
    "volume_binder_cache_requests": "no volumes are assumed in a cache of their own",
}
"""What kube-scheduler has and we do not, by what was seen of it, and why."""


async def families(port: Port) -> dict[str, Metric]:
    """Scrape a scheduler's own metrics, by their names without the prefix."""
    code, text = await port.get("/metrics")
    assert code == 200, text
    found = text_string_to_metric_families(text)
    return {one.name.removeprefix(PREFIX): one for one in found if one.name.startswith(PREFIX) or one.name in CLIENT}


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
