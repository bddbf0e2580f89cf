"""Protocols of the scheduler's surroundings: `Client` (writes to an API server), `Clock` and `MetricSource`.

An implementation of `Client` converts its library's exceptions into `ApiError`.

A metric source runs beside the scheduler on the event loop. It passes on one whole answer for each metric and query. A
failing server or file raises no exception: the answer has a `problem`, and earlier values become older. When the
policies in force change, the scheduler passes the metrics to follow.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextvars import ContextVar
from dataclasses import dataclass
from datetime import datetime
from http import HTTPStatus
from typing import Any, Final, Protocol, TypeAlias

from policysched.errors import PolicyschedError
from policysched.model.objects import (
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodCondition,
    PodExtendedClaimStatus,
    PodGroup,
    ResourceClaim,
)
from policysched.model.policy import MetricAnswer, MetricKey, Policy, PolicyKey

NO_STATUS: Final = "NoStatus"
"""The reason of an `ApiError` if the server's answer is not a Kubernetes Status, as the error page of a gateway."""
NOT_FOUND: Final = "NotFound"
"""The reason of an `ApiError` for an object that does not exist."""
PATIENCE: Final = 30.0
"""Longest time for which a read is repeated while the API server rejects the read. Units: seconds.

A server that has just started rejects requests until it has loaded the RBAC roles.
"""
LEAST_UNKNOWN: Final = 1000
"""Number of node names unknown to the cluster that a metric answer may contain even if the cluster is small."""
BINDING_CYCLE: Final[ContextVar[int]] = ContextVar("binding cycle", default=0)
"""The number of the current binding cycle, counted from 1; 0 outside of binding cycles.

Requests of older binding cycles are sent first.
"""
Wanted: TypeAlias = Mapping[MetricKey, frozenset[str]]
"""The metrics that policies in force read, each with its names in these policies: `load` and `cool-gpu-nodes/load`."""
MetricSink: TypeAlias = Callable[[MetricAnswer], None]
"""Function that receives the values of a metric between two scheduling cycles; unchanged values have no effect."""


