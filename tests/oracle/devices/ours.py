"""Our side of cases about devices: what each claim would get on every feasible node, and the lives of claims.

Knows nothing of kube-scheduler. A pod's claims are in flight from its decision on until the pod is set again, as they
are between Reserve and PreBind; from then on they are as the API server would tell them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec
import numpy as np
from msgspec.structs import replace

from policysched.framework import AssumedPod, Resource
from policysched.model.kinds import fill, kind_of
from policysched.model.objects import ConsumerReference, Pod, ResourceClaim
from policysched.model.release import DEFAULT, Release
from policysched.plugins.dynamic_resources.plugin import DynamicResources
from policysched.plugins.dynamic_resources.reservation import ClaimReservation
from policysched.schedule.cycle.record import feasible_nodes, make_record
from policysched.state.cluster_events import change_of
from policysched.state.placed.pods import pod_id
from tests.oracle.live import Live

if TYPE_CHECKING:
    from collections.abc import Iterable

    from policysched.model.objects import AllocationResult
    from policysched.schedule.cycle.decision import Decision

Thing: TypeAlias = dict[str, Any]
Record: TypeAlias = dict[str, Any]
PLUGIN = DynamicResources()
SPECIAL = "<extended-resources>"


def ours(case: Thing, release: Release = DEFAULT) -> Record:
    """Give our record of a case with one pod, with what its claims would get on each feasible node."""
    world = DeviceLife({**case, "sequence": [case["pod"]]}, seed=0, release=release)
    return record_of(world.look(case["pod"]))


def record_of(decision: Decision) -> Record:
    """Describe a decision; read it before the cluster changes."""
    record: Record = make_record(decision)
    plugin = plugin_of(decision)
    if plugin is None or decision.failed or decision.rejection is not None:
        return record
    nodes = [decision.cluster.nodes.names[row] for row in np.flatnonzero(feasible_nodes(decision)).tolist()]
    made = {node: _allocations(plugin, decision, node) for node in nodes}
    return record | {"allocations": {node: found for node, found in made.items() if found}}


def plugin_of(decision: Decision) -> DynamicResources | None:
    """Give the plugin of the decision's profile, None where that has none."""
    plugins = decision.evaluation.profile.reserves
    return next((one for one in plugins if isinstance(one, DynamicResources)), None)


def _allocations(plugin: DynamicResources, decision: Decision, node: str) -> list[Thing]:
    told = plugin.devices_on(decision.pod, node, decision.cluster)
    return [_allocation(claim, got) for claim, got in told if claim.status.allocation is None]


def _allocation(claim: ResourceClaim, got: AllocationResult) -> Thing:
    made = {"claim": claim.metadata.name, "result": plain(got)}
    return made | ({"requests": plain(claim.spec.devices.requests)} if claim.metadata.name == SPECIAL else {})


def plain(value: Any) -> Any:
    """Give a struct as the API writes it."""
    return msgspec.json.decode(msgspec.json.encode(value))


class DeviceLife(Live):
    """Decides about pods one after another; what they reserve is in flight until they are confirmed or go."""

    def __init__(self, case: Thing, seed: int, release: Release = DEFAULT) -> None:
        self._version = 0
        self._assumed: dict[str, tuple[DynamicResources, AssumedPod]] = {}
        super().__init__(case, seed, release=release)

    def set(self, thing: Thing) -> None:
        """Add or replace an object; a claim gets a version of its own each time."""
        if thing["kind"] == "ResourceClaim":
            self._version += 1
            thing = {**thing, "metadata": {**thing["metadata"], "resourceVersion": str(self._version)}}
        if thing["kind"] == "Pod":
            self._write(thing)
        super().set(thing)

    def remove(self, thing: Thing) -> None:
        """Take an object away; what a pod has only reserved is free again."""
        if thing["kind"] == "Pod" and (held := self._assumed.pop(_name(thing), None)):
            held[0].unreserve(held[1])
        super().remove(thing)

    def decide(self, thing: Thing) -> Record:
        """Decide about a pod, count it on its node and have it take its devices."""
        decision = self.look(thing)
        record = record_of(decision)
        if decision.row >= 0:
            self._homes[pod_id(decision.pod)] = decision.node
            self._reserve(decision)
            self._cluster.assume(decision.pod, decision.row)
        return record

    def hinting(self, thing: Thing, changes: Iterable[Thing]) -> Record:
        """Ask the gate and the hints about a pod that waits, which is found by what it is filed under."""
        pod = self._decoded(thing)
        gate = DynamicResources().pre_enqueue(pod, self._cluster)  # one remembers what pods of a UID waited for
        said = ["Queue" if self._helps(pod, one) else "QueueSkip" for one in changes]
        return {"gate": gate.message if gate is not None else "", "hints": said}

    def _helps(self, pod: Pod, changed: Thing) -> bool:
        old, new = (self._decoded(one) if one else None for one in (changed["old"], changed["new"]))
        resource = Resource.PENDING_POD if isinstance(new, Pod) else Resource.RESOURCE_CLAIM
        change = change_of(resource, old, new)
        hint = next(one for one in PLUGIN.events() if one.resource is resource)
        if isinstance(new, ResourceClaim) and not hint.actions & change.action:
            return False
        assert hint.helps is not None
        filed = tuple(hint.index.filed_under(pod)) if hint.index is not None else ()
        found = hint.index.leads_to(change, filed) if hint.index is not None else None
        return (found is None or bool({*found} & {*filed})) and hint.helps(pod, change, self._cluster)

    def _decoded(self, thing: Thing) -> Any:
        kind = kind_of(thing)
        assert kind is not None
        return kind.decode(fill(thing, self._classes, self._cluster.release))

    def _reserve(self, decision: Decision) -> None:
        plugin = plugin_of(decision)
        if plugin is None:
            return
        assumed = AssumedPod(decision.pod, decision.node, self._cluster)
        status = plugin.reserve(assumed)
        assert status is None, status
        self._assumed[decision.pod.key] = plugin, assumed

    def _write(self, thing: Thing) -> None:
        """Do for what a pod has in flight what PreBind and the API server do."""
        held = self._assumed.pop(_name(thing), None)
        reservation: ClaimReservation | None = held[1].state.get(held[0].name) if held else None
        if held is None or reservation is None:
            return
        known = self._cluster.resource_claims
        for place in reservation._uids:  # what others have in flight of its claims is theirs
            claim = reservation.claims[place]
            got = known.pending_allocation(claim.metadata.uid)
            assert got is not None
            self._version += 1
            known.put(_written(claim, got, held[1].pod, self._version))
            known.end(claim.metadata.uid)


def hints_of(case: Thing, release: Release = DEFAULT) -> Record:
    """Say why a case's pod may not be queued, and what each of the case's changes means for it."""
    world = DeviceLife({**case, "sequence": [case["pod"]]}, seed=0, release=release)
    return world.hinting(case["pod"], case["hints"])


def _written(claim: ResourceClaim, got: AllocationResult, pod: Pod, version: int) -> ResourceClaim:
    metadata = replace(claim.metadata, resource_version=str(version))
    if claim.metadata.name == SPECIAL:
        metadata = replace(metadata, name=f"{metadata.generate_name}0")
    user = ConsumerReference(resource="pods", name=pod.metadata.name, uid=pod.metadata.uid)
    status = replace(claim.status, allocation=got, reserved_for=(*claim.status.reserved_for, user))
    return replace(claim, metadata=metadata, status=status)


def _name(pod: Thing) -> str:
    return f"{pod['metadata']['namespace']}/{pod['metadata']['name']}"
