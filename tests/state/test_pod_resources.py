"""What a pod takes on its node: worked out once for all pods that state the same, and the same as worked out anew."""

from __future__ import annotations

from typing import Any

import pytest

from policysched.model.decode import decode_pod
from policysched.model.objects import Pod
from policysched.model.pod_requirements import host_ports
from policysched.model.requests import (
    AmountsInUse,
    largest_of_containers,
    largest_of_sums,
    placed_nonzero,
    placed_requests,
)
from policysched.state.tables.amounts import PodResources, pod_resources_by
from tests.work import calls


def pod(name: str = "a", spec: dict[str, Any] | None = None, status: dict[str, Any] | None = None) -> Pod:
    """A pod of one container; `spec` and `status` are what it states besides, or instead."""
    container = {"name": "c", "resources": {"requests": {"cpu": "100m", "example.com/disk": "2"}}}
    whole = {"containers": [container], "nodeName": "n1", **(spec or {})}
    return decode_pod({"metadata": {"name": name, "uid": name}, "spec": whole, "status": status or {}})


RULES = (largest_of_containers, largest_of_sums)
pod_resources = pod_resources_by(largest_of_containers)


def anew(one: Pod, in_use: AmountsInUse = largest_of_containers) -> PodResources:
    asked = placed_requests(one, in_use)
    plain = {"cpu": asked.cpu_millis, "memory": asked.memory_bytes, "ephemeral-storage": asked.ephemeral_bytes}
    amounts = tuple((name, amount) for name, amount in (*plain.items(), *asked.scalars) if amount)
    return PodResources(amounts, *placed_nonzero(one, in_use), tuple(host_ports(one)))


def requests(cpu: str, **more: Any) -> dict[str, Any]:
    return {"name": "c", "resources": {"requests": {"cpu": cpu}}, **more}


GRANTED = {"containerStatuses": [{"name": "c", "resources": {"requests": {"cpu": "3"}}}]}
INFEASIBLE = {"conditions": [{"type": "PodResizePending", "status": "True", "reason": "Infeasible"}]}
DIFFERENT: list[tuple[dict[str, Any], dict[str, Any]]] = [
    ({}, {}),
    ({"containers": [requests("2")]}, {}),
    ({"containers": [requests("100m"), requests("100m")]}, {}),
    ({"containers": [requests("100m", ports=[{"containerPort": 80, "hostPort": 80}])]}, {}),
    ({"containers": [requests("100m", ports=[{"containerPort": 80, "hostPort": 80, "hostIP": "::1"}])]}, {}),
    ({"initContainers": [requests("4")]}, {}),
    ({"initContainers": [requests("4", restartPolicy="Always")]}, {}),
    ({"overhead": {"memory": "1Gi"}}, {}),
    ({"resources": {"requests": {"cpu": "5"}}}, {}),
    ({"resources": {"requests": {"cpu": "5"}}}, {"resources": {"requests": {"cpu": "6"}}}),
    ({"resources": {"requests": {"cpu": "5"}}}, {"resources": {}, "allocatedResources": {"cpu": "7"}}),
    ({}, GRANTED),
    ({"containers": [requests("4")]}, GRANTED),
    ({"containers": [requests("4")]}, GRANTED | INFEASIBLE),
    (
        {"initContainers": [requests("4", restartPolicy="Always")]},
        {"initContainerStatuses": [{"name": "c", "resources": {"requests": {"cpu": "8"}}}]},
    ),
]


@pytest.mark.parametrize("rule", RULES)
def test_every_field_that_counts_makes_a_difference_to_what_is_kept(rule: AmountsInUse) -> None:
    kept = [pod_resources_by(rule)(pod(spec=spec, status=status)) for spec, status in DIFFERENT]
    assert kept == [anew(pod(spec=spec, status=status), rule) for spec, status in DIFFERENT]
    assert len({str(one) for one in kept}) == len(DIFFERENT)


def test_pods_that_state_the_same_are_measured_once() -> None:
    first = pod("a", {"containers": [requests("123m")]})
    second = pod("b", {"containers": [requests("123m")]}, {"phase": "Running"})
    measured = pod_resources(first)
    assert pod_resources(second) is measured
    assert calls(lambda: pod_resources(second)) < calls(lambda: anew(second)) / 2


def test_name_that_no_json_can_say_is_no_obstacle() -> None:
    odd = pod(spec={"containers": [requests("77m", image="\ud800")]})
    assert pod_resources(odd) == anew(odd)
