"""`RecordingClient`: an API server that takes all that a scheduler writes, and remembers bindings and events."""

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
    ResourceClaim,
    ResourceClaimStatus,
)
from policysched.model.policy import Policy, PolicyKey


class RecordingClaims:
    """What an API server that takes everything says of resource claims."""

    async def get(self, claim: ResourceClaim) -> ResourceClaim:
        """Return a claim as it is known."""
        return claim

    async def set_finalizers(self, claim: ResourceClaim) -> ResourceClaim:
        """Take a claim's finalizers."""
        return _next_version(claim)

    async def allocate(self, claim: ResourceClaim) -> ResourceClaim:
        """Take a claim's allocation."""
        return _next_version(claim)

    async def reserve(self, claim: ResourceClaim) -> ResourceClaim:
        """Take for whom a claim is reserved."""
        return _next_version(claim)

    async def deallocate(self, claim: ResourceClaim) -> ResourceClaim:
        """Take a claim's devices back."""
        return _next_version(replace(claim, status=ResourceClaimStatus()))

    async def create(self, claim: ResourceClaim) -> ResourceClaim:
        """Take a new claim."""
        name = f"{claim.metadata.generate_name}0"
        return _next_version(replace(claim, metadata=replace(claim.metadata, name=name, uid=name)))

    async def delete(self, claim: ResourceClaim) -> None:
        """Delete a claim."""

    async def tell_pod(self, pod: Pod, told: PodExtendedClaimStatus) -> None:
        """Take which claim holds a pod's extended resources."""


def _next_version(claim: ResourceClaim) -> ResourceClaim:
    version = str(int(claim.metadata.resource_version or 0) + 1)
    return replace(claim, metadata=replace(claim.metadata, resource_version=version))


class RecordingClient:
    """An API server that takes everything, and remembers bindings and events."""

    def __init__(self) -> None:
        self.claims = RecordingClaims()
        self.events: list[Event] = []
        self.bindings: dict[str, str] = {}
        """Nodes by pod, as namespace/name."""
        self.on_bound: Callable[[Pod], object] = id
        self.on_deleted: Callable[[Pod], object] = id

    async def bind(self, pod: Pod, node: str) -> None:
        """Bind a pod."""
        self.bindings[pod.key] = node
        self.on_bound(replace(pod, spec=replace(pod.spec, node_name=node)))

    async def node_of(self, pod: Pod) -> str:
        """Return the node of a pod."""
        return self.bindings.get(pod.key, "")

    async def claim_volume(self, volume: PersistentVolume) -> str:
        """Take a volume's claim."""
        return f"{volume.metadata.resource_version}+"

    async def select_node(self, claim: PersistentVolumeClaim, node: str) -> str:  # noqa: ARG002 - the protocol's
        """Take a claim's node."""
        return f"{claim.metadata.resource_version}+"

    async def delete_pod(self, pod: Pod) -> None:
        """Delete a pod."""
        self.on_deleted(pod)

    async def set_pod_status(self, pod: Pod, change: PodStatusChange) -> None:
        """Take a condition or a nominated node; `PodOutcome.message` says why a pod waits."""

    async def report_pod_status(self, pod: Pod, newest: Callable[[], PodStatusChange]) -> None:
        """Take such a change in its turn."""
        await self.set_pod_status(pod, newest())

    async def set_policy_status(self, policy: PolicyKey, resource_version: str, status: dict[str, Any]) -> None:
        """Take a policy's status."""

    async def annotate_policy(self, policy: Policy, annotations: dict[str, str]) -> str:  # noqa: ARG002 - as above
        """Take a policy's annotations."""
        return policy.metadata.resource_version

    def record(self, event: Event | PolicyEvent) -> None:
        """Take an event about a pod."""
        if isinstance(event, Event):
            self.events.append(event)
