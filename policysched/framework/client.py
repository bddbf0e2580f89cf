"""Protocols of the outside world: `Client` (writes to an API server), `Clock`, and `MetricSource`.

Whoever implements a client translates its library's exceptions into `ApiError`; nothing of that library crosses.

A source of metrics runs beside the scheduler on its loop and hands over whole answers, one for each metric and refresh.
It never raises for what a server or a file does: trouble is a `problem` in the answer, and what was known before ages.
Which metrics it follows is told to it whenever the policies in force change.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from contextvars import ContextVar
from datetime import datetime
from http import HTTPStatus
from typing import Any, Final, Protocol, TypeAlias

from policysched.errors import PolicyschedError
from policysched.late_dataclass import dataclass
from policysched.model.objects import (
    PersistentVolume,
    PersistentVolumeClaim,
    Pod,
    PodCondition,
    PodExtendedClaimStatus,
    ResourceClaim,
)
from policysched.model.policy import MetricAnswer, MetricKey, Policy, PolicyKey

NO_STATUS: Final = "NoStatus"
"""The reason of an answer that is no Kubernetes Status: a gateway's page, a redirect."""
NOT_FOUND: Final = "NotFound"
"""The reason of an API server's Status about an object that is not there."""
PATIENCE: Final = 30.0
"""How long it is asked again of a server that answers and refuses to tell: one that has just started refuses until it
knows the roles. Units: seconds."""
LEAST_UNKNOWN: Final = 1000
"""Of so many names that are no nodes' an answer has values however few nodes there are."""
BINDING_CYCLE: Final[ContextVar[int]] = ContextVar("binding cycle", default=0)
"""The number of the binding cycle that runs, from 1 on in the order in which they began, 0 outside of one: a client
serves those first that began first."""
Wanted: TypeAlias = Mapping[MetricKey, frozenset[str]]
"""The metrics that policies in force read, each with the names that they give it: `load` and `cool-gpu-nodes/load`."""
MetricSink: TypeAlias = Callable[[MetricAnswer], None]
"""Takes an answer between two cycles, on the loop; only values that differ from the last ones move anything."""


