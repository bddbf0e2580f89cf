"""`QueuedPod`: what the queue remembers of a pending pod between attempts.

It knows nothing of heaps or plugins. The pod inside is the newest version the queue was given, except while an
attempt is under way: then it stays as it was popped, so that an attempt never sees two versions.

Source: pkg/scheduler/framework/types.go (QueuedPodInfo).
"""

from __future__ import annotations

import math
from enum import Enum

import msgspec

from policysched.model.objects import Pod

NO_PLUGINS: frozenset[str] = frozenset()


class Stage(Enum):
    """Where a pod is."""

    NOWHERE = "nowhere"
    """Deleted, or done with."""
    ACTIVE = "active"
    BACKOFF = "backoff"
    UNSCHEDULABLE = "unschedulable"
    """Waiting for a change that can help, or for its gate."""
    IN_FLIGHT = "in flight"


class QueuedPod(msgspec.Struct, eq=False):
    """A pending pod and the history of its attempts.

    Units: times are seconds of the monotonic clock.
    """

    pod: Pod
    identity: str
    queued_at: float
    """When it was added, or last came back from an attempt."""
    attempts: int = 0
    tried_at: float = 0.0
    """When the last attempt began."""
    unschedulable_count: int = 0
    consecutive_errors: int = 0
    first_attempt_at: float | None = None
    """When it first became ready to be tried."""
    rejectors: frozenset[str] = NO_PLUGINS
    """The plugins that rejected it last, or gated it since; none after an error."""
    pending: frozenset[str] = NO_PLUGINS
    """The plugins that answered Pending: their hints skip the backoff."""
    gated_by: str = ""
    """The PreEnqueue plugin that keeps it out."""
    is_put_off: bool = False
    """True from when it was put off without an attempt until it is tried."""
    flushed: bool = False
    """True where it is tried again only because it had waited for so long."""
    yields_until: float = -math.inf
    """Until when it is tried only while nothing else is ready."""
    took: float = 0.0
    """How much processor time the attempt under way, or the last one, held the loop for. Units: seconds."""
    rests_until: float = -math.inf
    """Until when it is not tried, because its last attempt was costly."""
    timer: float = math.inf
    """When time alone may help it."""
    stage: Stage = Stage.NOWHERE
    size: int = 0
    """How much the version `measured` of the pod states that hints look at. Units: bytes."""
    measured: Pod | None = None

    @property
    def profile(self) -> str:
        """The profile that is responsible for it."""
        return self.pod.spec.scheduler_name
