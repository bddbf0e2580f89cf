"""Pods of a pod group behind `--feature-gates=GenericWorkload=true`, from the flag to the bindings."""

from __future__ import annotations

from typing import Any

import pytest

from policysched.sandbox import Sandbox
from tests.e2e.objects import Json, node, pod
from tests.e2e.schedulers import spawned
from tests.e2e.server import Server, scheduled_condition

GATE = "--feature-gates=GenericWorkload=true"
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
