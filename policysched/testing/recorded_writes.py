"""`RecordingClient`: replaces the API server in tests; accepts all writes and records bindings and events."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from msgspec.structs import replace

from policysched.framework.client import Event, PodStatusChange, PolicyEvent
from policysched.model.objects import (
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodExtendedClaimStatus,
    PodGroup,
    ResourceClaim,
    ResourceClaimStatus,
)
from policysched.model.policy import Policy, PolicyKey


class RecordingClaims:
    """Accepts all writes to resource claims and returns the claim as the API server would."""

    async def get(self, claim: ResourceClaim) -> ResourceClaim:
        """Return the claim unchanged."""
        return claim

    async def set_finalizers(self, claim: ResourceClaim) -> ResourceClaim:
        """Accept new finalizers of a claim."""
        return _next_version(claim)

    async def allocate(self, claim: ResourceClaim) -> ResourceClaim:
        """Accept the allocation of a claim."""
        return _next_version(claim)

    async def reserve(self, claim: ResourceClaim) -> ResourceClaim:
        """Accept the reservation of a claim."""
        return _next_version(claim)

    async def deallocate(self, claim: ResourceClaim) -> ResourceClaim:
        """Remove the allocation of a claim."""
        return _next_version(replace(claim, status=ResourceClaimStatus()))

    async def create(self, claim: ResourceClaim) -> ResourceClaim:
        """Create a claim and return it with a name and a UID."""
        name = f"{claim.metadata.generate_name}0"
        return _next_version(replace(claim, metadata=replace(claim.metadata, name=name, uid=name)))

    async def delete(self, claim: ResourceClaim) -> None:
        """Accept the deletion of a claim."""

    async def write_extended_claim_status(self, pod: Pod, status: PodExtendedClaimStatus) -> None:
        """Accept a write of the name of the claim for a pod's extended resources into the pod's status."""


def _next_version(claim: ResourceClaim) -> ResourceClaim:
    version = str(int(claim.metadata.resource_version or 0) + 1)
    return replace(claim, metadata=replace(claim.metadata, resource_version=version))


class RecordingClient:
    """A client that accepts all writes and records bindings and events."""

    def __init__(self) -> None:
        self.claims = RecordingClaims()
        self.events: list[Event] = []
        self.bindings: dict[str, str] = {}
        """The node of each bound pod, by `namespace/name`."""
        self.on_bound: Callable[[Pod], object] = id
        self.on_deleted: Callable[[Pod], object] = id

    async def bind(self, pod: Pod, node: str) -> None:
        """Record the binding of a pod."""
        self.bindings[pod.key] = node
        self.on_bound(replace(pod, spec=replace(pod.spec, node_name=node)))

    async def node_of(self, pod: Pod) -> str:
        """Return the node of a bound pod, else an empty text."""
        return self.bindings.get(pod.key, "")

    async def claim_volume(self, volume: PersistentVolume) -> str:
        """Accept a write that reserves a volume for its claim."""
        return f"{volume.metadata.resource_version}+"

    async def select_node(self, claim: PersistentVolumeClaim, node: str) -> str:  # noqa: ARG002 - the protocol's
        """Accept a write of the selected node into a PersistentVolumeClaim."""
        return f"{claim.metadata.resource_version}+"

    async def delete_pod(self, pod: Pod) -> None:
        """Accept the deletion of a pod."""
        self.on_deleted(pod)

    async def set_pod_status(self, pod: Pod, change: PodStatusChange) -> None:
        """Ignore a change of a pod's status: tests read the reason of a failed attempt in `PodOutcome.message`."""

    async def report_pod_status(self, pod: Pod, newest: Callable[[], PodStatusChange]) -> None:
        """Accept a change of a pod's status that is computed when the status is written."""
        await self.set_pod_status(pod, newest())

    async def set_pod_group_status(self, group: PodGroup, condition: dict[str, Any]) -> None:
        """Accept a condition of a pod group."""

    async def set_policy_status(self, policy: PolicyKey, resource_version: str, status: dict[str, Any]) -> None:
        """Accept the status of a policy."""

    async def annotate_policy(self, policy: Policy, annotations: dict[str, str]) -> str:  # noqa: ARG002 - as above
        """Accept annotations of a policy."""
        return policy.metadata.resource_version

    def record(self, event: Event | PolicyEvent) -> None:
        """Record an event about a pod; ignore events about policies."""
        if isinstance(event, Event):
            self.events.append(event)
