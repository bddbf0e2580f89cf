"""Preemption against an API server: who goes, who comes, and what everybody is told meanwhile."""

from __future__ import annotations

from collections import Counter
from typing import Any

from policysched.sandbox import Sandbox
from tests.e2e.objects import NO_CLAIMS, Json, node, pod, policy
from tests.e2e.schedulers import InProcess
from tests.e2e.server import Server, scheduled_condition
from tests.e2e.waiting import until, until_true

FULL = {"cpu": "4"}
STUCK = "example.com/stuck"
CLASSES = {"low": 100, "mid": 500, "high": 1000, "calm": 2000}
TERMINATING = (
    "0/1 nodes are available: 1 Insufficient cpu. "
    f"{NO_CLAIMS}preemption: not eligible due to a terminating pod on the nominated node."
)


def priority_class(name: str) -> Json:
    """A priority class; pods of the class `calm` preempt nobody."""
    return {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": name},
        "value": CLASSES[name],
        "preemptionPolicy": "Never" if name == "calm" else "PreemptLowerPriority",
    }


async def with_classes(server: Server, *objects: Json) -> None:
    await server.load(*map(priority_class, CLASSES), *objects)


def of(priority: str, name: str, cpu: str = "4", **more: Any) -> Json:
    """A pod of a priority that goes as soon as it is deleted."""
    return pod(name, requests={"cpu": cpu}, priorityClassName=priority, terminationGracePeriodSeconds=0, **more)


def stuck(obj: Json) -> Json:
    """The same pod, which stays until somebody lets go of it."""
    return obj | {"metadata": obj["metadata"] | {"finalizers": [STUCK]}}


async def let_go(server: Server, name: str) -> None:
    await server.patch("Pod", name, {"metadata": {"finalizers": None}})


async def nominated(server: Server, name: str, to: str) -> None:
    """Wait until a node, or none, is kept for a pod."""

    async def kept() -> str:
        return str((await server.get("Pod", name))["status"].get("nominatedNodeName", ""))

    await until(kept, lambda found: found == to)


async def going(server: Server, name: str) -> Json:
    """Wait until a pod is being deleted."""
    return await until(lambda: server.get("Pod", name), lambda obj: "deletionTimestamp" in obj["metadata"])


async def test_pod_of_higher_priority_takes_the_place_of_a_lower_one(server: Server, scheduler: InProcess) -> None:
    await with_classes(server, node("n1"), node("n2"))
    await server.load(of("low", "low"), of("mid", "mid"))
    before = await server.placed("low", "mid")
    await server.load(of("high", "high"))
    assert await server.placed("high") == {"high": before["low"]}
    assert set(await server.nodes_of()) == {"mid", "high"}
    [event] = [one for one in await server.events("low") if one["reason"] == "Preempted"]
    uid = (await server.get("Pod", "high"))["metadata"]["uid"]
    assert event["note"] == f"Preempted by pod {uid} on node {before['low']}"
    assert (event["type"], event["action"], event["related"]["name"]) == ("Normal", "Preempting", "high")


async def test_critical_pod_takes_the_place_of_a_lower_one(server: Server, scheduler: InProcess) -> None:
    await with_classes(server, node("n1"), of("high", "high"))
    await server.placed("high")
    critical = of("system-cluster-critical", "critical")
    await server.load(critical)
    assert await server.placed("critical") == {"critical": "n1"}


async def test_victim_is_told_why_it_goes(server: Server, scheduler: InProcess) -> None:
    await with_classes(server, node("n1"), stuck(of("low", "low")))
    await server.placed("low")
    await server.load(of("high", "high"))
    conditions = (await going(server, "low"))["status"]["conditions"]
    [told] = [one for one in conditions if one["type"] == "DisruptionTarget"]
    assert (told["status"], told["reason"]) == ("True", "PreemptionByScheduler")
    assert told["message"] == "policysched: preempting to accommodate a higher priority pod"
    await nominated(server, "high", "n1")
    await let_go(server, "low")
    assert await server.placed("high") == {"high": "n1"}


