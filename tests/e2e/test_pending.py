"""Pods that fit nowhere and then do, and pods that are not to be touched."""

from __future__ import annotations

from collections.abc import Awaitable, Callable

import pytest

from policysched.sandbox import Sandbox
from tests.e2e.conftest import Running
from tests.e2e.objects import Json, node, pod, unclaimed, unfit
from tests.e2e.schedulers import InProcess
from tests.e2e.server import Server, scheduled_condition
from tests.e2e.waiting import until

SELECTOR = "node(s) didn't match Pod's node affinity/selector"
FULL = {"cpu": "4"}
CONTROL_PLANE = [{"key": "node-role.kubernetes.io/control-plane", "effect": "NoSchedule"}]
TAINT = [{"key": "team", "value": "other", "effect": "NoSchedule"}]


async def test_condition_and_event_of_a_pending_pod_are_as_kube_scheduler_writes_them(
    server: Server, scheduler: InProcess
) -> None:
    await server.load(node("control-plane", taints=CONTROL_PLANE), *(node(f"worker-{number}") for number in range(3)))
    await server.load(pod("huge", requests={"cpu": "5", "memory": "9Gi"}))
    message = unfit(4, "1 node(s) had untolerated taint(s)", "3 Insufficient cpu", "3 Insufficient memory", hopeless=4)
    condition = await server.turned_away("huge", message)
    assert condition.pop("lastTransitionTime")
    assert condition == {
        "type": "PodScheduled",
        "status": "False",
        "reason": "Unschedulable",
        "message": message,
        "observedGeneration": 1,
        "lastProbeTime": None,
    }
    (event,) = await server.events("huge")
    assert {key: event[key] for key in ("type", "reason", "action", "note", "reportingController")} == {
        "type": "Warning",
        "reason": "FailedScheduling",
        "action": "Scheduling",
        "note": message,
        "reportingController": "policysched",
    }
    assert event["metadata"]["name"].startswith("huge.")
    assert event["regarding"]["uid"] == (await server.get("Pod", "huge"))["metadata"]["uid"]


async def test_event_and_condition_of_a_bound_pod_are_as_kube_scheduler_writes_them(
    server: Server, scheduler: InProcess
) -> None:
    await server.load(node("n1"), pod("web"))
    await server.placed("web")
    (event,) = await until(lambda: server.events("web"), lambda events: len(events) == 1)
    assert {key: event[key] for key in ("type", "reason", "action", "note")} == {
        "type": "Normal",
        "reason": "Scheduled",
        "action": "Binding",
        "note": "Successfully assigned default/web to n1",
    }
    condition = scheduled_condition(await server.get("Pod", "web"))
    assert condition["status"] == "True"
    assert "message" not in condition


async def test_pod_without_nodes_says_so(server: Server, scheduler: InProcess) -> None:
    await server.load(pod("web"))
    await server.turned_away("web", "no nodes available to schedule pods")
    await server.load(node("n1"))
    assert await server.placed("web") == {"web": "n1"}


Change = Callable[[Server], Awaitable[object]]
HELP: dict[str, tuple[Json, Json, str, Change]] = {
    "node added": (
        node("n1"),
        pod("web", requests={"cpu": "5"}),
        unfit(1, "1 Insufficient cpu", hopeless=1),
        lambda server: server.load(node("n2", cpu="8")),
    ),
    "node grown": (
        node("n1"),
        pod("web", requests={"cpu": "5"}),
        unfit(1, "1 Insufficient cpu", hopeless=1),
        lambda server: server.patch("Node", "n1", {"status": {"allocatable": {"cpu": "8"}}}, "/status"),
    ),
    "label added": (
        node("n1"),
        pod("web", nodeSelector={"disk": "ssd"}),
        unfit(1, f"1 {SELECTOR}"),
        lambda server: server.patch("Node", "n1", {"metadata": {"labels": {"disk": "ssd"}}}),
    ),
    "taint removed": (
        node("n1", taints=TAINT),
        pod("web"),
        unfit(1, "1 node(s) had untolerated taint(s)"),
        lambda server: server.patch("Node", "n1", {"spec": {"taints": None}}),
    ),
    "pod with the cores deleted": (
        node("n1"),
        pod("web", requests=FULL),
        unfit(1, "1 Insufficient cpu"),
        lambda server: server.delete("Pod", "placed"),
    ),
    "pod with the port deleted": (
        node("n1"),
        pod("web", containers=[{"name": "c", "image": "i", "ports": [{"containerPort": 80, "hostPort": 80}]}]),
        unfit(1, "1 node(s) didn't have free ports for the requested pod ports"),
        lambda server: server.delete("Pod", "placed"),
    ),
}


