"""What a user of kubectl sees: policies applied, edited, broken and deleted beside a scheduler of its own process."""

from __future__ import annotations

import json

import pytest

from policysched.model.policy import MAX_ANNOTATIONS, decode_policy, keeps
from tests.e2e.conftest import Kubectl, Spawning
from tests.e2e.objects import Json, node, only, pod, policy, unfit
from tests.e2e.server import Server
from tests.e2e.waiting import until

pytestmark = pytest.mark.kubectl


async def first_pod_is_pinned(server: Server, kubectl: Kubectl) -> None:
    assert "schedulingpolicy.policysched.io/pin created" in await kubectl.apply(only("pin", "n2", weight=3))
    table = await until(lambda: kubectl.run("get", "spol"), lambda text: "True" in text)
    assert [line.split()[:6] for line in table.splitlines()] == [
        ["NAME", "MODE", "WEIGHT", "RULES", "COMPILED", "ACTIVE"],
        ["pin", "Enforce", "3", "1", "True", "True"],
    ]
    await kubectl.apply(pod("first"))
    assert await server.placed("first") == {"first": "n2"}
    assert "Successfully assigned default/first to n2" in await until(
        lambda: kubectl.run("describe", "pod", "first"), lambda text: "Scheduled" in text.partition("Events:")[2]
    )


async def test_kubectl_user_applies_edits_breaks_and_deletes_a_policy(
    server: Server, kubectl: Kubectl, spawning: Spawning
) -> None:
    await server.load(*(node(f"n{number}") for number in range(1, 4)))
    await kubectl.apply(policy("unseen", filters=[]))
    assert (await kubectl.run("get", "spol")).splitlines()[1].split()[:-1] == ["unseen", "Enforce", "1"]
    await kubectl.run("delete", "spol", "unseen")
    async with spawning() as scheduler:
        await first_pod_is_pinned(server, kubectl)

        assert "configured" in await kubectl.apply(only("pin", "n3"))
        await server.policy_says("pin", 2, Compiled="Compiled", Active="Enforce")
        await kubectl.apply(pod("second"))
        assert await server.placed("second") == {"second": "n3"}

        await kubectl.apply(policy("pin", filters=[{"name": "here", "require": 'node.labels["cores"] > 10'}]))
        text = await until(lambda: kubectl.run("describe", "spol", "pin"), lambda text: "E0301" in text)
        for words in ("cannot compare string with number", "spec.filters[0].require", "LastGoodGeneration"):
            assert words in text
        stays = "the last good generation 2 stays in force"
        text = await until(lambda: kubectl.run("describe", "spol", "pin"), lambda text: stays in text)
        events = text.partition("Events:")[2]
        assert "Warning  PolicyRejected" in events
        assert "generation 2 is in force" in events
        row = (await kubectl.run("get", "spol")).splitlines()[1].split()
        assert row[:6] == ["pin", "Enforce", "1", "1", "False", "True"]
        await kubectl.apply(pod("third"))
        assert await server.placed("third") == {"third": "n3"}

        await kubectl.apply(only("pin", "nowhere"))
        await server.policy_says("pin", 4, Active="Enforce")
        await kubectl.apply(pod("fourth"))
        await server.turned_away("fourth", unfit(3, '3 policy pin/here: node.name == "nowhere"'))
        await kubectl.run("delete", "spol", "pin")
        await server.placed("fourth")
        assert not scheduler.saying("ERROR")


