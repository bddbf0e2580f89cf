"""A process and a dry-run apply DeviceTaintRules from 1.37 on; in 1.36, a process does not watch them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from prometheus_client import CollectorRegistry

import policysched
from policysched.app.clock import SystemClock
from policysched.app.demo.sandbox_setup import new_sandbox
from policysched.app.running.process import Process
from policysched.app.running.run_options import RunOptions
from policysched.kube.connection import Connection
from policysched.metric_sources.no_source import NoSource
from policysched.model.release import RELEASES
from policysched.sandbox import Sandbox, sandbox_nodes
from tests.e2e.test_devices import V1, claim, claiming, device_class, resource_slice
from tests.kube.fake_server import eventually

RULES = f"/apis/{V1}/devicetaintrules"
RULE: dict[str, Any] = {
    "apiVersion": V1,
    "kind": "DeviceTaintRule",
    "metadata": {"name": "broken"},
    "spec": {"deviceSelector": {"pool": "node-1"}, "taint": {"key": "broken", "effect": "NoSchedule"}},
}
CLUSTER = [*sandbox_nodes(1), device_class(), resource_slice("node-1"), claim("c")]


@asynccontextmanager
async def following(sandbox: Sandbox, minor: str) -> AsyncIterator[Process]:
    """A process that follows a minor, on a sandbox."""
    await sandbox.start()
    connection = Connection(sandbox.url, SystemClock())
    process = Process(RunOptions(), connection, NoSource(), CollectorRegistry(), release=RELEASES[minor])
    task = asyncio.create_task(process.run())
    try:
        yield process
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        await connection.close()
        await sandbox.stop()


def bound(sandbox: Sandbox) -> str:
    [found] = sandbox.objects("Pod")
    return str(found["spec"].get("nodeName", ""))


async def test_a_pod_waits_until_the_rule_is_deleted_that_taints_its_device() -> None:
    sandbox = new_sandbox(kubelet_seconds=None, kube_version="1.37")
    sandbox.load([*CLUSTER, RULE, claiming("web", "c")])
    async with following(sandbox, "1.37") as process:
        await eventually(lambda: process.scheduler.queue.counts().unschedulable == 1)
        assert bound(sandbox) == ""
        await process._transport.request("DELETE", f"{RULES}/broken")
        await eventually(lambda: bound(sandbox) == "node-1")


async def test_rules_are_neither_watched_nor_applied_in_1_36() -> None:
    sandbox = new_sandbox(kubelet_seconds=None, kube_version="1.36")
    sandbox.load([*CLUSTER, RULE, claiming("web", "c")])
    async with following(sandbox, "1.36") as process:
        await eventually(lambda: bound(sandbox) == "node-1")
        assert "devicetaintrules" not in {one.watched.plural for one in process.reflectors}


@pytest.mark.parametrize(("minor", "result"), [("1.36", "Scheduled"), ("1.37", "Unschedulable")])
def test_a_dry_run_on_files_applies_rules(minor: str, result: str) -> None:
    found = policysched.dry_run([*CLUSTER, RULE], claiming("web", "c"), kube_version=minor)
    assert found.record["result"] == result
