"""Policies and the real queue: a pod that now fits is bound at once, others are not tried again."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from msgspec.structs import replace

from policysched.framework import MetricAnswer, MetricKey, Sample
from policysched.model.objects import (
    Metadata,
    Namespace,
    Node,
    NodeAddress,
    NodeCondition,
    NodeSystemInfo,
    Pod,
    PodStatus,
    Taint,
)
from policysched.schedule.queue.timers import LONGEST
from policysched.schedule.scheduler import Scheduler
from tests.build import MIB, node, pod
from tests.rules.build import Spec, filtering, policy_set
from tests.schedule.queue_parts import StandingClock
from tests.schedule.stand import Stand, running

ZONE = "topology.kubernetes.io/zone"
LOAD = MetricKey("load", "node")
NOW = StandingClock().now().timestamp()
Step = Callable[[Scheduler], object]


def in_zone(name: str, zone: str) -> Node:
    return node(name, labels={ZONE: zone})


def ready(name: str, **fields: Any) -> Node:
    made = node(name, **fields)
    return replace(made, status=replace(made.status, conditions=[NodeCondition(type="Ready", status="True")]))


def reporting(name: str, **status: Any) -> Node:
    made = node(name)
    return replace(made, status=replace(made.status, **status))


def tainted(name: str, value: str, *more: str) -> Node:
    keys = [("dedicated", value), *((key, "") for key in more)]
    return node(name, taints=[Taint(key=key, value=text, effect="PreferNoSchedule") for key, text in keys])


def annotated(name: str, noisy: str, other: str = "") -> Pod:
    made = pod(name, on="n1")
    return replace(made, metadata=replace(made.metadata, annotations={"noisy": noisy, "other": other}))


def licensed(name: str, on: str = "n1") -> Pod:
    return pod(name, on=on, labels={"license": "matlab"})


def born(made: Any, later: float) -> Any:
    text = StandingClock(StandingClock().at - later).now().strftime("%Y-%m-%dT%H:%M:%SZ")
    return replace(made, metadata=replace(made.metadata, creation_timestamp=text))


def load(**values: float) -> Step:
    samples = {name: Sample(value, NOW) for name, value in values.items()}
    return lambda s: s.set_metric(MetricAnswer(LOAD, samples))


SEATS = filtering('sum(node.pods.count(peer.labels["license"] == "matlab")) < 2')
CASES: dict[str, tuple[Spec, list[Any], list[Step], Step, str]] = {
    "a label of the node": (
        {"filters": filtering('node.labels["k"] == "x"')},
        [node("n1"), node("n2")],
        [lambda s: s.set_node(node("n1", labels={"k": "y"})), lambda s: s.set_node(node("n3"))],
        lambda s: s.set_node(node("n2", labels={"k": "x"})),
        "n2",
    ),
    "a condition of the node": (
        {"filters": filtering("node.ready")},
        [node("n1")],
        [lambda s: s.set_node(node("n1", labels={"k": "y"}))],
        lambda s: s.set_node(ready("n1")),
        "n1",
    ),
    "the status of a condition of the node": (
        {"filters": filtering('node.conditions["DiskPressure"] != "True"')},
        [reporting("n1", conditions=[NodeCondition(type="DiskPressure", status="True")])],
        [lambda s: s.set_node(reporting("n1", conditions=[NodeCondition(type="DiskPressure", status="True"),
                                                          NodeCondition(type="Ready", status="True")]))],
        lambda s: s.set_node(reporting("n1", conditions=[NodeCondition(type="DiskPressure", status="False")])),
        "n1",
    ),
    "the value of a taint": (
        {"filters": filtering('node.taints.value("dedicated") != "ml"')},
        [tainted("n1", "ml")],
        [lambda s: s.set_node(tainted("n1", "ml", "other"))],
        lambda s: s.set_node(tainted("n1", "web")),
        "n1",
    ),
    "the version of a node's software": (
        {"filters": filtering('(version(node.kubelet_version) >= version("1.36")) ?? false')},
        [reporting("n1", node_info=NodeSystemInfo(kubelet_version="v1.35.1"))],
        [lambda s: s.set_node(reporting("n1", node_info=NodeSystemInfo(kubelet_version="v1.35.2")))],
        lambda s: s.set_node(reporting("n1", node_info=NodeSystemInfo(kubelet_version="v1.36.0+k3s1"))),
        "n1",
    ),
    "an address of the node": (
        {"filters": filtering('(starts_with(node.addresses["InternalIP"], "10.1.")) ?? false')},
        [reporting("n1")],
        [lambda s: s.set_node(reporting("n1", addresses=[NodeAddress(type="ExternalIP", address="10.1.0.1")]))],
        lambda s: s.set_node(reporting("n1", addresses=[NodeAddress(type="InternalIP", address="10.1.0.1")])),
        "n1",
    ),
    "what is free": (
        {"filters": filtering("node.free.cpu - pod.requests.cpu >= 1")},
        [node("n1"), pod("a", on="n1", requests={"cpu": 2}), pod("b", on="n1", requests={"cpu": "1500m"})],
        [lambda s: s.set_pod(pod("c", on="n1", requests={"cpu": "100m"})), lambda s: s.remove_pod("default.c")],
        lambda s: s.remove_pod("default.a"),
        "n1",
    ),
    "a peer": (
        {"filters": filtering('not node.pods.any(peer.labels["noisy"] == "true")')},
        [node("n1"), pod("a", on="n1", labels={"noisy": "true"}), pod("b", on="n1")],
        [lambda s: s.remove_pod("default.b")],
        lambda s: s.set_pod(pod("a", on="n1", labels={"noisy": "false"})),
        "n1",
    ),
    "an annotation of a peer": (
        {"filters": filtering('not node.pods.any(peer.annotations["noisy"] == "true")')},
        [node("n1"), annotated("a", "true")],
        [lambda s: s.set_pod(annotated("a", "true", "other"))],
        lambda s: s.set_pod(annotated("a", "false")),
        "n1",
    ),
    "the phase of a peer": (
        {"filters": filtering('node.pods.all(peer.phase == "Running")')},
        [node("n1"), pod("a", on="n1")],
        [lambda s: s.set_pod(annotated("a", "true"))],
        lambda s: s.set_pod(replace(annotated("a", "true"), status=PodStatus(phase="Running"))),
        "n1",
    ),
    "the largest of the peers": (
        {"filters": filtering("(node.pods.max(peer.requests.cpu) <= 1) ?? true")},
        [node("n1"), pod("a", on="n1", requests={"cpu": 2}), pod("b", on="n1", requests={"cpu": 1})],
        [lambda s: s.remove_pod("default.b")],
        lambda s: s.remove_pod("default.a"),
        "n1",
    ),
    "an aggregate": (
        {"filters": SEATS},
        [node("n1"), licensed("a"), licensed("b"), pod("c", on="n1")],
        [lambda s: s.remove_pod("default.c"), lambda s: s.set_pod(licensed("d")), lambda s: s.remove_pod("default.d")],
        lambda s: s.remove_pod("default.a"),
        "n1",
    ),
    "an aggregate that moved elsewhere": (
        {"filters": [*SEATS, *filtering('node.labels["lic"] == "yes"', "own")]},
        [node("n1"), node("n2", labels={"lic": "yes"}), licensed("a"), licensed("b"), pod("c", on="n1")],
        [lambda s: s.remove_pod("default.c"), lambda s: s.set_node(node("n3"))],
        lambda s: s.remove_pod("default.a"),
        "n2",
    ),
    "the aggregate of a domain": (
        {"filters": filtering("(sum(node.requested.cpu) by node.zone <= 1) ?? false")},
        [in_zone("n1", "a"), in_zone("n2", "a"), in_zone("n3", "b"), pod("x", on="n1", requests={"cpu": 2}),
         pod("y", on="n3", requests={"cpu": 3}), pod("z", on="n3", requests={"cpu": "500m"})],
        [lambda s: s.remove_pod("default.z"), lambda s: s.set_node(in_zone("n4", "b"))],
        lambda s: s.remove_pod("default.x"),
        "n1 n2",
    ),
    "a node that goes": (
        {"filters": filtering('cluster.nodes < 2 or node.labels["k"] == "x"')},
        [node("n1"), node("n2")],
        [lambda s: s.set_node(node("n3")), lambda s: s.remove_node("n3")],
        lambda s: s.remove_node("n2"),
        "n1",
    ),
    "images on another node": (
        {"filters": filtering("pod.image_bytes > 1Ki")},
        [node("n1"), node("n2", unschedulable=True)],
        [lambda s: s.set_node(node("n2", unschedulable=True, images={"other:latest": MIB}))],
        lambda s: s.set_node(node("n2", unschedulable=True, images={"i:latest": MIB})),
        "n1",
    ),
    "a metric": (
        {"filters": filtering("(metrics.load < 50%) ?? false"),
         "metrics": [{"name": "load", "query": "load", "maxAge": "10min"}]},
        [node("n1"), node("n2")],
        [load(n1=0.9), load(n1=0.8, n2=0.7, n9=0.1)],
        load(n1=0.8, n2=0.3),
        "n2",
    ),
    "a namespace that was not known": (
        {"filters": filtering("node.ready"), "namespaceSelector": {"matchLabels": {"tier": "gold"}}},
        [node("n1")],
        [lambda s: s.set_node(node("n1", labels={"k": "y"})), lambda s: s.set_node(ready("n1"))],
        lambda s: s.take(Namespace(metadata=Metadata(name="default"))),
        "n1",
    ),
    "a label of the namespace": (
        {"filters": filtering('pod.namespace_labels["tier"] == "gold"')},
        [node("n1")],
        [lambda s: s.set_node(node("n1", labels={"a": "b"}))],
        lambda s: s.take(Namespace(metadata=Metadata(name="default", labels={"tier": "gold"}))),
        "n1",
    ),
}  # fmt: skip


async def begin(stand: Stand, spec: Spec, objects: list[Any]) -> None:
    for one in objects:
        stand.scheduler.take(one)
    stand.scheduler.use_policies(policy_set(p=spec), frozenset())
    await stand.settle()


@pytest.mark.parametrize(("spec", "objects", "vain", "helping", "nodes"), CASES.values(), ids=CASES)
async def test_only_what_can_help_has_a_pod_tried_again(
    spec: Spec, objects: list[Any], vain: list[Step], helping: Step, nodes: str
) -> None:
    async with running() as stand:
        await begin(stand, spec, objects)
        await stand.settled(pod("p", image="i"), pod("twin", image="i"))
        assert (stand.attempts("p"), stand.attempts("twin"), stand.waiting) == (1, 1, 2)
        for step in vain:
            step(stand.scheduler)
            await stand.settle()
            assert (stand.attempts("p"), stand.attempts("twin"), stand.waiting) == (1, 1, 2)
        helping(stand.scheduler)
        await stand.settle()
        assert stand.bound["p"] in nodes.split()


async def test_a_node_where_the_rule_held_all_along_is_no_help() -> None:
    """Another plugin rejects the node, and only its hints may requeue the pod."""
    async with running(node("n1"), node("n2", labels={"k": "x"}, allocatable={"cpu": 1})) as stand:
        stand.scheduler.use_policies(policy_set(p={"filters": filtering('node.labels["k"] == "x"')}), frozenset())
        await stand.settled(pod("p", requests={"cpu": 2}))
        stand.scheduler.set_node(node("n2", labels={"k": "x", "other": "y"}, allocatable={"cpu": 1}))
        stand.scheduler.set_pod(pod("other", on="n2"))
        await stand.settle()
        assert stand.attempts("p") == 1
        stand.scheduler.set_node(node("n2", labels={"k": "x", "other": "y"}, allocatable={"cpu": 3}))
        await stand.settle()
        assert stand.bound == {"p": "n2"}


# Time

AGE = {"filters": filtering("node.age >= 5min")}
PEERS_OLD_ENOUGH = {"filters": filtering("node.pods.all(peer.age >= 5min)")}
OLD_ENOUGH = {"filters": filtering("pod.age > 90s")}
AT_NIGHT = {"filters": filtering('clock("00:20", "06:00")')}
BY_DAY = {"filters": filtering("node.cordoned", when='clock("00:00", "00:20")')}
"""Policy that applies until 00:20; the fixed clock starts at 00:16:40."""


@pytest.mark.parametrize(
    ("spec", "wait"),
    [(AGE, 60.0), (PEERS_OLD_ENOUGH, 60.0), (OLD_ENOUGH, 100.0), (AT_NIGHT, 199.75), (BY_DAY, 199.75)],
    ids=["an age of nodes", "ages of peers", "an age of the pod", "a clock", "a clock of when"],
)
async def test_time_alone_has_a_pod_tried_again_at_the_moment_it_helps(spec: Spec, wait: float) -> None:
    peers = [born(pod(f"old-{name}", on=name), 240.25) for name in ("n1", "n2")]
    async with running(born(node("n1"), 240.25), born(node("n2"), 100.0)) as stand:
        for one in peers:
            stand.scheduler.take(one)
        await begin(stand, spec, [])
        await stand.settled(born(pod("p"), 0.25))
        assert (stand.attempts("p"), stand.waiting) == (1, 1)
        passed = 0.0
        while passed < wait - 1.0:
            wake = stand.scheduler.queue.next_wake()
            assert wake is not None
            step = min(wake - stand.clock.at, LONGEST, wait - 1.0 - passed)
            passed += step
            await stand.pass_time(step)
            assert (stand.attempts("p"), stand.waiting) == (1, 1)
        wake = stand.scheduler.queue.next_wake()
        assert wake is not None
        assert wake - stand.clock.at <= 1.2
        await stand.pass_time(wait - passed + 0.1)
        assert set(stand.bound) == {"p"}


async def test_a_node_that_comes_while_a_pod_waits_helps_once_it_is_old_enough() -> None:
    async with running(born(node("n1"), 1000.0)) as stand:
        await begin(stand, {"filters": filtering('node.age >= 5min and node.labels["k"] == "x"')}, [])
        await stand.settled(pod("p"))
        stand.scheduler.set_node(born(node("n2", labels={"k": "x"}), 250.25))
        await stand.settle()
        assert (stand.attempts("p"), stand.waiting) == (1, 1)
        await stand.pass_time(49.0)
        assert (stand.attempts("p"), stand.waiting) == (1, 1)
        await stand.pass_time(1.0)
        assert stand.bound == {"p": "n2"}


async def test_what_cannot_be_foretold_is_looked_at_every_half_minute() -> None:
    async with running(born(node("n1"), 0.25)) as stand:
        await begin(stand, {"filters": filtering("node.age / 1min + 1 > 2")}, [])
        await stand.settled(pod("p"))
        for passed in (30.1, 30.1, 30.1):
            assert stand.bound == {}
            assert stand.attempts("p") == 1
            await stand.pass_time(passed)
        assert stand.bound == {"p": "n1"}


async def test_a_value_that_becomes_too_old_may_help() -> None:
    metrics = [{"name": "load", "query": "load", "maxAge": "1min"}]
    async with running(node("n1")) as stand:
        load(n1=0.9)(stand.scheduler)
        await begin(stand, {"filters": filtering("(metrics.load < 50%) ?? true"), "metrics": metrics}, [])
        await stand.settled(pod("p"))
        await stand.pass_time(31.0)
        assert (stand.attempts("p"), stand.bound) == (1, {})
        await stand.pass_time(31.0)
        assert stand.bound == {"p": "n1"}


async def test_policies_that_read_no_time_set_no_alarm() -> None:
    async with running(node("n1")) as stand:
        await begin(stand, {"filters": filtering("node.cordoned")}, [])
        await stand.settled(pod("p"))
        wake = stand.scheduler.queue.next_wake()
        assert wake is not None
        assert wake > stand.clock.at + 25.0
        await stand.pass_time(25.0)
        assert stand.attempts("p") == 1


async def test_an_edit_of_one_policy_leaves_what_others_remember() -> None:
    async with running(node("n1"), node("n2", labels={"k": "x"}, allocatable={"cpu": 1})) as stand:
        first = policy_set(p={"filters": filtering('node.labels["k"] == "x"')}, q={"filters": filtering("true")})
        stand.scheduler.use_policies(first, frozenset())
        await stand.settled(pod("p", requests={"cpu": 2}))
        second = type(first).of([*[one.policy for one in first.active if one.policy.key == "p"]], first)
        assert second.active[0] is first.active[0]
        assert stand.scheduler.use_policies(second, frozenset({"SchedulingPolicy/q"})) == 0
        stand.scheduler.set_node(node("n2", labels={"k": "x", "a": "b"}, allocatable={"cpu": 1}))
        await stand.settle()
        assert stand.attempts("p") == 1
