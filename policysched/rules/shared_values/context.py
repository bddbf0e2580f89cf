"""Evaluation context shared by all policies: memoised inputs and sub-expressions per pod class.

One frame serves all programs for the same rows and pod class; its memo makes equal sub-expressions run once. The
context lasts as long as policies do; what belongs to a pod class goes with the last state that holds it. What is made
of other rows than those at hand (aggregates, the pods of a node) is passed in, because it evaluates graphs itself.

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
"""How much of what was worked out on some rows is kept. Units: bytes."""
_BYTES = 8


class EvaluationContext:
    """One for the policies of a scheduler and a cluster.

    Args:
        cluster: The cluster.
        aggregate: Gives an aggregate over all nodes on rows. Shapes: (R,) where it has a domain.
        pod_aggregate: Gives a count or sum over the placed pods of each of the rows. Shapes: (R,).
    """

    def __init__(self, cluster: Cluster, aggregate: Derive[Floats | float], pod_aggregate: Derive[Floats]) -> None:
        self.cluster = cluster
        self.aggregate, self.pod_aggregate = aggregate, pod_aggregate
        self.no_pod = PodInputs(None, cluster)
        """Stand in for the pod where rules read nothing of it."""
        self.aggregates: weakref.WeakValueDictionary[Hashable, Any] = weakref.WeakValueDictionary()
        """Those of pods that agree in what they read, as long as somebody holds them."""
        self.results: weakref.WeakValueDictionary[Hashable, Any] = weakref.WeakValueDictionary()
        """What last kept the results of a rule that reads nothing of the pod, by rule."""
        self._inputs: tuple[Pod, object, PodInputs] | None = None
        self._frames: dict[bool, tuple[object, PodInputs, dict[Hashable, RuleFrame]]] = {}
        self._changes: tuple[int, dict[tuple[int, int], tuple[RowNumbers | None, int]]] = (-1, {})
        self._everything: tuple[int, Rows] = (-1, slice(0, 0))

    @property
    def version(self) -> object:
        """A value that differs whenever anything may have changed."""
        cluster = self.cluster
        return (
            cluster.journal.position,
            cluster.time.seconds,
            cluster.namespaces_stamp,
            cluster.strings.stamp,
            cluster.storage.claim_classes_stamp,
        )

    def inputs(self, pod: Pod) -> PodInputs:
        """Return the inputs of a pod at this time; asked again, the same ones."""
        version = self.version
        if self._inputs is None or self._inputs[0] is not pod or self._inputs[1] != version:
            self._inputs = (pod, version, PodInputs(pod, self.cluster))
        return self._inputs[2]

    def frame(self, pod: PodInputs, rows: Rows) -> RuleFrame:
        """Return the frame of some rows; asked again before anything changed, the same one while that has room.

        Frames of one pod class are kept beside those of no pod, so that a class's arrays go with the next decision.
        """
        place = pod is self.no_pod
        kept = self._frames.get(place)
        if kept is None or kept[1] is not pod or kept[0] != self.version:
            kept = self._frames[place] = (self.version, pod, {})
        key: Hashable = (rows.start, rows.stop) if isinstance(rows, slice) else id(rows)
        frame = kept[2].get(key)
        if frame is None or not frame.has_room():
            frame = kept[2][key] = RuleFrame(self, pod, rows)
        return frame

    def plain(self, pod: PodInputs) -> RuleFrame:
        """Return a frame without rows, for what is made of the pod alone; it is remembered for all frames of it."""
        frame = RuleFrame(self, pod)
        frame.memo = pod.scalars
        return frame

    def values(self, pod: Pod, nodes: Sequence[Typed]) -> Hashable:
        """Return what some graphs make of a pod and this time."""
        frame = self.plain(self.inputs(pod))
        return tuple(comparable(evaluate_columns(node, frame)) for node in nodes)

    def seed(self, pod: PodInputs, roots: Iterable[Typed]) -> None:
        """Find out what graphs make of the pod alone, for all frames of it."""
        frame = self.plain(pod)
        for root in roots:
            for node in plain_scalars(root, timed=pod is self.no_pod):
                evaluate_columns(node, frame)

    def begin_anew(self) -> None:
        """Forget what rules made that may be gone; those that stay make it again."""
        self.no_pod.scalars.clear()

    def changed(self, since: int, reads: int) -> tuple[RowNumbers | None, int]:
        """Return the rows that changed in some aspects after a position of the journal, each once, and these aspects.

        Missing: None for rows where it is too long ago to tell.
        """
        journal = self.cluster.journal
        if self._changes[0] != journal.position:
            self._changes = (journal.position, {})
        known = self._changes[1].get((since, reads))
        if known is None:
            known = self._changes[1][since, reads] = _selected(journal.since(since), reads)
        return known

    def everything(self) -> Rows:
        """Return the rows of all nodes."""
        position, nodes = self.cluster.journal.position, self.cluster.nodes
        if self._everything[0] != position:
            full = nodes.count == nodes.size
            present = np.flatnonzero(nodes.present.data[: nodes.size])
            self._everything = (position, slice(0, nodes.size) if full else present)
        return self._everything[1]


class RuleFrame:
    """What `language.Frame` asks for, over the cluster's columns."""

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
        """Return a frame of the same for other rows."""
        return RuleFrame(self._context, self._pod, rows)

    def has_room(self, steps: int = 0) -> bool:
        """Return whether what was worked out, and so many steps more, takes no more than may be kept.

        What was made of the pod alone is no column, and as many of it as there are rules take next to nothing.
        """
        return (len(self.memo) - len(self._pod.scalars) + steps) * self.rows * _BYTES <= MOST_KEPT

    def make_room(self) -> None:
        """Forget what graphs gave where it is too much to be kept: it is worked out again where it is asked for.

        Not while a graph is evaluated or asked what it lacks.
        """
        if not self.has_room():
            kept = {key: value for key, value in self.memo.items() if not isinstance(key, Typed)}
            self.memo = kept | self._pod.scalars

    @property
    def now(self) -> float:
        """The present."""
        return self._context.cluster.time.seconds

    def column(self, item: Input, /) -> NDArray[Any]:
        """Return a node's or a metric's values on the rows."""
        return node_column(self._context.cluster, self._pod.given, item, self.selected)

    def scalar(self, item: Input, /) -> Scalar | Floats:
        """Return a pod or cluster input's value."""
        return self._pod.value(item)

    def aggregate(self, node: Typed, /) -> Floats | float:
        """Return what was made of all nodes."""
        return self._context.aggregate(self._context, node, self._pod, self.selected)

    def pod_aggregate(self, node: Typed, /) -> Floats:
        """Return what was made of the rows' pods."""
        return self._context.pod_aggregate(self._context, node, self._pod, self.selected)


Given = TypeVar("Given", bound=NDArray[np.float64] | float)
Derive = Callable[[EvaluationContext, Typed, PodInputs, Rows], Given]
"""Gives values on rows that are made of other rows or of pods."""


def number(program: Program, frame: RuleFrame) -> Floats:
    """Run a program that was compiled as a number.

    Shapes: (R,), or () where it is the same for every row.
    Missing: NaN.
    """
    return np.asarray(run_program(program, frame), np.float64)


def comparable(value: Any) -> Hashable:
    """Return a value that equals itself and differs from None."""
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
