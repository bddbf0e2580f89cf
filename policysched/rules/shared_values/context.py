"""`EvaluationContext`: evaluates expressions of all policies on a cluster, with caches of inputs and values.

One frame serves all programs for the same rows and pod class; its memo makes equal sub-expressions run once. The
context exists as long as its policies. Values of a pod class are dropped with the last plugin state that references
them. The functions for aggregates are passed in, because they evaluate graphs themselves.

Shapes: R the rows of a frame.
"""

from __future__ import annotations

import math
import weakref
from collections.abc import Callable, Hashable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
from numpy.typing import NDArray

from policysched.framework import NO_ROWS, Cluster, Mask, RowNumbers, Rows
from policysched.language.evaluation.columns import evaluate_columns, run_program
from policysched.language.evaluation.frames import FrameStrings
from policysched.language.ir.graph import Input, Program, Typed
from policysched.model.objects import Pod
from policysched.rules.compile.graphs import plain_scalars
from policysched.rules.inputs import PodInputs, Scalar, node_column
from policysched.state.tables.columns import distinct

Floats = NDArray[np.float64]
MOST_KEPT = 1 << 27
"""Maximum memory of a frame's cached values; beyond it, the frame drops them. Units: bytes."""
_BYTES = 8


class EvaluationContext:
    """Evaluates the expressions of a set of policies on a cluster, with caches that all policies share.

    Args:
        cluster: The cluster.
        aggregate: Returns an aggregate over nodes, for rows. Shapes: (R,) if the aggregate has a key.
        pod_aggregate: Returns a count or sum over the placed pods of each row. Shapes: (R,).
    """

    def __init__(self, cluster: Cluster, aggregate: Derive[Floats | float], pod_aggregate: Derive[Floats]) -> None:
        self.cluster = cluster
        self.aggregate, self.pod_aggregate = aggregate, pod_aggregate
        self.no_pod = PodInputs(None, cluster)
        """The inputs for rules that do not read the pod."""
        self.aggregates: weakref.WeakValueDictionary[Hashable, Any] = weakref.WeakValueDictionary()
        """The aggregates by expression and values of the pod's inputs, cached while they are referenced."""
        self._inputs: tuple[Pod, object, PodInputs] | None = None
        self._frames: dict[bool, tuple[object, PodInputs, dict[Hashable, RuleFrame]]] = {}
        self._changes: tuple[int, dict[tuple[int, int], tuple[RowNumbers | None, int]]] = (-1, {})
        self._everything: tuple[int, Rows] = (-1, slice(0, 0))

    @property
    def stamp(self) -> object:
        """A value that changes whenever an input of an expression may have changed."""
        cluster = self.cluster
        groups = cluster.pod_groups
        return (
            cluster.journal.position,
            cluster.time.seconds,
            cluster.namespaces_stamp,
            cluster.strings.stamp,
            cluster.storage.claim_classes_stamp,
            0 if groups is None else groups.stamp,
        )

    def inputs(self, pod: Pod) -> PodInputs:
        """Return the inputs of a pod at the cluster's time; cached until `stamp` changes."""
        stamp = self.stamp
        if self._inputs is None or self._inputs[0] is not pod or self._inputs[1] != stamp:
            self._inputs = (pod, stamp, PodInputs(pod, self.cluster))
        return self._inputs[2]

    def frame(self, pod: PodInputs, rows: Rows) -> RuleFrame:
        """Return the values that expressions read for a pod on given nodes; cached while `stamp` is equal and they fit.

        The context caches the frames without a pod and the frames of one pod class, so that the next decision frees
        the arrays of a class.
        """
        place, stamp = pod is self.no_pod, self.stamp
        kept = self._frames.get(place)
        if kept is None or kept[1] is not pod or kept[0] != stamp:
            kept = self._frames[place] = (stamp, pod, {})
        key: Hashable = (rows.start, rows.stop) if isinstance(rows, slice) else id(rows)
        frame = kept[2].get(key)
        if frame is None or not frame.has_room():
            frame = kept[2][key] = RuleFrame(self, pod, rows)
        return frame

    def plain(self, pod: PodInputs) -> RuleFrame:
        """Return a frame (values that expressions read) without nodes; later frames of the pod reuse its values."""
        frame = RuleFrame(self, pod)
        frame.memo = pod.scalars
        return frame

    def values(self, pod: Pod, nodes: Sequence[Typed]) -> Hashable:
        """Return the values of expressions for a pod at the cluster's time, in a hashable form."""
        frame = self.plain(self.inputs(pod))
        return tuple(comparable(evaluate_columns(node, frame)) for node in nodes)

    def seed(self, pod: PodInputs, roots: Iterable[Typed]) -> None:
        """Evaluate the parts of expressions that depend only on the pod; later evaluations for the pod reuse them."""
        frame = self.plain(pod)
        for root in roots:
            for node in plain_scalars(root, timed=pod is self.no_pod):
                evaluate_columns(node, frame)

    def clear_scalars(self) -> None:
        """Drop cached values of rules that do not read the pod, because some of these rules no longer exist."""
        self.no_pod.scalars.clear()

    def changed(self, since: int, reads: int) -> tuple[RowNumbers | None, int]:
        """Return the nodes with changes in given aspects, such as labels, since a journal position, and these aspects.

        Args:
            since: The position.
            reads: The aspects to look for, as a bit mask.

        Missing: None for the rows if the journal does not reach back to the position.
        """
        journal = self.cluster.journal
        if self._changes[0] != journal.position:
            self._changes = (journal.position, {})
        known = self._changes[1].get((since, reads))
        if known is None:
            known = self._changes[1][since, reads] = _selected(journal.since(since), reads)
        return known

    def everything(self) -> Rows:
        """Return the row numbers of all existing nodes."""
        position, nodes = self.cluster.journal.position, self.cluster.nodes
        if self._everything[0] != position:
            full = nodes.count == nodes.size
            present = np.flatnonzero(nodes.present.data[: nodes.size])
            self._everything = (position, slice(0, nodes.size) if full else present)
        return self._everything[1]


