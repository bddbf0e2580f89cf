"""Counts and logs chosen victims that policies in Shadow mode would have protected.

They are asked about the victims that were chosen, and about these alone. Which pods they would keep of all that could
go says a dry-run.
"""

from __future__ import annotations

import logging
from collections import Counter
from collections.abc import Sequence

import numpy as np

from policysched.framework import Cluster, VictimGuard
from policysched.model.objects import Pod
from policysched.state.placed.pods import pod_id

log = logging.getLogger(__name__)


class ShadowGuards:
    """Counts victims by the policy that would have kept them."""

    def __init__(self) -> None:
        self.kept: Counter[str] = Counter()
        """By the plugin name of a policy: how many victims."""

    def look(self, guards: Sequence[VictimGuard], pod: Pod, cluster: Cluster, victims: Sequence[Pod]) -> None:
        """Ask guards in Shadow mode about victims that are to make room for a pod; one that fails is logged."""
        by_id = cluster.pods.by_id
        going = (by_id.get(pod_id(one)) for one in victims if one.metadata.deletion_timestamp is None)
        placed = [one for one in going if one is not None]
        if not placed:
            return
        slots = np.array([one.slot for one in placed], np.intp)
        for guard in guards:
            try:
                found = guard.protected(pod, cluster, slots)
            except Exception:
                log.exception("%s failed in Shadow mode for pod=%s", guard.name, pod.key)
                continue
            for place in [] if found is None else np.flatnonzero(found.codes).tolist():
                self.kept[guard.name] += 1
                why = found.reason_of(int(found.codes[place])) if found is not None else ""
                text = "shadow: victim=%s of pod=%s would stay: %s (%s)"
                log.info(text, placed[place].pod.key, pod.key, why, found.values_of(place) if found is not None else "")
