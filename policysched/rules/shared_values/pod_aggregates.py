"""The aggregates `node.pods.*`: read from pod counters (numbers by node), or computed from pods without a counter.

Most of these aggregates depend on the placed pod alone, or on the placed pod and the scheduled pod. The state has
counters for them, and a placement changes one element of a counter. An aggregate that reads other inputs (the pod's
node, its name, the time) is computed over the pods of the requested rows when it is read.

`InputChanges` finds out whether a graph's inputs changed: from the journal for rows, and from the stamps of counters.
Most placements change no given counter, so an aggregate over its counts is not computed again.
"""

from __future__ import annotations

from collections.abc import Hashable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from policysched.framework import Aspect, RowNumbers, Rows
from policysched.language.evaluation.columns import Depends, depends, pod_aggregate_over, pod_weights_over
from policysched.language.evaluation.frames import FrameStrings
from policysched.language.evaluation.scalar import evaluate, weigh
from policysched.language.ir.graph import ANY_KEY, POD_AGGREGATES, TIME, Input, Op, Typed, per_graph, steps
from policysched.language.ir.types import Kind
from policysched.rules.compile.graphs import parts, reads_namespaces, walk
from policysched.rules.inputs import BEYOND_SIGNATURE, PodInputs, Scalar, aspects_read, node_column, peer_value
from policysched.rules.shared_values.context import EvaluationContext, Floats
from policysched.state.cluster import Cluster
from policysched.state.placed.counter import PodCounter
from policysched.state.placed.pod_kinds import Alike, PodKinds
from policysched.state.placed.pods import PlacedPod
from policysched.state.placed.signature_values import Demand
from policysched.state.tables.ages import STEP
from policysched.state.tables.columns import distinct, distinct_places
from policysched.state.tables.interner import MISSING

NUMBERS = frozenset(("priority", "requests", "image_bytes", "age"))
GROUP_NUMBERS = frozenset(("group", name) for name in ("min_count", "size", "placed"))
"""The inputs of a victim's group that are numbers, by path."""
_WHOLE = frozenset((Op.INPUT, Op.ADD, Op.SUBTRACT, Op.ONLY, Op.IF, Op.ABS, Op.ROUND, Op.NEGATE, Op.DEFAULT,
                    Op.LEAST, Op.GREATEST, Op.CLAMP, Op.MULTIPLY))  # fmt: skip
PODS = int(Aspect.PODS)
MANY = 32
"""Number of sets of equal placed pods above which weights are computed with arrays instead of one by one."""
_NOTHING = object()
"""A value that no placed pod has."""


def counter(context: EvaluationContext, node: Typed, pod: PodInputs) -> PodCounter | None:
    """Return the pod counter (count by node) of an aggregate over pods, which is cached while it is referenced.

    Missing: None if pods of one signature may have different weights, so that a read has to compute the aggregate.
    """
    key = (node, namespaces_stamp(context, node))
    found: PodCounter | None = pod.found.get(key)
    if found is None:
        found = _make_counter(node, pod, context.cluster)
        if found is not None:
            pod.found[key] = found
    return found


def pod_aggregate_at(context: EvaluationContext, node: Typed, pod: PodInputs, rows: Rows) -> Floats:
    """Return the value of an aggregate over the pods of each node.

    Shapes: (R,).
    Cost: O(rows), or O(pods on the rows) without a counter.
    """
    kept = counter(context, node, pod)
    return _count(node, pod, context, rows) if kept is None else np.asarray(kept.counts[rows], np.float64)


def namespaces_stamp(context: EvaluationContext, node: Typed) -> int:
    """Return a number that changes with labels of namespaces if an expression reads them, else 0."""
    return context.cluster.namespaces_stamp if reads_namespaces(node) else 0


def _make_counter(node: Typed, pod: PodInputs, cluster: Cluster) -> PodCounter | None:
    if depends(node) is Depends.ROW or any(item.path[0] in BEYOND_SIGNATURE for item in _peers(node)):
        return None
    reads_labels = any(item.path[0] == "namespace_labels" for item in _peers(node))
    key: Hashable = (node, pod.key(node.inputs), cluster.namespaces_stamp if reads_labels else 0)
    return cluster.counters.of(
        key,
        lambda placed: weigh(node, Peer(placed, pod, cluster)),
        fractions=not _is_whole(node),
        alike=_alike(node, pod, cluster),
        demand=_demand(node, pod, cluster),
    )


