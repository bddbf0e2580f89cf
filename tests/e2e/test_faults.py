"""The effect of API server faults on each watched kind: the table of bench/results/api-faults.md.

A proxy between a real scheduler and its server makes the faults. Pauses and time limits are a hundredth of their
real values.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from policysched.kube.reflector import Reflector
from policysched.kube.transport import Transport
from policysched.model import kinds
from policysched.sandbox import Sandbox
from tests.e2e.holding import Watched, watched
from tests.e2e.objects import RELEASE, Json, node, only, pod
from tests.e2e.proxy import FAULTS, Answer, Proxy, older, passing, proxied, quiet, refused, status
from tests.e2e.server import Server, scheduled_condition
from tests.e2e.waiting import until, until_true

PAGE = Path(__file__).parents[2] / "bench" / "results" / "api-faults.md"
TEMPLATE: Json = {"metadata": {"labels": {"a": "b"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}
OF_APP: Json = {"selector": {"matchLabels": {"a": "b"}}, "template": TEMPLATE}
GIB: Json = {"storage": "1Gi"}
MODES: Json = {"accessModes": ["ReadWriteOnce"]}
DISK = MODES | {"hostPath": {"path": "/x"}}
ONE_OF_EACH: list[Json] = [
    {"apiVersion": version, "kind": kind, "metadata": {"name": "x"}, **rest}
    for version, kind, rest in (
        ("v1", "Service", {"spec": {"selector": {"a": "b"}, "ports": [{"port": 80}]}}),
        ("v1", "ReplicationController", {"spec": {"replicas": 0, "selector": {"a": "b"}, "template": TEMPLATE}}),
        ("apps/v1", "ReplicaSet", {"spec": {"replicas": 0} | OF_APP}),
        ("apps/v1", "StatefulSet", {"spec": {"replicas": 0, "serviceName": "x"} | OF_APP}),
        ("v1", "PersistentVolume", {"spec": DISK | {"capacity": GIB}}),
        ("v1", "PersistentVolumeClaim", {"spec": MODES | {"storageClassName": "x", "resources": {"requests": GIB}}}),
        ("storage.k8s.io/v1", "StorageClass", {"provisioner": "x"}),
        ("storage.k8s.io/v1", "CSINode", {"spec": {"drivers": []}}),
        ("storage.k8s.io/v1", "CSIDriver", {"spec": {}}),
        ("storage.k8s.io/v1", "CSIStorageCapacity", {"storageClassName": "x"}),
        (
            "storage.k8s.io/v1",
            "VolumeAttachment",
            {"spec": {"attacher": "x", "nodeName": "n1", "source": {"persistentVolumeName": "x"}}},
        ),
        ("resource.k8s.io/v1", "DeviceClass", {"spec": {}}),
        (
            "resource.k8s.io/v1",
            "ResourceSlice",
            {
                "spec": {
                    "driver": "x",
                    "nodeName": "n1",
                    "pool": {"name": "n1", "generation": 1, "resourceSliceCount": 1},
                }
            },
        ),
        ("resource.k8s.io/v1", "ResourceClaim", {"spec": {"devices": {}}}),
        ("policy/v1", "PodDisruptionBudget", {"spec": {"selector": {"matchLabels": {"a": "b"}}}}),
        ("v1", "Pod", {"spec": {"nodeName": "n1", "containers": [{"name": "c", "image": "i"}]}}),
    )
]
if RELEASE.device_taint_rules_apply:
    RULE: Json = {"apiVersion": "resource.k8s.io/v1", "kind": "DeviceTaintRule", "metadata": {"name": "x"}}
    ONE_OF_EACH.append(RULE | {"spec": {"taint": {"key": "k", "effect": "None"}}})
GOLD = {"namespaceSelector": {"matchLabels": {"tier": "gold"}}}


@pytest.fixture(autouse=True)
def hurried(monkeypatch: pytest.MonkeyPatch) -> None:
    """Make pauses and time limits short."""
    monkeypatch.setattr("policysched.kube.transport.FIRST_PAUSE", 0.01)
    monkeypatch.setattr("policysched.kube.transport.LONGEST_PAUSE", 0.05)
    monkeypatch.setattr("policysched.kube.transport.MOST_ASKED", 0.05)
    monkeypatch.setattr("policysched.kube.reflector.ABSENT", 0.05)
    monkeypatch.setattr("policysched.kube.reflector.SILENCE", 0.5)
    monkeypatch.setattr("policysched.app.running.process.Transport", partial(Transport, timeout=0.5))
    monkeypatch.setattr("policysched.app.running.run.Transport", partial(Transport, timeout=0.5))


@pytest.fixture
async def proxy(server: Server, tmp_path: Path) -> AsyncIterator[tuple[Proxy, Path]]:
    async with proxied(server, tmp_path, Proxy) as made:
        yield made


def namespace(name: str, **labels: str) -> Json:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": labels}}


OLDER = kinds.POLICIES.versions()[1].path
"""Where policies are read while they are not found in the newest version."""


def paths(scheduler: Watched) -> dict[str, str]:
    return {one.watched.path: one.watched.plural for one in scheduler.reflectors}


def versions(reflector: Reflector[Any]) -> dict[Any, str]:
    return {(one.metadata.namespace, one.metadata.name): one.metadata.resource_version for one in reflector.objects()}


def state(scheduler: Watched) -> dict[str, Any]:
    """What the scheduler knows: versions by kind, and what decisions read of them."""
    found: dict[str, Any] = {one.watched.plural: versions(one) for one in scheduler.reflectors}
    return found | {"labels": dict(scheduler.cluster.namespaces), "in force": sorted(scheduler.policies())}


async def struck(proxy: Proxy, scheduler: Watched, fault: Answer) -> None:
    """Wait until reads of every kind failed twice, or all of them see that nobody is there."""

    def failed() -> bool:
        if fault is refused:
            started = [one for one in scheduler.reflectors if one.synced.is_set()]
            return bool(scheduler.saying("cannot connect to")) and all(one.problem for one in started)
        return all(proxy.struck[path] >= 2 for path in paths(scheduler))

    await until_true(failed)


async def first_lists(proxy: Proxy, kubeconfig: Path, fault: Answer) -> dict[str, str]:
    """Start under a fault and give what becomes of each kind; then all is well."""
    async with watched(kubeconfig, wait=False) as scheduler:
        await proxy.strike(fault, *paths(scheduler), OLDER)
        await scheduler.begin()
        await struck(proxy, scheduler, fault)
        found = {one.watched.plural: "starts without" if one.absent else "waits" for one in scheduler.reflectors}
        assert all(one.synced.is_set() is one.absent for one in scheduler.reflectors)
        assert "INFO scheduling" not in scheduler.lines
        await proxy.heal()
        await scheduler.started()
    return found


async def later_lists(server: Server, proxy: Proxy, kubeconfig: Path, fault: Answer) -> dict[str, str]:
    """Let a fault strike a scheduler at work, and give what becomes of each kind; then all is well and caught up."""
    async with watched(kubeconfig) as scheduler:
        await server.load(namespace("meanwhile"))
        await until_true(lambda: "meanwhile" in scheduler.cluster.namespaces)
        before = state(scheduler)
        await proxy.strike(fault, *paths(scheduler), OLDER)
        await server.delete("SchedulingPolicy", "pin")
        await server.delete("Node", "n2")
        await struck(proxy, scheduler, fault)
        await asyncio.sleep(0.1)
        after = state(scheduler)
        await proxy.heal()
        await until_true(lambda: "n2" not in scheduler.cluster.nodes.row_of and not scheduler.policies())
        await server.load(only("pin", "n1", **GOLD), node("n2"))
        await server.call("DELETE", "/api/v1/namespaces/meanwhile")
        await until_true(lambda: "meanwhile" not in scheduler.cluster.namespaces and bool(scheduler.policies()))
    assert all(before.values()), before
    assert (after["labels"], after["in force"]) == (before["labels"], before["in force"])
    # A status of ours that is written meanwhile makes another version of the same policy.
    for found in (before, after):
        found["schedulingpolicies"] = set(found["schedulingpolicies"])
    return {name: "keeps" if after[name] == before[name] else "loses" for name in paths(scheduler).values()}


def table(rows: dict[str, dict[str, str]]) -> list[str]:
    """Write what was seen, kinds that are alike in one column."""
    columns: dict[tuple[str, ...], list[str]] = {}
    for kind in sorted(next(iter(rows.values()))):
        columns.setdefault(tuple(row[kind] for row in rows.values()), []).append(kind)

    def line(first: str, *cells: str) -> str:
        return f"| {' | '.join((first, *cells))} |"

    most = max(columns.values(), key=len)
    heads = ["all others" if kinds is most else ", ".join(kinds) for kinds in columns.values()]
    said = (line(name, *(row[kinds[0]] for kinds in columns.values())) for name, row in rows.items())
    return [line("fault", *heads), "|---" * (len(heads) + 1) + "|", *said]


async def test_table_of_the_page_is_what_is_seen(
    server: Server, sandbox: Sandbox, proxy: tuple[Proxy, Path], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("policysched.kube.reflector.MOST_OLDER", 10**6)
    await server.load(node("n1"), node("n2"), namespace("shop", tier="gold"), only("pin", "n1", **GOLD))
    sandbox.load(ONE_OF_EACH)
    between, kubeconfig = proxy
    rows = {}
    for name, fault in FAULTS.items():
        first = {} if fault is older else await first_lists(between, kubeconfig, fault)
        later = await later_lists(server, between, kubeconfig, fault)
        rows[name] = {kind: f"{first.get(kind, '–')}, {said}" for kind, said in later.items()}
    lines = table(rows)
    assert "\n".join(lines) in PAGE.read_text("utf-8"), "\n".join(lines)


NAMESPACES, POLICIES = "/api/v1/namespaces", "/apis/policysched.io/v1beta1/schedulingpolicies"
NOT_KNOWN = 'policy pin: namespace "late" is not known yet'


async def places(server: Server, space: str) -> list[str]:
    """Give the nodes of the pods of a namespace, empty where they have none."""
    return [one["spec"].get("nodeName", "") for one in await server.objects("Pod", space)]


async def said(server: Server, space: str) -> set[str]:
    """Give what the conditions of the pods of a namespace say."""
    return {scheduled_condition(one).get("message", "") for one in await server.objects("Pod", space)}


@pytest.mark.parametrize(
    "fault",
    [
        "404",
        "404, and the kind is not served",
        "403",
        "500",
        "no answer",
        "list or line cut short",
        "object of another kind",
        "events about another kind",
        "list older than what was seen",
    ],
)
async def test_filter_in_force_is_enforced_on_every_pod(
    server: Server, proxy: tuple[Proxy, Path], fault: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("policysched.kube.reflector.SILENCE", 60)
    # With pauses so short the lists after which an older state is taken for the server's are through in a second.
    monkeypatch.setattr("policysched.kube.reflector.MOST_OLDER", 10**6)
    monkeypatch.setattr("policysched.app.running.process.Transport", partial(Transport, timeout=3))
    monkeypatch.setattr("policysched.app.running.run.Transport", partial(Transport, timeout=3))
    between, kubeconfig = proxy
    pin = only("pin", "n1", **GOLD)
    await server.load(node("n1"), node("n2"), namespace("vault", tier="gold"), namespace("plain"), pin)
    async with watched(kubeconfig) as scheduler:
        # A real server takes a while to be rid of the namespaces of the test before.
        await until_true(lambda: not {"late", "later"} & set(scheduler.cluster.namespaces))
        await between.strike(FAULTS[fault], NAMESPACES, POLICIES, OLDER)
        times = 1 if fault == "no answer" else 2
        await until_true(lambda: min(between.struck[NAMESPACES], between.struck[POLICIES]) >= times)
        await server.load(namespace("late", tier="gold"), namespace("later"))
        spaces = ("vault", "plain", "late", "later")
        await server.load(*(pod(f"p{number}", namespace=space) for space in spaces for number in range(5)))
        assert await until(lambda: places(server, "vault"), all) == ["n1"] * 5
        await until(lambda: places(server, "plain"), all)
        await until(lambda: said(server, "late"), lambda seen: len(seen) == 1 and NOT_KNOWN in seen.pop())
        assert not any([*await places(server, "late"), *await places(server, "later")])
        assert scheduler.policies() == ["pin"]
        await between.heal()
        assert await until(lambda: places(server, "late"), all) == ["n1"] * 5
        await until(lambda: places(server, "later"), all)


@pytest.mark.parametrize(("code", "times"), [(500, 1), (404, 2), (403, 3)])
async def test_fault_that_passes_lets_no_pod_past_a_filter(
    server: Server, proxy: tuple[Proxy, Path], code: int, times: int
) -> None:
    between, kubeconfig = proxy
    await server.load(node("n1"), node("n2"), namespace("vault", tier="gold"), only("pin", "n1", **GOLD))
    async with watched(kubeconfig) as scheduler:
        await until_true(lambda: "late" not in scheduler.cluster.namespaces)
        await between.strike(passing(status(code), times), NAMESPACES, POLICIES, OLDER)
        await server.load(namespace("late", tier="gold"))
        await server.load(
            *(pod(f"p{number:02}", namespace=space) for number in range(25) for space in ("vault", "late"))
        )
        for space in ("vault", "late"):
            assert await until(partial(places, server, space), all) == ["n1"] * 25
        assert min(between.struck[NAMESPACES], between.struck[POLICIES]) > times
        assert scheduler.policies() == ["pin"]


async def test_watches_that_say_nothing_are_listed_again(server: Server, proxy: tuple[Proxy, Path]) -> None:
    between, kubeconfig = proxy
    await server.load(node("n1"), node("n2"))
    async with watched(kubeconfig) as scheduler:
        await between.strike(quiet, *paths(scheduler), OLDER)
        await struck(between, scheduler, quiet)
        await server.load(namespace("vault", tier="gold"), only("pin", "n1", **GOLD))
        await until_true(lambda: "vault" in scheduler.cluster.namespaces and bool(scheduler.policies()))
        await server.load(pod("web", namespace="vault"))
        assert await until(lambda: places(server, "vault"), all) == ["n1"]
        assert scheduler.saying("may be stuck")
