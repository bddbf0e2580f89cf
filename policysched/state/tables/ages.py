"""Ages of nodes as a column, in whole steps of ten seconds; and the time that decisions see.

Each row's steps are counted from its own creation: a node is five minutes old when five minutes have passed. A node
without a time of creation, or with one in the future, has the age 0.

The time that decisions see is told from outside once a cycle: nothing here reads a clock. Columns whose values time
alone changes say when the next of them does; until then a new time costs one comparison.
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
"""Units: seconds."""


class NodeAges:
    """Ages by row, kept at the present as long as somebody holds them."""

    __slots__ = ("__weakref__", "_ages", "_created", "_journal")

    def __init__(self, created: Column, ages: Column, journal: Journal) -> None:
        self._created = created
        self._ages = ages
        self._journal = journal

    @property
    def data(self) -> NDArray[np.float64]:
        """The ages.

        Shapes: (capacity,). Units: seconds. Missing: 0.
        """
        return self._ages.data

    def exact(self, seconds: float) -> NDArray[np.float64]:
        """Return the ages at a time as they are, not in steps.

        Shapes: (capacity,). Missing: minus infinity.
        """
        return seconds - self._created.data

    def store(self, row: int, created: float, now: float) -> float:
        """Take a row's time of creation; give the time of its next step."""
        if created != self._created.data[row]:
            self._created.data[row] = created
            self._ages.data[row] = age(created, now)
            self._journal.note(row, Aspect.AGE)
        return created + (math.floor((now - created) / STEP) + 1) * STEP if math.isfinite(created) else math.inf

    def advance(self, seconds: float) -> float:
        """Bring all ages to a time, and note the rows whose age changed."""
        created = self._created.data
        known = np.flatnonzero(np.isfinite(created))
        steps = np.floor((seconds - created[known]) / STEP)
        ages = np.maximum(steps * STEP, 0.0)
        differs = ages != self._ages.data[known]
        self._ages.data[known] = ages
        self._journal.note_all(known[differs], Aspect.AGE)
        return float((created[known] + (steps + 1) * STEP).min(initial=math.inf))


class AgeTable:
    """Makes the ages when somebody asks for them."""

    def __init__(self, columns: ColumnSet, nodes: NodeTable, journal: Journal, time: ClusterTime) -> None:
        self._columns = columns
        self._nodes = nodes
        self._journal = journal
        self._time = time
        self._held: weakref.ref[NodeAges] | None = None

    def held(self) -> NodeAges:
        """Return the ages; they are kept up to date as long as the answer is held."""
        ages = self._held() if self._held is not None else None
        return ages if ages is not None else self._make()

    def store(self, row: int, node: Node | None) -> None:
        """Take the node of a row, or that it has none."""
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
    """Return an age in whole steps. Units: seconds."""
    return max(math.floor((now - created) / STEP) * STEP, 0.0) if math.isfinite(created) else 0.0


def _created(node: Node | None) -> float:
    created = seconds_of(node.metadata.creation_timestamp) if node is not None else None
    return math.inf if created is None else created


class Timed(Protocol):
    """Something that time changes. It can be referred to weakly."""

    def advance(self, seconds: float) -> float:
        """Bring it to a time, later or earlier than the last; give the time of its next change."""


class ClusterTime:
    """The present. Units: seconds since 1970, UTC."""

    __slots__ = ("_due", "_timed", "seconds")

    def __init__(self) -> None:
        self.seconds = 0.0
        self._due = math.inf
        self._timed: weakref.WeakSet[Timed] = weakref.WeakSet()

    def move(self, seconds: float) -> None:
        """Let it be another time; a clock may have been set back."""
        earlier = seconds < self.seconds
        self.seconds = seconds
        if seconds >= self._due or earlier:
            self._due = min((one.advance(seconds) for one in self._timed), default=math.inf)

    def include(self, timed: Timed) -> None:
        """Keep something at the present from now on."""
        self._timed.add(timed)
        self.expect(timed.advance(self.seconds))

    def expect(self, seconds: float) -> None:
        """Record that something included changes at a time, perhaps sooner than it said."""
        self._due = min(self._due, seconds)
