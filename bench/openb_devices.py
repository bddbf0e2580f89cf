"""Place the pods of a production GPU cluster with GPUs as shared devices, and check every allocation.

The nodes of the openb trace publish their GPUs as ResourceSlices with 1,000 milli each, which claims can share. The
first pods arrive with one claim each for the GPU models that they accept; a policy fills nodes one after another.
Each claim is checked against its pod and its devices.

    python -m bench.openb_devices --data DIR        # or the variable POLICYSCHED_OPENB
"""

from __future__ import annotations

import argparse
import asyncio
import csv
import logging
import os
import sys
import time
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from bench.openb import ALLOWED, GPU, MODEL, NODES_FILE, PODS_FILE, VARIABLE, read
from policysched.app.demo.scheduled_sandbox import ScheduledSandbox, scheduled_sandbox
from policysched.app.dry_run.tables import plain_table
from policysched.cli.rich_output import print_parts
from policysched.errors import PolicyschedError, UsageError
from policysched.model.policy import API_VERSION, KIND

Object = dict[str, Any]
DRIVER: Final = "gpu.example.com"
WHOLE: Final = 1000
"""Capacity of a GPU. Units: milli."""
V1: Final = "resource.k8s.io/v1"
PACK: Final = {
    "apiVersion": API_VERSION,
    "kind": KIND,
    "metadata": {"name": "pack"},
    "spec": {
        "weight": 5,
        "scores": [{"name": "fullest", "value": "scale(node.requested.cpu / node.allocatable.cpu, 0%, 100%)"}],
    },
}
"""Policy that fills nodes one after another, so that GPUs are shared."""


@dataclass(frozen=True, slots=True)
class DeviceOutcome:
    """The placements of the pods, and the allocations of their claims."""

    nodes: Sequence[Object]
    pods: Sequence[Object]
    claims: Sequence[Object]
    seconds: float
    """Time from the creation of the first pod to the last decision."""

    @property
    def placed(self) -> list[Object]:
        """Pods that have a node."""
        return [pod for pod in self.pods if pod["spec"].get("nodeName")]

    def results(self) -> list[tuple[Object, Object]]:
        """Return each allocated device with the claim to which the device is allocated."""
        return [(claim, one) for claim in self.claims for one in _results(claim)]

    def used(self) -> Counter[tuple[str, str]]:
        """Return the allocated capacity of each GPU, by node and name. Units: milli."""
        taken: Counter[tuple[str, str]] = Counter()
        for _, one in self.results():
            taken[one["pool"], one["device"]] += _milli(one["consumedCapacity"]["milli"])
        return taken

    def faults(self) -> list[str]:
        """Return descriptions of claims with wrong devices, overcommitted GPUs, and waiting pods without a reason."""
        models = {node["metadata"]["name"]: node["metadata"]["labels"].get(MODEL) for node in self.nodes}
        pods = {pod["metadata"]["name"]: pod for pod in self.pods}
        found = [f"{key[0]}/{key[1]} has {amount} milli taken" for key, amount in self.used().items() if amount > WHOLE]
        for claim in self.claims:
            pod = pods[claim["metadata"]["name"]]
            found += _faults_of(claim, pod, models)
        return found + [f"{name} waits without a reason" for name, pod in pods.items() if not _settled(pod)]


def _faults_of(claim: Object, pod: Object, models: dict[str, str | None]) -> Iterable[str]:
    name, node, got = pod["metadata"]["name"], pod["spec"].get("nodeName"), _results(claim)
    asked = claim["spec"]["devices"]["requests"][0]["exactly"]
    wanted = asked["count"] if node else 0
    if len(got) != wanted:
        yield f"{name} has {len(got)} GPUs in place of {wanted}"
    allowed = pod["metadata"].get("annotations", {}).get(ALLOWED)
    for one in got:
        if one["pool"] != node:
            yield f"{name} is on {node} and its GPU on {one['pool']}"
        elif allowed is not None and models[node] not in allowed.split("|"):
            yield f"{name} allows {allowed} and is on a node with {models[node]}"
        if _milli(one["consumedCapacity"]["milli"]) != _milli(asked["capacity"]["requests"]["milli"]):
            yield f"{name} has {one['consumedCapacity']['milli']} milli of a GPU"


def published(nodes: Sequence[Object]) -> list[Object]:
    """Return the device class of all GPUs and a slice for each node with GPUs, which are removed from the nodes."""
    selector = {"cel": {"expression": f'device.driver == "{DRIVER}"'}}
    made = [{"apiVersion": V1, "kind": "DeviceClass", "metadata": {"name": "gpu"}, "spec": {"selectors": [selector]}}]
    policy = {"default": str(WHOLE), "validRange": {"min": "10", "step": "10"}}
    for node in nodes:
        name, status = node["metadata"]["name"], node["status"]
        count = int(status["allocatable"].pop(GPU, 0))
        status["capacity"].pop(GPU, None)
        if not count:
            continue
        fields = {
            "allowMultipleAllocations": True,
            "attributes": {"model": {"string": node["metadata"]["labels"][MODEL]}},
            "capacity": {"milli": {"value": str(WHOLE), "requestPolicy": policy}},
        }
        devices = [{"name": f"gpu-{index}"} | fields for index in range(count)]
        pool = {"name": name, "generation": 1, "resourceSliceCount": 1}
        spec = {"driver": DRIVER, "nodeName": name, "pool": pool, "devices": devices}
        made.append({"apiVersion": V1, "kind": "ResourceSlice", "metadata": {"name": name}, "spec": spec})
    return made


