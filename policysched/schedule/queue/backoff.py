"""How long a pod has to wait after an attempt that failed.

Waits end with whole seconds of the clock: pods whose waits end within the same second leave together and are then
ordered by priority, where a finer order would let a moment decide.

Source: pkg/scheduler/backend/queue/backoff_queue.go.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

from policysched.schedule.queue.queued import QueuedPod

WINDOW = 1.0
"""Units: seconds."""
_MAX_DOUBLINGS = 62


@dataclass(frozen=True, slots=True)
class Backoff:
    """Waits that double with every failure, up to a maximum; a maximum of 0 means none.

    Units: seconds.
    """

    initial: float = 1.0
    maximum: float = 10.0

    def duration(self, count: int) -> float:
        """Give the wait after the count-th failure."""
        if count == 0:
            return 0.0
        return min(self.initial * 2.0 ** min(count - 1, _MAX_DOUBLINGS), self.maximum)

    def last_window(self, queued: QueuedPod) -> float:
        """Give the last whole second during which the pod waits.

        Missing: minus infinity where it need not wait.
        """
        count = queued.consecutive_errors or queued.unschedulable_count
        ends = queued.yields_until
        if count and self.maximum:
            ends = max(ends, queued.queued_at + self.duration(count))
        return ends if ends == -math.inf else math.floor(ends)

    def holds(self, queued: QueuedPod, now: float) -> bool:
        """Tell whether the pod still has to wait."""
        return self.last_window(queued) >= math.floor(now)
