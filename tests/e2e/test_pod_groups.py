"""Pods of a pod group behind `--feature-gates=GenericWorkload=true`, from the flag to the bindings."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path
from typing import Any

import pytest

from policysched.sandbox import Sandbox
from tests.e2e.objects import Json, node, pod
from tests.e2e.schedulers import spawned
from tests.e2e.server import Server, scheduled_condition
from tests.e2e.test_devices import device_class, devices, resource_slice, template, users
from tests.e2e.waiting import until

GATE = "--feature-gates=GenericWorkload=true"
CLAIMS = "--feature-gates=DRAWorkloadResourceClaims=true"
SERVED = ("scheduling.k8s.io", "v1beta1", "podgroups")


def gang(name: str, least: int) -> Json:
    spec = {"schedulingPolicy": {"gang": {"minCount": least}}}
    return {"apiVersion": "scheduling.k8s.io/v1beta1", "kind": "PodGroup", "metadata": {"name": name}, "spec": spec}


def member(name: str, of: str, **spec: Any) -> Json:
    return pod(name, schedulingGroup={"podGroupName": of}, **spec)


def flags(server: Server) -> tuple[str, ...]:
    return f"--kubeconfig={server.kubeconfig}", "--leader-elect=false", "--scheduler-name=policysched", GATE


@pytest.mark.parametrize("version", ["v1.37.2", "v1.38.0-beta.0"])
async def test_gang_waits_until_it_is_complete(server: Server, sandbox: Sandbox, version: str) -> None:
    sandbox.kubernetes = version
    await server.load(node("n1"), member("a", "g"), member("b", "g"), pod("first"))
    async with spawned(*flags(server)):
        await server.placed("first")
        await server.load(gang("g", 3), pod("second"))
        await server.placed("second")
        waiting = {name: scheduled_condition(await server.get("Pod", name)) for name in ("a", "b")}
        assert waiting == {"a": {}, "b": {}}
        await server.load(member("c", "g"))
        await server.placed("a", "b", "c")


@pytest.mark.parametrize("version", ["v1.37.2", "v1.38.0-beta.0"])
async def test_gang_that_does_not_fit_says_so_and_is_placed_whole(
    server: Server, sandbox: Sandbox, tmp_path: Path, version: str
) -> None:
    sandbox.kubernetes = version
    members = [member(name, "g", requests={"cpu": "1"}) for name in ("a", "b", "c")]
    await server.load(node("n1", cpu="2"), gang("g", 3), *members)
    async with spawned(*flags(server), f"--record={tmp_path}"):
        told = await until(lambda: initially_scheduled(server), bool)
        assert (told["status"], told["reason"]) == ("False", "Unschedulable")
        assert "cannot be satisfied: 2 scheduled" in told["message"]
        fitting = scheduled_condition(await server.get("Pod", "a"))
        assert (fitting["status"], "pod group" in fitting["message"]) == ("False", True)
        assert await server.nodes_of() == {"a": "", "b": "", "c": ""}
        await server.load(node("n2", cpu="1"))
        await server.placed("a", "b", "c")
        await until(lambda: initially_scheduled(server), lambda found: found["status"] == "True")
    command = (sys.executable, "-m", "policysched", "replay", str(tmp_path))
    replayed = await asyncio.create_subprocess_exec(*command, stdout=asyncio.subprocess.PIPE)
    output, _ = await replayed.communicate()
    assert (replayed.returncode, "equal" in output.decode()) == (0, True)


async def half_fits_then_all(server: Server) -> None:
    """Place a gang whose claim only half of the pods can use at first."""
    entry = {"name": "gpu", "resourceClaimTemplateName": "one"}
    group = gang("sharing", 4)
    group["spec"]["resourceClaims"] = [entry]
    pods = [member(name, "sharing", requests={"cpu": "1"}, resourceClaims=[entry]) for name in "abcd"]
    await server.load(node("n1", cpu="2"), node("n2", cpu="2"), device_class())
    await Server.load(server, resource_slice("n1"), template(), group, *pods)
    told = await until(lambda: initially_scheduled(server, "sharing"), bool)
    assert (told["status"], told["reason"]) == ("False", "Unschedulable")
    assert "cannot be satisfied: 2 scheduled" in told["message"]
    [claim] = await server.objects("ResourceClaim")
    assert (devices(claim), users(claim)) == ([], [])
    assert await server.nodes_of() == dict.fromkeys("abcd", "")
    await server.load(node("n3", cpu="4"), resource_slice("n3"))
    await server.placed(*"abcd")
    [claim] = await server.objects("ResourceClaim")
    assert (devices(claim), users(claim)) == (["n3/d0"], ["sharing"])
    assert set((await server.nodes_of()).values()) == {"n3"}


@pytest.mark.parametrize("version", ["v1.37.2", "v1.38.0-beta.0"])
async def test_pods_share_the_claim_of_their_group(server: Server, sandbox: Sandbox, version: str) -> None:
    sandbox.kubernetes = version
    async with spawned(*flags(server), CLAIMS):
        await half_fits_then_all(server)
        await server.delete("PodGroup", "sharing")
        await until(lambda: server.objects("ResourceClaim"), lambda found: not found)


async def test_claims_of_groups_are_foreign_without_the_gate(server: Server, sandbox: Sandbox) -> None:
    sandbox.kubernetes = "v1.37.2"
    entry = {"name": "gpu", "resourceClaimTemplateName": "one"}
    group = gang("g", 1)
    group["spec"]["resourceClaims"] = [entry]
    await server.load(node("n1"), device_class(), resource_slice("n1"), template(), group)
    async with spawned(*flags(server)):
        await server.load(member("a", "g", resourceClaims=[entry]), member("b", "g"), pod("web"))
        await server.placed("web")
        assert (await server.nodes_of())["a"] == ""


async def initially_scheduled(server: Server, name: str = "g") -> Json:
    """Return the condition of a group that the scheduler writes; empty without one."""
    found = (await server.get("PodGroup", name)).get("status", {}).get("conditions", ())
    return next((one for one in found if one["type"] == "PodGroupInitiallyScheduled"), {})


async def test_pods_of_groups_wait_if_the_server_lacks_the_kind(server: Server, sandbox: Sandbox) -> None:
    sandbox.kubernetes = "v1.37.2"
    del sandbox._backend.registry._rows[SERVED]
    await server.load(node("n1"), member("a", "g"), pod("web"))
    async with spawned(*flags(server)) as scheduler:
        await server.placed("web")
        assert scheduled_condition(await server.get("Pod", "a")) == {}
    [warning] = [line for line in scheduler.saying("WARNING") if "podgroups" in line]
    assert "continuing without podgroups" in warning
    assert "--runtime-config=scheduling.k8s.io/v1beta1=true" in warning


async def test_gate_is_refused_where_it_is_alpha(server: Server, sandbox: Sandbox) -> None:
    sandbox.kubernetes = "v1.36.5"
    async with spawned(*flags(server), wait=False) as scheduler:
        assert await scheduler.exit_code() == 2
    assert "GenericWorkload=true is not supported" in scheduler.lines[-1]
