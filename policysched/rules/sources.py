"""What many rows look at together: what is made of aggregates over all nodes, and values that are one for all.

A rule's answer on a row changes with the row, which the journal tells, and with these. A source is brought up to date
once a version of the cluster and then says which rows see another value than at an earlier stamp.

Shapes: N rows in use.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Iterable
from functools import partial
from typing import Any, Final, Protocol

import numpy as np
from numpy.typing import NDArray

from policysched.framework import NO_ROWS, RowNumbers, Rows
from policysched.language.evaluation.columns import evaluate_columns, why_missing
from policysched.language.ir.graph import TIME, Typed, per_graph
from policysched.language.ir.types import Kind, Shape
from policysched.rules.frame import RuleFrame
from policysched.rules.frames import Frames
from policysched.rules.reads import Version
from policysched.rules.rowless import key_of, rowless
from policysched.rules.subject import VOLATILE, Subject
from policysched.rules.walk import own_parts, walk
from policysched.state.cluster import Cluster
from policysched.state.interner import MISSING
from policysched.state.memory import part_of

BYTES_PER_SOURCE: Final = 2048
"""What a source takes beside its arrays. Units: bytes."""


class Source(Protocol):
    """Something that answers on many rows depend on."""

    @property
    def stamp(self) -> int:
        """A number that grows whenever some row sees another value."""

    def refresh(self) -> None:
        """Bring it up to date."""

    def moved(self, since: int) -> Rows:
        """Give the rows that see another value than they did at an earlier stamp."""


def after(stamps: NDArray[np.int64], since: int) -> RowNumbers:
    """Give the rows that got a stamp after an earlier one."""
    return np.flatnonzero(stamps > since)


class Watch:
    """A value that is one for all rows and that something else than the pod decides, or why it is missing."""

    __slots__ = ("__weakref__", "_frames", "_node", "_subject", "_value", "_version", "stamp")

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
        frame = self._frames.frame(self._subject, NO_ROWS)
        value = (comparable(evaluate_columns(self._node, frame)), int(np.max(why_missing(self._node, frame))))
        if value != self._value:
            self._value = value
            self.stamp += 1

    def moved(self, since: int) -> Rows:  # noqa: ARG002 - every row sees it
        """Give all rows."""
        return slice(0, self._frames.cluster.nodes.size)


class Gathered:
    """A column that is made of aggregates and of values for all rows alone, such as whether a domain is below a limit.

    An aggregate moves with most placements; what a rule makes of it rarely does. A value that is missing for another
    reason than before is another one: rows say the reason.
    """

    __slots__ = ("__weakref__", "_domains", "_frames", "_generation", "_ids", "_node", "_stamps", "_subject", "_values",
                 "_version", "stamp")  # fmt: skip

    def __init__(self, node: Typed, subject: Subject, frames: Frames) -> None:
        self._node = node
        self._subject = subject
        self._frames = frames
        self._version = Version(node, subject, frames)
        key = key_of(node)
        self._domains = frames.domains(key, subject) if key is not None else None
        self._ids: NDArray[np.int64] | None = None
        self._generation = -1
        """That of the codes among the values."""
        self._values: NDArray[np.int64] = np.zeros(0, np.int64)
        """One a domain where all aggregates go by the same key, else one a row."""
        self._stamps: NDArray[np.int64] = np.zeros(0, np.int64)
        self.stamp = 0

    @property
    def nbytes(self) -> int:
        """The memory that it takes, with what it holds. Units: bytes."""
        domains = part_of(self._domains) if self._domains is not None else 0
        return BYTES_PER_SOURCE + self._values.nbytes + self._stamps.nbytes + domains

    def refresh(self) -> None:
        """Compute it anew where what it reads changed."""
        if self._domains is not None:
            self._domains.refresh()
        ids = self._domains.ids if self._domains is not None else None
        cluster = self._frames.cluster
        before, self._generation = self._generation, cluster.strings.generation
        same = before == self._generation
        if not self._version.is_past() and ids is self._ids and same:
            return
        values, capacity = self._compute(), cluster.nodes.columns.capacity
        if self._stamps.size == capacity and same:
            self._compare(values, ids)
        else:
            self.stamp += 1
            self._stamps = np.full(capacity, self.stamp, np.int64)
        self._values, self._ids = values, ids

    def moved(self, since: int) -> Rows:
        """Give the rows whose value moved after a stamp."""
        return after(self._stamps[: self._frames.cluster.nodes.size], since)

    def _compute(self) -> NDArray[np.int64]:
        nodes = self._frames.cluster.nodes
        rows: Rows = self._domains.heads if self._domains is not None else self._frames.everything()
        frame = self._frames.frame(self._subject, rows)
        found = spread(_told_apart(self._node, frame), frame.rows)
        if self._domains is not None:
            return found
        values = np.zeros(nodes.columns.capacity, np.int64)
        values[rows] = found
        return values

    def _compare(self, values: NDArray[np.int64], ids: NDArray[np.int64] | None) -> None:
        """Stamp the rows that see another value."""
        before = self._values
        if self._ids is not None and ids is not self._ids:
            before, values, ids = before[self._ids], values[ids], None
        differs = values != before
        if np.count_nonzero(differs):
            self.stamp += 1
            self._stamps[differs if ids is None else differs[ids]] = self.stamp


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


@per_graph
def reads_namespaces(root: Typed) -> bool:
    """Tell whether a graph reads labels of namespaces, those of placed pods included."""
    return any(item.path[0] == "namespace_labels" for item in root.inputs)


def comparable(value: Any) -> Hashable:
    """Give a value that equals itself and differs from None."""
    return ("missing",) if isinstance(value, float) and math.isnan(value) else (value,)


def _told_apart(node: Typed, frame: RuleFrame) -> NDArray[np.int64]:
    """Give whole numbers that differ where values of a graph over nodes do, or why they are missing."""
    value = evaluate_columns(node, frame)
    if isinstance(value, tuple):
        value = value[0]
    elif isinstance(value, str):
        value = frame.strings.code(value)
    if node.type.kind in {Kind.STRING, Kind.VERSION}:
        column = frame.strings.lasting(np.asarray(MISSING if value is None else value, np.int32))
    else:
        column = np.asarray(MISSING if value is None else value)
        column = column.view(np.int64) if column.dtype == np.float64 else column.astype(np.int64)
    why = why_missing(node, frame)
    return column if isinstance(why, int) else np.where(why, why, column)


def spread(value: NDArray[Any], rows: int) -> NDArray[Any]:
    """Give a column or one value for all rows as a column. Shapes: (R,) or () -> (R,)."""
    return value if value.shape == (rows,) else np.broadcast_to(value, (rows,))


def boundaries(roots: Iterable[Typed], *, timed: bool) -> Iterable[Typed]:
    """Find the parts of graphs that many rows look at together: the largest that read no row of their own.

    Args:
        roots: Graphs over nodes.
        timed: Whether time moves them; for a pod class its key holds what it makes of the time.
    """
    return dict.fromkeys(node for root in roots for node in _BOUNDARIES[timed](root))


def _find_boundaries(root: Typed, *, timed: bool) -> tuple[Typed, ...]:
    found: dict[Typed, None] = {}
    known = rowless(root)
    for node in walk([root], lambda node: () if known[node] else own_parts(node)):
        if node not in known:
            known.update(rowless(node))
        if known[node] and (node.type.shape is not Shape.SCALAR or is_volatile(node, timed=timed)):
            found[node] = None
    return tuple(found)


def plain_scalars(root: Typed, *, timed: bool) -> tuple[Typed, ...]:
    """Find the largest parts of a graph that are one value for all rows, which the pod alone decides."""
    return _SCALARS[timed](root)


def _find_scalars(root: Typed, *, timed: bool) -> tuple[Typed, ...]:
    scalars = [node for node in walk([root], _beside_scalars) if _is_scalar(node)]
    found = walk(scalars, lambda node: node.args if is_volatile(node, timed=timed) else ())
    return tuple(node for node in found if not is_volatile(node, timed=timed))


def _is_scalar(node: Typed) -> bool:
    return node.type.shape is Shape.SCALAR


def _beside_scalars(node: Typed) -> tuple[Typed, ...]:
    return () if _is_scalar(node) else own_parts(node)


def is_volatile(node: Typed, *, timed: bool) -> bool:
    """Tell whether a value for all rows may change while the pod stays the same."""
    if not node.local:
        return True
    return any((item.root, item.path[0]) in VOLATILE or (timed and item == TIME) for item in node.inputs)


_BOUNDARIES: Final = tuple(per_graph(partial(_find_boundaries, timed=timed)) for timed in (False, True))
_SCALARS: Final = tuple(per_graph(partial(_find_scalars, timed=timed)) for timed in (False, True))