@pytest.mark.parametrize(("place", "wants", "message", "change"), HELP.values(), ids=HELP)
async def test_pending_pod_is_placed_once_it_fits(
    server: Server, scheduler: InProcess, place: Json, wants: Json, message: str, change: Change
) -> None:
    await server.load(place)
    container: Json = {"name": "c", "image": "i", "resources": {"requests": {"cpu": "1"}}}
    container["ports"] = [{"containerPort": 80, "hostPort": 80}]
    await server.load(pod("placed", nodeName="n1", containers=[container]))
    await until(lambda: server.nodes_of(["placed"]), lambda nodes: nodes["placed"] == "n1")
    await scheduler.said("listed pods")
    await server.load(wants)
    await server.turned_away("web", message)
    await change(server)
    await server.placed("web")


async def test_pending_pod_is_placed_when_its_node_is_uncordoned(server: Server, scheduler: InProcess) -> None:
    cordoned = node("n1")
    cordoned["spec"]["unschedulable"] = True
    await server.load(cordoned, pod("web"))
    await server.turned_away("web", unfit(1, "1 node(s) were unschedulable"))
    await server.patch("Node", "n1", {"spec": {"unschedulable": None}})
    await server.placed("web")


async def test_gated_pod_waits_without_an_event_until_its_gate_goes(server: Server, scheduler: InProcess) -> None:
    await server.load(node("n1"), pod("gated", schedulingGates=[{"name": "example.com/a"}, {"name": "example.com/b"}]))
    await server.load(pod("later"))
    await server.placed("later")
    await server.patch("Pod", "gated", {"spec": {"schedulingGates": [{"name": "example.com/b"}]}})
    await server.load(pod("latest"))
    await server.placed("latest")
    condition = scheduled_condition(await server.get("Pod", "gated"))
    assert (condition["reason"], condition["status"]) == ("SchedulingGated", "False")
    assert await server.events("gated") == []
    await server.patch("Pod", "gated", {"spec": {"schedulingGates": None}})
    assert await server.placed("gated") == {"gated": "n1"}


async def test_pods_of_other_schedulers_are_left_alone(server: Server, scheduler: InProcess) -> None:
    await server.load(node("n1"), pod("theirs", scheduler="default-scheduler"), pod("other", scheduler="policysched2"))
    await server.load(pod("ours"))
    assert await server.placed("ours") == {"ours": "n1"}
    for name in ("theirs", "other"):
        assert scheduled_condition(await server.get("Pod", name)) == {}
        assert await server.events(name) == []
        assert (await server.nodes_of())[name] == ""


async def test_pods_of_other_schedulers_hold_their_resources(server: Server, scheduler: InProcess) -> None:
    await server.load(node("n1"), node("n2"), pod("theirs", scheduler="default-scheduler", requests=FULL))
    await server.bind("theirs", "n1")
    await server.load(*(pod(f"ours-{number}", requests={"cpu": "2"}) for number in range(3)))
    await until(server.nodes_of, lambda nodes: sum(map(bool, nodes.values())) == 3)
    left = next(name for name, at in (await server.nodes_of()).items() if not at)
    await server.turned_away(left, unfit(2, "2 Insufficient cpu"))