class RuleFrame:
    """The values that expressions read on some nodes for a pod (a frame); it caches values of expression parts."""

    __slots__ = ("_context", "_pod", "feasible", "memo", "rows", "selected", "strings")

    def __init__(
        self, context: EvaluationContext, pod: PodInputs, rows: Rows = NO_ROWS, feasible: Mask | None = None
    ) -> None:
        self._context = context
        self._pod = pod
        self.selected = rows
        self.strings = FrameStrings(context.cluster.strings)
        self.rows: int = _count(context.cluster, rows)
        self.feasible = feasible
        self.memo: dict[Any, Any] = dict(pod.scalars)

    def over(self, rows: Rows) -> RuleFrame:
        """Return the values that expressions read (a frame) for the same pod on other nodes."""
        return RuleFrame(self._context, self._pod, rows)

    def has_room(self, steps: int = 0) -> bool:
        """Return whether further values fit into the memory limit of the frame.

        Args:
            steps: The number of values to come.

        Scalars of the pod are not counted: they are small.
        """
        return (len(self.memo) - len(self._pod.scalars) + steps) * self.rows * _BYTES <= MOST_KEPT

    def make_room(self) -> None:
        """Drop cached values if they exceed the memory limit; they are computed again when they are read.

        Callers must not call it while a graph is evaluated or its missing inputs are collected.
        """
        if not self.has_room():
            kept = {key: value for key, value in self.memo.items() if not isinstance(key, Typed)}
            self.memo = kept | self._pod.scalars

    @property
    def now(self) -> float:
        """The current time. Units: seconds since 1970."""
        return self._context.cluster.time.seconds

    def column(self, item: Input, /) -> NDArray[Any]:
        """Return the values of a `node.` or `metrics.` input on the nodes of the frame."""
        return node_column(self._context.cluster, self._pod.given, item, self.selected)

    def scalar(self, item: Input, /) -> Scalar | Floats:
        """Return the value of a `pod.` or `cluster.` input."""
        return self._pod.value(item)

    def aggregate(self, node: Typed, /) -> Floats | float:
        """Return the value of an aggregate over nodes for each node of the frame."""
        return self._context.aggregate(self._context, node, self._pod, self.selected)

    def pod_aggregate(self, node: Typed, /) -> Floats:
        """Return the value of an aggregate over the placed pods of each node."""
        return self._context.pod_aggregate(self._context, node, self._pod, self.selected)


ValuesT = TypeVar("ValuesT", bound=NDArray[np.float64] | float)
Derive = Callable[[EvaluationContext, Typed, PodInputs, Rows], ValuesT]
"""Function that returns the values of an aggregate on given nodes."""


def number(program: Program, frame: RuleFrame) -> Floats:
    """Run a program whose value is a number for each node.

    Shapes: (R,), or () if the value is the same for every row.
    Missing: NaN.
    """
    return np.asarray(run_program(program, frame), np.float64)


def comparable(value: Any) -> Hashable:
    """Return a hashable form of a value, in which NaN equals NaN, and no value equals None."""
    return ("missing",) if isinstance(value, float) and math.isnan(value) else (value,)


def _count(cluster: Cluster, rows: Rows) -> int:
    return len(range(*rows.indices(cluster.nodes.columns.capacity))) if isinstance(rows, slice) else rows.size


def _selected(entries: tuple[RowNumbers, NDArray[np.int32]] | None, reads: int) -> tuple[RowNumbers | None, int]:
    if entries is None:
        return None, reads
    rows, aspects = entries
    if rows.size == 1:  # as after a placement
        touched = aspects.item() & reads
        return (rows.copy() if touched else NO_ROWS), touched
    relevant = aspects & reads
    chosen = rows[relevant != 0]
    return distinct(chosen) if chosen.size > 1 else chosen, int(np.bitwise_or.reduce(relevant))
