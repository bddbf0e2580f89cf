"""Reflector, client and event writer against the sandbox."""

from __future__ import annotations

import asyncio
import random
from collections.abc import AsyncIterator, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import Any

import msgspec
import pytest
import pytest_asyncio
import yaml

from policysched.framework import ApiError, Event, PodStatusChange
from policysched.kube.client import KubeClient
from policysched.kube.connection import Connection
from policysched.kube.events.writer import EventWriter
from policysched.kube.reflector import Reflector
from policysched.kube.transport import Transport
from policysched.model.decode import decode_pod
from policysched.model.kinds import DEVICE_CLASSES, NODES, PODS, POLICIES, ApiKind
from policysched.model.objects import Pod
from policysched.model.policy import PolicyKey
from policysched.sandbox import Sandbox
from tests.kube.fake_server import Pauses, Ticking, eventually

DEFINITION = Path(__file__).parents[2] / "crds" / "schedulingpolicies.yaml"
AT = datetime(2026, 1, 2, 3, 4, 5, 678901, tzinfo=UTC)


class World:
    """A sandbox and a client of it."""

    def __init__(self, sandbox: Sandbox) -> None:
        self.sandbox = sandbox
        self.pauses = Pauses()
        self.connection = Connection(sandbox.url, Ticking())
        self.transport = Transport(self.connection, timeout=5.0)
        self.events = EventWriter(self.transport, self.pauses.pacing, "host-1")
        self.client = KubeClient(self.transport, self.events, self.pauses.pacing)

    async def create(self, path: str, obj: dict[str, Any]) -> bytes:
        return await self.transport.request("POST", path, msgspec.json.encode(obj))

    async def pod(self, name: str) -> Pod:
        body = {
            "metadata": {"name": name, "namespace": "default"},
            "spec": {"schedulerName": "policysched", "containers": [{"name": "c", "image": "i"}]},
        }
        return decode_pod(await self.create("/api/v1/namespaces/default/pods", body))

    def stored(self, kind: str, name: str) -> dict[str, Any]:
        return next(obj for obj in self.sandbox.objects(kind) if obj["metadata"]["name"].startswith(name))


@pytest_asyncio.fixture
async def world() -> AsyncIterator[World]:
    sandbox = Sandbox(lambda: datetime(2026, 1, 1, tzinfo=UTC), random.Random(1), kubelet_seconds=None)
    sandbox.load([yaml.safe_load(DEFINITION.read_text())])
    sandbox.load({"kind": "Node", "metadata": {"name": f"n{number}"}} for number in range(3))
    await sandbox.start()
    made = World(sandbox)
    try:
        yield made
    finally:
        await made.connection.close()
        await sandbox.stop()


class Mirror:
    """A handler that stores objects, and checks that the calls are consistent."""

    def __init__(self) -> None:
        self.held: dict[str, Any] = {}

    def replace(self, changed: Sequence[Any], gone: Sequence[Any]) -> None:
        for obj in gone:
            self.delete(obj)
        for obj in changed:
            self.upsert(obj)

    def upsert(self, obj: Any) -> None:
        known = self.held.get(obj.metadata.name)
        assert known is None or known.metadata.uid == obj.metadata.uid
        self.held[obj.metadata.name] = obj

    def delete(self, obj: Any) -> None:
        assert self.held.pop(obj.metadata.name).metadata.uid == obj.metadata.uid

    @property
    def versions(self) -> dict[str, str]:
        return {name: obj.metadata.resource_version for name, obj in self.held.items()}


def stored_versions(world: World, kind: str) -> dict[str, str]:
    return {obj["metadata"]["name"]: obj["metadata"]["resourceVersion"] for obj in world.sandbox.objects(kind)}


