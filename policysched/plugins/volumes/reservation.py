"""`VolumeReservation`: a pod's volumes and claims, assumed at Reserve and written to the API server at PreBind.

At PreBind, the claim is written into the volume, or the node into the claim. Then the volume controllers bind or
provision the volume, and the pod's binding waits for them. After any failure, the assumed objects are restored, and the
pod is retried.

Source: plugins/volumebinding/binder.go (AssumePodVolumes, BindPodVolumes, bindAPIUpdate, checkBindings), v1.36.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final, TypeVar

from msgspec.structs import replace

from policysched.framework import ApiError, Cluster, Code, Handle, Status
from policysched.model.objects import PersistentVolume, PersistentVolumeClaim, Pod
from policysched.model.objects.storage import BOUND_BY_CONTROLLER, SELECTED_NODE, ObjectReference, is_fully_bound
from policysched.plugins.volumes.matching import is_meant_for
from policysched.plugins.volumes.volume_topology import VolumeTopology
from policysched.state.placed.pods import pod_id
from policysched.state.volumes.storage import OutOfStepError

POLL: Final = 0.1
"""Time until the first check whether volumes are bound; the time until each next check is longer. Units: seconds."""
SLOWEST_POLL: Final = 1.0
"""Longest time between two checks whether volumes are bound. Units: seconds."""
Binding = tuple[PersistentVolume, PersistentVolumeClaim]
S = TypeVar("S", PersistentVolume, PersistentVolumeClaim)


class VolumeReservation:
    """The volumes and claims that are assumed for one pod on its node.

    Args:
        pod: the pod.
        node: the name of its node.
        cluster: the cluster.
        timeout: longest wait for the volume controllers. Units: seconds.
    """

    def __init__(self, pod: Pod, node: str, cluster: Cluster, timeout: float) -> None:
        self._pod, self._node, self._cluster, self._timeout = pod, node, cluster, timeout
        self._storage = cluster.storage
        self._bindings: list[Binding] = []
        self._provisions: list[PersistentVolumeClaim] = []
        self._versions: dict[str, str] = {}
        """The resourceVersions of the objects that were written, by kind and key."""

    def assume(
        self, bindings: Sequence[Binding], provisions: Sequence[PersistentVolumeClaim]
    ) -> VolumeReservation | Status:
        """Assume volumes for claims and claims to provision; return a failure if an object has changed, else None."""
        try:
            for volume, claim in bindings:
                bound = bound_to(volume, claim)
                self._storage.volumes.assume(bound)
                self._bindings.append((bound, claim))
            for claim in provisions:
                marked = _annotated(claim, SELECTED_NODE, self._node)
                self._storage.claims.assume(marked)
                self._provisions.append(marked)
        except OutOfStepError as error:
            self.undo()
            return Status(Code.ERROR, (str(error),))
        return self

    def undo(self) -> None:
        """Remove the assumed versions of objects of which the watch delivered no newer version."""
        for volume, _ in self._bindings:
            self._storage.volumes.restore(volume)
        for claim in self._provisions:
            self._storage.claims.restore(claim)

    async def pre_bind(self, handle: Handle) -> str:
        """Write the assumed objects and wait until the volumes are bound; return an error, or an empty string."""
        try:
            await self._write(handle)
        except ApiError as error:
            return error.message
        ends, poll = handle.clock.monotonic() + self._timeout, POLL
        looked_at: list[object] = []
        while True:
            objects = self._objects()
            if objects != looked_at and ((problem := self._problem()) or self._is_done()):
                return problem
            if handle.clock.monotonic() >= ends:
                return "binding volumes: context deadline exceeded"
            looked_at = objects
            await handle.pause(min(poll, ends - handle.clock.monotonic()))
            poll = min(poll * 1.25, SLOWEST_POLL)

    async def _write(self, handle: Handle) -> None:
        for volume, claim in self._bindings:
            if not is_settled(self._storage.volumes.stored(volume.metadata.name), claim):
                self._versions[f"volume {volume.metadata.name}"] = await handle.client.claim_volume(volume)
        for claim in self._provisions:
            self._versions[f"claim {claim.key}"] = await handle.client.select_node(claim, self._node)

    def _objects(self) -> list[object]:
        """Return the objects that decide whether the volumes are bound; a change of one of them repeats the check."""
        nodes, storage = self._cluster.nodes, self._storage
        row = nodes.row_of.get(self._node, -1)
        claims = [storage.claims.stored(claim.key) for claim in self._provisions]
        return [
            pod_id(self._pod) in self._cluster.pods.by_id,
            None if row < 0 else nodes.nodes[row],
            storage.csi_nodes.get(self._node),
            *(storage.volumes.stored(volume.metadata.name) for volume, _ in self._bindings),
            *(storage.claims.stored(claim.key) for _, claim in self._bindings),
            *claims,
            *(storage.volumes.stored(claim.spec.volume_name) for claim in claims if claim is not None),
        ]

    def _is_done(self) -> bool:
        """Return whether every claim is bound, according to the objects that the watch delivered."""
        for volume, claim in self._bindings:
            stored = self._storage.claims.stored(claim.key)
            if self._is_older("volume", volume.metadata.name) or stored is None or not is_fully_bound(stored):
                return False
        for claim in self._provisions:
            stored = self._storage.claims.stored(claim.key)
            if self._is_older("claim", claim.key) or stored is None or not is_fully_bound(stored):
                return False
            if self._storage.volumes.stored(stored.spec.volume_name) is None:
                return False
        return True

    def _problem(self) -> str:
        """Return why the claims can no longer be bound; empty if they still can."""
        if pod_id(self._pod) not in self._cluster.pods.by_id:
            return f'binding volumes: pod does not exist any more: pod "{self._pod.metadata.name}" not found'
        row = self._cluster.nodes.row_of.get(self._node, -1)
        if row < 0 or not self._cluster.nodes.present.data[row]:
            return f'binding volumes: failed to get node "{self._node}": node "{self._node}" not found'
        self._cluster.attachments.refresh_row(row)
        reach = VolumeTopology(self._cluster, row)
        problems = [self._binding_problem(volume, claim, reach) for volume, claim in self._bindings]
        problems += [self._provision_problem(claim, reach) for claim in self._provisions]
        found = next((problem for problem in problems if problem), "")
        return found and f"binding volumes: {found}"

    def _binding_problem(self, volume: PersistentVolume, claim: PersistentVolumeClaim, reach: VolumeTopology) -> str:
        name = volume.metadata.name
        stored = self._storage.volumes.stored(name)
        if stored is None:
            return f'failed to check binding: persistentvolumes "{name}" not found'
        if self._storage.claims.stored(claim.key) is None:
            return f'failed to check binding: persistentvolumeclaims "{claim.key}" not found'
        if self._is_older("volume", name):
            return ""
        if stored.spec.claim_ref is None or not stored.spec.claim_ref.uid:
            return f'ClaimRef got reset for pv "{name}"'
        return self._reach_problem(stored, reach)

    def _provision_problem(self, claim: PersistentVolumeClaim, reach: VolumeTopology) -> str:
        stored = self._storage.claims.stored(claim.key)
        if stored is None:
            return f'failed to check provisioning pvc: persistentvolumeclaims "{claim.key}" not found'
        if self._is_older("claim", claim.key):
            return ""
        if stored.metadata.annotations.get(SELECTED_NODE) != self._node:
            return f'provisioning failed for PVC "{stored.metadata.name}"'
        volume = self._storage.volumes.stored(stored.spec.volume_name) if stored.spec.volume_name else None
        return "" if volume is None else self._reach_problem(volume, reach)

    def _reach_problem(self, volume: PersistentVolume, reach: VolumeTopology) -> str:
        reached, unclear, why = reach.of(volume)
        if unclear is not None and unclear[0]:
            return f"failed to translate pv to csi: {why}"
        name = volume.metadata.name
        mismatch = f'pv "{name}" node affinity doesn\'t match node "{self._node}": no matching NodeSelectorTerms'
        return "" if reached[0] else mismatch

    def _is_older(self, kind: str, key: str) -> bool:
        """Return whether the watch's version of an object is older than the version that was written."""
        written = self._versions.get(f"{kind} {key}")
        table = self._storage.volumes if kind == "volume" else self._storage.claims
        stored = table.stored(key)
        return written is not None and stored is not None and _order(stored.metadata.resource_version) < _order(written)


