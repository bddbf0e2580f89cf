"""Decisions for pods with claims: the engine with all default plugins, and Reserve.

Each pod has its own claim of one template, which is written before the next pod.
"""

from __future__ import annotations

import gc
import random
import statistics
import time
from collections.abc import Callable, Iterator
from itertools import count
from typing import Any

from msgspec.structs import replace

from bench import workloads
from bench.device_workloads import DEVICES, DRIVER, claim, device_class, selected, slices
from policysched.app.configuration.profiles import default_profile
from policysched.framework import AssumedPod, Status
from policysched.model.decode import decode_node
from policysched.model.objects import (
    AllocationResult,
    ConsumerReference,
    DeviceAllocation,
    DeviceResult,
    OwnerReference,
    Pod,
    PodClaimStatus,
    ResourceClaim,
)
from policysched.schedule.cycle.engine import Engine
from policysched.state.cluster import Cluster

ZONES = 3
PLUGIN = "DynamicResources"
SUITABLE = range(1, DEVICES, 2)
"""Indexes of the devices that the template's selector matches."""
Figures = dict[str, dict[str, float]]


class DeviceCluster:
    """A cluster of nodes with devices, with an engine and a source of pods.

    Args:
        nodes: Number of nodes.
        held: Number of suitable devices of each node that are allocated from the start.
        has_devices: Whether there are a device class and slices.
    """

    def __init__(self, nodes: int, held: int = 0, *, has_devices: bool = True) -> None:
        self.cluster = Cluster()
        self.nodes = nodes
        self.rng = random.Random(7)
        self.engine = Engine(self.cluster, default_profile(), self.rng)
        self.held: list[ResourceClaim] = []
        self._numbers = count()
        for one in range(nodes):
            self.cluster.set_node(decode_node(workloads.node(one, ZONES)))
        if has_devices:
            self.cluster.take(device_class())
            for one in range(nodes):
                self.cluster.take(slices(one, partitioned=False)[0])
        for one in range(nodes):
            for place in SUITABLE[:held]:
                self._hold(one, place)

    def plain(self) -> Pod:
        """Return a new pod without claims."""
        return workloads.pod(next(self._numbers), "plain", {})

    def claiming(self) -> Pod:
        """Return a new pod of the template, after adding its claim to the cluster."""
        number = next(self._numbers)
        stated = [{"name": "gpu", "resourceClaimTemplateName": "gpu"}]
        made = workloads.pod(number, "default", {}, resourceClaims=stated)
        owner = OwnerReference(api_version="v1", kind="Pod", name=f"p-{number}", uid=f"p-{number}", controller=True)
        its = claim(f"c-{number}", selected())
        metadata = replace(its.metadata, namespace="default", resource_version="1", owner_references=[owner])
        self.cluster.take(replace(its, metadata=metadata))
        told = [PodClaimStatus(name="gpu", resource_claim_name=f"c-{number}")]
        made = replace(made, status=replace(made.status, resource_claim_statuses=told))
        for plugin in self.engine.profile.pre_enqueue:
            plugin.pre_enqueue(made, self.cluster)  # as the queue does for a new pod
        return made

    def release(self) -> None:
        """Delete a random claim that has a device."""
        place = self.rng.randrange(len(self.held))
        self.held[place], self.held[-1] = self.held[-1], self.held[place]
        self.cluster.drop(self.held.pop())

    def place(self, one: Pod, before: Callable[[], object] = lambda: None) -> float:
        """Decide a pod and run Reserve; return the time of both.

        Args:
            one: The pod.
            before: Called first; its time counts.

        Units: microseconds.
        """
        cluster, engine = self.cluster, self.engine
        started = time.process_time()
        before()
        decision = engine.decide(one)
        if decision.row < 0:
            raise SystemExit(f"a pod of the benchmark found no node: {decision.fit_error()}")
        assumed = AssumedPod(one, cluster.nodes.names[decision.row], cluster)
        cluster.assume(one, decision.row, decision.evaluation.pod_resources)
        for plugin in engine.profile.reserving(one, cluster):
            failed = plugin.reserve(assumed)
            if isinstance(failed, Status):
                raise SystemExit(f"Reserve of a pod of the benchmark failed: {failed}")
        took = (time.process_time() - started) * 1e6
        self._write(assumed)
        return took

    def change_node(self) -> None:
        """Change a label of a random node."""
        number = self.rng.randrange(self.nodes)
        raw = workloads.node(number, ZONES)
        raw["metadata"]["labels"]["changed"] = str(next(self._numbers))
        self.cluster.set_node(decode_node(raw))

    def _write(self, assumed: AssumedPod) -> None:
        """Store the pod's claims with their allocations, as the API server and the watch would."""
        known = self.cluster.resource_claims
        taken = assumed.state.get(PLUGIN)
        for one in taken.claims if taken is not None else ():
            allocation = known.pending_allocation(one.metadata.uid)
            if allocation is None:
                continue
            user = ConsumerReference(resource="pods", name=assumed.pod.metadata.name, uid=assumed.pod.metadata.uid)
            stamped = replace(allocation, allocation_timestamp="2026-01-01T00:00:00Z")
            written = replace(
                one,
                metadata=replace(one.metadata, resource_version="2"),
                status=replace(one.status, allocation=stamped, reserved_for=(user,)),
            )
            known.assume(written)
            known.end(one.metadata.uid)
            self.cluster.take(written)
            self.held.append(written)

    def _hold(self, node: int, place: int) -> None:
        result = DeviceResult(request="r0", driver=DRIVER, pool=f"node-{node}", device=f"gpu-{place}")
        allocation = AllocationResult(devices=DeviceAllocation(results=(result,)))
        its = claim(f"held-{node}-{place}", selected())
        self.held.append(replace(its, status=replace(its.status, allocation=allocation)))
        self.cluster.take(self.held[-1])