def large(size: int) -> Json:
    """Give a policy whose JSON has about so many bytes."""
    values = [f"team-{number:06}-of-the-other-department" for number in range(size // 40)]
    teams = {"key": "team", "operator": "NotIn", "values": values}
    return only("large", "n1", podSelector={"matchExpressions": [teams]})


async def test_kubectl_user_applies_a_policy_that_grows_to_147_kb(
    server: Server, kubectl: Kubectl, spawning: Spawning
) -> None:
    small, grown = large(122_000), large(147_000)
    assert 2 * len(json.dumps(grown)) > MAX_ANNOTATIONS
    await server.load(node("n1"))
    async with spawning():
        await kubectl.apply(small)
        await server.policy_says("large", 1, Active="Enforce")
        assert "configured" in await kubectl.apply(grown)
        status = await server.policy_says("large", 2, Active="Enforce")
    assert "may lose it" not in str(status["conditions"])
    found = decode_policy(await server.get("SchedulingPolicy", "large"))
    assert keeps(found, 2, found.spec)


async def test_kubectl_user_waits_for_policies(server: Server, kubectl: Kubectl, spawning: Spawning) -> None:
    await server.load(node("n1"))
    wait = ("wait", "spol", "--all", "--timeout=20s", "--for=condition=Ready")
    await kubectl.apply(only("pin", "n1"))
    assert (await server.get("SchedulingPolicy", "pin"))["status"] == {"observedGeneration": -1}
    async with spawning():
        assert "condition met" in await kubectl.run(*wait)
        await kubectl.apply(policy("pin", filters=[{"name": "here", "require": 'node.labels["cores"] > 10'}]))
        assert "condition met" in await kubectl.run(*wait[:-1], "--for=condition=Stalled")
        assert "condition met" in await kubectl.run(*wait[:-1], "--for=condition=Ready=false")
        error = "E0301 spec.filters[0].require: cannot compare string with number"
        [head, row] = (await kubectl.run("get", "spol", "-o", "wide")).splitlines()
        assert (head.split()[-1], row[head.index("ERROR") :].strip()) == ("ERROR", error)
        await kubectl.apply(only("pin", "n1", mode="Disabled"))
        assert "condition met" in await kubectl.run(*wait)
        assert "E0301" not in await kubectl.run("get", "spol", "-o", "wide")


async def test_kubectl_user_switches_a_policy_off_and_on(server: Server, kubectl: Kubectl, spawning: Spawning) -> None:
    await server.load(node("n1"))
    async with spawning():
        await kubectl.apply(only("pin", "nowhere"))
        await server.policy_says("pin", 1, Active="Enforce")
        await kubectl.apply(pod("held"))
        await server.turned_away("held", unfit(1, '1 policy pin/here: node.name == "nowhere"'))
        await kubectl.run("patch", "spol", "pin", "--type=merge", '-p={"spec":{"mode":"Disabled"}}')
        await server.placed("held")
        await server.policy_says("pin", 2, Active="Disabled")
        table = await kubectl.run("get", "spol")
        assert table.splitlines()[1].split()[:6] == ["pin", "Disabled", "1", "1", "True", "False"]


async def test_kubectl_user_helps_a_pending_pod(server: Server, kubectl: Kubectl, spawning: Spawning) -> None:
    await server.load(node("n1"), node("n2"))
    async with spawning():
        await kubectl.run("cordon", "n1")
        await kubectl.run("taint", "node", "n2", "team=other:NoSchedule")
        await kubectl.apply(pod("web"))
        message = unfit(2, "1 node(s) had untolerated taint(s)", "1 node(s) were unschedulable")
        await server.turned_away("web", message)
        described = await kubectl.run("describe", "pod", "web")
        assert message in described
        assert "Warning  FailedScheduling" in described
        assert "policysched" in described.partition("Events:")[2]
        await kubectl.run("uncordon", "n1")
        assert await server.placed("web") == {"web": "n1"}
        await kubectl.apply(pod("second", nodeSelector={"kubernetes.io/hostname": "n2"}))
        selector = "1 node(s) didn't match Pod's node affinity/selector"
        await server.turned_away("second", unfit(2, selector, "1 node(s) had untolerated taint(s)"))
        await kubectl.run("taint", "node", "n2", "team-")
        assert await server.placed("second") == {"second": "n2"}
