"""`NodeTable`: values of nodes as arrays; a deleted node's row is reused. `ImageTable`: the images on nodes.

A row may have pods without a node: the node was deleted before its pods, or is not known yet. Such a row is not
`present`, is not evaluated, and keeps its counts for the node. The order of rows never affects results.

The size of an image is the size that the first node reported. `ImageTable.stamp` changes with images and with the
number of nodes, because scores of image locality depend on the share of nodes that have an image.

Source: pkg/scheduler/backend/cache/cache.go (addNodeImageStates).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from heapq import heappop, heappush
from typing import Any, Final

import numpy as np
from cachetools import LRUCache
from numpy.typing import NDArray

from policysched.model.objects import Node, Taint
from policysched.model.pod_requirements import declared_features
from policysched.model.requests import Allocatable, allocatable
from policysched.state.tables.amounts import AmountTables, PodResources
from policysched.state.tables.columns import FIRST_CAPACITY, ColumnSet, RowNumbers, Rows
from policysched.state.tables.interner import MISSING, Interner, Strings, TextColumns
from policysched.state.tables.node_texts import NodeText, NodeTexts

NO_TEXTS: Mapping[str, str] = {}
SPARE_SETS: Final = 64
"""Number of different sets of taints, and of features, that keep their code after no node has them any more."""
NOTHING = 0
"""Code of the empty set of taints, and of the empty set of features."""
EVERY: Final = slice(None)
MOST_SPARE: Final = 4
"""The arrays are shrunk if at most 1/`MOST_SPARE` of their rows are in use."""
KEPT = 64
"""Maximum number of images for which the array of the nodes' rows is cached."""


class NodeTable:
    """The properties of nodes that decisions read, as arrays; each node has a row, its index in all arrays.

    Shapes: every column's data is (capacity,); rows at or above `size` are not in use.
    Units: cpu in millicores, other resources in their own unit.
    """

    def __init__(self, columns: ColumnSet, strings: Strings, known_features: Sequence[str]) -> None:
        self.columns = columns
        self.known_features = known_features
        """The features that nodes can declare and pods can require, sorted by name."""
        self.strings = strings
        self.size = 0
        self.count = 0
        self.row_of: dict[str, int] = {}
        self.names: list[str] = []
        self.nodes: list[Node | None] = []
        self._free: list[int] = []
        """The rows without a node, as a heap: the lowest row is used first, so that the arrays can shrink."""
        self._barrier = -1
        """The row in use that last prevented `give_back` from shrinking the arrays; -1 for none."""
        self._labels: list[Mapping[str, str]] = []
        self._annotations: list[Mapping[str, str]] = []
        self._label_columns = TextColumns(columns, strings)
        self._annotation_columns = TextColumns(columns, strings)
        self._texts = NodeTexts(columns, strings)
        self.amounts = AmountTables(columns)
        self.taint_sets: Interner[tuple[Taint, ...]] = Interner(SPARE_SETS)
        self.feature_sets: Interner[frozenset[str]] = Interner(SPARE_SETS)
        self.taint_sets.code(())
        self.feature_sets.code(frozenset())
        self.present = columns.new(np.bool_)
        self.name = columns.new(np.int32, MISSING)
        self.unschedulable = columns.new(np.bool_)
        self.ready = columns.new(np.bool_)
        self.taints = columns.new(np.int32)
        self.features = columns.new(np.int32)
        self.strings.hold(self.name)
        self.taint_sets.hold(self.taints)
        self.feature_sets.hold(self.features)
        self.pods_allowed = columns.new(np.int64)
        self.pods_count = columns.new(np.int64)

    def labels(self, key: str) -> NDArray[np.int32]:
        """Return the code of a label's value for each node, by row; −1 for nodes without the label."""
        return self._label_columns.column(key, self._labels).data

    def has_label(self, key: str) -> bool:
        """Return whether any node has a label."""
        return key in self._label_columns

    @property
    def label_keys_stamp(self) -> int:
        """A number that changes if any label gets its first node, or loses its last node."""
        return self._label_columns.stamp

    def annotations(self, key: str) -> NDArray[np.int32]:
        """Return the code of an annotation's value for each node, by row; −1 for nodes without the annotation."""
        return self._annotation_columns.column(key, self._annotations).data

    def text(self, text: NodeText) -> NDArray[np.int32]:
        """Return the code of a text, such as a condition's status, for each node, by row; −1 for nodes without it."""
        return self._texts.column(text, self.nodes).data

    def allocatable(self, resource: str) -> NDArray[np.int64]:
        """Return the allocatable amount of a resource for each node, by row; 0 for nodes without the resource."""
        place = self.amounts.place(resource)
        data: NDArray[np.int64] = self.amounts.allocatable[place]
        return data

    def requested(self, resource: str, rows: Rows = EVERY) -> NDArray[np.int64]:
        """Return the amount of a resource that the pods on each of the given nodes request.

        Shapes: (R,). Read-only.
        """
        return self.amounts.requested_of(resource, rows)

    def row_for(self, name: str) -> int:
        """Return the row of the node with a name; a new name gets a free row."""
        row = self.row_of.get(name)
        if row is None:
            row = self.row_of[name] = heappop(self._free) if self._free else self._new_row()
            self.names[row] = name
            self.name.data[row] = self.strings.code(name)
        return row

    def release(self, row: int) -> None:
        """Free the row of a node name for which neither a node nor a pod exists."""
        del self.row_of[self.names[row]]
        self.names[row] = ""
        self.name.data[row] = MISSING
        heappush(self._free, row)

    @property
    def may_give_back(self) -> bool:
        """Whether shrinking the arrays may succeed: few rows are in use, and no row is known to prevent it."""
        few = MOST_SPARE * len(self._free) >= (MOST_SPARE - 1) * self.size
        barred = 0 <= self._barrier < self.size and bool(self.names[self._barrier])
        return few and self.columns.capacity > FIRST_CAPACITY and not barred

    def give_back(self) -> bool:
        """Shrink the arrays if no row beyond the smaller size is in use; return whether they were shrunk.

        If so, results by row number must be recomputed.
        """
        size = self.size
        while size and not self.names[size - 1]:
            size -= 1
        self._barrier = size - 1 if MOST_SPARE * size > self.size else -1
        if self._barrier >= 0:
            return False
        self.size = size
        lists: tuple[list[Any], ...] = (self.names, self.nodes, self._labels, self._annotations)
        for one in lists:
            del one[size:]
        self._free = sorted(row for row in self._free if row < size)
        self.columns.shrink(size)
        return True

    def tidy(self) -> None:
        """Drop the codes of names, texts, taints and features that no node has."""
        for interner in (self.strings, self.taint_sets, self.feature_sets):
            interner.tidy()

    def store(self, row: int, node: Node) -> None:
        """Write a Node's values into its row; for an invalid Node, raise an error before anything is written."""
        amounts = allocatable(node)
        taints = self.taint_sets.code(tuple(node.spec.taints))
        features = self.feature_sets.code(declared_features(node.status.declared_features, self.known_features))
        self.count += not self.present.data[row]
        self.nodes[row] = node
        self.present.data[row] = True
        self._store_texts(row, node.metadata.labels, node.metadata.annotations)
        self.unschedulable.data[row] = node.spec.unschedulable
        self.ready.data[row] = any(c.type == "Ready" and c.status == "True" for c in node.status.conditions)
        self.taints.data[row] = taints
        self.features.data[row] = features
        self._texts.store(row, node)
        self._store_allocatable(row, amounts)

    def clear(self, row: int) -> None:
        """Remove the node of a row; the pods on the node stay counted."""
        self.count -= 1
        self.nodes[row] = None
        self.present.data[row] = False
        self._store_texts(row, NO_TEXTS, NO_TEXTS)
        self._texts.store(row, None)
        self.taints.data[row] = self.features.data[row] = NOTHING
        self.amounts.store(row, {})
        self.pods_allowed.data[row] = 0

    def take(self, row: int, pod_resources: PodResources, count: int = 1) -> None:
        """Add a pod's requests to those of its node; `count` -1 subtracts them."""
        self.amounts.take(row, pod_resources, count)
        self.pods_count.data[row] += count

    def _new_row(self) -> int:
        row = self.size
        self.size += 1
        if self.size > self.columns.capacity:
            self.columns.grow()
        self.names.append("")
        self.nodes.append(None)
        self._labels.append(NO_TEXTS)
        self._annotations.append(NO_TEXTS)
        return row

    def _store_texts(self, row: int, labels: Mapping[str, str], annotations: Mapping[str, str]) -> None:
        self._label_columns.store(row, self._labels[row], labels)
        self._annotation_columns.store(row, self._annotations[row], annotations)
        self._labels[row] = labels
        self._annotations[row] = annotations

    def _store_allocatable(self, row: int, amounts: Allocatable) -> None:
        named: dict[str, int] = {
            "cpu": amounts.cpu_millis,
            "memory": amounts.memory_bytes,
            "ephemeral-storage": amounts.ephemeral_bytes,
            **dict(amounts.scalars),
        }
        self.amounts.store(row, named)
        self.pods_allowed.data[row] = amounts.pods