def _demand(node: Typed, pod: PodInputs, cluster: Cluster) -> Demand | None:
    """Return a text that every pod which an aggregate counts has, such as a label value; other pods are skipped.

    Missing: None if the aggregate's condition does not require such a text.
    """
    found = _equality(node)
    if found is None:
        return None
    item, wanted = found
    value = evaluate(wanted, PodAlone(pod))
    return Demand(item, lambda placed: peer_value(placed, item, cluster), _NOTHING if value is None else value)


@per_graph
def _equality(node: Typed) -> tuple[Input, Typed] | None:
    """Return the input of a placed pod and the expression that it must equal; None if there is no such equality.

    The graph does not read the placed pod.
    """
    condition = node.inner[0]
    if node.op is Op.SUM_PODS:
        if condition.op is not Op.ONLY:
            return None
        condition = condition.args[0]
    for one in walk((condition,), lambda part: part.args if part.op is Op.AND else ()):
        if one.op is Op.EQ:
            left, right = one.args
            for peer, other in ((left, right), (right, left)):
                item = _text_of_peer(peer)
                if item is not None and not any(read.root == "peer" for read in other.inputs):
                    return item, other
    return None


def _text_of_peer(node: Typed) -> Input | None:
    """Return the only input of an expression if it is a text that equal placed pods share, else None."""
    item = node.data
    if node.op is not Op.INPUT or not isinstance(item, Input) or node.type.kind is not Kind.STRING:
        return None
    lasting = item.path[0] not in BEYOND_SIGNATURE and item.path[0] != "namespace_labels"
    return item if item.root == "peer" and lasting else None


def _alike(node: Typed, pod: PodInputs, cluster: Cluster) -> Alike | None:
    """Return how placed pods with equal weight in an aggregate are grouped, and how their weights are computed.

    Missing: None if a key is computed, so that the values are not known in advance.
    """
    read = tuple(dict.fromkeys(_peers(node)))
    if any(item.key == ANY_KEY for item in read):
        return None
    labels = cluster.namespaces_stamp if any(item.path[0] == "namespace_labels" for item in read) else 0

    def weigh_all(placed: Sequence[PlacedPod]) -> Sequence[float]:
        if len(placed) < MANY:
            return [weigh(node, Peer(one, pod, cluster)) for one in placed]
        weights: list[float] = pod_weights_over(node, KindFrame(placed, pod, cluster)).tolist()
        return weights

    return Alike(lambda placed: tuple(peer_value(placed, item, cluster) for item in read), weigh_all, (read, labels))


def _count(node: Typed, pod: PodInputs, context: EvaluationContext, rows: Rows) -> Floats:
    """Return the value of an aggregate over the pods of nodes, computed without a pod counter. Shapes: (R,)."""
    cluster = context.cluster
    places = np.arange(cluster.nodes.columns.capacity)[rows]
    if places.size > cluster.nodes.size // 2:
        slots = np.flatnonzero(cluster.pods.rows >= 0)
    else:
        slots = np.array([one.slot for row in distinct(places) for one in cluster.pods.on_row(int(row))], np.int64)
    frame = PeerFrame(slots, pod, context)
    return pod_aggregate_over(node, frame, frame.places, cluster.nodes.columns.capacity)[places]


class PodAlone:
    """The inputs of the scheduled pod for the scalar interpreter; for expressions that read no node."""

    __slots__ = ("_pod",)

    def __init__(self, pod: PodInputs) -> None:
        self._pod = pod

    def value(self, item: Input) -> Scalar:
        """Return the value of an input of the scheduled pod."""
        return self._pod.value(item)

    def _never_read(self) -> Any:
        """Raise an error, because pod counters read neither the time nor nodes."""
        raise AssertionError

    now: Any = property(_never_read)
    feasible: Any = property(_never_read)
    nodes: Any = property(_never_read)
    placement: Any = property(_never_read)
    pods: Any = property(_never_read)


class Peer(PodAlone):
    """The inputs of a placed pod for the scalar interpreter, without fields in which equal pods may differ."""

    __slots__ = ("_cluster", "_placed")

    def __init__(self, placed: PlacedPod, pod: PodInputs, cluster: Cluster) -> None:
        super().__init__(pod)
        self._placed = placed
        self._cluster = cluster

    def value(self, item: Input) -> Scalar:
        """Return the value of an input of the placed pod or of the scheduled pod."""
        return peer_value(self._placed, item, self._cluster) if item.root == "peer" else self._pod.value(item)


