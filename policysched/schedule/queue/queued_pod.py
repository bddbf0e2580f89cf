"""`QueuedPod`: a pending pod and the history of its scheduling attempts.

Source: pkg/scheduler/framework/types.go (QueuedPodInfo).
"""

from __future__ import annotations

import math
from enum import Enum

import msgspec

from policysched.model.objects import Pod

NO_PLUGINS: frozenset[str] = frozenset()


class Stage(Enum):
    """The place of a pod in the queue."""

    NOWHERE = "nowhere"
    """Deleted, bound, or being bound."""
    ACTIVE = "active"
    BACKOFF = "backoff"
    UNSCHEDULABLE = "unschedulable"
    """Waits for a change that can help, or for its gate."""
    IN_FLIGHT = "in flight"
    IN_GROUP = "in group"
    """Is a member of a queued pod group."""
    INCOMPLETE = "incomplete"
    """Waits for the object of its pod group."""
    PENDING = "pending"
    """Waits for the end of the attempt of its pod group."""


class QueuedPod(msgspec.Struct, eq=False, weakref=True):
    """A pending pod and the history of its scheduling attempts.

    Units: times are seconds of the monotonic clock.
    """

    pod: Pod
    """The newest version of the pod. During an attempt: the version at the start of the attempt."""
    identity: str
    queued_at: float
    """Time of its addition, or of the end of its last attempt."""
    attempts: int = 0
    tried_at: float = 0.0
    """Start of its last attempt."""
    unschedulable_count: int = 0
    consecutive_errors: int = 0
    first_attempt_at: float | None = None
    """Time when it first became active."""
    rejectors: frozenset[str] = NO_PLUGINS
    """The plugins that rejected it in its last attempt, or gated it since; empty after an error."""
    pending: frozenset[str] = NO_PLUGINS
    """The plugins that returned Pending: if their queueing hints return Queue, the pod skips its backoff."""
    gated_by: str = ""
    """The PreEnqueue plugin that gates it; empty if it is not gated."""
    is_put_off: bool = False
    """Whether a plugin postponed its attempt."""
    flushed: bool = False
    """Whether it is retried only because it waited for the maximum time."""
    flushed_at: float = -math.inf
    """Time of its last such retry; while it is gated, the next retry follows after the maximum time."""
    yields_until: float = -math.inf
    """Until this time it is tried only if no other pod is ready."""
    completes_backoff: bool = False
    """Whether it stays in backoff until the end even if no other pod is ready; after expensive attempts."""
    backoff_factor: float = 1.0
    """Factor of its longest backoff; larger for pod groups."""
    timer: float = math.inf
    """Time when elapsed time alone may help it."""
    stage: Stage = Stage.NOWHERE

    @property
    def profile(self) -> str:
        """The name of the profile that schedules it."""
        return self.pod.spec.scheduler_name
