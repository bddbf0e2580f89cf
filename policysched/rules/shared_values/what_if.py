"""Simulated values of inputs and aggregates, as if pods were added to or removed from nodes.

Source: docs/reference/language.md#names.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policysched.framework import ABOUT_PODS, Aspect, ChangedRow, ChangedRows, Mask, Rows
from policysched.language.evaluation.columns import pod_aggregate_over
from policysched.language.ir.graph import POD_AGGREGATES, Input, Op, Typed, per_graph
from policysched.language.ir.types import Kind
from policysched.rules.compile.graphs import parts, walk
from policysched.rules.group_values import member_weights
from policysched.rules.inputs import PodInputs, Scalar, aspect_of, aspects_read, changed_amount, changed_amounts
from policysched.rules.shared_values.aggregates import changed_aggregate_at, changed_aggregates_at
from policysched.rules.shared_values.context import EvaluationContext, Floats, RuleFrame
from policysched.rules.shared_values.pod_aggregates import PeerFrame, counter
from policysched.state.placed.pods import PlacedPod


@per_graph
def reads_pods(root: Typed) -> bool:
    """Return whether adding or removing pods can change the value of an expression."""
    if aspects_read(root.inputs) & ABOUT_PODS:
        return True
    return any(node.op in POD_AGGREGATES for node in walk([root], parts))


@per_graph
def is_row_by_row(root: Typed) -> bool:
    """Return whether pods may change a key or list in an expression, so that nodes are simulated one by one.

    A key and a list have one value for all rows that are evaluated together.
    """
    return any(
        reads_pods(part)
        for node in walk([root], parts)
        for part in ((node,) if node.type.kind is Kind.LIST else node.args if node.op == Op.KEYED else ())
    )


class ChangedFrame(RuleFrame):
    """The values that expressions read (a frame) on all nodes or one, if pods of one node are added or removed."""

    __slots__ = ("_changed", "_here", "_one")

    def __init__(
        self, context: EvaluationContext, pod: PodInputs, changed: ChangedRow, rows: Rows | None = None
    ) -> None:
        super().__init__(context, pod, np.array([changed.row]) if rows is None else rows)
        self._changed = changed
        self._one: ChangedFrame = self if rows is None else ChangedFrame(context, pod, changed)
        self._here: Mask | slice = slice(None)
        if rows is not None:
            self._here = np.arange(context.cluster.nodes.columns.capacity)[rows] == changed.row

    def over(self, rows: Rows) -> ChangedFrame:
        """Return a frame of the same simulation for other nodes, which must include the changed node."""
        return ChangedFrame(self._context, self._pod, self._changed, rows)

    def column(self, item: Input, /) -> NDArray[Any]:
        """Return the simulated values of a `node.` or `metrics.` input on the nodes of the frame."""
        values = super().column(item)
        if item.root == "node" and aspect_of(item) & Aspect.USAGE:
            values = values.copy()
            values[self._here] = changed_amount(self._changed, item)
        elif item.path[0] == "group_members":
            values = values.copy()
            values[self._here] += self._more_of_members(item)
        return values

    def scalar(self, item: Input, /) -> Scalar:
        """Return the simulated value of a `pod.` or `cluster.` input."""
        if item.root == "cluster" and item.path[0] == "pods":
            return float(len(self._context.cluster.pods) + self._changed.more_pods)
        value = self._pod.value(item)
        return value + self._more_of_members(item) if item.root == "group" and isinstance(value, float) else value

    def _more_of_members(self, item: Input) -> float:
        """Return by how much added and removed members of the pod's group change an input."""
        weights = member_weights(item, self._pod.given, self._context.cluster)
        return 0.0 if weights is None else self._changed.more(weights.key, weights.weigh) / weights.divisor

    def aggregate(self, node: Typed, /) -> Floats | float:
        """Return the simulated value of an aggregate over nodes for each node of the frame."""
        if not reads_pods(node):
            return super().aggregate(node)
        return changed_aggregate_at(self._context, node, self._pod, self.selected, self._changed.row, self._one)

    def pod_aggregate(self, node: Typed, /) -> Floats:
        """Return the simulated value of an aggregate over the pods of each node."""
        kept = counter(self._context, node, self._pod)
        if kept is not None:
            value = float(self._changed.count(kept))
        else:
            peers = ChangedPeers(self._one, self._pod, self._context, self._changed.pods())
            value = pod_aggregate_over(node, peers, np.zeros(peers.rows, np.int64), 1).item()
        if self._one is self:
            return np.array([value])
        values = super().pod_aggregate(node).copy()
        values[self._here] = value
        return values


