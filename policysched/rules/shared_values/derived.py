"""Values computed from aggregates and cluster-wide values, and the nodes that their changes affect.

A rule's result on a row changes if the row changes, which the journal records, or if a derived value of the row
changes. A derived value is a dependency of the result: `refresh` recomputes it if its inputs changed, and
`changed_rows` returns the rows whose value changed after an earlier stamp.

Shapes: N rows in use.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Final, Protocol

import numpy as np
from numpy.typing import NDArray

from policysched.framework import NO_ROWS, RowNumbers, Rows
from policysched.language.evaluation.columns import evaluate_columns, why_missing
from policysched.language.ir.graph import Typed
from policysched.language.ir.types import Kind, Shape
from policysched.rules.compile.graphs import key_of, reads_image_sizes, shared_parts
from policysched.rules.inputs import PodInputs
from policysched.rules.shared_values.aggregates import as_column, domains_of
from policysched.rules.shared_values.context import EvaluationContext, RuleFrame, comparable
from policysched.rules.shared_values.pod_aggregates import InputChanges, namespaces_stamp
from policysched.state.cluster import Cluster
from policysched.state.tables.interner import MISSING

ARRAYS_PER_DEPENDENCY: Final = 2
"""Number of arrays with one element per node in a `Dependency`: values and stamps."""


class Dependency(Protocol):
    """A shared value, such as an aggregate, on which the results of rules on many nodes depend."""

    @property
    def stamp(self) -> int:
        """A number that increases whenever the value changes on a node."""

    def refresh(self) -> None:
        """Recompute the value if its inputs changed."""

    def changed_rows(self, since: int) -> Rows:
        """Return the nodes on which the value changed since `stamp` had a value."""


def after(stamps: NDArray[np.int64], since: int) -> RowNumbers:
    """Return the nodes whose element in `stamps` is larger than a number."""
    return np.flatnonzero(stamps > since)


class DerivedScalar:
    """A shared value (`Dependency`) that is equal for all nodes and may be missing."""

    __slots__ = ("__weakref__", "_changes", "_context", "_node", "_pod", "_value", "stamp")

    def __init__(self, node: Typed, pod: PodInputs, context: EvaluationContext) -> None:
        self._node = node
        self._pod = pod
        self._context = context
        self._changes = InputChanges(node, pod, context)
        self._value: object = None
        self.stamp = 0

    def refresh(self) -> None:
        """Recompute the value if its inputs changed."""
        if self._changes.is_current():
            return
        frame = self._context.frame(self._pod, NO_ROWS)
        value = (comparable(evaluate_columns(self._node, frame)), int(np.max(why_missing(self._node, frame))))
        if value != self._value:
            self._value = value
            self.stamp += 1

    def changed_rows(self, since: int) -> Rows:  # noqa: ARG002 - the value of every row changed
        """Return all nodes, because a change of the value applies to every node."""
        return slice(0, self._context.cluster.nodes.size)


class DerivedColumn:
    """A value for each node that depends on other nodes, such as whether a domain is below a limit (a `Dependency`).

    An aggregate changes with most placements; the value that a rule computes from it rarely does. A value that is
    missing for a new reason has changed, because the results of rows contain the reason.
    """

    __slots__ = ("__weakref__", "_changes", "_context", "_domains", "_domains_stamp", "_node", "_of_row", "_pod",
                 "_stamps", "_strings_stamp", "_values", "stamp")  # fmt: skip

    def __init__(self, node: Typed, pod: PodInputs, context: EvaluationContext) -> None:
        self._node = node
        self._pod = pod
        self._context = context
        self._changes = InputChanges(node, pod, context)
        key = key_of(node)
        self._domains = domains_of(context, key, pod) if key is not None else None
        self._domains_stamp, self._of_row = -1, NO_ROWS
        """The stamp of the domains for which the values were computed, and the domain of each node at that time."""
        self._strings_stamp = -1
        """The stamp of the string table for which the string codes in the values are valid."""
        self._values: NDArray[np.int64] = np.zeros(0, np.int64)
        """One value for each domain if all aggregates have the same key, else one value for each node."""
        self._stamps: NDArray[np.int64] = np.zeros(0, np.int64)
        self.stamp = 0

    def refresh(self) -> None:
        """Recompute the values if their inputs changed."""
        if self._domains is not None:
            self._domains.refresh()
        domains = self._domains.stamp if self._domains is not None else -1
        cluster = self._context.cluster
        before, self._strings_stamp = self._strings_stamp, cluster.strings.stamp
        same_codes = before == self._strings_stamp
        if self._changes.is_current() and domains == self._domains_stamp and same_codes:
            return
        values, capacity = self._compute(), cluster.nodes.columns.capacity
        if self._stamps.size == capacity and same_codes:
            self._compare(values)
        else:
            self.stamp += 1
            self._stamps = np.full(capacity, self.stamp, np.int64)
        self._values, self._domains_stamp = values, domains
        if self._domains is not None:
            self._of_row = self._domains.of_row

    def changed_rows(self, since: int) -> Rows:
        """Return the nodes on which the value changed since `stamp` had a value."""
        return after(self._stamps[: self._context.cluster.nodes.size], since)

    def _compute(self) -> NDArray[np.int64]:
        nodes = self._context.cluster.nodes
        rows: Rows = self._domains.heads if self._domains is not None else self._context.everything()
        frame = self._context.frame(self._pod, rows)
        found = as_column(_distinguishing(self._node, frame), frame.rows)
        if self._domains is not None:
            return found
        values = np.zeros(nodes.columns.capacity, np.int64)
        values[rows] = found
        return values

    def _compare(self, values: NDArray[np.int64]) -> None:
        """Mark the nodes whose value changed with the next value of `stamp`."""
        before, domains = self._values, self._domains
        if domains is not None and domains.stamp != self._domains_stamp:
            before, values, domains = before[self._of_row], values[domains.of_row], None
        differs = values != before
        if np.count_nonzero(differs):
            self.stamp += 1
            self._stamps[differs if domains is None else domains.rows_in(differs)] = self.stamp


class ImageSizes:
    """The sizes of images as a `Dependency`: a change of one node may change them for pods on every node."""

    __slots__ = ("_cluster", "stamp")

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.stamp = cluster.images.stamp

    def refresh(self) -> None:
        """Set `stamp` to the current stamp of the image sizes."""
        self.stamp = self._cluster.images.stamp

    def changed_rows(self, since: int) -> Rows:  # noqa: ARG002 - every row may be affected
        """Return all nodes, because a change of an image size may affect every node."""
        return slice(0, self._cluster.nodes.size)


def _distinguishing(node: Typed, frame: RuleFrame) -> NDArray[np.int64]:
    """Return whole numbers that are equal only for equal values of an expression, or equal reasons if missing."""
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


class AffectedRows:
    """The nodes that a change affects: the changed nodes, and nodes on which a shared value (`Dependency`) changed."""

    __slots__ = ("_stamps", "dependencies")

    def __init__(self, dependencies: Sequence[Dependency]) -> None:
        self.dependencies = dependencies
        for one in dependencies:
            one.refresh()
        self._stamps = [one.stamp for one in dependencies]

    def extend(self, rows: Rows) -> Rows:
        """Return changed nodes and nodes whose shared values changed; the same object if no node is added."""
        found = [rows]
        for index, one in enumerate(self.dependencies):
            one.refresh()
            if one.stamp != self._stamps[index]:
                found.append(one.changed_rows(self._stamps[index]))
                self._stamps[index] = one.stamp
        return rows if len(found) == 1 else together(found)


def together(found: Sequence[Rows]) -> Rows:
    """Return the union of sets of nodes; a slice of all nodes if one set is a slice."""
    whole = next((rows for rows in found if isinstance(rows, slice)), None)
    if whole is not None:
        return whole
    joined: RowNumbers = np.concatenate([rows for rows in found if isinstance(rows, np.ndarray)])
    return joined


def dependencies_of(context: EvaluationContext, roots: Iterable[Typed], pod: PodInputs) -> list[Dependency]:
    """Return the shared values, such as aggregates, on which expressions depend."""
    roots = list(roots)
    found: list[Dependency] = [
        _derived(context, node, pod) for node in shared_parts(roots, timed=pod is context.no_pod)
    ]
    return [*found, ImageSizes(context.cluster)] if reads_image_sizes(roots) else found


def _derived(context: EvaluationContext, node: Typed, pod: PodInputs) -> Dependency:
    key = ("derived", node, namespaces_stamp(context, node))
    found: Dependency | None = pod.found.get(key)
    if found is None:
        make = DerivedScalar if node.type.shape is Shape.SCALAR else DerivedColumn
        found = pod.found[key] = make(node, pod, context)
    return found
