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
    """The part of the queue in which a pod is."""

    NOWHERE = "nowhere"
    """The pod is deleted, bound, or being bound."""
    ACTIVE = "active"
    BACKOFF = "backoff"
    UNSCHEDULABLE = "unschedulable"
    """The pod waits for a change that can help, or is gated."""
    IN_FLIGHT = "in flight"
    IN_GROUP = "in group"
    """The pod is a member of a queued pod group."""
    INCOMPLETE = "incomplete"
    """The pod waits for the creation of its PodGroup object."""
    PENDING = "pending"
    """The pod waits for the running attempt of its pod group to end."""


class QueuedPod(msgspec.Struct, eq=False, weakref=True):
    """A pending pod and the history of its scheduling attempts.

    Units: times are seconds of the monotonic clock.
    """

    pod: Pod
    """The newest version of the pod; during an attempt, the version at the start of the attempt."""
    identity: str
    queued_at: float
    """Monotonic time at which the pod was added or its last attempt ended."""
    attempts: int = 0
    tried_at: float = 0.0
    """Monotonic time at which the pod's last attempt began."""
    unschedulable_count: int = 0
    consecutive_errors: int = 0
    first_attempt_at: float | None = None
    """Monotonic time at which the pod first became active."""
    rejectors: frozenset[str] = NO_PLUGINS
    """The plugins that rejected the pod in its last attempt, or that gated the pod later; empty after an error."""
    pending: frozenset[str] = NO_PLUGINS
    """The plugins that returned Pending; if their queueing hints return Queue, the pod is retried without backoff."""
    gated_by: str = ""
    """The PreEnqueue plugin that gates the pod; empty if the pod is not gated."""
    is_put_off: bool = False
    """Whether a plugin delayed the pod's attempt before the scheduling cycle."""
    flushed: bool = False
    """Whether the pod was last requeued only because it had waited for the maximum time."""
    flushed_at: float = -math.inf
    """Time at which the pod was last retried after the maximum wait; a gated pod's next wait starts at this time."""
    yields_until: float = -math.inf
    """Time until which the pod is tried only if no other pod is ready."""
    completes_backoff: bool = False
    """Whether the pod never leaves backoff early, because its last attempt was expensive."""
    backoff_factor: float = 1.0
    """Factor by which the maximum backoff is multiplied; larger than 1 for pod groups."""
    timer: float = math.inf
    """Time at which the pod's queueing hints are called without a change, because time may help; infinite if never."""
    stage: Stage = Stage.NOWHERE

    @property
    def profile(self) -> str:
        """The name of the profile that schedules the pod."""
        return self.pod.spec.scheduler_name
