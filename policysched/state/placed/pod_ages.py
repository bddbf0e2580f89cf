"""Ages of placed pods, rounded to ten seconds; a change is recorded in the journal for the pod's node.

Ages are computed only while they are in use. Creation times are whole seconds, so ages change at whole seconds.
"""

from __future__ import annotations

import math
import weakref

import numpy as np
from numpy.typing import NDArray

from policysched.state.placed.pods import PodTable
from policysched.state.tables.ages import STEP, ClusterTime
from policysched.state.tables.columns import distinct
from policysched.state.tables.journal import Aspect, Journal


class PodAges:
    """The age of each placed pod, rounded to ten seconds and kept up to date while a rule uses this object."""

    __slots__ = ("__weakref__", "_journal", "_pods", "_steps")

    def __init__(self, pods: PodTable, journal: Journal) -> None:
        self._pods = pods
        self._journal = journal
        self._steps: NDArray[np.float64] = np.zeros(0)

    def exact(self, seconds: float) -> NDArray[np.float64]:
        """Return the ages of all placed pods at a given time, without rounding.

        Shapes: (P,). Missing: minus infinity.
        """
        return seconds - self._pods.created(np.flatnonzero(self._pods.rows >= 0))

    def advance(self, seconds: float) -> float:
        """Record in the journal the nodes on which rounded pod ages changed; return the time of the next whole second.

        Cost: O(pods).
        """
        pods = self._pods
        slots = np.flatnonzero(pods.rows >= 0)
        before, self._steps = self._steps, np.full(pods.rows.size, np.nan)
        self._steps[slots] = np.maximum(np.floor((seconds - pods.created(slots)) / STEP), 0.0)
        last = np.full(pods.rows.size, np.nan)
        last[: before.size] = before[: last.size]
        changed = slots[self._steps[slots] != last[slots]]
        self._journal.note_all(distinct(pods.rows[changed]), Aspect.AGE)
        return math.floor(seconds) + 1.0


class PodAgeTable:
    """Creates one `PodAges` object that all users share, and that exists as long as any of them refers to it."""

    __slots__ = ("_held", "_journal", "_pods", "_time")

    def __init__(self, pods: PodTable, journal: Journal, time: ClusterTime) -> None:
        self._pods, self._journal, self._time = pods, journal, time
        self._held: weakref.ref[PodAges] | None = None

    def held(self) -> PodAges:
        """Return the ages of placed pods, which stay up to date as long as the caller refers to them."""
        ages = self._held() if self._held is not None else None
        if ages is None:
            ages = PodAges(self._pods, self._journal)
            self._held = weakref.ref(ages)
            self._time.include(ages)
        return ages
