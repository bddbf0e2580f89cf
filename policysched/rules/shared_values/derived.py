"""Derived columns and scalars, made of aggregates and cluster-wide values, and the rows that a change of one affects.

A rule's result on a row changes with the row, which the journal tells, and with these. A dependency is brought up to
date once a version of the cluster and then names the rows that see another value than at an earlier stamp.

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
from policysched.rules.shared_values.aggregates import domains_of, spread
from policysched.rules.shared_values.context import EvaluationContext, RuleFrame, comparable
from policysched.rules.shared_values.pod_aggregates import Version, generation
from policysched.state.cluster import Cluster
from policysched.state.tables.interner import MISSING

ARRAYS_PER_DEPENDENCY: Final = 2
"""Number of arrays over all rows of a dependency: its values and their stamps."""


class Dependency(Protocol):
    """Something that results on many rows depend on."""

    @property
    def stamp(self) -> int:
        """A number that grows whenever some row sees another value."""

    def refresh(self) -> None:
        """Bring it up to date."""

    def moved(self, since: int) -> Rows:
        """Return the rows that see another value than they did at an earlier stamp."""


def after(stamps: NDArray[np.int64], since: int) -> RowNumbers:
    """Return the rows that got a stamp after an earlier one."""
    return np.flatnonzero(stamps > since)


class DerivedScalar:
    """A value that is one for all rows and that something else than the pod decides, or why it is missing."""

    __slots__ = ("__weakref__", "_context", "_node", "_pod", "_value", "_version", "stamp")

    def __init__(self, node: Typed, pod: PodInputs, context: EvaluationContext) -> None:
        self._node = node
        self._pod = pod
        self._context = context
        self._version = Version(node, pod, context)
        self._value: object = None
        self.stamp = 0

    def refresh(self) -> None:
        """Compute it anew where what it reads changed."""
        if not self._version.is_past():
            return
        frame = self._context.frame(self._pod, NO_ROWS)
        value = (comparable(evaluate_columns(self._node, frame)), int(np.max(why_missing(self._node, frame))))
        if value != self._value:
            self._value = value
            self.stamp += 1

    def moved(self, since: int) -> Rows:  # noqa: ARG002 - every row sees it
        """Return all rows."""
        return slice(0, self._context.cluster.nodes.size)


class DerivedColumn:
    """A column that is made of aggregates and of values for all rows alone, such as whether a domain is below a limit.

    An aggregate moves with most placements; what a rule makes of it rarely does. A value that is missing for another
    reason than before is another one: rows say the reason.
    """

    __slots__ = ("__weakref__", "_context", "_domains", "_generation", "_node", "_of_row", "_pod", "_seen", "_stamps",
                 "_values", "_version", "stamp")  # fmt: skip

    def __init__(self, node: Typed, pod: PodInputs, context: EvaluationContext) -> None:
        self._node = node
        self._pod = pod
        self._context = context
        self._version = Version(node, pod, context)
        key = key_of(node)
        self._domains = domains_of(context, key, pod) if key is not None else None
        self._seen, self._of_row = -1, NO_ROWS
        """The version of the domains at which the values were made, and the domains of rows then."""
        self._generation = -1
        """That of the codes among the values."""
        self._values: NDArray[np.int64] = np.zeros(0, np.int64)
        """One a domain where all aggregates go by the same key, else one a row."""
        self._stamps: NDArray[np.int64] = np.zeros(0, np.int64)
        self.stamp = 0

    def refresh(self) -> None:
        """Compute it anew where what it reads changed."""
        if self._domains is not None:
            self._domains.refresh()
        domains = self._domains.stamp if self._domains is not None else -1
        cluster = self._context.cluster
        before, self._generation = self._generation, cluster.strings.stamp
        same = before == self._generation
        if not self._version.is_past() and domains == self._seen and same:
            return
        values, capacity = self._compute(), cluster.nodes.columns.capacity
        if self._stamps.size == capacity and same:
            self._compare(values)
        else:
            self.stamp += 1
            self._stamps = np.full(capacity, self.stamp, np.int64)
        self._values, self._seen = values, domains
        if self._domains is not None:
            self._of_row = self._domains.of_row

    def moved(self, since: int) -> Rows:
        """Return the rows whose value moved after a stamp."""
        return after(self._stamps[: self._context.cluster.nodes.size], since)

    def _compute(self) -> NDArray[np.int64]:
        nodes = self._context.cluster.nodes
        rows: Rows = self._domains.heads if self._domains is not None else self._context.everything()
        frame = self._context.frame(self._pod, rows)
        found = spread(_told_apart(self._node, frame), frame.rows)
        if self._domains is not None:
            return found
        values = np.zeros(nodes.columns.capacity, np.int64)
        values[rows] = found
        return values

    def _compare(self, values: NDArray[np.int64]) -> None:
        """Stamp the rows that see another value."""
        before, domains = self._values, self._domains
        if domains is not None and domains.stamp != self._seen:
            before, values, domains = before[self._of_row], values[domains.of_row], None
        differs = values != before
        if np.count_nonzero(differs):
            self.stamp += 1
            self._stamps[differs if domains is None else domains.rows_in(differs)] = self.stamp


class ImageSizes:
    """The sizes of images, which any node may change for the pods of all."""

    __slots__ = ("_cluster", "stamp")

    def __init__(self, cluster: Cluster) -> None:
        self._cluster = cluster
        self.stamp = cluster.images.stamp

    def refresh(self) -> None:
        """Bring it up to date."""
        self.stamp = self._cluster.images.stamp

    def moved(self, since: int) -> Rows:  # noqa: ARG002 - every row may see it
        """Return all rows."""
        return slice(0, self._cluster.nodes.size)


def _told_apart(node: Typed, frame: RuleFrame) -> NDArray[np.int64]:
    """Return whole numbers that differ where values of a graph over nodes do, or why they are missing."""
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
    """The rows that a change affects: those that changed, and those that see another value of a dependency."""

    __slots__ = ("_seen", "dependencies")

    def __init__(self, dependencies: Sequence[Dependency]) -> None:
        self.dependencies = dependencies
        for one in dependencies:
            one.refresh()
        self._seen = [one.stamp for one in dependencies]

    def extend(self, rows: Rows) -> Rows:
        """Add the rows that dependencies affect to those that changed; the same object where there are none."""
        found = [rows]
        for index, one in enumerate(self.dependencies):
            one.refresh()
            if one.stamp != self._seen[index]:
                found.append(one.moved(self._seen[index]))
                self._seen[index] = one.stamp
        return rows if len(found) == 1 else together(found)


def together(found: Sequence[Rows]) -> Rows:
    """Join selections; one that is a slice is of all rows."""
    whole = next((rows for rows in found if isinstance(rows, slice)), None)
    if whole is not None:
        return whole
    joined: RowNumbers = np.concatenate([rows for rows in found if isinstance(rows, np.ndarray)])
    return joined


def dependencies_of(context: EvaluationContext, roots: Iterable[Typed], pod: PodInputs) -> list[Dependency]:
    """Return what rows of some graphs look at together."""
    roots = list(roots)
    found: list[Dependency] = [
        _derived(context, node, pod) for node in shared_parts(roots, timed=pod is context.no_pod)
    ]
    return [*found, ImageSizes(context.cluster)] if reads_image_sizes(roots) else found


def _derived(context: EvaluationContext, node: Typed, pod: PodInputs) -> Dependency:
    key = ("derived", node, generation(context, node))
    found: Dependency | None = pod.found.get(key)
    if found is None:
        make = DerivedScalar if node.type.shape is Shape.SCALAR else DerivedColumn
        found = pod.found[key] = make(node, pod, context)
    return found
