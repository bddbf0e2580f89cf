"""The demo of devices: pods with resource claims get GPUs, wait for GPUs in use, and share a GPU as a pod group.

ResourceSlices describe the GPUs of a driver. A dry-run on the objects of the sandbox shows the GPU of each pod, and the
reasons against all other GPUs, right before the pod is created.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any, Final

from policysched.app.demo.demo import NEXT_STEPS, Narrator
from policysched.app.demo.scheduled_sandbox import ScheduledSandbox, scheduled_sandbox
from policysched.app.dry_run.tables import devices_table, refused_devices_table
from policysched.app.running.run_options import RunOptions
from policysched.model.kinds import POD_GROUPS
from policysched.model.release import Release
from policysched.sandbox import sandbox_nodes

Object = dict[str, Any]
DRIVER: Final = "gpu.example.com"
LARGE: Final = f'device.capacity["{DRIVER}"].memory.compareTo(quantity("40Gi")) >= 0'
_GPUS: Final = {"gpu-1": [("L4", "24Gi"), ("L4", "24Gi")], "gpu-2": [("H100", "80Gi")], "plain": []}
_V1: Final = "resource.k8s.io/v1"
_TEMPLATES: Final = {"small-gpu": None, "large-gpu": LARGE}


def device_objects() -> list[Object]:
    """Return three nodes, the GPUs of two nodes, a DeviceClass and the claim templates of the pods."""
    nodes = sandbox_nodes(len(_GPUS))
    for node, name in zip(nodes, _GPUS, strict=True):
        node["metadata"]["name"] = node["metadata"]["labels"]["kubernetes.io/hostname"] = name
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    of_class = _object("DeviceClass", "gpu", {"selectors": [selector]})
    slices = [_slice(name, gpus) for name, gpus in _GPUS.items() if gpus]
    return [*nodes, of_class, *slices, *(_template(*one) for one in _TEMPLATES.items())]


def claiming_pod(name: str, template: str) -> Object:
    """Return a pod with a resource claim from a template."""
    container = {"name": "main", "image": "registry.example/main:1", "resources": {"claims": [{"name": "gpu"}]}}
    claims = [{"name": "gpu", "resourceClaimTemplateName": template}]
    spec = {"schedulerName": "policysched", "containers": [container], "resourceClaims": claims}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": {"name": name}, "spec": spec}


async def play_devices(narrator: Narrator) -> None:
    """Run the demo of devices.

    Raises:
        PolicyschedError: a step did not finish in time.
    """
    narrator.working("starting an in-memory API server and the scheduler")
    async with scheduled_sandbox(device_objects(), RunOptions(apply_gates=_with_group_claims)) as on:
        narrator.say("An in-memory API server has 3 nodes: gpu-1 with two L4 of 24Gi, gpu-2 with an H100 of 80Gi,")
        narrator.say("and plain without a GPU.")
        await _DeviceDemo(on, narrator).play()
    for line in NEXT_STEPS:
        narrator.say(line)


def _with_group_claims(release: Release) -> Release:
    return replace(release, generic_workload=True, workload_claims=True)


class _DeviceDemo:
    def __init__(self, on: ScheduledSandbox, narrator: Narrator) -> None:
        self._sandbox, self._narrator = on, narrator

    async def play(self) -> None:
        self._narrator.say(f"\n1. Create pod train. Its claim requires a GPU that matches\n   {LARGE}")
        await self._place("train", "large-gpu")
        self._narrator.say("\n2. Create pod infer. Its claim accepts any GPU and gets the first free one.")
        await self._place("infer", "small-gpu")
        self._narrator.say(
            "\n3. Create pod train-2. Its claim requires a large GPU too: it is in use, the pod stays pending."
        )
        pod = self._explained("train-2", "large-gpu")
        await self._sandbox.api.create(pod)
        note = await self._sandbox.failure_of("train-2")
        self._narrator.say(f"   train-2: FailedScheduling: {note}")
        self._narrator.say("\n4. Delete pod train: its claim releases the GPU, and train-2 gets it.")
        await self._sandbox.api.delete("Pod", "train")
        await self._print_placement("train-2")
        self._narrator.say("\n5. Create PodGroup pair and its two pods, which share the claim of the group.")
        await self._place_group("pair", ("pair-1", "pair-2"))

    async def _place_group(self, name: str, members: Sequence[str]) -> None:
        """Create a PodGroup with a claim that its pods share; print their node and their device."""
        pods = [claiming_pod(one, "small-gpu") for one in members]
        for pod in pods:
            pod["spec"]["schedulingGroup"] = {"podGroupName": name}
        policy = {"gang": {"minCount": len(pods)}}
        spec = {"schedulingPolicy": policy, "resourceClaims": pods[0]["spec"]["resourceClaims"]}
        group = {"apiVersion": POD_GROUPS.api_version, "kind": POD_GROUPS.kind, "metadata": {"name": name}}
        for one in (group | {"spec": spec}, *pods):
            await self._sandbox.api.create(one)
        nodes = {await self._sandbox.runs_on(one) for one in members}
        held = await self._sandbox.until(lambda: self._device_of(name), f"a device for pod group {name}")
        told = f"{' and '.join(members)} run on {' and '.join(sorted(nodes))}"
        self._narrator.say(f"   {told}, the claim of {name} holds {held}")

    async def _place(self, name: str, template: str) -> None:
        await self._sandbox.api.create(self._explained(name, template))
        await self._print_placement(name)

    def _explained(self, name: str, template: str) -> Object:
        """Print the result of a dry-run for the devices of a new pod; return the pod."""
        pod = claiming_pod(name, template)
        record = self._sandbox.explain(pod)
        for field, table in (("devices", devices_table), ("refusedDevices", refused_devices_table)):
            if record.get(field):
                self._narrator.show(table(record[field]))
        self._narrator.say("")
        return pod

    async def _print_placement(self, name: str) -> None:
        """Wait until a pod runs, then print its node and its device."""
        self._narrator.working(f"waiting for pod {name}")
        node = await self._sandbox.runs_on(name)
        held = await self._sandbox.until(lambda: self._device_of(name), f"a device for pod {name}")
        self._narrator.say(f"   {name} runs on {node}, its claim holds {held}")

    async def _device_of(self, name: str) -> str | None:
        for claim in await self._sandbox.api.list("ResourceClaim"):
            status = claim.get("status") or {}
            if any(one["name"] == name for one in status.get("reservedFor") or ()):
                [got] = status["allocation"]["devices"]["results"]
                return f"{got['driver']}/{got['pool']}/{got['device']}"
        return None


def _object(kind: str, name: str, spec: Object, **metadata: str) -> Object:
    return {"apiVersion": _V1, "kind": kind, "metadata": {"name": name} | metadata, "spec": spec}


def _slice(node: str, gpus: list[tuple[str, str]]) -> Object:
    devices = [
        {
            "name": f"gpu-{index}",
            "attributes": {"model": {"string": model}},
            "capacity": {"memory": {"value": memory}},
        }
        for index, (model, memory) in enumerate(gpus)
    ]
    pool = {"name": node, "generation": 1, "resourceSliceCount": 1}
    return _object("ResourceSlice", node, {"driver": DRIVER, "nodeName": node, "pool": pool, "devices": devices})


def _template(name: str, expression: str | None) -> Object:
    exactly: Object = {"deviceClassName": "gpu"}
    if expression is not None:
        exactly["selectors"] = [{"cel": {"expression": expression}}]
    claim = {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}
    return _object("ResourceClaimTemplate", name, {"spec": claim}, namespace="default")