@dataclass(slots=True)
class ImageState:
    """The nodes that have an image; `size` in bytes is the size that the first of these nodes reported."""

    size: int
    rows: set[int] = field(default_factory=set)


class ImageTable:
    """The images on nodes, by the image's name."""

    __slots__ = ("_by_name", "_rows", "stamp")

    def __init__(self) -> None:
        self._by_name: dict[str, ImageState] = {}
        self._rows: LRUCache[str, RowNumbers] = LRUCache(KEPT)
        self.stamp = 0

    def rows_with(self, name: str) -> tuple[RowNumbers, int] | None:
        """Return the rows of the nodes that have an image, and the image's size; None if no node has the image.

        Shapes: (rows,). Read-only.
        Units: bytes.
        """
        present = self._by_name.get(name)
        if present is None:
            return None
        rows = self._rows.get(name)
        if rows is None:
            rows = self._rows[name] = np.fromiter(present.rows, np.intp, len(present.rows))
        return rows, present.size

    def total(self, name: str) -> int | None:
        """Return the size of an image in bytes; None if no node has the image."""
        present = self._by_name.get(name)
        return present.size if present else None

    def replace(self, row: int, old: Mapping[str, int], new: Mapping[str, int]) -> None:
        """Replace the images of the node in a row."""
        if old == new:
            return
        self.stamp += 1
        for name in old:
            self._remove(row, name)
        for name, size in new.items():
            self._by_name.setdefault(name, ImageState(size)).rows.add(row)
            self._rows.pop(name, None)

    def _remove(self, row: int, name: str) -> None:
        present = self._by_name[name]
        present.rows.discard(row)
        self._rows.pop(name, None)
        if not present.rows:
            del self._by_name[name]
