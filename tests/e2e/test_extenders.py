"""A running scheduler with HTTP extenders, and the same ones in front of kube-scheduler."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from tests.controlplane.plane import ControlPlane
from tests.e2e import real
from tests.e2e.objects import Json, node, pod
from tests.e2e.schedulers import spawned
from tests.e2e.server import Server, scheduled_condition
from tests.e2e.test_configuration import HEAD, File, profile, rejected
from tests.e2e.waiting import until
from tests.extenders.fake_extender import FakeExtender, fake_extender
from tests.requeueing.control_plane import KubeScheduler

VERBS: Json = {"filterVerb": "filter", "prioritizeVerb": "prioritize", "weight": 1}
NODES = [node("n1"), node("n2"), node("n3")]
HOST = "kubernetes.io/hostname"
VOLATILE = frozenset(
    (
        *("uid", "resourceVersion", "creationTimestamp", "schedulerName", "lastHeartbeatTime", "lastTransitionTime"),
        *("time", "startTime", "startedAt", "podIP", "podIPs"),
    )
)


@pytest.fixture
def file(server: Server, tmp_path: Path) -> File:
    return File(tmp_path, server)


def answer(fake: FakeExtender) -> None:
    """Have it keep pods off n1, and like n3."""

    def filtered(asked: Json) -> Json:
        names = asked["NodeNames"] or [one["metadata"]["name"] for one in asked["Nodes"]["items"]]
        left = [name for name in names if name != "n1"]
        items = [one for one in (asked["Nodes"] or {}).get("items", ()) if one["metadata"]["name"] in left]
        return {
            "NodeNames": left if asked["NodeNames"] else None,
            "Nodes": {"items": items} if asked["Nodes"] else None,
            "FailedNodes": {"n1": "n1 is not liked"},
        }

    fake.answers["filter"] = filtered
    fake.answers["prioritize"] = lambda _: [{"Host": "n3", "Score": 10}, {"Host": "n2", "Score": 0}]


async def test_pods_go_where_an_extender_wants_them_and_its_rejections_are_told(server: Server, file: File) -> None:
    async with fake_extender() as fake:
        answer(fake)
        file.write(profile("ours"), extenders=[{"urlPrefix": fake.url, **VERBS}])
        await server.load(*NODES)
        await server.load(pod("a", scheduler="ours"), pod("b", scheduler="ours", nodeSelector={HOST: "n1"}))
        async with spawned("--config", str(file.path)):
            assert await server.placed("a") == {"a": "n3"}
            message = await rejected(server, "b")
            reasons = "1 n1 is not liked, 2 node(s) didn't match Pod's node affinity/selector."
            assert message.startswith(f"0/3 nodes are available: {reasons}")


async def test_broken_extender_is_said_and_tried_again_unless_it_may_be_ignored(server: Server, file: File) -> None:
    async with fake_extender() as fake:
        broken = {"urlPrefix": fake.url, **VERBS, "nodeCacheCapable": True}
        file.write(profile("ours"), extenders=[broken])
        await server.load(*NODES, pod("a", scheduler="ours"))
        async with spawned("--config", str(file.path)) as scheduler:

            async def condition() -> Json:
                return scheduled_condition(await server.get("Pod", "a"))

            told = await until(condition, lambda one: one.get("reason") == "SchedulerError")
            assert told["message"] == f"failed filter with extender at URL {fake.url}/filter, code 404"
            file.write(profile("ours"), extenders=[broken | {"ignorable": True}])
            assert set(await server.placed("a")) == {"a"}
            await scheduler.said(f'extender "{fake.url}" failed to filter nodes for pod "default/a" and is ignored')


@pytest.mark.usefixtures("sandbox")
async def test_extender_that_a_changed_file_names_takes_part_from_then_on(server: Server, file: File) -> None:
    async with fake_extender() as fake:
        answer(fake)
        file.write(profile("ours"))
        await server.load(*NODES)
        async with spawned("--config", str(file.path)) as scheduler:
            file.write(profile("ours"), extenders=[{"urlPrefix": fake.url, **VERBS}])
            await scheduler.said("is active; changed profiles: ours")
            await server.load(pod("a", scheduler="ours"))
            assert await server.placed("a") == {"a": "n3"}
            assert [verb for verb, _ in fake.asked] == ["filter", "prioritize"]
            file.write(profile("ours"), extenders=[{"urlPrefix": "nowhere", **VERBS}])
            await scheduler.said("urlPrefix is not an http or https URL")


def preempt_on(chosen: str) -> Callable[[Json], Json]:
    """Leave one of the candidates."""

    def respond(asked: Json) -> Json:
        victims = asked["NodeNameToVictims"][chosen]
        pods = [{"UID": one["metadata"]["uid"]} for one in victims["Pods"]]
        return {"NodeNameToMetaVictims": {chosen: {"Pods": pods, "NumPDBViolations": 0}}}

    return respond


@pytest.mark.usefixtures("sandbox")
async def test_extender_that_a_changed_file_names_is_told_of_victims_that_were_there_before(
    server: Server, file: File
) -> None:
    async with fake_extender() as fake:
        fake.answers["preempt"] = preempt_on("n2")
        fake.answers["filter"] = lambda asked: {"Nodes": asked["Nodes"]}
        file.write(profile("ours"))
        await server.load(*NODES, *(low(name, "ours") for name in ("n1", "n2", "n3")))
        async with spawned("--config", str(file.path)) as scheduler:
            extender = {"urlPrefix": fake.url, "preemptVerb": "preempt", "filterVerb": "filter", "weight": 1}
            file.write(profile("ours"), extenders=[extender])
            await scheduler.said("is active; changed profiles: ours")
            await server.load(high("ours"))
            assert await server.placed("high") == {"high": "n2"}
    verb, asked = fake.asked[0]
    assert verb == "preempt", "no node passed the plugins' filters"
    hosts = {node: [one["spec"]["hostname"] for one in of["Pods"]] for node, of in asked["NodeNameToVictims"].items()}
    assert hosts == {"n1": ["on-n1"], "n2": ["on-n2"], "n3": ["on-n3"]}
    assert [verb for verb, _ in fake.asked[1:]] == ["filter"]
    assert fake.asked[1][1]["Pod"]["status"]["nominatedNodeName"] == "n2"


def low(node: str, scheduler: str) -> Json:
    """A pod that fills a node, and is ended by its kubelet: the nomination is told of before."""
    more: Json = {"nodeName": node, "hostname": f"on-{node}", "automountServiceAccountToken": False}
    return pod(f"low-{node}", scheduler=scheduler, requests={"cpu": "4"}, terminationGracePeriodSeconds=1, **more)


def high(scheduler: str) -> Json:
    """A pod that needs the place of another one, and nothing in it is drawn at random."""
    more: Json = {"priorityClassName": "system-node-critical", "automountServiceAccountToken": False}
    return pod("high", scheduler=scheduler, requests={"cpu": "4"}, **more)


async def running(server: Server) -> None:
    """Wait until all pods run."""
    await until(lambda: server.objects("Pod"), lambda pods: {one["status"]["phase"] for one in pods} == {"Running"})


async def test_candidates_of_preemption_are_those_of_kube_scheduler(
    control_plane: ControlPlane, tmp_path: Path
) -> None:
    extender = {"preemptVerb": "preempt", "filterVerb": "filter", "weight": 1}
    async with (
        real.real_server(control_plane, bare=False) as server,
        fake_extender() as ours,
        fake_extender() as theirs,
    ):
        await server.load(*NODES)
        for fake in (ours, theirs):
            fake.answers["preempt"] = preempt_on("n2")
            fake.answers["filter"] = lambda asked: {"Nodes": asked["Nodes"]}
        file = File(tmp_path, server)
        file.write(profile("ours"), extenders=[{"urlPrefix": ours.url, **extender}])
        configuration = {**HEAD, "profiles": [profile("theirs")], "extenders": [{"urlPrefix": theirs.url, **extender}]}
        await server.load(*(low(name, "theirs") for name in ("n1", "n2", "n3")))
        await running(server)
        kube_scheduler = KubeScheduler(control_plane, configuration)
        await asyncio.to_thread(kube_scheduler.__enter__)
        try:
            await server.load(high("theirs"))
            assert await server.placed("high") == {"high": "n2"}
        finally:
            await asyncio.to_thread(kube_scheduler.__exit__)
        await server.delete("Pod", "high")
        await server.load(low("n2", "ours"))
        await running(server)
        async with spawned("--config", str(file.path)):
            await server.load(high("ours"))
            assert await server.placed("high") == {"high": "n2"}
    (verb, sent), (expected_verb, expected) = ours.asked[0], theirs.asked[0]
    assert verb == expected_verb == "preempt"
    assert said(sent) == said(expected)


@pytest.mark.usefixtures("sandbox")
@pytest.mark.parametrize("by_name", [False, True], ids=["whole nodes", "names"])
async def test_extender_preempts_and_binds_beside_one_that_fails_and_one_of_other_resources(
    server: Server, file: File, by_name: bool
) -> None:
    async with fake_extender() as fake, fake_extender() as broken:

        def named(asked: Json) -> Json:
            assert asked["NodeNameToVictims"] is None
            return {"NodeNameToMetaVictims": {"n2": asked["NodeNameToMetaVictims"]["n2"]}}

        fake.answers["preempt"] = named if by_name else preempt_on("n2")
        fake.answers["bind"] = partial(binding, server)
        broken.answers["preempt"] = lambda _: {"NodeNameToMetaVictims": {"n1": {"Pods": [{"UID": "unknown"}]}}}
        broken.answers["filter"] = lambda _: {"Error": "out of order"}
        ignored = {"preemptVerb": "preempt", "filterVerb": "filter", "weight": 1, "ignorable": True}
        other = {"filterVerb": "filter", "weight": 1, "managedResources": [{"name": "example.com/gpu"}]}
        extenders = [
            {"urlPrefix": broken.url, **ignored},
            {"urlPrefix": "http://127.0.0.1:1", **other},
            {"urlPrefix": fake.url, "preemptVerb": "preempt", "bindVerb": "bind", "nodeCacheCapable": by_name},
        ]
        file.write(profile("ours"), extenders=extenders)
        await server.load(*NODES, *(low(name, "ours") for name in ("n1", "n2", "n3")))
        async with spawned("--config", str(file.path)) as scheduler:
            await server.load(high("ours"))
            assert await server.placed("high") == {"high": "n2"}
            await scheduler.said(
                "claims to preempt pod (UID: unknown) on node: n1, but the pod is not found on that node"
            )
            await scheduler.said('failed to filter nodes for pod "default/high" and is ignored: out of order')
    assert [verb for verb, _ in fake.asked] == ["preempt", "bind"]
    assert [verb for verb, _ in broken.asked] == ["preempt", "filter"]


@pytest.mark.usefixtures("sandbox")
async def test_no_password_and_no_key_of_an_extender_is_logged(server: Server, file: File) -> None:
    secret = base64.b64encode(b"a private key").decode()
    tls = {"insecure": True, "keyData": secret}
    extender = {"urlPrefix": "http://me:hidden@127.0.0.1:1/", "filterVerb": "filter", "tlsConfig": tls}
    file.write(profile("ours"), extenders=[extender])
    await server.load(node("n1"), pod("a", scheduler="ours"))
    async with spawned("--config", str(file.path)) as scheduler:
        await scheduler.said("http://127.0.0.1:1/")

        async def condition() -> Json:
            return scheduled_condition(await server.get("Pod", "a"))

        told = await until(condition, lambda one: one.get("reason") == "SchedulerError")
    assert "hidden" not in told["message"]
    assert not scheduler.saying("hidden")
    assert not scheduler.saying(secret)


@pytest.mark.parametrize("by_name", [False, True], ids=["whole nodes", "names"])
async def test_requests_are_those_of_kube_scheduler(control_plane: ControlPlane, tmp_path: Path, by_name: bool) -> None:
    async with (
        real.real_server(control_plane, bare=False) as server,
        fake_extender() as ours,
        fake_extender() as theirs,
    ):
        await server.load(*NODES)
        for fake in (ours, theirs):
            answer(fake)
            fake.answers["bind"] = partial(binding, server)
        extender = {**VERBS, "bindVerb": "bind", "nodeCacheCapable": by_name}
        file = File(tmp_path, server)
        file.write(profile("ours"), extenders=[{"urlPrefix": ours.url, **extender}])
        configuration = {**HEAD, "profiles": [profile("theirs")], "extenders": [{"urlPrefix": theirs.url, **extender}]}
        await server.load(web("ours"))
        async with spawned("--config", str(file.path)):
            assert await server.placed("web") == {"web": "n3"}
        await server.delete("Pod", "web")
        await until(lambda: server.objects("Pod"), lambda pods: not pods)
        await server.load(web("theirs"))
        kube_scheduler = KubeScheduler(control_plane, configuration)
        await asyncio.to_thread(kube_scheduler.__enter__)
        try:
            assert await server.placed("web") == {"web": "n3"}
        finally:
            await asyncio.to_thread(kube_scheduler.__exit__)
    assert [verb for verb, _ in ours.asked] == [verb for verb, _ in theirs.asked] == ["filter", "prioritize", "bind"]
    for (verb, sent), (_, expected) in zip(ours.asked, theirs.asked, strict=True):
        assert said(sent) == said(expected), verb


def web(scheduler: str) -> Json:
    """A pod in which nothing is drawn at random."""
    return pod("web", scheduler=scheduler, requests={"cpu": "1"}, automountServiceAccountToken=False)


async def binding(server: Server, asked: Json) -> Json:
    """Bind a pod in the extender's place."""
    await server.bind(asked["PodName"], asked["Node"])
    return {}


def said(value: Any) -> Any:
    """Give what a JSON value says: without what is empty, and without what differs between two times and two pods."""
    if isinstance(value, list):
        return sorted(map(said, value), key=repr)
    if not isinstance(value, dict):
        return value
    kept = {name: said(one) for name, one in value.items() if name not in VOLATILE and name != "PodUID"}
    return {name: one for name, one in kept.items() if one not in (None, "", 0, False, {}, [])}