def measure(nodes: int, decisions: int) -> Figures:
    """Measure decisions in all states of the cluster. Units: microseconds."""
    figures = dict(_steady(nodes, decisions))
    work = DeviceCluster(nodes, 2)
    _warm(work)
    figures["after a node's label changed"] = _several(work, decisions // 3, lambda: work.change_node)
    figures["after a slice changed"] = _several(work, decisions // 3, lambda: _slice_change(work))
    figures |= plain_pods(nodes, decisions)
    return figures


def _steady(nodes: int, decisions: int) -> Iterator[tuple[str, dict[str, float]]]:
    """Measure decisions while only pods are created and deleted."""
    for name, held in (("empty", 0), ("half full", len(SUITABLE) // 2), ("full", len(SUITABLE))):
        work = DeviceCluster(nodes, held)
        if name == "full":
            work.release()
        work.place(work.plain() if name != "full" else work.claiming())
        if name == "empty":
            gc.collect()
            first = work.place(work.claiming())
            yield "first pod of the template", {"first": first}
        _warm(work, frees=name == "full")
        took = []
        for _ in range(decisions):
            if name == "full":
                work.release()
            took.append(work.place(work.claiming()))
        yield f"steady, {name}", _summary(took)


def _warm(work: DeviceCluster, *, frees: bool = False) -> None:
    for _ in range(20):
        if frees:
            work.release()
        work.place(work.claiming())
    gc.collect()
    gc.freeze()


def _several(work: DeviceCluster, times: int, change: Callable[[], Callable[[], object]]) -> dict[str, float]:
    return _summary([work.place(work.claiming(), change()) for _ in range(times)])


def _slice_change(work: DeviceCluster) -> Callable[[], object]:
    made: Any = slices(work.rng.randrange(work.nodes), partitioned=False)[0]
    return lambda: work.cluster.take(made)


def plain_pods(nodes: int, decisions: int) -> Figures:
    """Measure pods without claims, with and without devices in the cluster.

    The pods are placed once after other plain pods, and once after pods with a claim. Because these evict other data
    from the processor's caches, the cluster without devices has a second cluster with devices beside it.
    """
    devices, without = DeviceCluster(nodes), DeviceCluster(nodes, has_devices=False)
    beside = DeviceCluster(nodes)

    def elsewhere() -> None:
        beside.place(beside.claiming())
        without.place(_other(without, "third"))

    alone = _alternating(
        (devices, lambda: devices.place(_other(devices, "third"))),
        (without, lambda: without.place(_other(without, "third"))),
        decisions,
    )
    after = _alternating((devices, lambda: devices.place(devices.claiming())), (without, elsewhere), decisions)
    return {
        "a plain pod where devices are": alone[0],
        "a plain pod without devices": alone[1],
        "a plain pod after one with a claim": after[0],
        "a plain pod without devices, after that elsewhere": after[1],
    }


_Turn = tuple[DeviceCluster, Callable[[], object]]
"""A cluster, and a function that is called before each measured pod."""


def _alternating(one: _Turn, other: _Turn, decisions: int) -> list[dict[str, float]]:
    """Measure decisions of plain pods in two clusters, alternating between the clusters."""
    took: list[list[float]] = [[], []]
    for number in range(decisions + 20):
        for (work, before), times in zip((one, other), took, strict=True):
            before()
            work.place(_other(work))
            found = work.place(work.plain())
            if number >= 20:
                times.append(found)
    return [_summary(times) for times in took]


def _other(work: DeviceCluster, namespace: str = "default") -> Pod:
    """Return a pod without claims whose pod class differs from the measured pods' class."""
    made = work.plain()
    return replace(made, metadata=replace(made.metadata, namespace=namespace))


def _summary(took: list[float]) -> dict[str, float]:
    return {"lowest": min(took), "median": statistics.median(took), "worst": max(took)}
