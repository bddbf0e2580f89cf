"""Policies that change while the scheduler runs, and the last good generation."""

from __future__ import annotations

import asyncio
import json
import signal

import pytest

from tests.e2e.conftest import Running, Spawning
from tests.e2e.objects import Json, node, only, pod, policy, unfit
from tests.e2e.schedulers import InProcess
from tests.e2e.server import Server
from tests.e2e.waiting import until

BROKEN: Json = {"spec": {"filters": [{"name": "here", "require": "node.nmae == 3 3"}]}}


async def test_last_good_generation_survives_a_kill_and_a_restart(server: Server, spawning: Spawning) -> None:
    await server.load(node("n1"), node("n2"), node("n3"))
    async with spawning() as scheduler:
        await server.load(only("pin", "n2"))
        await server.policy_says("pin", 1, Active="Enforce")
        await server.patch("SchedulingPolicy", "pin", BROKEN)
        status = await server.policy_says("pin", 2, Compiled="SyntaxError", Active="LastGoodGeneration")
        assert status["activeGeneration"] == 1
        assert status["activeSpec"]["filters"] == [{"name": "here", "require": 'node.name == "n2"'}]
        assert [one["field"] for one in status["diagnostics"]] == ["spec.filters[0].require"]
        assert status["diagnostics"][0]["code"].startswith("E01")
        assert status["instances"] == [{"name": "kube-system/policysched", "activeGeneration": 1}]
        await server.load(pod("before"))
        assert await server.placed("before") == {"before": "n2"}
        assert await scheduler.end(signal.SIGKILL) == -signal.SIGKILL
    async with spawning():
        await server.load(pod("after"))
        assert await server.placed("after") == {"after": "n2"}
        status = await server.policy_says("pin", 2, Active="LastGoodGeneration")
        assert status["activeGeneration"] == 1
        await server.patch("SchedulingPolicy", "pin", only("pin", "n3"))
        status = await server.policy_says("pin", 3, Compiled="Compiled", Active="Enforce")
        assert (status["activeGeneration"], status.get("diagnostics", [])) == (3, [])
        await server.load(pod("mended"))
        assert await server.placed("mended") == {"mended": "n3"}


INJECTED: Json = {"filters": [{"name": "here", "require": 'node.name == "n1"'}]}


@pytest.mark.parametrize("generation", [1, 9])
async def test_status_alone_never_puts_a_spec_in_force(server: Server, running: Running, generation: int) -> None:
    await server.load(node("n1", cpu="1"), node("n2"), policy("pin") | BROKEN)
    claim: Json = {"activeGeneration": generation, "activeSpec": INJECTED}
    kept = {"policysched.io/last-good": json.dumps({"uid": "", "generation": 1, "spec": INJECTED})}
    written = await server.patch(
        "SchedulingPolicy", "pin", {"metadata": {"annotations": kept}, "status": claim}, "/status"
    )
    assert "annotations" not in written["metadata"], "who may write a status cannot annotate"
    async with running() as scheduler:
        status = await server.policy_says("pin", 1, Compiled="SyntaxError", Active="NotTrusted")
        assert {"activeGeneration", "activeSpec"}.isdisjoint(status)
        await scheduler.said(f"generation {generation} in the status is ignored")
        await server.load(pod("web", requests={"cpu": "2"}))
        assert await server.placed("web") == {"web": "n2"}


async def test_status_alone_never_brings_an_older_generation_back(server: Server, running: Running) -> None:
    await server.load(node("n1"), node("n2"), only("pin", "n1"))
    async with running():
        old = await server.policy_says("pin", 1, Active="Enforce")
        await server.patch("SchedulingPolicy", "pin", only("pin", "n2"))
        await server.policy_says("pin", 2, Active="Enforce")
        await server.patch("SchedulingPolicy", "pin", BROKEN)
        await server.policy_says("pin", 3, Active="LastGoodGeneration")
    replayed = {"activeGeneration": 1, "activeSpec": old["activeSpec"]}
    await server.patch("SchedulingPolicy", "pin", {"status": replayed}, "/status")
    async with running():
        await server.load(pod("web"))
        assert await server.placed("web") == {"web": "n2"}
        status = await until(lambda: server.policy_says("pin", 3), lambda seen: seen["activeGeneration"] == 2)
        assert status["activeSpec"]["filters"][0]["require"] == 'node.name == "n2"'


async def test_last_good_generation_of_another_policy_is_refused(server: Server, running: Running) -> None:
    await server.load(node("n1"), node("n2"), only("pin", "n1"))
    async with running():
        await server.policy_says("pin", 1, Active="Enforce")
    copied = (await server.get("SchedulingPolicy", "pin"))["metadata"]["annotations"]
    await server.load(policy("copy") | BROKEN)
    await server.patch("SchedulingPolicy", "copy", {"metadata": {"annotations": copied}})
    async with running() as scheduler:
        await server.policy_says("copy", 1, Active="NotTrusted")
        await scheduler.said(
            'policy "copy": the annotation policysched.io/last-good is ignored: it belongs to another object'
        )


async def test_restart_settles_on_the_same_status(server: Server, running: Running) -> None:
    await server.load(node("n1"), only("pin", "n1"))
    async with running():
        await server.policy_says("pin", 1, Active="Enforce")
    before = await server.get("SchedulingPolicy", "pin")
    async with running():
        await server.load(pod("web"))
        await server.placed("web")
    assert await server.get("SchedulingPolicy", "pin") == before


