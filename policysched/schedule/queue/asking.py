"""How much plugins are asked whether a change helps a waiting pod: no more than a share of the time.

A hint is cheaper than an attempt as long as neither pod nor change is large and not too many pods wait. Beyond that
nobody is asked, and the change counts as one that helps: the pod is tried again once its backoff is over, and while it
backs off no change costs anything for it. It knows nothing of what hints look at.
"""

from __future__ import annotations

from typing import Final

import msgspec

from policysched.framework import Change, Clock
from policysched.model.objects import Pod
from policysched.schedule.queue.queued import QueuedPod

SHARE: Final = 0.1
"""How much of the time asking may take."""
MOST: Final = 0.1
"""How long may be asked at once. Units: seconds."""
LARGEST: Final = 1 << 15
"""How much the waiting pod and the changed one may state together. Units: bytes of JSON."""
_ENCODER: Final = msgspec.json.Encoder()


class Asking:
    """Says whether hints are asked; begin with `start` for each change, and end with `stop`."""

    def __init__(self, clock: Clock) -> None:
        self._clock = clock
        self._left, self._since = MOST, clock.monotonic()
        self._size = 0

    def start(self, change: Change) -> None:
        """Begin with a change."""
        now = self._clock.monotonic()
        self._left = min(MOST, self._left + SHARE * (now - self._since))
        self._since = now
        self._size = sum(_size(one) for one in (change.old, change.new) if isinstance(one, Pod))

    def permits(self, queued: QueuedPod) -> bool:
        """Tell whether hints may be asked about a waiting pod."""
        self.stop()
        if queued.measured is not queued.pod:
            queued.measured, queued.size = queued.pod, _size(queued.pod)
        return self._left > 0 and self._size + queued.size <= LARGEST

    @property
    def is_spent(self) -> bool:
        """Whether there is no time left for asking."""
        return self._left <= 0

    def stop(self) -> None:
        """Count the time since the last word."""
        now = self._clock.monotonic()
        self._left -= now - self._since
        self._since = now


def _size(pod: Pod) -> int:
    """Say how much a pod states that hints may look at."""
    return len(_ENCODER.encode((pod.metadata.labels, pod.spec)))