def bound_to(volume: PersistentVolume, claim: PersistentVolumeClaim) -> PersistentVolume:
    """Return a copy of a volume whose claimRef names a claim.

    Source: component-helpers/storage/volume/pv_helpers.go (GetBindVolumeToClaim).
    """
    metadata = claim.metadata
    reference = ObjectReference(
        kind="PersistentVolumeClaim",
        api_version="v1",
        namespace=metadata.namespace,
        name=metadata.name,
        uid=metadata.uid,
    )
    made = replace(volume, spec=replace(volume.spec, claim_ref=reference))
    return made if is_meant_for(volume, claim) else _annotated(made, BOUND_BY_CONTROLLER, "yes")


def is_settled(volume: PersistentVolume | None, claim: PersistentVolumeClaim) -> bool:
    """Return whether a volume's claimRef already names the claim, so that no write is needed."""
    if volume is None or not is_meant_for(volume, claim):
        return False
    return volume.spec.claim_ref is not None and volume.spec.claim_ref.uid == claim.metadata.uid


def _annotated(obj: S, key: str, text: str) -> S:
    return replace(obj, metadata=replace(obj.metadata, annotations={**obj.metadata.annotations, key: text}))


def _order(version: str) -> tuple[int, str]:
    """Return a sort key of resourceVersions: numbers of any length."""
    digits = version.lstrip("0") if version.isdecimal() else ""
    return len(digits), digits