async def test_victim_that_does_not_go_is_waited_for_and_nobody_else_goes(server: Server, scheduler: InProcess) -> None:
    await with_classes(server, node("n1"), stuck(of("low", "low", "3")), of("mid", "mid", "1"))
    await server.placed("low", "mid")
    await server.load(of("high", "high", "3"))
    await going(server, "low")
    await nominated(server, "high", "n1")
    await server.patch("Node", "n1", {"status": {"allocatable": {"cpu": "4500m"}}}, "/status")
    await server.turned_away("high", TERMINATING)
    assert "deletionTimestamp" not in (await server.get("Pod", "mid"))["metadata"]
    await let_go(server, "low")
    assert await server.placed("high", "mid") == {"high": "n1", "mid": "n1"}


async def test_quicker_pod_does_not_take_the_place_that_is_kept(server: Server, scheduler: InProcess) -> None:
    await with_classes(server, node("n1"), stuck(of("low", "low")))
    await server.placed("low")
    await server.load(of("high", "high"))
    await nominated(server, "high", "n1")
    await server.load(*(of("mid", f"quick-{number}", "1") for number in range(3)))
    await let_go(server, "low")
    assert await server.placed("high") == {"high": "n1"}
    assert set((await server.nodes_of([f"quick-{number}" for number in range(3)])).values()) == {""}


async def test_pod_of_yet_higher_priority_takes_the_place_and_the_nomination(
    server: Server, scheduler: InProcess
) -> None:
    await with_classes(server, node("n1"), stuck(of("low", "low")))
    await server.placed("low")
    await server.load(of("mid", "mid"))
    await nominated(server, "mid", "n1")
    await server.load(of("high", "high"))
    await nominated(server, "high", "n1")
    await let_go(server, "low")
    assert await server.placed("high") == {"high": "n1"}
    await nominated(server, "mid", "")


async def test_nominated_node_that_is_deleted_sets_the_pod_free(server: Server, scheduler: InProcess) -> None:
    await with_classes(server, node("n1"), stuck(of("low", "low")))
    await server.placed("low")
    await server.load(of("high", "high"))
    await nominated(server, "high", "n1")
    await server.delete("Node", "n1")
    await server.load(node("n2"))
    assert await server.placed("high") == {"high": "n2"}
    await let_go(server, "low")


def deployment(priority: str, replicas: int) -> Json:
    labels = {"app": priority}
    made = of(priority, "", "1")
    template = {"metadata": {"labels": labels}, "spec": made["spec"]}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": priority, "namespace": "default"},
        "spec": {"replicas": replicas, "selector": {"matchLabels": labels}, "template": template},
    }


async def test_replicas_of_several_priorities_come_to_rest(server: Server, scheduler: InProcess) -> None:
    await with_classes(server, node("n1"), node("n2"))

    async def placed() -> dict[str, int]:
        pods = await server.objects("Pod")
        return dict(Counter(one["metadata"]["labels"]["app"] for one in pods if one["spec"].get("nodeName")))

    for priority, replicas, expected in (
        ("low", 8, {"low": 8}),
        ("mid", 4, {"low": 4, "mid": 4}),
        ("high", 3, {"low": 1, "mid": 4, "high": 3}),
    ):
        await server.load(deployment(priority, replicas))
        await until(placed, lambda found, expected=expected: found == expected)  # type: ignore[misc]


def budget(name: str, **spec: Any) -> Json:
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "policy/v1", "kind": "PodDisruptionBudget", "metadata": metadata, "spec": spec}


async def test_pod_that_a_budget_protects_stays(server: Server, scheduler: InProcess) -> None:
    await with_classes(server, node("n1"), node("n2"))
    await server.load(budget("db", minAvailable=1, selector={"matchLabels": {"app": "db"}}))
    await server.load(of("low", "low", labels={"app": "db"}), of("mid", "mid", labels={"app": "web"}))
    before = await server.placed("low", "mid")
    await scheduler.said("listed poddisruptionbudgets")
    await server.load(of("high", "high"))
    assert await server.placed("high") == {"high": before["mid"]}
    assert "low" in await server.nodes_of()


