"""Journal of changed nodes, each with the parts that changed (such as labels), by which caches update themselves.

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
    """The parts of a node that can change, as bits; plugins declare which of them they read."""

    NONE = 0
    PRESENCE = 1
    """The node was added, removed or replaced, so that all other parts may have changed too."""
    LABELS = 2
    """The labels or annotations of the node."""
    TAINTS = 4
    """The taints or the unschedulable flag of the node."""
    CAPACITY = 8
    """The allocatable resources of the node."""
    CONDITIONS = 16
    """The conditions of the node, such as Ready."""
    IMAGES = 32
    """The images on the node."""
    FEATURES = 64
    """The features that the node declares."""
    USAGE = 128
    """The requested resources and the number of pods on the node."""
    PORTS = 256
    """The host ports in use on the node."""
    PODS = 512
    """The set of pods on the node, or their labels."""
    AGE = 1024
    """The age of the node."""
    METRICS = 2048
    """The values of metrics of the node."""
    INFO = 4096
    """The addresses of the node and its software versions."""
    POD_DETAILS = 8192
    """The annotations or phases of pods on the node."""


ABOUT_PODS = Aspect.USAGE | Aspect.PORTS | Aspect.PODS
"""The parts of a node that change if a pod is placed on the node or removed from it."""
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
    """Return the changed parts of a node (journal bits) for an update of the Node object."""
    aspects = Aspect.NONE
    for part, aspect in ASPECTS.items():
        if action & part:
            aspects |= aspect
    return aspects


class Journal:
    """Log of the latest changes of nodes: the node's row, and the parts that changed; positions in it only increase."""

    __slots__ = ("_aspects", "_rows", "about_nodes", "position")

    def __init__(self) -> None:
        self.about_nodes = 0
        """The position after the newest entry about an added or removed node, or about changed labels or taints.

        What reads nothing else need not look at placements, which are nearly all entries.
        """
        self._rows = np.zeros(RING, np.intp)
        self._aspects = np.zeros(RING, np.int32)
        self.position = 0

    def note(self, row: int, aspects: int) -> None:
        """Record that some parts of a node changed, given its row."""
        slot = self.position & (RING - 1)
        self._rows[slot] = row
        self._aspects[slot] = aspects
        self.position += 1
        if int(aspects) & ABOUT_NODES:
            self.about_nodes = self.position

    def note_all(self, rows: NDArray[np.integer], aspects: int) -> None:
        """Record that the same parts of many nodes changed, given their rows."""
        count = rows.size
        kept = rows[max(0, count - RING) :]
        slots = (self.position + count - kept.size + np.arange(kept.size)) & (RING - 1)
        self._rows[slots] = kept
        self._aspects[slots] = aspects
        self.position += count
        if int(aspects) & ABOUT_NODES:
            self.about_nodes = self.position

    def forget(self) -> None:
        """Drop all entries because the rows of nodes changed, so that every cache is recomputed."""
        self.position += RING + 1
        self.about_nodes = self.position

    def since(self, position: int) -> tuple[RowNumbers, NDArray[np.int32]] | None:
        """Return the changed nodes' rows, and changed parts, since a position; None if entries were dropped.

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