async def test_policy_that_never_compiled_does_nothing(server: Server, scheduler: InProcess) -> None:
    await server.load(node("n1"), policy("bad") | BROKEN)
    status = await server.policy_says("bad", 1, Compiled="SyntaxError", Active="NeverCompiled")
    assert "activeGeneration" not in status
    await server.load(pod("web"))
    assert await server.placed("web") == {"web": "n1"}


async def test_broken_policy_leaves_the_others_alone(server: Server, scheduler: InProcess) -> None:
    await server.load(node("n1"), node("n2"), only("good", "n2"))
    await server.policy_says("good", 1, Active="Enforce")
    await server.load(policy("bad") | BROKEN)
    await server.policy_says("bad", 1, Active="NeverCompiled")
    await server.load(pod("web"))
    assert await server.placed("web") == {"web": "n2"}
    assert (await server.get("SchedulingPolicy", "good"))["status"]["activeGeneration"] == 1


async def test_policy_made_anew_does_not_remember(server: Server, scheduler: InProcess) -> None:
    await server.load(node("n1"), node("n2"), only("pin", "n2"))
    await server.policy_says("pin", 1, Active="Enforce")
    await server.delete("SchedulingPolicy", "pin")
    await server.load(policy("pin") | BROKEN)
    await server.policy_says("pin", 1, Active="NeverCompiled")
    await server.load(*(pod(f"p{number}", requests={"cpu": "3"}) for number in range(2)))
    assert sorted((await server.placed()).values()) == ["n1", "n2"]


async def test_changed_policy_frees_the_pods_it_held_back_and_no_others(server: Server, scheduler: InProcess) -> None:
    await server.load(node("n1"), only("a", "nowhere", podSelector={"matchLabels": {"app": "a"}}))
    await server.load(only("b", "nowhere", podSelector={"matchLabels": {"app": "b"}}))
    for name in ("a", "b"):
        await server.policy_says(name, 1, Active="Enforce")
        await server.load(pod(name, labels={"app": name}))
        await server.turned_away(name, unfit(1, f'1 policy {name}/here: node.name == "nowhere"'))
    said = len(scheduler.saying('"Unable to schedule pod; no fit; waiting" pod="default/b"'))
    await server.patch("SchedulingPolicy", "a", only("a", "n1"))
    assert await server.placed("a") == {"a": "n1"}
    assert len(scheduler.saying('"Unable to schedule pod; no fit; waiting" pod="default/b"')) == said
    assert (await server.nodes_of())["b"] == ""


async def test_policy_wakes_its_pods_when_a_node_comes_to_suit_it(server: Server, scheduler: InProcess) -> None:
    rule = {"name": "ssd", "require": 'node.labels["disk"] == "ssd"', "message": "a fast disk is needed"}
    await server.load(node("n1"), policy("fast", filters=[rule]))
    await server.policy_says("fast", 1, Active="Enforce")
    await server.load(pod("web"))
    await server.turned_away("web", unfit(1, "1 policy fast/ssd: a fast disk is needed"))
    await server.patch("Node", "n1", {"metadata": {"labels": {"disk": "ssd"}}})
    await server.placed("web")


async def test_policies_that_are_there_at_start_hold_for_the_first_pod(server: Server, running: Running) -> None:
    await server.load(*(node(f"n{number}") for number in range(5)), only("pin", "n3"))
    await server.load(*(pod(f"p{number}") for number in range(10)))
    async with running():
        assert set((await server.placed()).values()) == {"n3"}


async def test_status_written_by_another_installation_is_kept(server: Server, scheduler: InProcess) -> None:
    await server.load(only("pin", "n1"))
    await server.policy_says("pin", 1, Active="Enforce")
    mine = (await server.get("SchedulingPolicy", "pin"))["status"]["instances"]
    other = {"name": "kube-system/another", "activeGeneration": 1}
    await server.patch("SchedulingPolicy", "pin", {"status": {"instances": [*mine, other]}}, "/status")
    await server.patch("SchedulingPolicy", "pin", only("pin", "n2"))
    status = await server.policy_says("pin", 2, Active="Enforce")
    assert status["instances"] == [other, {"name": "kube-system/policysched", "activeGeneration": 2}]
    await until(lambda: server.get("SchedulingPolicy", "pin"), lambda obj: obj["metadata"]["generation"] == 2)


def _nested(depth: int) -> Json:
    junk: Json = {}
    for _ in range(depth):
        junk = {"f": junk}
    return junk


@pytest.mark.parametrize("junk", [_nested(200), {"much": "x" * 600_000}], ids=["deep", "long"])
async def test_status_that_nobody_reads_is_replaced_once(server: Server, running: Running, junk: Json) -> None:
    await server.load(node("n1"), only("pin", "n1"))
    async with running():
        good = await server.policy_says("pin", 1, Active="Enforce")
        await server.patch("SchedulingPolicy", "pin", {"status": {"activeSpec": {"junk": junk}}}, "/status")
        await until(
            lambda: server.get("SchedulingPolicy", "pin"),
            lambda seen: seen["status"].get("activeSpec") == good["activeSpec"] and "conditions" in seen["status"],
        )
        before = (await server.get("SchedulingPolicy", "pin"))["metadata"]["resourceVersion"]
        await asyncio.sleep(2.5)
        assert (await server.get("SchedulingPolicy", "pin"))["metadata"]["resourceVersion"] == before