class ApiError(PolicyschedError):
    """The API server refused a request, or could not be reached (status 0)."""

    def __init__(self, status: int, reason: str, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after = retry_after

    @property
    def is_refusal(self) -> bool:
        """Whether an API server has refused the request, so that it was not carried out.

        Nobody can tell where no answer came, a server failed (5xx), or something else than an API server answered.
        """
        client_error = HTTPStatus.BAD_REQUEST <= self.status < HTTPStatus.INTERNAL_SERVER_ERROR
        return client_error and self.reason != NO_STATUS

    @property
    def is_verdict(self) -> bool:
        """Whether a write was not carried out for sure.

        A gateway may have sent it twice: then a conflict may be one with itself.
        """
        return self.is_refusal and self.status != HTTPStatus.CONFLICT

    @property
    def is_not_found(self) -> bool:
        """Whether an API server says that the object is not there."""
        return (self.status, self.reason) == (HTTPStatus.NOT_FOUND, NOT_FOUND)


@dataclass(frozen=True, slots=True)
class Event:
    """An event about a pod, as `kubectl describe` shows it."""

    pod: Pod
    type: str
    """Normal or Warning."""
    reason: str
    action: str
    note: str
    at: datetime
    """When it happened, UTC."""
    related: Pod | None = None
    """Another pod that it is about, such as the one that preempted this one."""


@dataclass(frozen=True, slots=True)
class PolicyEvent:
    """An event about a SchedulingPolicy."""

    policy: Policy
    type: str
    """Normal or Warning."""
    reason: str
    action: str
    note: str
    at: datetime
    """When it happened, UTC."""


@dataclass(frozen=True, slots=True)
class PodStatusChange:
    """What is to be written into a pod's status."""

    condition: dict[str, Any] | None = None
    """A condition in place of the one of its type."""
    nominated_node: str | None = None
    """The node that is kept for the pod, empty for none; None leaves what is there."""

    def after(self, other: PodStatusChange) -> PodStatusChange:
        """Return both as one, this one being the newer."""
        return PodStatusChange(
            self.condition if self.condition is not None else other.condition,
            self.nominated_node if self.nominated_node is not None else other.nominated_node,
        )


def pod_condition(pod: Pod, told: PodCondition, now: datetime) -> dict[str, Any] | None:
    """Make what is to be written for a condition; None where the pod's status says it already.

    Source: pkg/api/v1/pod/util.go (UpdatePodCondition).
    """
    known = next((one for one in pod.status.conditions if one.type == told.type), None)
    same = known is not None and known.status == told.status
    if known is not None and same and (known.reason, known.message) == (told.reason, told.message):
        return None
    condition: dict[str, Any] = {
        "type": told.type,
        "status": told.status,
        "reason": told.reason,
        "message": told.message,
        "observedGeneration": pod.metadata.generation,
    }
    if not same:
        condition |= {"lastProbeTime": None, "lastTransitionTime": now.strftime("%Y-%m-%dT%H:%M:%SZ")}
    return condition


class ClaimClient(Protocol):
    """What is read and written of resource claims; answers are the claims as the server has them then.

    Raises:
        ApiError: the server refused, from each of the methods; status 409 where a write was against an old version.
    """

    async def get(self, claim: ResourceClaim) -> ResourceClaim:
        """Read the newest version of a claim."""

    async def set_finalizers(self, claim: ResourceClaim) -> ResourceClaim:
        """Write a claim's finalizers, against its version."""

    async def allocate(self, claim: ResourceClaim) -> ResourceClaim:
        """Write a claim's allocation and for whom it is reserved, against its version."""

    async def reserve(self, claim: ResourceClaim) -> ResourceClaim:
        """Write for whom a claim is reserved, against its version; its allocation stays as others have written it."""

    async def deallocate(self, claim: ResourceClaim) -> ResourceClaim:
        """Take allocation, reservations and what drivers say of devices out of a claim, against its version."""

    async def create(self, claim: ResourceClaim) -> ResourceClaim:
        """Create a claim of what its spec says; the server completes its name."""

    async def delete(self, claim: ResourceClaim) -> None:
        """Delete a claim."""

    async def tell_pod(self, pod: Pod, told: PodExtendedClaimStatus) -> None:
        """Write into a pod's status which claim holds its extended resources."""


class Client(Protocol):
    """What the engine writes to the API server."""

    @property
    def claims(self) -> ClaimClient:
        """What it writes of resource claims."""

    async def bind(self, pod: Pod, node: str) -> None:
        """Bind the pod, once, without a retry.

        Raises:
            ApiError: the server refused.
        """

    async def node_of(self, pod: Pod) -> str:
        """Read which node the pod is bound to, empty where it is bound to none.

        Raises:
            ApiError: the server refused; status 404 where the pod, by its UID, is gone.
        """

    async def claim_volume(self, volume: PersistentVolume) -> str:
        """Write which claim a volume is for, against the version of the volume; return its new version.

        Raises:
            ApiError: the server refused; status 409 where the volume moved on.
        """

    async def select_node(self, claim: PersistentVolumeClaim, node: str) -> str:
        """Write on which node a claim's volume is to be made, against the version of the claim; return its new version.

        Raises:
            ApiError: the server refused; status 409 where the claim moved on.
        """

    async def set_pod_status(self, pod: Pod, change: PodStatusChange) -> None:
        """Write into the pod's status what is to change there (a patch that touches nothing else).

        Raises:
            ApiError: the server refused.
        """

    async def report_pod_status(self, pod: Pod, newest: Callable[[], PodStatusChange]) -> None:
        """Write such a change behind all that decisions wait for, where requests are limited.

        Args:
            pod: The pod.
            newest: Gives what is to be written; it is asked when the request is sent, and again when it is repeated.

        Raises:
            ApiError: the server refused.
        """

    async def delete_pod(self, pod: Pod) -> None:
        """Delete the pod, once, without a retry; one of its name that was made anew stays.

        Raises:
            ApiError: the server refused; status 404 where the pod, by its UID, is gone.
        """

    async def set_policy_status(self, policy: PolicyKey, resource_version: str, status: dict[str, Any]) -> None:
        """Write a policy's status in place of the one it has, against that version of the object.

        Raises:
            ApiError: the server refused; status 409 where the object moved on.
        """

    async def annotate_policy(self, policy: Policy, annotations: dict[str, str]) -> str:
        """Write annotations of a policy as long as its spec is what it was, whatever others write besides.

        Returns:
            The version of the object now; empty where others had written to it, so that this version is not all ours.

        Raises:
            ApiError: the server refused; status 409 where the object is of another generation, or another object.
        """

    def record(self, event: Event | PolicyEvent) -> None:
        """Take an event to be written behind the bindings; it is never dropped silently."""


class Clock(Protocol):
    """Time, so that tests can hold it."""

    def now(self) -> datetime:
        """Return the wall clock, UTC."""

    def monotonic(self) -> float:
        """Return seconds that never go back."""


class LostAnswer:
    """An answer to a write that was lost, or is no verdict: whether to ask again what became of the write.

    It is asked as long as no API server answers, or is busy, and of one that refuses to tell for a while.
    """

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._refused_since = clock.monotonic()

    def asks_again(self, error: ApiError) -> bool:
        """Take an answer that did not tell; return whether to ask again."""
        now = self._clock.monotonic()
        if not error.is_refusal or error.status == HTTPStatus.TOO_MANY_REQUESTS:
            self._refused_since = now
        return now - self._refused_since < PATIENCE


def most_unknown(nodes: Collection[str]) -> int:
    """Say of how many names that are no nodes' an answer may have values: a node may come before the next one."""
    return max(LEAST_UNKNOWN, 2 * len(nodes))


class MetricSource(Protocol):
    """Where metrics come from."""

    def follow(self, wanted: Wanted) -> None:
        """Follow these metrics from now on and no others; new ones are asked at once."""

    async def settled(self) -> None:
        """Wait until everything that is followed was asked once, whatever came of it."""

    async def run(self, sink: MetricSink, nodes: Collection[str]) -> None:
        """Refresh what is followed until cancelled, and hand each answer to the sink.

        Args:
            sink: Takes the answers.
            nodes: The names of the cluster's nodes at any time; of others no more values are kept than `most_unknown`.
        """
