"""`ShadowGuards`: counts and logs the victims that policies in Shadow mode would have protected from preemption.

Guards are evaluated for chosen victims only; a dry-run evaluates them for all candidates.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Callable, Iterator, Sequence, Set
from functools import partial
from typing import Final

import numpy as np

from policysched.framework import Cluster, Protection, VictimGuard
from policysched.model.objects import Pod
from policysched.state.placed.pods import PlacedPod, pod_id

log = logging.getLogger(__name__)


MOST_SAID: Final = 32
"""Maximum number of log lines per preemption; further victims are counted only."""


class ShadowGuards:
    """Counts preemption victims that policies in Shadow mode would have protected, by policy."""

    def __init__(self) -> None:
        self.kept: Counter[str] = Counter()
        """Number of victims that a policy would have protected, by the policy's plugin name."""

    def keep(self, names: Set[str]) -> None:
        """Drop the counts of all policies except those with the given plugin names."""
        for name in self.kept.keys() - names:
            del self.kept[name]

    def look(self, guards: Sequence[VictimGuard], pod: Pod, cluster: Cluster, victims: Sequence[Pod]) -> None:
        """Count and log those victims of a preempting pod that policies in Shadow mode would have protected."""
        going = [pod_id(one) for one in victims if one.metadata.deletion_timestamp is None]
        placed = [found for one in going if (found := cluster.pods.by_id.get(one)) is not None]
        told = 0
        for guard in guards:
            for victim, say in _kept(guard, pod, cluster, placed):
                self.kept[guard.name] += 1
                told += 1
                if told <= MOST_SAID:
                    log.info('shadow: victim "%s" of pod "%s" would be protected: %s (%s)', victim.key, pod.key, *say())
        if told > MOST_SAID:
            log.info(
                'shadow: pod "%s" has %d more protected victims, which are not logged one by one',
                pod.key,
                told - MOST_SAID,
            )


def _kept(
    guard: VictimGuard, pod: Pod, cluster: Cluster, placed: Sequence[PlacedPod]
) -> Iterator[tuple[Pod, Callable[[], tuple[str, str]]]]:
    """Yield each victim that a guard would protect, and a function that returns the reason and the values it read."""
    if not placed:
        return
    try:
        found = guard.protected(pod, cluster, np.array([one.slot for one in placed], np.intp))
    except Exception:
        log.exception('%s failed in Shadow mode for pod "%s"', guard.name, pod.key)
        return
    if found is not None:
        for place in np.flatnonzero(found.codes).tolist():
            yield placed[place].pod, partial(_why, found, place)


def _why(found: Protection, place: int) -> tuple[str, str]:
    return found.reason_of(int(found.codes[place])), found.values_of(place)
