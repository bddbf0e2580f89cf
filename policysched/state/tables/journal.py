"""Journal of changed rows and of the aspects that changed, from which every cache updates itself.

A cache remembers a position; `since` gives the rows that changed after it. Positions that fell out of the ring
answer None, which means: recompute everything. That keeps the journal's memory fixed however long a cache sleeps.
"""

from __future__ import annotations

from enum import IntFlag

import numpy as np
from numpy.typing import NDArray

from policysched.state.cluster_events import Action
from policysched.state.tables.columns import RowNumbers

RING = 1 << 15


class Aspect(IntFlag):
    """The aspects of a node that can change; a plugin declares which aspects it reads."""

    NONE = 0
    PRESENCE = 1
    """The node was added, removed or replaced: everything changed."""
    LABELS = 2
    """Labels or annotations."""
    TAINTS = 4
    """Taints or the unschedulable flag."""
    CAPACITY = 8
    """Allocatable resources."""
    CONDITIONS = 16
    """Conditions of the node, such as Ready."""
    IMAGES = 32
    """Images on the node."""
    FEATURES = 64
    """Features that the node declares."""
    USAGE = 128
    """Requested resources and the number of pods."""
    PORTS = 256
    """Host ports in use."""
    PODS = 512
    """Which pods are on the node, or their labels."""
    AGE = 1024
    """The age of the node."""
    METRICS = 2048
    """Values of metrics of the node."""
    INFO = 4096
    """Addresses of the node and versions of its software."""
    POD_DETAILS = 8192
    """Annotations or phases of pods on the node."""


ABOUT_PODS = Aspect.USAGE | Aspect.PORTS | Aspect.PODS
"""Aspects of a row that change if a pod is placed on the node or removed from it."""
ABOUT_NODES = int(Aspect.PRESENCE | Aspect.LABELS | Aspect.TAINTS)


ASPECTS = {
    Action.UPDATE_NODE_ALLOCATABLE: Aspect.CAPACITY,
    Action.UPDATE_NODE_LABEL: Aspect.LABELS,
    Action.UPDATE_NODE_ANNOTATION: Aspect.LABELS,
    Action.UPDATE_NODE_TAINT: Aspect.TAINTS,
    Action.UPDATE_NODE_CONDITION: Aspect.CONDITIONS,
    Action.UPDATE_NODE_DECLARED_FEATURE: Aspect.FEATURES,
    Action.UPDATE_NODE_IMAGES: Aspect.IMAGES,
    Action.UPDATE_NODE_INFO: Aspect.INFO,
}


def aspects_of(action: Action) -> Aspect:
    """Return the aspects of a row that change with an update of its node."""
    aspects = Aspect.NONE
    for part, aspect in ASPECTS.items():
        if action & part:
            aspects |= aspect
    return aspects


class Journal:
    """Log of the latest (row, aspects) entries; positions in the log grow forever."""

    __slots__ = ("_aspects", "_rows", "about_nodes", "position")

    def __init__(self) -> None:
        self.about_nodes = 0
        """The position behind the newest entry about a node's presence, labels or taints.

        What reads nothing else need not look at placements, which are nearly all entries.
        """
        self._rows = np.zeros(RING, np.intp)
        self._aspects = np.zeros(RING, np.int32)
        self.position = 0

    def note(self, row: int, aspects: int) -> None:
        """Record that some aspects of a row changed."""
        slot = self.position & (RING - 1)
        self._rows[slot] = row
        self._aspects[slot] = aspects
        self.position += 1
        if int(aspects) & ABOUT_NODES:
            self.about_nodes = self.position

    def note_all(self, rows: NDArray[np.integer], aspects: int) -> None:
        """Record that some aspects of many rows changed."""
        count = rows.size
        kept = rows[max(0, count - RING) :]
        slots = (self.position + count - kept.size + np.arange(kept.size)) & (RING - 1)
        self._rows[slots] = kept
        self._aspects[slots] = aspects
        self.position += count
        if int(aspects) & ABOUT_NODES:
            self.about_nodes = self.position

    def forget(self) -> None:
        """Drop all entries, so that every cache is recomputed, because row numbers changed."""
        self.position += RING + 1
        self.about_nodes = self.position

    def since(self, position: int) -> tuple[RowNumbers, NDArray[np.int32]] | None:
        """Return the rows and aspects recorded after a position, oldest first; None if some were dropped.

        Shapes: two arrays (E,) of the same length; a row may occur several times.
        """
        count = self.position - position
        if count > RING:
            return None
        start, stop = position & (RING - 1), self.position & (RING - 1)
        if count == 0 or start < stop:
            return self._rows[start:stop], self._aspects[start:stop]
        rows = np.concatenate((self._rows[start:], self._rows[:stop]))
        return rows, np.concatenate((self._aspects[start:], self._aspects[:stop]))