async def test_deleted_pending_pod_is_forgotten(server: Server, scheduler: InProcess) -> None:
    await server.load(node("n1"), pod("web", requests={"cpu": "5"}))
    await server.turned_away("web", unfit(1, "1 Insufficient cpu", hopeless=1))
    await server.delete("Pod", "web")
    await server.load(node("n2", cpu="8"), pod("next", requests={"cpu": "8"}))
    assert await server.placed("next") == {"next": "n2"}
    assert set(await server.nodes_of()) == {"next"}
    assert not scheduler.saying("WARNING"), scheduler.lines


async def test_pod_made_again_under_its_name_is_placed_anew(server: Server, scheduler: InProcess) -> None:
    await server.load(node("n1"))
    for _ in range(3):
        await server.load(pod("web", requests=FULL))
        await server.placed("web")
        await server.delete("Pod", "web")
        await until(server.nodes_of, lambda nodes: "web" not in nodes)


async def test_resources_of_a_finished_pod_are_free(server: Server, sandbox: Sandbox, scheduler: InProcess) -> None:
    await server.load(node("n1"), pod("job", requests=FULL))
    await server.placed("job")
    await until(lambda: server.get("Pod", "job"), lambda obj: obj["status"]["phase"] == "Running")
    await server.load(pod("web", requests=FULL))
    await server.turned_away("web", unfit(1, "1 Insufficient cpu"))
    await server.patch("Pod", "job", {"status": {"phase": "Succeeded"}}, "/status")
    await server.placed("web")


async def test_one_process_serves_two_scheduler_names(server: Server, running: Running) -> None:
    await server.load(node("n1"))
    async with running("red", "blue"):
        await server.load(*(pod(name, scheduler=name) for name in ("red", "blue", "policysched")))
        await server.placed("red", "blue")
        for name in ("red", "blue"):
            (event,) = await until(lambda name=name: server.events(name), lambda events: len(events) == 1)  # type: ignore[misc]
            assert event["reportingController"] == name
            assert event["reportingInstance"].startswith(f"{name}-")
        assert (await server.nodes_of())["policysched"] == ""


async def test_policy_of_one_scheduler_name_leaves_the_other_alone(server: Server, running: Running) -> None:
    await server.load(node("n1"), node("n2"))
    async with running("red", "blue"):
        spec = {"schedulerNames": ["red"], "filters": [{"name": "here", "require": 'node.name == "n2"'}]}
        kind = {"apiVersion": "policysched.io/v1beta1", "kind": "SchedulingPolicy"}
        await server.load(kind | {"metadata": {"name": "pin"}, "spec": spec})
        await server.policy_says("pin", 1, Active="Enforce")
        await server.patch("Node", "n2", {"spec": {"unschedulable": True}})
        await server.load(pod("red", scheduler="red"), pod("blue", scheduler="blue"))
        assert await server.placed("blue") == {"blue": "n1"}
        rejected = unfit(2, '1 policy pin/here: node.name == "n2"', "1 node(s) were unschedulable")
        await server.turned_away("red", rejected)


TEMPLATE = {"spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "1Gi"}}}}
CLAIMED = {"persistentVolumeClaim": {"claimName": "data"}}
WAITING = 'waiting for ephemeral volume controller to create the persistentvolumeclaim "web-v"'


@pytest.mark.parametrize(
    ("source", "missing"),
    [
        (CLAIMED, 'persistentvolumeclaim "data" not found'),
        ({"ephemeral": {"volumeClaimTemplate": TEMPLATE}}, WAITING),
    ],
)
async def test_a_claim_that_is_not_there_keeps_its_pod_pending(
    server: Server, scheduler: InProcess, source: Json, missing: str
) -> None:
    await server.load(node("n1"), pod("web", volumes=[{"name": "v", **source}]))
    await server.turned_away("web", unclaimed(missing, nodes=1))
    await server.load(pod("plain"))
    await server.placed("plain")
    assert (await server.nodes_of())["web"] == ""
