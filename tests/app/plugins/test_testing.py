"""The kit for authors' tests: objects, one plugin's part in a decision, a whole scheduler, and its time."""

# ruff: noqa: ARG002 - plugins are given more than they look at
from __future__ import annotations

import asyncio
import threading
import time
from datetime import UTC, datetime
from typing import Any

import pytest

from policysched.errors import UsageError
from policysched.plugin import Code, CycleState, NodeInfo, Pod, Status, Wait, unresolvable, unschedulable
from policysched.testing import (
    FakeClock,
    connected_handle,
    decide,
    make_node,
    make_pod,
    read_pod,
    scheduling,
)

NODES = [make_node("n1", labels={"disk": "ssd"}), make_node("n2")]


class Ssd:
    """Filters and scores by a label."""

    def __init__(self, args: dict[str, Any]) -> None:
        self.label = args.get("label", "disk")

    def filter(self, state: CycleState, pod: Pod, node: NodeInfo) -> Status | None:
        return None if self.label in node.labels else unresolvable("no disk")

    def score(self, state: CycleState, pod: Pod, node: NodeInfo) -> int:
        return 7


def test_pod_is_decided_by_the_plugin_alone() -> None:
    record = decide(Ssd, make_pod("web", requests={"cpu": "1"}), [*NODES, make_node("n3", labels={"disk": "hdd"})])
    assert set(record["rejected"]) == {"n2"}
    assert record["rejected"]["n2"]["plugin"] == "Ssd"
    assert record["total"] == {"n1": 7, "n3": 7}


def test_plugin_is_made_of_the_arguments_of_a_test() -> None:
    assert decide(Ssd, make_pod("web"), NODES, args={"label": "zone"})["result"] == "Unschedulable"
    with pytest.raises(UsageError, match="implements no extension point"):
        decide(object, make_pod("web"), NODES)


def test_objects_are_what_kubectl_prints() -> None:
    node = make_node("n", allocatable={"cpu": "1"}, taints=[{"key": "a", "effect": "NoSchedule"}])
    assert node["status"]["allocatable"] == {"cpu": "1", "memory": "16Gi", "pods": "110"}
    pod = make_pod("p", namespace="x", node="n", annotations={"a": "b"}, priority=5)
    typed = read_pod(pod)
    assert (typed.key, typed.spec.node_name, typed.spec.priority) == ("x/p", "n", 5)
    assert typed.metadata.annotations == {"a": "b"}


@pytest.mark.parametrize(("minor", "requests"), [("1.36", {"cpu": "2"}), ("1.37", {"cpu": "2", "memory": "5"})])
def test_pods_have_the_defaults_of_the_minor(minor: str, requests: dict[str, str]) -> None:
    made = make_pod("p", requests={"memory": "5"}, resources={"requests": {"cpu": "2"}})
    resources = read_pod(made, minor).spec.resources
    assert resources is not None
    assert resources.requests == requests


def test_methods_can_be_called_with_a_node_of_a_handle() -> None:
    handle = connected_handle(NODES, [make_pod("there", node="n1", requests={"cpu": "1500m"})])
    node = handle.node("n1")
    assert node is not None
    assert (node.requested("cpu"), [pod.metadata.name for pod in node.pods]) == (1500, ["there"])
    assert Ssd({}).filter(CycleState(), read_pod(make_pod("web")), node) is None


def test_default_plugins_take_part_in_scheduling() -> None:
    with scheduling(Ssd, nodes=NODES) as scheduler:
        assert scheduler.schedule(make_pod("web", requests={"cpu": "3"})).node == "n1"
        full = scheduler.schedule(make_pod("more", requests={"cpu": "3"}))
        assert (full.result, full.node) == ("Unschedulable", "")
        assert full.message.startswith("0/2 nodes are available: 1 Insufficient cpu, 1 no disk.")
        assert scheduler.events("more") == [full.message]
        assert scheduler.outcome("nobody").result == "Pending"


def test_change_of_the_cluster_helps_a_pod_that_waits() -> None:
    with scheduling(Ssd, nodes=[NODES[1]]) as scheduler:
        assert scheduler.schedule(make_pod("web")).result == "Unschedulable"
        scheduler.add(NODES[0])
        scheduler.advance(10)
        assert scheduler.outcome("web").node == "n1"
        scheduler.remove(NODES[0], NODES[1])
        assert scheduler.schedule(make_pod("late")).message.startswith("no nodes available")


class Waiting:
    """Waits at Permit for as long as it is told."""

    def permit(self, state: CycleState, pod: Pod, node_name: str) -> Wait:
        return Wait(60)


def test_pod_that_waits_is_allowed_or_its_time_is_over() -> None:
    with scheduling(Waiting, nodes=NODES) as scheduler:
        for name in ("a", "b"):
            assert scheduler.schedule(make_pod(name)).result == "Waiting"
        allowed, late = scheduler.handle.waiting_pods()
        allowed.allow("Waiting")
        scheduler.settle()
        assert scheduler.outcome(allowed.assumed.pod.metadata.name).result == "Scheduled"
        scheduler.advance(59.5)
        assert scheduler.outcome(late.assumed.pod.metadata.name).result == "Waiting"
        scheduler.advance(1)
        assert "rejected due to timeout after waiting 1m0s" in scheduler.events(late.assumed.pod.metadata.name)[0]


class Threads:
    """Does what takes real time in a thread, and fake time on the loop."""

    def __init__(self) -> None:
        self.bound: list[str] = []

    def pre_bind(self, state: CycleState, pod: Pod, node_name: str) -> Status | None:
        time.sleep(0.1)
        return unschedulable("not from this thread") if threading.current_thread() is threading.main_thread() else None

    async def post_bind(self, state: CycleState, pod: Pod, node_name: str) -> None:
        await asyncio.sleep(30)
        self.bound.append(node_name)


def test_threads_are_waited_for_and_time_passes_when_it_is_told_to() -> None:
    with scheduling(Threads, nodes=[NODES[0]]) as scheduler:
        assert scheduler.schedule(make_pod("web")).node == "n1"
        assert scheduler.plugin.bound == []
        scheduler.advance(30)
        assert scheduler.plugin.bound == ["n1"]


class Broken:
    """Raises."""

    def reserve(self, state: CycleState, pod: Pod, node_name: str) -> None:
        raise ValueError("nothing left")


def test_plugin_that_raises_fails_the_pods_attempt(caplog: pytest.LogCaptureFixture) -> None:
    with scheduling(Broken, nodes=NODES) as scheduler:
        outcome = scheduler.schedule(make_pod("web"))
    assert (outcome.result, "nothing left" in outcome.message) == ("Error", True)
    assert "nothing left" in caplog.text


class Gate:
    """Lets no pod in."""

    def pre_enqueue(self, pod: Pod) -> Status:
        return Status(Code.UNSCHEDULABLE_AND_UNRESOLVABLE, ("closed",))


def test_pod_that_is_kept_out_is_gated() -> None:
    with scheduling(Gate, nodes=NODES) as scheduler:
        assert scheduler.schedule(make_pod("web")).result == "Gated"


def test_clock_moves_when_it_is_told_to() -> None:
    clock = FakeClock(datetime(2026, 5, 1, tzinfo=UTC))
    before = clock.now(), clock.monotonic()
    clock.advance(90)
    assert ((clock.now() - before[0]).total_seconds(), clock.monotonic() - before[1]) == (90, 90)
