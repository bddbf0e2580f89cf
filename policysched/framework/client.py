"""The seams to the outside: what the engine asks of an API server and of time.

Whoever implements them translates its library's exceptions into `ApiError`; nothing of that library crosses.
"""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from datetime import datetime
from typing import Any, Protocol

from policysched.errors import PolicyschedError
from policysched.model.objects import PersistentVolume, PersistentVolumeClaim, Pod
from policysched.model.policy import Policy, PolicyKey


class ApiError(PolicyschedError):
    """The API server refused a request, or could not be reached (status 0)."""

    def __init__(self, status: int, reason: str, message: str, retry_after: float | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.reason = reason
        self.message = message
        self.retry_after = retry_after


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


class Client(Protocol):
    """What the engine writes to the API server."""

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
        """Write which claim a volume is for, against the version of the volume; give its new version.

        Raises:
            ApiError: the server refused; status 409 where the volume moved on.
        """

    async def select_node(self, claim: PersistentVolumeClaim, node: str) -> str:
        """Write on which node a claim's volume is to be made, against the version of the claim; give its new version.

        Raises:
            ApiError: the server refused; status 409 where the claim moved on.
        """

    async def set_pod_condition(self, pod: Pod, condition: dict[str, Any]) -> None:
        """Write one condition of the pod's status (a patch that touches nothing else).

        Raises:
            ApiError: the server refused.
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

    def record(self, event: Event) -> None:
        """Take an event to be written behind the bindings; it is never dropped silently."""


class Clock(Protocol):
    """Time, so that tests can hold it."""

    def now(self) -> datetime:
        """Give the wall clock, UTC."""

    def monotonic(self) -> float:
        """Give seconds that never go back."""


@dataclass(frozen=True, slots=True)
class BindingHandle:
    """What a plugin may use while a pod is about to be bound."""

    client: Client
    clock: Clock
    pause: Callable[[float], Awaitable[None]]
    """Waits for so many seconds."""