async def test_budgets_of_everybody_and_of_nobody_keep_no_pod_from_its_place(
    server: Server, scheduler: InProcess
) -> None:
    await with_classes(server, node("n1"), of("low", "low", labels={"app": "db"}))
    anybody = {"matchExpressions": [{"key": "app", "operator": "Exists"}]}
    await server.load(budget("nobody", minAvailable=1, selector={}), budget("all", minAvailable=1, selector=anybody))
    await server.placed("low")
    await server.load(of("high", "high"))
    assert await server.placed("high") == {"high": "n1"}


async def test_pod_whose_going_evens_out_a_spread_goes(server: Server, scheduler: InProcess) -> None:
    zones = [node(f"n{number}", labels={"zone": f"z{number}"}) for number in range(2)]
    await with_classes(server, *zones)
    await server.load(
        of("high", "first", "1", nodeSelector={"zone": "z0"}, labels={"app": "web"}),
        of("low", "low-0", "3", nodeSelector={"zone": "z0"}, labels={"app": "web"}),
        of("low", "low-1", "4", nodeSelector={"zone": "z1"}, labels={"app": "web"}),
    )
    await server.placed("first", "low-0", "low-1")
    spread = {
        "maxSkew": 1,
        "topologyKey": "zone",
        "whenUnsatisfiable": "DoNotSchedule",
        "labelSelector": {"matchLabels": {"app": "web"}},
    }
    await server.load(of("mid", "mid", "3", labels={"app": "web"}, topologySpreadConstraints=[spread]))
    found = await server.placed("mid")
    assert found in ({"mid": "n0"}, {"mid": "n1"})
    assert "first" in await server.nodes_of()


async def test_refused_deletion_is_tried_again_until_it_is_granted(
    server: Server, sandbox: Sandbox, scheduler: InProcess
) -> None:
    await with_classes(server, node("n1"), of("low", "low"))
    await server.placed("low")
    sandbox.faults.fail("DELETE", "/pods/low", 403, times=2)
    await server.load(of("high", "high"))
    await until_true(lambda: sandbox.faults.seen == 2)
    assert await server.placed("high") == {"high": "n1"}
    await scheduler.said('could not evict victim "default/low" for pod "default/high"')


async def test_pod_that_never_preempts_waits(server: Server, scheduler: InProcess) -> None:
    await with_classes(server, node("n1"), of("low", "low"))
    await server.placed("low")
    await server.load(of("calm", "high"))
    never = "preemption: not eligible due to preemptionPolicy=Never."
    message = f"0/1 nodes are available: 1 Insufficient cpu. {NO_CLAIMS}{never}"
    condition = await server.turned_away("high", message)
    assert condition == scheduled_condition(await server.get("Pod", "high"))
    assert (await server.nodes_of())["low"] == "n1"


def keep(require: str) -> Json:
    return {"spec": {"preemption": {"name": "no-builds", "require": require, "message": "builds stay"}}}


async def test_victim_that_a_policy_guards_stays_until_the_policy_lets_it_go(
    server: Server, scheduler: InProcess
) -> None:
    await with_classes(server, node("n1"), policy("keep", **keep('victim.labels["app"] != "build"')["spec"]))
    await server.policy_says("keep", 1, Active="Enforce")
    await server.load(of("low", "low", labels={"app": "build"}))
    await server.placed("low")
    await server.load(of("high", "high"))
    value = '(default/low: victim.labels["app"] is "build")'
    said = (
        f"0/1 nodes are available: 1 Insufficient cpu. {NO_CLAIMS}"
        f"preemption: 0/1 nodes are available: 1 policy keep/no-builds: builds stay {value}."
    )
    await server.turned_away("high", said)
    # A broken edit changes nothing: the last good generation guards on.
    await server.patch("SchedulingPolicy", "keep", keep("victim.lables >"))
    await server.policy_says("keep", 2, Active="LastGoodGeneration")
    await server.load(of("mid", "second"))
    await server.turned_away("second", said)
    await server.delete("Pod", "second")
    await server.patch("SchedulingPolicy", "keep", keep('victim.labels["app"] != "other"'))
    await server.policy_says("keep", 3, Active="Enforce")
    assert await server.placed("high") == {"high": "n1"}
    assert set(await server.nodes_of()) == {"high"}
