"""Answers of rules that read nothing of the pod, by row, for all pod classes.

They are asked for again only on rows that changed in what the rules read, and where an aggregate or a value for all
rows moved. So what a rule costs does not grow with the number of pod classes.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from policysched.framework import Aspect, Rows
from policysched.language.program import Batch
from policysched.language.typed import Input, Typed
from policysched.rules.frame import RuleFrame
from policysched.rules.reads import Reads
from policysched.rules.sources import Frames, Source, after
from policysched.rules.subject import Subject

Answer = Callable[[RuleFrame], NDArray[Any]]


class Sharing(Frames, Protocol):
    """Who knows what rules share."""

    nobody: Subject

    @property
    def version(self) -> object:
        """A value that differs whenever anything may have changed."""

    def changed(self, since: int, reads: int) -> Rows | None:
        """Give the rows that changed in some aspects after a position, None if that is too long ago."""

    def sources(self, roots: Sequence[Typed], subject: Subject) -> list[Source]:
        """Give what rows of some graphs look at together."""

    def hold(self, roots: Sequence[Typed], subject: Subject) -> tuple[object, ...]:
        """Give what has to be held so that graphs find it kept."""


def reads_pod(inputs: Sequence[Input]) -> bool:
    """Tell whether what is made of these inputs may differ between pods."""
    return any(item.root == "pod" or item.path[0] == "cached_image_bytes" for item in inputs)


class Reach:
    """Which rows see something else because of what many rows look at together."""

    __slots__ = ("_seen", "_sources")

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = sources
        for source in sources:
            source.refresh()
        self._seen = [source.stamp for source in sources]

    def extend(self, rows: Rows) -> Rows:
        """Add the rows that sources reach to those that changed; the same object where there are none."""
        found = [rows]
        for index, source in enumerate(self._sources):
            source.refresh()
            if source.stamp != self._seen[index]:
                found.append(source.moved(self._seen[index]))
                self._seen[index] = source.stamp
        return rows if len(found) == 1 else together(found)


def together(found: Sequence[Rows]) -> Rows:
    """Join selections; one that is a slice is of all rows."""
    whole = next((rows for rows in found if isinstance(rows, slice)), None)
    if whole is not None:
        return whole
    joined: NDArray[np.int32] = np.concatenate([rows for rows in found if isinstance(rows, np.ndarray)])
    return joined


class Kept:
    """Some rules' answers by row, brought up to date when they are read. It is a source itself."""

    __slots__ = (
        "_answer", "_batch", "_held", "_position", "_reach", "_reads", "_shared", "_stamps", "_values", "_version",
        "stamp",
    )  # fmt: skip

    def __init__(self, shared: Sharing, roots: Sequence[Typed], dtype: Any, answer: Answer) -> None:
        self._shared = shared
        self._reads = Reads(roots, shared.nobody, shared)
        self._batch = Batch(roots)
        self._answer = answer
        self._held = shared.hold(roots, shared.nobody)
        self._reach = Reach(shared.sources(roots, shared.nobody))
        self._position = -1
        self._version: object = None
        self._values: NDArray[Any] = np.zeros(0, dtype)
        self._stamps: NDArray[np.int64] = np.zeros(0, np.int64)
        self.stamp = 0

    def refresh(self) -> None:
        """Ask again where something changed."""
        version = self._shared.version
        if version == self._version:
            return
        self._version = version
        cluster = self._shared.cluster
        everything = slice(0, cluster.nodes.size)
        changed: Rows | None = None
        if self._values.size == cluster.nodes.columns.capacity:
            reads = self._reads.aspects | (Aspect.PODS if self._reads.counted() else Aspect.NONE)
            changed = self._shared.changed(self._position, reads)
        else:
            self._values = np.zeros(cluster.nodes.columns.capacity, self._values.dtype)
            self._stamps = np.zeros(self._values.size, np.int64)
        self._position = cluster.journal.position
        reached = self._reach.extend(changed if changed is not None else everything)
        if changed is not None and reached is not changed:
            self.stamp += 1
            self._stamps[reached] = self.stamp
        if isinstance(reached, slice) or reached.size:
            frame = self._shared.frame(self._shared.nobody, reached)
            self._batch.evaluate(frame)
            self._values[reached] = self._answer(frame)

    def at(self, rows: Rows) -> NDArray[Any]:
        """Give the answers for rows, as of the last refresh.

        Shapes: (R,).
        """
        values: NDArray[Any] = self._values[rows]
        return values

    def moved(self, since: int) -> Rows:
        """Give the rows that sources reached after a stamp."""
        return after(self._stamps[: self._shared.cluster.nodes.size], since)