class PeerFrame:
    """The values that expressions read for placed pods (a frame), with one row for each pod."""

    def __init__(self, slots: NDArray[np.int64], pod: PodInputs, context: EvaluationContext) -> None:
        cluster = context.cluster
        self._slots = slots
        self._pod = pod
        self._cluster = cluster
        self._context = context
        self.strings = FrameStrings(cluster.strings)
        self.places: RowNumbers = cluster.pods.rows[slots].astype(np.intp)
        self.rows = slots.size
        self.feasible = None
        self.memo: dict[Any, Any] = dict(pod.scalars)

    @property
    def now(self) -> float:
        """The current time. Units: seconds since 1970."""
        return self._cluster.time.seconds

    def column(self, item: Input, /) -> NDArray[Any]:
        """Return the values of a `peer.` or `victim.` input for the pods, or of a `node.` input for each pod's node."""
        if item.root not in {"peer", "victim"}:
            return node_column(self._cluster, self._pod.given, item, self.places)
        if item.path[0] == "age":
            return self._ages()
        if item.path[0] in BEYOND_SIGNATURE:
            by_slot = self._cluster.pods.by_slot
            return self._column([by_slot[slot] for slot in self._slots.tolist()], item)
        signatures, places = distinct_places(self._cluster.pods.signatures[self._slots])
        present = self._cluster.signatures.present
        return self._column([present[one] for one in signatures.tolist()], item)[places]

    def _ages(self) -> Floats:
        """Return the ages of the pods; NaN if the creation time is unknown."""
        created = self._cluster.pods.created(self._slots)
        ages = np.maximum(np.floor((self.now - created) / STEP) * STEP, 0.0)
        return np.where(np.isfinite(created), ages, np.nan)

    def _column(self, placed: Sequence[PlacedPod | None], item: Input) -> NDArray[Any]:
        return _column(placed, item, self.strings, self._cluster)

    def scalar(self, item: Input, /) -> Scalar:
        """Return the value of an input of the scheduled pod or of the cluster."""
        return self._pod.value(item)

    def aggregate(self, node: Typed, /) -> Floats | float:
        """Return the value of an aggregate over nodes for each pod's node."""
        return self._context.aggregate(self._context, node, self._pod, self.places)

    def pod_aggregate(self, node: Typed, /) -> Floats:
        """Raise an error, because aggregates over pods are not nested."""
        raise AssertionError(node)


class KindFrame:
    """The values that pod counters read for placed pods (a frame), without fields in which equal pods may differ."""

    def __init__(self, placed: Sequence[PlacedPod], pod: PodInputs, cluster: Cluster) -> None:
        self._placed, self._pod, self._cluster = placed, pod, cluster
        self.strings = FrameStrings(cluster.strings)
        self.rows = len(placed)
        self.feasible = None
        self.memo: dict[Any, Any] = dict(pod.scalars)

    def column(self, item: Input, /) -> NDArray[Any]:
        """Return the values of an input for the pods; cached for all pod counters."""
        if not isinstance(self._placed, PodKinds):
            return _column(self._placed, item, self.strings, self._cluster)
        kept = self._placed.read
        if item.path[0] in NUMBERS:
            if item not in kept:
                kept[item] = _column(self._placed, item, self.strings, self._cluster)
            numbers: Floats = kept[item]
            return numbers
        if item not in kept:
            kept[item] = _distinct_texts(self._placed, item, self._cluster)
        texts, places = kept[item]
        codes = [MISSING if text is None else self.strings.code(text) for text in texts]
        column: NDArray[Any] = np.array(codes, np.int32)[places]
        return column

    def scalar(self, item: Input, /) -> Scalar:
        """Return the value of an input of the scheduled pod."""
        return self._pod.value(item)

    @property
    def now(self) -> float:
        """Raise an error, because pod counters do not read the time."""
        raise AssertionError

    def aggregate(self, node: Typed, /) -> Floats | float:
        """Raise an error, because pod counters do not read nodes."""
        raise AssertionError(node)

    def pod_aggregate(self, node: Typed, /) -> Floats:
        """Raise an error, because aggregates over pods are not nested."""
        raise AssertionError(node)