def claimed(pod: Object, milli: str) -> Object | None:
    """Replace the GPU request of a pod by a claim and return it; None if the pod has no GPU."""
    resources = pod["spec"]["containers"][0]["resources"]
    count = int(resources["limits"].pop(GPU, 0))
    resources["requests"].pop(GPU, None)
    if not count:
        return None
    name, allowed = pod["metadata"]["name"], pod["metadata"].get("annotations", {}).get(ALLOWED)
    pod["spec"]["resourceClaims"] = [{"name": "gpu", "resourceClaimName": name}]
    resources["claims"] = [{"name": "gpu"}]
    exactly: Object = {"deviceClassName": "gpu", "count": count, "capacity": {"requests": {"milli": milli}}}
    if allowed is not None:
        models = ", ".join(f'"{one}"' for one in allowed.split("|"))
        exactly["selectors"] = [{"cel": {"expression": f'device.attributes["{DRIVER}"].model in [{models}]'}}]
    spec = {"devices": {"requests": [{"name": "gpu", "exactly": exactly}]}}
    return {"apiVersion": V1, "kind": "ResourceClaim", "metadata": {"name": name, "namespace": "default"}, "spec": spec}


def shares(data: str, count: int) -> list[str]:
    """Return the requested share of each GPU of the first pods. Units: milli."""
    with (Path(data) / PODS_FILE).open(encoding="utf-8", newline="") as file:
        return [row["gpu_milli"] for row, _ in zip(csv.DictReader(file), range(count), strict=False)]


async def place(nodes: Sequence[Object], pods: Sequence[Object], milli: Sequence[str]) -> DeviceOutcome:
    """Create the pods one after another, each after its claim, when the previous one has a node or a reason."""
    devices = published(nodes)
    async with scheduled_sandbox([*nodes, *devices], kubelet_seconds=None) as on:
        await on.apply(PACK)
        begin = time.perf_counter()
        for pod, wanted in zip(pods, milli, strict=True):
            if (claim := claimed(pod, wanted)) is not None:
                await on.api.create(claim)
            await on.api.create(pod)
        decided = await on.until(lambda: _decided(on), "a decision for every pod", 600)
        seconds = time.perf_counter() - begin
        return DeviceOutcome(nodes, decided, on.sandbox.objects("ResourceClaim"), seconds)


async def _decided(on: ScheduledSandbox) -> list[Object] | None:
    pods = on.sandbox.objects("Pod")
    return pods if all(map(_settled, pods)) else None


def _settled(pod: Object) -> bool:
    conditions = pod["status"].get("conditions") or ()
    said = any(one["type"] == "PodScheduled" and one.get("message") for one in conditions)
    return bool(pod["spec"].get("nodeName") or said)


def _results(claim: Object) -> list[Object]:
    allocation = (claim.get("status") or {}).get("allocation") or {}
    results: list[Object] = (allocation.get("devices") or {}).get("results") or []
    return results


def _milli(amount: str) -> int:
    return int(amount[:-1]) * WHOLE if amount.endswith("k") else int(amount)


def report(outcome: DeviceOutcome) -> None:
    """Print the placements and the use of GPUs."""
    count, placed, used = len(outcome.pods), len(outcome.placed), outcome.used()
    print(f"{len(outcome.nodes)} nodes, {count} pods in order of arrival: {placed} placed, {count - placed} waiting")
    print(f"{outcome.seconds:.1f} s, {count / outcome.seconds:.0f} pods/s, sandbox and scheduler in one process")
    sharing = Counter((one["pool"], one["device"]) for _, one in outcome.results())
    several = sum(number > 1 for number in sharing.values())
    print(f"{len(used)} GPUs in use, {several} of them shared, {sum(used.values()) / WHOLE:.1f} GPUs' worth taken")
    models = {node["metadata"]["name"]: node["metadata"]["labels"].get(MODEL, "") for node in outcome.nodes}
    rows: dict[str, list[int]] = {}
    for (pool, _), amount in used.items():
        row = rows.setdefault(models[pool], [0, 0])
        row[0] += 1
        row[1] += amount
    shown = [[model, str(gpus), f"{taken / gpus / WHOLE:.0%}"] for model, (gpus, taken) in sorted(rows.items())]
    print_parts([plain_table(None, ("GPU model", "GPUs in use", "taken of them"), shown, range(1, 3))])
    faults = outcome.faults()
    print(f"\n{len(outcome.claims)} claims, {len(faults)} are wrong")
    for one in faults[:10]:
        print(f"  {one}")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the benchmark; return 1 if an allocation is wrong, 2 if the data is missing."""
    parser = argparse.ArgumentParser(
        prog="python -m bench.openb_devices", description="Share the GPUs of a production cluster by resource claims."
    )
    parser.add_argument("--data", default=os.environ.get(VARIABLE), help=f"folder with {NODES_FILE} and {PODS_FILE}")
    parser.add_argument("--pods", type=int, default=500, help="number of pods, in order of arrival")
    given = parser.parse_args(arguments)
    logging.getLogger("policysched").setLevel(logging.ERROR)
    try:
        nodes, pods = read(given.data, given.pods)
        outcome = asyncio.run(place(nodes, pods, shares(given.data, given.pods)))
    except PolicyschedError as error:
        print(f"error: {error}", file=sys.stderr)
        return 2 if isinstance(error, UsageError) else 1
    report(outcome)
    return int(bool(outcome.faults()))


if __name__ == "__main__":
    sys.exit(main())