@pytest_asyncio.fixture
async def mirrors(world: World) -> AsyncIterator[dict[str, tuple[Mirror, Reflector[Any]]]]:
    made: dict[str, tuple[Mirror, Reflector[Any]]] = {}
    tasks = []
    watched: ApiKind[Any]
    for watched in (NODES, PODS, POLICIES, DEVICE_CLASSES):
        mirror = Mirror()
        reflector: Reflector[Any] = Reflector(world.transport, watched, mirror, world.pauses.pacing)
        made[watched.plural] = (mirror, reflector)
        tasks.append(asyncio.create_task(reflector.run()))
    for _, reflector in made.values():
        await asyncio.wait_for(reflector.synced.wait(), 60)
    yield made
    assert not any(task.done() for task in tasks)
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_mirror_follows_the_sandbox(world: World, mirrors: dict[str, tuple[Mirror, Reflector[Any]]]) -> None:
    nodes, pods, policies = (mirrors[name][0] for name in ("nodes", "pods", "schedulingpolicies"))
    assert set(nodes.held) == {"n0", "n1", "n2"}
    pod = await world.pod("web")
    await world.create(
        "/apis/policysched.io/v1beta1/schedulingpolicies",
        {
            "apiVersion": "policysched.io/v1beta1",
            "kind": "SchedulingPolicy",
            "metadata": {"name": "pin"},
            "spec": {"scores": [{"name": "one", "value": 1}]},
        },
    )
    await eventually(lambda: set(pods.held) == {"web"} and set(policies.held) == {"pin"})
    await world.client.bind(pod, "n1")
    await eventually(lambda: pods.held["web"].spec.node_name == "n1")
    await world.transport.request("DELETE", "/api/v1/nodes/n2")
    await eventually(lambda: set(nodes.held) == {"n0", "n1"})


async def test_mirror_equals_the_sandbox_after_faults(
    world: World, mirrors: dict[str, tuple[Mirror, Reflector[Any]]]
) -> None:
    draw = random.Random(3)
    mirror = mirrors["nodes"][0]
    for step in range(60):
        name = f"n{draw.randrange(8)}"
        path = "/api/v1/nodes"
        if name in stored_versions(world, "Node"):
            await world.transport.request("DELETE", f"{path}/{name}")
        else:
            await world.create(path, {"metadata": {"name": name, "labels": {"step": str(step)}}})
        match draw.randrange(6):
            case 0:
                world.sandbox.close_watches()
            case 1:
                world.sandbox.forget_history()
                world.sandbox.close_watches()
            case 2:
                await asyncio.sleep(0.002)
    await eventually(lambda: mirror.versions == stored_versions(world, "Node"))


async def test_binding_meets_the_servers_own_objections(world: World) -> None:
    pod = await world.pod("web")
    await world.client.bind(pod, "n1")
    assert world.stored("Pod", "web")["spec"]["nodeName"] == "n1"
    with pytest.raises(ApiError) as caught:
        await world.client.bind(pod, "n2")
    assert caught.value.status == 409
    other = msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, uid="other"))
    with pytest.raises(ApiError) as caught:
        await world.client.bind(other, "n1")
    assert caught.value.status == 409


async def test_condition_is_written_beside_the_others_and_only_for_the_same_pod(world: World) -> None:
    pod = await world.pod("web")
    for kind in ("PodScheduled", "Other"):
        condition = {"type": kind, "status": "False", "reason": "r", "message": kind}
        await world.client.set_pod_status(pod, PodStatusChange(condition))
    found = {one["type"]: one["message"] for one in world.stored("Pod", "web")["status"]["conditions"]}
    assert found == {"PodScheduled": "PodScheduled", "Other": "Other"}
    other = msgspec.structs.replace(pod, metadata=msgspec.structs.replace(pod.metadata, uid="other"))
    with pytest.raises(ApiError) as caught:
        await world.client.set_pod_status(other, PodStatusChange({"type": "PodScheduled", "status": "True"}))
    assert caught.value.status == 422


async def test_events_are_stored_as_series(world: World) -> None:
    pod = await world.pod("web")
    world.events.start()
    for _ in range(2):
        world.client.record(Event(pod, "Warning", "FailedScheduling", "Scheduling", "0/3 nodes", AT))
        await eventually(lambda: world.events.counts.waiting == 0)
    assert await world.events.close(5) == 0
    event = world.stored("Event", "web")
    assert event["series"]["count"] == 2
    assert event["reportingInstance"] == "policysched-host-1"


async def test_policy_status_is_refused_once_the_policy_has_moved_on(world: World) -> None:
    path = "/apis/policysched.io/v1beta1/schedulingpolicies"
    policy = {
        "apiVersion": "policysched.io/v1beta1",
        "kind": "SchedulingPolicy",
        "metadata": {"name": "pin"},
        "spec": {"scores": [{"name": "one", "value": 1}]},
    }
    made = msgspec.json.decode(await world.create(path, policy))
    version = made["metadata"]["resourceVersion"]
    await world.client.set_policy_status(PolicyKey("pin"), version, {"activeGeneration": 1})
    assert world.stored("SchedulingPolicy", "pin")["status"] == {"activeGeneration": 1}
    with pytest.raises(ApiError) as caught:
        await world.client.set_policy_status(PolicyKey("pin"), version, {"activeGeneration": 2})
    assert caught.value.status == 409
