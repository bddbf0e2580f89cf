"""`CostlyAttempts`: pods whose attempts hold the loop for long rest until all of them have left most of it to others.

Only processor time is counted, of cycles that find no node: an attempt that ends in a binding is not repeated, and a
usual one is never this long. Where such attempts are rare, no pod rests longer than its backoff. Each namespace has an
account of its own and an equal part of the share, so that no pod rests for what those of another namespace took.
"""

from __future__ import annotations

import math
from typing import Final

COSTLY: Final = 0.03
"""From how much processor time on an attempt counts as costly. Units: seconds."""
SHARE: Final = 0.2
"""How much of the time all attempts of pods whose attempts are costly may take together."""
LONGEST_REST: Final = 300.0
"""How long one such pod rests at most: as long as pods wait that nothing helps. Units: seconds."""


class CostlyAttempts:
    """The time for which costly attempts have taken their share, by namespace."""

    def __init__(self) -> None:
        self._taken_until: dict[str, float] = {}

    def rests_until(self, namespace: str, took: float, now: float) -> float:
        """Count an attempt that did not place its pod; return until when the pod rests.

        Missing: minus infinity where the attempt was not costly.

        Args:
            namespace: The pod's.
            took: The processor time that it held the loop for. Units: seconds.
            now: The monotonic time at which it ended. Units: seconds.

        Cost: O(namespaces with pods that rest) for a costly attempt.
        """
        if took < COSTLY:
            return -math.inf
        self._taken_until = {name: until for name, until in self._taken_until.items() if until > now}
        begin = self._taken_until.get(namespace, now)
        sharing = len(self._taken_until.keys() | {namespace})
        until = self._taken_until[namespace] = min(begin + sharing * took / SHARE, now + LONGEST_REST)
        return until