def _column(placed: Sequence[PlacedPod | None], item: Input, strings: FrameStrings, cluster: Cluster) -> NDArray[Any]:
    values = [peer_value(one, item, cluster) for one in placed if one is not None]
    if item.path[0] in NUMBERS or item.path in GROUP_NUMBERS:
        return np.array(values, np.float64)
    return np.array([MISSING if value is None else strings.code(str(value)) for value in values], np.int32)


def _distinct_texts(
    placed: Sequence[PlacedPod], item: Input, cluster: Cluster
) -> tuple[list[str | None], NDArray[np.intp]]:
    """Return the different texts of an input, and the index of each pod's text. Shapes: indices (P,)."""
    found: dict[str | None, int] = {}
    values = (peer_value(one, item, cluster) for one in placed)
    places = [found.setdefault(None if value is None else str(value), len(found)) for value in values]
    return list(found), np.array(places, np.intp)


class VictimFrame(PeerFrame):
    """The values that expressions read for possible victims of preemption (a frame), with one row for each pod."""

    def pod_aggregate(self, node: Typed, /) -> Floats:
        """Return the value of an aggregate over the pods of each victim's node."""
        return self._context.pod_aggregate(self._context, node, self._pod, self.places)


def _peers(node: Typed) -> list[Input]:
    return [item for item in node.inner[0].inputs if item.root == "peer"]


def _is_whole(node: Typed) -> bool:
    """Return whether an aggregate over pods adds only whole numbers."""
    if node.op is Op.COUNT_PODS:
        return True
    for step in steps(node.inner[0]):
        if step.type.kind is not Kind.QUANTITY:
            continue
        if step.op is Op.CONSTANT:
            if not isinstance(step.data, float) or not step.data.is_integer():
                return False
        elif step.op not in _WHOLE:
            return False
    return True


class Reads:
    """The changes of nodes (`Aspect`) that affect given expressions, and the pod counters of these expressions."""

    __slots__ = ("_counters", "_stamps", "aspects")

    def __init__(self, roots: Iterable[Typed], pod: PodInputs, context: EvaluationContext) -> None:
        self.aspects = int(Aspect.PRESENCE)
        """Bit mask of the changes of nodes (`Aspect`) that affect the expressions other than through pod counters."""
        counters: dict[Typed, PodCounter] = {}
        for node in walk(roots, lambda node: () if node in counters else parts(node)):
            kept = counter(context, node, pod) if node.op in POD_AGGREGATES else None
            if kept is None:
                self.aspects |= int(_own_aspects(node))
            else:
                counters[node] = kept
        self._counters = list(counters.values())
        self._stamps = [-1] * len(self._counters)

    @property
    def has_counters(self) -> bool:
        """Whether the expressions have pod counters."""
        return bool(self._counters)

    def counters_changed(self) -> bool:
        """Return whether a pod counter of the expressions changed since the last call."""
        stamps = [counter.stamp for counter in self._counters]
        before, self._stamps = self._stamps, stamps
        return stamps != before


class InputChanges:
    """Detects whether inputs of expressions may have changed since the last call, and on which nodes."""

    __slots__ = ("_context", "_reads", "_seen", "_timed", "changed_aspects", "rows")

    def __init__(self, node: Typed, pod: PodInputs, context: EvaluationContext) -> None:
        self._context = context
        self._reads = Reads((node,), pod, context)
        self._timed = TIME in node.inputs
        self._seen: tuple[int, float] | None = None
        self.rows: RowNumbers | None = None
        """The nodes that changed between the last two calls of `is_current`; None if any node may have changed."""
        self.changed_aspects = 0
        """The changes (`Aspect`) of the nodes in `rows`, as a bit mask."""

    def is_current(self) -> bool:
        """Return whether no input has changed since the last call; False at the first call."""
        cluster = self._context.cluster
        now = (cluster.journal.position, cluster.time.seconds if self._timed else 0.0)
        before, self._seen = self._seen, now
        if before == now:
            return True
        counters_changed = self._reads.counters_changed()
        self.rows = None
        if before is None or before[1] != now[1]:
            return False
        reads = self._reads.aspects | (PODS if counters_changed else 0)
        self.rows, self.changed_aspects = self._context.changed(before[0], reads)
        return self.rows is not None and not self.rows.size


def _own_aspects(node: Typed) -> Aspect:
    if node.op in POD_AGGREGATES:
        return Aspect.PODS
    return aspects_read((node.data,)) if isinstance(node.data, Input) else Aspect.NONE