class RowByRowError(Exception):
    """Raised if a rule reads a value that can only be simulated for one node at a time."""


class ChangedRowsFrame(RuleFrame):
    """The values that expressions read (a frame) on nodes, each as if pods were added to or removed from it alone."""

    __slots__ = ("_changed",)

    def __init__(self, context: EvaluationContext, pod: PodInputs, changed: ChangedRows) -> None:
        super().__init__(context, pod, changed.rows)
        self._changed = changed

    def column(self, item: Input, /) -> NDArray[Any]:
        """Return the simulated values of a `node.` or `metrics.` input on the nodes of the frame."""
        if item.root == "node" and aspect_of(item) & Aspect.USAGE:
            return changed_amounts(self._changed, item)
        values = super().column(item)
        return values + self._more_of_members(item) if item.path[0] == "group_members" else values

    def scalar(self, item: Input, /) -> Scalar | Floats:
        """Return the simulated value of a `pod.` or `cluster.` input; the number of pods may differ between nodes."""
        if item.root == "cluster" and item.path[0] == "pods":
            return np.asarray(len(self._context.cluster.pods) + self._changed.more_pods(), np.float64)
        value = self._pod.value(item)
        return value + self._more_of_members(item) if item.root == "group" and isinstance(value, float) else value

    def _more_of_members(self, item: Input) -> Floats | float:
        """Return by how much added and removed members of the pod's group change an input on each node."""
        weights = member_weights(item, self._pod.given, self._context.cluster)
        if weights is None:
            return 0.0
        return self._changed.weighed(weights.key, weights.weigh, alike=False) / weights.divisor

    def aggregate(self, node: Typed, /) -> Floats | float:
        """Return the simulated value of an aggregate over nodes for each node.

        Raises:
            RowByRowError: the value cannot be computed from the change of one row.
        """
        if not reads_pods(node):
            return super().aggregate(node)
        found = changed_aggregates_at(self._context, node, self._pod, self._changed.rows, self)
        if found is None:
            raise RowByRowError
        return found

    def pod_aggregate(self, node: Typed, /) -> Floats:
        """Return the simulated value of an aggregate over the pods of each node.

        Raises:
            RowByRowError: the aggregate has no counter.
        """
        kept = counter(self._context, node, self._pod)
        if kept is None or not self._changed.counts(kept):
            raise RowByRowError
        return self._changed.count(kept).astype(np.float64)


class ChangedPeers(PeerFrame):
    """The values that expressions read (a frame) for each pod of a node after pods were added and removed."""

    def __init__(
        self, node_frame: ChangedFrame, pod: PodInputs, context: EvaluationContext, placed: Sequence[PlacedPod]
    ) -> None:
        super().__init__(np.zeros(0, np.int64), pod, context)
        self._node_frame, self._placed = node_frame, placed
        self.rows = len(placed)

    def column(self, item: Input, /) -> NDArray[Any]:
        """Return the values of a `peer.` input of each pod, or of a `node.` input repeated for each pod."""
        if item.root == "peer":
            return self._column(self._placed, item)
        return self._node_frame.column(item).repeat(self.rows)

    def scalar(self, item: Input, /) -> Scalar:
        """Return the value of an input of the scheduled pod or of the cluster."""
        return self._node_frame.scalar(item)

    def aggregate(self, node: Typed, /) -> Floats | float:
        """Return the value of an aggregate over nodes for the pods' node, repeated for each pod."""
        value = self._node_frame.aggregate(node)
        return value.repeat(self.rows) if isinstance(value, np.ndarray) else value
