"""What many rows look at together: aggregates over all nodes, and values that are one for all.

A rule's answer on a row changes with the row, which the journal tells, and with these. A source is brought up to date
once a version of the cluster and then says which rows see another value than at an earlier stamp: most placements move
an average, few move whether it is above a limit.

Shapes: N rows in use.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable, Iterator
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from policysched.framework import Rows
from policysched.language.program import evaluate_columns
from policysched.language.reductions import aggregate_over
from policysched.language.typed import AGGREGATES, TALLIES, TIME, Typed
from policysched.language.types import Shape
from policysched.rules.frame import NO_ROWS, RuleFrame
from policysched.rules.reads import Knowing, Version
from policysched.rules.subject import VOLATILE, Subject
from policysched.state.cluster import Cluster


class Source(Protocol):
    """Something that answers on many rows depend on."""

    @property
    def stamp(self) -> int:
        """A number that grows whenever some row sees another value."""

    def refresh(self) -> None:
        """Bring it up to date."""

    def moved(self, since: int) -> Rows:
        """Give the rows that see another value than they did at an earlier stamp."""


class Frames(Knowing, Protocol):
    """Who makes frames, and knows what changed."""

    def frame(self, subject: Subject, rows: Rows) -> RuleFrame:
        """Give the frame of some rows."""

    def everything(self) -> Rows:
        """Give the rows of all nodes."""


def after(stamps: NDArray[np.int64], since: int) -> NDArray[np.int32]:
    """Give the rows that got a stamp after an earlier one."""
    return np.flatnonzero(stamps > since).astype(np.int32)


class Aggregate:
    """An aggregate over all nodes, for the pods that agree in what it reads of them."""

    __slots__ = ("__weakref__", "_frames", "_held", "_node", "_stamps", "_subject", "_values", "_version", "stamp")

    def __init__(self, node: Typed, subject: Subject, frames: Frames, held: object) -> None:
        self._node = node
        self._subject = subject
        self._frames = frames
        self._held = held
        self._version = Version(node, subject, frames)
        self._values: NDArray[np.float64] = np.full(1, math.nan)
        self._stamps: NDArray[np.int64] = np.zeros(1, np.int64)
        self.stamp = 0

    def refresh(self) -> None:
        """Compute it anew where what it reads changed."""
        if self._version.is_past():
            self._compute()

    def at(self, rows: Rows) -> NDArray[np.float64] | float:
        """Give its value on rows.

        Shapes: (R,) where it has a domain.
        """
        self.refresh()
        return self._values[rows] if self._node.args else float(self._values[0])

    def moved(self, since: int) -> Rows:
        """Give the rows whose value moved after a stamp."""
        size = self._frames.cluster.nodes.size
        return after(self._stamps[:size], since) if self._node.args else slice(0, size)

    def _compute(self) -> None:
        rows = self._frames.everything()
        found = aggregate_over(self._node, self._frames.frame(self._subject, rows))
        if not self._node.args:
            self._take(np.array([found]))
            return
        values = np.full(self._frames.cluster.nodes.columns.capacity, math.nan)
        values[rows] = found
        self._take(values)

    def _take(self, values: NDArray[np.float64]) -> None:
        if values.size != self._values.size:
            self.stamp += 1
            self._stamps = np.full(values.size, self.stamp, np.int64)
        else:
            differs = (values != self._values) & ~(np.isnan(values) & np.isnan(self._values))
            if differs.any():
                self.stamp += 1
                self._stamps[differs] = self.stamp
        self._values = values


class Watch:
    """A value that is one for all rows and that something else than the pod decides."""

    __slots__ = ("_frames", "_node", "_subject", "_value", "_version", "stamp")

    def __init__(self, node: Typed, subject: Subject, frames: Frames) -> None:
        self._node = node
        self._subject = subject
        self._frames = frames
        self._version = Version(node, subject, frames)
        self._value: object = None
        self.stamp = 0

    def refresh(self) -> None:
        """Compute it anew where what it reads changed."""
        if not self._version.is_past():
            return
        value = comparable(evaluate_columns(self._node, self._frames.frame(self._subject, NO_ROWS)))
        if value != self._value:
            self._value = value
            self.stamp += 1

    def moved(self, since: int) -> Rows:  # noqa: ARG002 - every row sees it
        """Give all rows."""
        return slice(0, self._frames.cluster.nodes.size)


class ImageSizes:
    """The sizes of images, which any node may change for the pods of all."""

    __slots__ = ("_cluster", "stamp")

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.stamp = cluster.images.epoch

    def refresh(self) -> None:
        """Bring it up to date."""
        self.stamp = self._cluster.images.epoch

    def moved(self, since: int) -> Rows:  # noqa: ARG002 - every row may see it
        """Give all rows."""
        return slice(0, self._cluster.nodes.size)


def reads_image_sizes(roots: Iterable[Typed]) -> bool:
    """Tell whether graphs read how large the images of placed pods are."""
    return any(item.root == "peer" and item.path[0] == "image_bytes" for root in roots for item in root.inputs)


def comparable(value: Any) -> Hashable:
    """Give a value that equals itself and differs from None."""
    return ("missing",) if isinstance(value, float) and math.isnan(value) else (value,)


def boundaries(roots: Iterable[Typed], *, timed: bool) -> Iterator[Typed]:
    """Find the parts of graphs that many rows look at together: aggregates with domains, and values for all rows.

    Args:
        roots: Graphs over nodes.
        timed: Whether time moves them; for a pod class its key holds what it makes of the time.
    """
    for node in _largest_scalars(roots):
        if node.type.shape is not Shape.SCALAR or is_volatile(node, timed=timed):
            yield node


def plain_scalars(root: Typed, *, timed: bool) -> Iterator[Typed]:
    """Find the largest parts of a graph that are one value for all rows, which the pod alone decides."""
    waiting = [node for node in _largest_scalars((root,)) if node.type.shape is Shape.SCALAR]
    while waiting:
        node = waiting.pop()
        if is_volatile(node, timed=timed):
            waiting.extend(node.args)
        else:
            yield node


def _largest_scalars(roots: Iterable[Typed]) -> Iterator[Typed]:
    """Find the largest parts that are one value for all rows, and aggregates with domains."""
    waiting, seen = list(roots), set()
    while waiting:
        node = waiting.pop()
        if node in seen:
            continue
        seen.add(node)
        if node.type.shape is Shape.SCALAR:
            yield node
            continue
        if node.op in AGGREGATES:
            yield node
        waiting.extend(node.args)
        if node.op in TALLIES:
            waiting.extend(node.inner)


def is_volatile(node: Typed, *, timed: bool) -> bool:
    """Tell whether a value for all rows may change while the pod stays the same."""
    if not node.local:
        return True
    return any((item.root, item.path[0]) in VOLATILE or (timed and item == TIME) for item in node.inputs)