class ApiError(PolicyschedError):
    """A request to the API server failed; `status` is 0 without an HTTP status, as after a lost connection."""

    def __init__(self, status: int, reason: str, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after = retry_after

    @property
    def is_refusal(self) -> bool:
        """Whether an API server rejected the request, so that the request was not executed.

        False if the result is unknown: no answer, a server error (5xx), or an answer of a proxy or another server.
        """
        client_error = HTTPStatus.BAD_REQUEST <= self.status < HTTPStatus.INTERNAL_SERVER_ERROR
        return client_error and self.reason != NO_STATUS

    @property
    def is_verdict(self) -> bool:
        """Whether the error means that a write was certainly not executed.

        A conflict is not certain: a proxy may have sent the write twice, so that it conflicts with itself.
        """
        return self.is_refusal and self.status != HTTPStatus.CONFLICT

    @property
    def is_not_found(self) -> bool:
        """Whether the API server answered that the object does not exist."""
        return (self.status, self.reason) == (HTTPStatus.NOT_FOUND, NOT_FOUND)


@dataclass(frozen=True, slots=True)
class Event:
    """A Kubernetes event about a pod."""

    pod: Pod
    type: str
    """Type of the event: Normal or Warning."""
    reason: str
    action: str
    note: str
    at: datetime
    """Time of the event, in UTC."""
    related: Pod | PodGroup | None = None
    """A second object of the event, such as the preemptor."""


@dataclass(frozen=True, slots=True)
class PolicyEvent:
    """An event about a SchedulingPolicy."""

    policy: Policy
    type: str
    """Type of the event: Normal or Warning."""
    reason: str
    action: str
    note: str
    at: datetime
    """Time of the event in UTC."""


@dataclass(frozen=True, slots=True)
class PodStatusChange:
    """A change of a pod's status."""

    condition: dict[str, Any] | None = None
    """The condition to set; it replaces the condition of the same type."""
    nominated_node: str | None = None
    """The nominated node to set; an empty string clears it, None leaves it unchanged."""

    def after(self, other: PodStatusChange) -> PodStatusChange:
        """Return an earlier change `other` merged with this change, which takes precedence."""
        return PodStatusChange(
            self.condition if self.condition is not None else other.condition,
            self.nominated_node if self.nominated_node is not None else other.nominated_node,
        )


def without_times(told: PodCondition, generation: int) -> dict[str, Any]:
    """Return the JSON of a condition of an object's generation, without times."""
    return {
        "type": told.type,
        "status": told.status,
        "reason": told.reason,
        "message": told.message,
        "observedGeneration": generation,
    }


def pod_condition(pod: Pod, told: PodCondition, now: datetime) -> dict[str, Any] | None:
    """Return the JSON of a pod condition to write; None if the pod's status already has the condition.

    Source: pkg/api/v1/pod/util.go (UpdatePodCondition).
    """
    known = next((one for one in pod.status.conditions if one.type == told.type), None)
    same = known is not None and known.status == told.status
    if known is not None and same and (known.reason, known.message) == (told.reason, told.message):
        return None
    condition = without_times(told, pod.metadata.generation)
    if not same:
        condition |= {"lastProbeTime": None, "lastTransitionTime": now.strftime("%Y-%m-%dT%H:%M:%SZ")}
    return condition


class ClaimClient(Protocol):
    """The requests about ResourceClaims; each write returns the claim as the API server stored it.

    Raises:
        ApiError: a request failed; status 409 if a write was based on an outdated version.
    """

    async def get(self, claim: ResourceClaim) -> ResourceClaim:
        """Read the newest version of a claim from the API server."""

    async def set_finalizers(self, claim: ResourceClaim) -> ResourceClaim:
        """Write a claim's finalizers; fail with a conflict if the claim's resourceVersion changed."""

    async def allocate(self, claim: ResourceClaim) -> ResourceClaim:
        """Write a claim's allocation and reservedFor; fail with a conflict if its resourceVersion changed."""

    async def reserve(self, claim: ResourceClaim) -> ResourceClaim:
        """Write a claim's reservedFor only; fail with a conflict if its resourceVersion changed."""

    async def deallocate(self, claim: ResourceClaim) -> ResourceClaim:
        """Clear a claim's allocation, reservedFor and device statuses; fail with a conflict if it changed."""

    async def create(self, claim: ResourceClaim) -> ResourceClaim:
        """Create a claim from its spec; the API server completes its generated name."""

    async def delete(self, claim: ResourceClaim) -> None:
        """Delete a claim on the API server."""

    async def write_extended_claim_status(self, pod: Pod, status: PodExtendedClaimStatus) -> None:
        """Write into a pod's status the name of the claim that holds its extended resources."""


class Client(Protocol):
    """The scheduler's requests to the API server."""

    @property
    def claims(self) -> ClaimClient:
        """The client for requests about ResourceClaims."""

    async def bind(self, pod: Pod, node: str) -> None:
        """Bind the pod to a node, with a single request that is not retried.

        Raises:
            ApiError: the server refused.
        """

    async def node_of(self, pod: Pod) -> str:
        """Read the name of the node to which the pod is bound; empty if it is not bound.

        Raises:
            ApiError: the server refused; status 404 if no pod with this UID exists.
        """

    async def claim_volume(self, volume: PersistentVolume) -> str:
        """Write a volume's claimRef, unless its resourceVersion changed; return the new resourceVersion.

        Raises:
            ApiError: the server refused; status 409 if the volume has changed.
        """

    async def select_node(self, claim: PersistentVolumeClaim, node: str) -> str:
        """Write the node on which a claim's volume is provisioned, unless the claim changed; return its new version.

        Raises:
            ApiError: the server refused; status 409 if the claim has changed.
        """

    async def set_pod_status(self, pod: Pod, change: PodStatusChange) -> None:
        """Patch the pod's status; other fields keep their values.

        Raises:
            ApiError: the server refused.
        """

    async def report_pod_status(self, pod: Pod, newest: Callable[[], PodStatusChange]) -> None:
        """Patch the pod's status with low priority: behind requests that scheduling waits for.

        Args:
            pod: The pod.
            newest: Returns the change; called whenever the request is sent or repeated.

        Raises:
            ApiError: the server refused.
        """

    async def set_pod_group_status(self, group: PodGroup, condition: dict[str, Any]) -> None:
        """Set a condition of a pod group with low priority; conditions of other types keep their values.

        Raises:
            ApiError: the server refused; status 404 if the group does not exist.
        """

    async def delete_pod(self, pod: Pod) -> None:
        """Delete the pod by its UID, with a single request that is not retried; a recreated pod of the same name stays.

        Raises:
            ApiError: the server refused; status 404 if no pod with this UID exists.
        """

    async def set_policy_status(self, policy: PolicyKey, resource_version: str, status: dict[str, Any]) -> None:
        """Replace a policy's status; fail with a conflict if the policy's resourceVersion changed.

        Raises:
            ApiError: the server refused; status 409 if the object has changed.
        """

    async def annotate_policy(self, policy: Policy, annotations: dict[str, str]) -> str:
        """Write annotations of a policy unless its spec has changed; changes of other fields do not prevent the write.

        Returns:
            The new version of the object; empty if others had also changed the object.

        Raises:
            ApiError: the server refused; status 409 if the object has another generation or was recreated.
        """

    def record(self, event: Event | PolicyEvent) -> None:
        """Queue an event, which is written after bindings; log dropped events."""


class Clock(Protocol):
    """The source of time; tests replace it."""

    def now(self) -> datetime:
        """Return the current time in UTC."""

    def monotonic(self) -> float:
        """Return the time of a monotonic clock. Units: seconds.

        Units: seconds.
        """


class LostAnswer:
    """After a write whose answer was lost: decides whether to read the object again, to learn if the write took effect.

    It is asked as long as no API server answers, or is busy, and of one that refuses to tell for a while.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._refused_since = clock.monotonic()

    def asks_again(self, error: ApiError) -> bool:
        """Record that reading the object failed; return whether to read it again."""
        now = self._clock.monotonic()
        if not error.is_refusal or error.status == HTTPStatus.TOO_MANY_REQUESTS:
            self._refused_since = now
        return now - self._refused_since < PATIENCE


def most_unknown(nodes: Collection[str]) -> int:
    """Return for how many node names that the cluster does not have a metric answer may contain values."""
    return max(LEAST_UNKNOWN, 2 * len(nodes))


class MetricSource(Protocol):
    """A source of the metrics that policies read."""

    def follow(self, wanted: Wanted) -> None:
        """Set which metrics are queried regularly; query new metrics at once."""

    async def settled(self) -> None:
        """Wait until every metric that was passed to `follow` was queried once, successfully or not."""

    async def run(self, sink: MetricSink, nodes: Collection[str]) -> None:
        """Query the metrics regularly until cancelled, and pass each answer to a function.

        Args:
            sink: Receives the answers.
            nodes: The current names of the cluster's nodes; at most `most_unknown` values of other names are kept.
        """
