"""`AgeTable`: the ages of nodes, rounded to ten seconds. `ClusterTime`: the time that decisions read.

The steps of a node begin at its creation. A node without a creation time, or with a creation time in the future, has
the age 0.

The caller sets the time once per cycle; no clock is read here. Columns that change with time report the time of their
next change; until then, setting the time is one comparison.
"""

from __future__ import annotations

import math
import weakref
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from policysched.model.objects import Node
from policysched.model.objects.meta import seconds_of
from policysched.state.tables.columns import Column, ColumnSet
from policysched.state.tables.journal import Aspect, Journal
from policysched.state.tables.nodes import NodeTable

STEP = 10.0
"""Ages are rounded down to multiples of this time. Units: seconds."""


class NodeAges:
    """The age of each node, by row, kept up to date as long as a user refers to this object."""

    __slots__ = ("__weakref__", "_ages", "_created", "_journal")

    def __init__(self, created: Column, ages: Column, journal: Journal) -> None:
        self._created = created
        self._ages = ages
        self._journal = journal

    @property
    def data(self) -> NDArray[np.float64]:
        """The age of each node, by row.

        Shapes: (capacity,). Units: seconds. Missing: 0.
        """
        return self._ages.data

    def exact(self, seconds: float) -> NDArray[np.float64]:
        """Return the ages of all nodes at a given time, without rounding.

        Shapes: (capacity,). Missing: minus infinity.
        """
        return seconds - self._created.data

    def store(self, row: int, created: float, now: float) -> float:
        """Set the creation time of the node in a row; return the time at which its rounded age changes next."""
        if created != self._created.data[row]:
            self._created.data[row] = created
            self._ages.data[row] = age(created, now)
            self._journal.note(row, Aspect.AGE)
        return created + (math.floor((now - created) / STEP) + 1) * STEP if math.isfinite(created) else math.inf

    def advance(self, seconds: float) -> float:
        """Compute all ages for a time; record changed nodes in the journal, and return when an age changes next."""
        created = self._created.data
        known = np.flatnonzero(np.isfinite(created))
        steps = np.floor((seconds - created[known]) / STEP)
        ages = np.maximum(steps * STEP, 0.0)
        differs = ages != self._ages.data[known]
        self._ages.data[known] = ages
        self._journal.note_all(known[differs], Aspect.AGE)
        return float((created[known] + (steps + 1) * STEP).min(initial=math.inf))


class AgeTable:
    """Creates one `NodeAges` object that all users share, and that exists as long as any of them refers to it."""

    def __init__(self, columns: ColumnSet, nodes: NodeTable, journal: Journal, time: ClusterTime) -> None:
        self._columns = columns
        self._nodes = nodes
        self._journal = journal
        self._time = time
        self._held: weakref.ref[NodeAges] | None = None

    def held(self) -> NodeAges:
        """Return the ages of nodes, which stay up to date as long as the caller refers to the returned object."""
        ages = self._held() if self._held is not None else None
        return ages if ages is not None else self._make()

    def store(self, row: int, node: Node | None) -> None:
        """Set the node of a row, so that its age is computed; None removes the node."""
        ages = self._held() if self._held is not None else None
        if ages is not None:
            self._time.expect(ages.store(row, _created(node), self._time.seconds))

    def _make(self) -> NodeAges:
        created, data = self._columns.new(np.float64, math.inf), self._columns.new(np.float64)
        for row, node in enumerate(self._nodes.nodes):
            created.data[row] = _created(node)
        ages = NodeAges(created, data, self._journal)
        self._held = weakref.ref(ages)
        self._time.include(ages)
        return ages


def age(created: float, now: float) -> float:
    """Return the age, at time `now`, of an object created at time `created`, rounded down to steps. Units: seconds."""
    return max(math.floor((now - created) / STEP) * STEP, 0.0) if math.isfinite(created) else 0.0


def _created(node: Node | None) -> float:
    created = seconds_of(node.metadata.creation_timestamp) if node is not None else None
    return math.inf if created is None else created


class Timed(Protocol):
    """Protocol of objects that change with time, which `ClusterTime` updates; they support weak references."""

    def advance(self, seconds: float) -> float:
        """Update the object for a time, which may be earlier than before; return the time at which it changes next."""


class ClusterTime:
    """The time that decisions read. Units: seconds since 1970, UTC."""

    __slots__ = ("_due", "_timed", "seconds")

    def __init__(self) -> None:
        self.seconds = 0.0
        self._due = math.inf
        self._timed: weakref.WeakSet[Timed] = weakref.WeakSet()

    def move(self, seconds: float) -> None:
        """Set the time, which may go back, and update all objects that change with time."""
        earlier = seconds < self.seconds
        self.seconds = seconds
        if seconds >= self._due or earlier:
            self._due = min((one.advance(seconds) for one in self._timed), default=math.inf)

    def include(self, timed: Timed) -> None:
        """Update an object whenever the time changes, from now on."""
        self._timed.add(timed)
        self.expect(timed.advance(self.seconds))

    def expect(self, seconds: float) -> None:
        """Record when an object that `include` added changes next, so that the object is updated then."""
        self._due = min(self._due, seconds)
